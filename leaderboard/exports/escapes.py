"""Text of a board in Markdown and LaTeX, where it must neither become markup nor end the line."""

from __future__ import annotations

import re

from medtasks.core.text import one_line

_SPECIAL = re.compile(r"([\\`*_\[\]<>|~#&$])")
_LINK = re.compile(r"(?i)\b(https?|ftp|mailto|www)([:.])")
_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': r"\char34{}", "`": r"\textasciigrave{}", "[": "{[}", "]": "{]}", "…": r"\ldots{}",
}  # fmt: skip
_MATH = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "epsilon", "θ": "theta", "κ": "kappa", "λ": "lambda",
    "μ": "mu", "π": "pi", "ρ": "rho", "σ": "sigma", "τ": "tau", "φ": "phi", "χ": "chi", "ω": "omega", "Δ": "Delta",
    "Σ": "Sigma", "Ω": "Omega", "→": "rightarrow", "←": "leftarrow", "≤": "leq", "≥": "geq", "≠": "neq", "≈": "approx",
    "×": "times", "±": "pm", "∞": "infty",
}  # fmt: skip
"""Letters that pdfLaTeX has in formulas alone, by the command for each."""
_LATEX |= {letter: rf"\ensuremath{{\{command}}}" for letter, command in _MATH.items()}
_LATEX["−"] = r"\ensuremath{-}"
_LIGATURE = re.compile(r"([-',])(?=\1)")


def markdown_escaped(text: str) -> str:
    r"""``text`` as plain text on one line of a table: no markup, no HTML, no links.

    >>> print(markdown_escaped("a|b <i>x_y</i>"))
    a\|b \<i\>x\_y\</i\>
    """
    return _LINK.sub(r"\1\\\2", _SPECIAL.sub(r"\\\1", one_line(text)))


def latex_escaped(text: str) -> str:
    r"""``text`` escaped for LaTeX; brackets are in braces, because ``\\`` would take them as an
    argument.

    >>> print(latex_escaped("50 % of $x_1"))
    50 \% of \$x\_1
    """
    return _LIGATURE.sub(r"\1{}", "".join(_LATEX.get(letter, letter) for letter in one_line(text)))
