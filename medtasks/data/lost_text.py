"""Texts that a spreadsheet program has replaced: they are marked, and never read as other texts."""

from __future__ import annotations

from dataclasses import dataclass

_SPREADSHEET_ERRORS = frozenset(
    ("#CALC!", "#DIV/0!", "#N/A", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#SPILL!", "#VALUE!")
)
"""What spreadsheet programs write into a CSV file for a cell whose formula failed."""


@dataclass(frozen=True)
class LostText:
    """A cell whose text is not in the file any more, with what is there instead."""

    found: str

    def __repr__(self) -> str:
        return self.found


def text_or_lost(text: str) -> str | LostText:
    """The text of a CSV cell; `LostText` if it is the error value of a spreadsheet program.

    >>> text_or_lost("B"), text_or_lost("#NAME?")
    ('B', the error #NAME?)
    """
    if text.strip() in _SPREADSHEET_ERRORS:
        return LostText(f"the error {text.strip()}")
    return text
