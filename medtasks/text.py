"""Printing untrusted text (names of models and directories, findings) safely on one line."""

from __future__ import annotations

import re

_COMMAND = re.compile(r"^:(?=:)|##(?=\[)")


def one_line(text: str) -> str:
    """``text`` on one line: whitespace as single spaces, control and formatting characters as U+FFFD."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in " ".join(text.split()))


def printable(text: str) -> str:
    r""":func:`one_line`, also safe in CI logs: GitHub runs a line of ``::name::`` or with ``##[name]`` as a command.

    >>> printable("::error::\tpwned"), printable("a ##[group]")
    (': :error:: pwned', 'a ## [group]')
    """
    return _COMMAND.sub(lambda found: f"{found[0]} ", one_line(text))
