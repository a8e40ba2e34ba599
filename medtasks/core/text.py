"""Text for one line: untrusted text (names of models and directories, findings) made safe, and lists of names."""

from __future__ import annotations

import re
from collections.abc import Iterable

_COMMAND = re.compile(r"^:(?=:)|##(?=\[)")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def well_formed(text: str) -> str:
    """``text`` with U+FFFD for lone surrogates, which no UTF-8 file, database or request body can contain.

    >>> well_formed("a\\ud800b") == "a\\ufffdb"
    True
    """
    return text if text.isascii() else _LONE_SURROGATE.sub("\ufffd", text)


def one_line(text: str) -> str:
    """``text`` on one line: whitespace as single spaces, control and formatting characters as U+FFFD."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in " ".join(text.split()))


def printable(text: str) -> str:
    r""":func:`one_line`, also safe in CI logs: GitHub runs a line of ``::name::`` or with ``##[name]`` as a command.

    >>> printable("::error::\tpwned"), printable("a ##[group]")
    (': :error:: pwned', 'a ## [group]')
    """
    return _COMMAND.sub(lambda found: f"{found[0]} ", one_line(text))


def counted(count: int, noun: str, plural: str = "") -> str:
    """``count`` with its noun in the singular or the plural.

    >>> counted(1, "run"), counted(1200, "run"), counted(2, "directory", "directories")
    ('1 run', '1,200 runs', '2 directories')
    """
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def first_names(names: Iterable[str], most: int = 4, separator: str = ", ") -> str:
    """The first ``most`` names, and how many more there are.

    >>> first_names(["a", "b"], 2), first_names(["a", "b", "c"], 2)
    ('a, b', 'a, b and 1 more')
    """
    known = list(names)
    rest = f" and {len(known) - most:,} more" if len(known) > most else ""
    return separator.join(known[:most]) + rest


def shortened(text: str, most: int) -> str:
    """``text`` on one line of at most ``most`` characters, cut between words.

    >>> shortened("The polyp is  pedunculated", 20), shortened("pedunculated", 8)
    ('The polyp is …', 'peduncu…')
    """
    text = " ".join(text.split())
    if len(text) <= most:
        return text
    head, space, _ = text[: most - 1].rpartition(" ")
    return f"{head}{space}…" if head else f"{text[: most - 1]}…"
