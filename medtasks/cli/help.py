"""How ``--help`` looks: ``--task TASK`` instead of Python types, whole summaries, and examples."""

from __future__ import annotations

import re
import textwrap
from typing import Any

from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

_EXAMPLES = re.compile(r"\n\nExamples?:\n(?P<lines>.*)", re.DOTALL)
_HANGING_INDENT = re.compile(r"\n +")


class PlainCommand(TyperCommand):
    """A command with short placeholders, whose examples are shown below the options.

    They end its docstring, below ``Example:`` or ``Examples:``; an indented line belongs to the
    example above it.
    """

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        section = _EXAMPLES.search(self.help or "")
        if self.help and section:
            self.help = self.help[: section.start()]
            text = _HANGING_INDENT.sub(" ", textwrap.dedent(section["lines"]))
            self.epilog = examples(*text.splitlines())
        _simplify(self)


class PlainGroup(TyperGroup):
    """A group of commands with its whole summary in the help."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        _simplify(self)


def examples(*lines: str) -> str | None:
    """The ``epilog`` of a command, which shows lines to copy; None without any."""
    if not lines:
        return None
    heading = "Example:" if len(lines) == 1 else "Examples:"
    unwrapped = "\b"  # click keeps the lines of such a paragraph
    return "\n".join([unwrapped, heading, *(f"  {line}" for line in lines)])


def _simplify(command: TyperCommand | TyperGroup) -> None:
    """Show the first paragraph of the help as the summary, and placeholders as argparse does."""
    command.short_help = (command.help or "").partition("\n\n")[0].replace("\n", " ")
    for param in command.params:
        if isinstance(param, TyperArgument):
            param.metavar = param.metavar or _placeholder(param)
            _hide_type(param)
        elif isinstance(param, TyperOption):
            if not param.is_flag:
                param.metavar = param.metavar or _placeholder(param)
            elif param.default is False:
                param.secondary_opts = []  # no --no-…, which is the default


def _placeholder(param: TyperArgument | TyperOption) -> str:
    """The name of a parameter's value: TASK for ``--task``."""
    longest = max(param.opts, key=len)
    return longest.lstrip("-").replace("-", "_").upper()


def _hide_type(argument: TyperArgument) -> None:
    """Leave out the Python type that Typer shows beside an argument's placeholder."""
    argument.display_type_rich = lambda ctx: None  # type: ignore[method-assign]  # noqa: ARG005
