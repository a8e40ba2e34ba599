"""Tables as text: printed by commands, and shown as HTML by notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from medtasks.core.text import first_names, printable


@dataclass(frozen=True)
class TextTable:
    """Columns and rows of text; ``notes`` are lines below the table. Cells may be untrusted."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    notes: Sequence[str] = ()

    def _repr_html_(self) -> str:
        head, *rows = [[escape(printable(cell)) for cell in row] for row in (self.columns, *self.rows)]
        lines = ["<tr>" + "".join(f"<th>{cell}</th>" for cell in head) + "</tr>"]
        lines += ["<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows]
        caption = f"<caption>{escape(printable(self.title))}</caption>" if self.title else ""
        below = "".join(f"<p>{escape(printable(note.strip()))}</p>" for note in self.notes)
        return f"<table>{caption}{''.join(lines)}</table>{below}"


def grouped_notes(texts: Iterable[tuple[str, str]]) -> list[str]:
    """One line for each distinct text, indented, with the first of the places that it is about."""
    places: dict[str, dict[str, None]] = {}
    for text, place in texts:
        places.setdefault(text, {})[place] = None
    return [f"  {printable(f'{text} ({first_names(names)})')}" for text, names in places.items()]


def signed_interval(ends: Sequence[float | None] | None, digits: int = 3) -> str:
    """An interval of a difference; ``none`` if there is none."""
    if ends is None or None in ends:
        return "none"
    return f"[{', '.join(f'{end:+.{digits}f}' for end in ends)}]"


def p_text(value: float | None) -> str:
    """A p-value; empty without one."""
    return "" if value is None else f"{value:.3g}"
