"""The filters of the LaTeX template, by name in `LATEX_FILTERS`.

Text of a board must neither become a command nor end the line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from medtasks.core.text import one_line

from ..board.floors import floors_text

_COMMANDS = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\char34{}",
    "`": r"\textasciigrave{}", "[": "{[}", "]": "{]}", "…": r"\ldots{}",
}  # fmt: skip
_FORMULA_COMMANDS = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "epsilon", "θ": "theta",
    "κ": "kappa", "λ": "lambda", "μ": "mu", "π": "pi", "ρ": "rho", "σ": "sigma", "τ": "tau",
    "φ": "phi", "χ": "chi", "ω": "omega", "Δ": "Delta", "Σ": "Sigma", "Ω": "Omega",
    "→": "rightarrow", "←": "leftarrow", "≤": "leq", "≥": "geq", "≠": "neq", "≈": "approx",
    "×": "times", "±": "pm", "∞": "infty",
}  # fmt: skip
"""Letters that pdfLaTeX has only in formulas, by the command for each."""
for _letter, _command in _FORMULA_COMMANDS.items():
    _COMMANDS[_letter] = rf"\ensuremath{{\{_command}}}"
_COMMANDS["−"] = r"\ensuremath{-}"
_LIGATURE = re.compile(r"([-',])(?=\1)")


def latex_escaped(text: str) -> str:
    r"""``text`` escaped for LaTeX, on one line.

    Brackets are in braces, because ``\\`` would take them as an argument.

    >>> print(latex_escaped("50 % of $x_1"))
    50 \% of \$x\_1
    """
    escaped = "".join(_COMMANDS.get(letter, letter) for letter in one_line(text))
    return _LIGATURE.sub(r"\1{}", escaped)


_FILTERS: tuple[Callable[..., Any], ...] = (floors_text, latex_escaped, one_line)
LATEX_FILTERS: Mapping[str, Callable[..., Any]] = {
    function.__name__: function for function in _FILTERS
}
"""The filters by the names of their functions."""
