"""Tables of simulated coverage: what a simulation measured, and which bounds it missed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Section:
    """One table of simulations; ``missed`` names each bound that a cell does not keep, in a
    sentence.
    """

    title: str
    header: tuple[str, ...]
    rows: list[tuple[str, ...]]
    missed: list[str]

    def markdown(self) -> str:
        """The section's table as it is in docs/statistics.md."""
        rules = ["---"] + ["---:"] * (len(self.header) - 1)
        lines = [_markdown_row(self.header), "|" + "|".join(rules) + "|"]
        lines += [_markdown_row(row) for row in self.rows]
        return "\n".join([f"### {self.title}", "", *lines])


def print_sections(sections: Iterable[Section]) -> list[str]:
    """Print each table as it is finished; the bounds missed in all of them."""
    missed: list[str] = []
    for section in sections:
        print(section.markdown(), end="\n\n", flush=True)
        missed += section.missed
    for sentence in missed:
        print(f"MISSED {sentence}")
    return missed


def _markdown_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
