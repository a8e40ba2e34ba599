"""Text for one line: untrusted text (names of models and directories, findings) made safe, lists of
names, and tables of text, which commands print and notebooks show.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

_COMMAND = re.compile(r"^:(?=:)|##(?=\[)")
_SURROGATE = re.compile("[\ud800-\udfff]")


def well_formed(text: str) -> str:
    """``text`` with U+FFFD for each lone surrogate, which no UTF-8 file, database or request body
    can contain.

    Two halves of a pair that were put together late become the character that they encode.

    >>> well_formed("a\\ud800b") == "a\\ufffdb", well_formed("\\ud83d\\ude00") == "\\U0001f600"
    (True, True)
    """
    if text.isascii() or _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def one_line(text: str) -> str:
    """``text`` on one line: whitespace as single spaces, control and formatting characters as
    U+FFFD.
    """
    joined = " ".join(text.split())
    if joined.isprintable():
        return joined
    return "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in joined
    )


_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls, but line breaks and tabs
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # which turn the direction of what follows
    "\u200b\u2028\u2029\u2060-\u2064\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"  # no width, breaks
    "\ud800-\udfff]"  # half a surrogate pair
)


def visible(text: str) -> str:
    r"""``text`` with what a page would not show written out: controls but line breaks and tabs,
    marks of direction, characters without a width (but joiners, which scripts and emoji need), and
    lone surrogates.

    >>> visible("no polyp\u202e yes\x00"), visible("1\r\n2\t3")
    ('no polyp\\u{202e} yes\\u{0}', '1\n2\t3')
    """
    return _INVISIBLE.sub(lambda match: f"\\u{{{ord(match[0]):x}}}", text.replace("\r\n", "\n"))


def printable(text: str) -> str:
    r""":func:`one_line`, also safe in CI logs: GitHub runs a line of ``::name::`` or with
    ``##[name]`` as a command.

    >>> printable("::error::\tpwned"), printable("a ##[group]")
    (': :error:: pwned', 'a ## [group]')
    """
    return _COMMAND.sub(lambda match: f"{match[0]} ", one_line(text))


def counted(count: int, noun: str, plural: str = "") -> str:
    """``count`` with its noun in the singular or the plural.

    >>> counted(1, "run"), counted(1200, "run"), counted(2, "directory", "directories")
    ('1 run', '1,200 runs', '2 directories')
    """
    if count == 1:
        return f"1 {noun}"
    return f"{count:,} {plural or noun + 's'}"


def byte_count(count: int) -> str:
    """A number of bytes in decimal units.

    >>> byte_count(900), byte_count(12_345_678), byte_count(6_895_143_178)
    ('900 bytes', '12.3 MB', '6.9 GB')
    """
    for unit, size in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return counted(count, "byte")


def first_names(names: Iterable[str], most: int = 4, separator: str = ", ") -> str:
    """The first ``most`` names, and how many more there are.

    >>> first_names(["a", "b"], 2), first_names(["a", "b", "c"], 2)
    ('a, b', 'a, b and 1 more')
    """
    listing = list(names)
    first = separator.join(listing[:most])
    omitted = len(listing) - most
    return f"{first} and {omitted:,} more" if omitted > 0 else first


def shortened(text: str, most: int) -> str:
    """``text`` on one line of at most ``most`` characters, cut between words.

    >>> shortened("The polyp is  pedunculated", 20), shortened("pedunculated", 8)
    ('The polyp is …', 'peduncu…')
    """
    text = " ".join(text.split())
    if len(text) <= most:
        return text
    cut = text[: most - 1]
    words, space, _ = cut.rpartition(" ")
    return f"{words}{space}…" if words else f"{cut}…"


@dataclass(frozen=True)
class TextTable:
    """Columns and rows of text; ``notes`` are lines below the table. Cells may be untrusted."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    notes: Sequence[str] = ()

    def _repr_html_(self) -> str:
        caption = _element("caption", self.title) if self.title else ""
        lines = [_table_row("th", self.columns)]
        lines += [_table_row("td", row) for row in self.rows]
        notes = [_element("p", note.strip()) for note in self.notes]
        return f"<table>{caption}{''.join(lines)}</table>{''.join(notes)}"


def _element(tag: str, text: str) -> str:
    """An HTML element with untrusted text."""
    return f"<{tag}>{escape(printable(text))}</{tag}>"


def _table_row(tag: str, cells: Iterable[str]) -> str:
    return f"<tr>{''.join(_element(tag, cell) for cell in cells)}</tr>"


def grouped_notes(texts: Iterable[tuple[str, str]]) -> list[str]:
    """One line for each distinct text, indented, with the first of the places that it is about."""
    places: dict[str, dict[str, None]] = {}
    for text, place in texts:
        places.setdefault(text, {})[place] = None
    lines = []
    for text, names in places.items():
        lines.append(f"  {printable(f'{text} ({first_names(names)})')}")
    return lines


def signed_interval(ends: Sequence[float | None] | None, digits: int = 3) -> str:
    """An interval of a difference as text; ``none`` if there is none."""
    if ends is None or None in ends:
        return "none"
    low, high = ends
    return f"[{low:+.{digits}f}, {high:+.{digits}f}]"


def p_text(value: float | None) -> str:
    """A p-value; empty without one."""
    return "" if value is None else f"{value:.3g}"
