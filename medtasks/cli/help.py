"""What ``--help`` shows in addition to the docstrings: placeholders, full summaries, and the texts of ``help.yaml``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

TEXTS: dict[str, dict[str, Any]] = yaml.load(
    Path(__file__).with_name("help.yaml").read_bytes(), getattr(yaml, "CSafeLoader", yaml.SafeLoader)
)
"""By command: ``examples`` to copy, and what its ``options`` (and arguments) mean."""


def plain_help(command: Any, name: str = "", examples: Sequence[str] = ()) -> Any:
    """The click ``command`` with short placeholders, full summaries and examples in its help, and those below it.

    ``name`` is its name below ``medtasks``; ``examples`` are lines to copy if ``help.yaml`` has none.
    """
    texts = TEXTS.get(name, {})
    for param in command.params:
        option = max(param.opts, key=len).lstrip("-").replace("-", "_")
        param.help = texts.get("options", {}).get(option, param.help)
        if param.param_type_name == "argument":
            param.display_type_rich = lambda ctx: None  # noqa: ARG005  (newer typer shows its Python type)
        if not getattr(param, "is_flag", False):  # --task TASK, as in argparse, instead of a Python type
            param.metavar = param.metavar or option.upper()
        elif not param.default:  # without --no-…, which would be the default
            param.secondary_opts = []
    command.short_help = (command.help or "").partition("\n\n")[0].replace("\n", " ")
    lines = texts.get("examples", examples)
    if lines:
        shown = ["Example:" if len(lines) == 1 else "Examples:", *(f"  {line}" for line in lines)]
        command.epilog = "\n".join(["\b", *shown])  # click keeps the lines of such a paragraph as they are
    for child in getattr(command, "commands", {}).values():
        plain_help(child, f"{name} {child.name}".strip())
    return command
