"""The columns of a table that have a role already, and the reasons: a column has one role."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from medtasks.cli.from_table.column_names import (
    named_like,
    normalised,
    option_families,
    with_word_of,
)
from medtasks.cli.from_table.columns import TableColumns
from medtasks.cli.from_table.undecided import Undecided
from medtasks.cli.from_table.wishes import Wishes
from medtasks.core.errors import UsageError
from medtasks.core.schema import shown, suggestion
from medtasks.core.text import first_names, shortened

_SEVERAL = frozenset({"image", "options", "breakdowns"})
"""Roles that several columns may have."""
_NEEDED = frozenset({"question", "answer"})
"""Roles that a column must have."""


@dataclass(frozen=True)
class Line:
    """One decision as it is shown: what was decided, why, and the first value."""

    key: str
    value: str
    why: str
    example: str = ""


class Roles:
    """The roles that columns of a table are given, one after the other.

    Attributes:
        columns: the table.
        wishes: what the user has decided.
        lines: the decisions so far.
        used: the columns that have a role, or that a user has named.

    Raises:
        UsageError: a wish names no column of the table, or too many.
    """

    def __init__(self, columns: TableColumns, wishes: Wishes) -> None:
        self.columns = columns
        self.wishes = wishes
        self.lines: list[Line] = []
        self.used: set[str] = set()
        for role, names in wishes.columns.items():
            self._require_columns(role, names)
            self.used.update(names)

    def _require_columns(self, role: str, names: Sequence[str]) -> None:
        """Refuse a wish for columns that do not exist, or for too many."""
        for name in names:
            if name not in self.columns.by_name:
                near = suggestion(name, self.columns.names)
                raise UsageError(
                    f"--column {role}={name}: {self.columns.path.name} has no column "
                    f"{shown(name)}{near}; choose from {_listed(self.columns.names)}."
                )
        if len(names) > 1 and role not in _SEVERAL:
            raise UsageError(f"--column {role}={','.join(names)}: several columns; name one.")
        if not names and role in _NEEDED:
            raise UsageError(f"--column {role}=: names no column, and one is needed; name it.")

    def take_wish(self, role: str) -> tuple[str, ...] | None:
        """Give the columns that the user has chosen for a role this role, and return them.

        Empty if the user wants none; None if the user has chosen nothing.
        """
        names = self.wishes.columns.get(role)
        if names:
            self.add(role, names, "as you said")
        elif names is not None:
            self.lines.append(Line(role, "none", "as you said"))
        return names

    def free(self) -> list[str]:
        """The columns with content that have no role yet."""
        names = [name for name in self.columns.names if name not in self.used]
        return [name for name in names if not self.columns[name].is_blank]

    def add(self, role: str, names: Sequence[str], why: str) -> None:
        """Give columns a role, and add the line that says so."""
        self.used.update(names)
        self.lines.append(Line(role, ", ".join(names), why, self.columns[names[0]].example))

    def choose_one(self, role: str) -> str | None:
        """Give the role to the only column with a usual name of it, and return the column.

        None if no column has such a name, or the user wants none.

        Raises:
            Undecided: several columns have one, or none has and the role is needed.
        """
        names = self.take_wish(role)
        if names is not None:
            return names[0] if names else None
        candidates = named_like(role, self.free())
        if role == "answer" and not candidates:
            candidates = named_like("label", self.free())
        # of two answers, either may be the text of the right option, or another reader's
        is_clear = role == "question" and candidates and normalised(candidates[0]) == role
        if len(candidates) > 1 and not is_clear:
            message = f"{self.columns.path.name}: {' and '.join(map(shown, candidates))}"
            raise Undecided(
                f"{message} may each be the {role} column", f"--column {role}=", candidates
            )
        if candidates:
            self.add(role, candidates[:1], "its name" + not_used(candidates[1:]))
            return candidates[0]
        if role in _NEEDED:
            raise self.absent(role)
        return None

    def absent(self, role: str) -> UsageError:
        """The error that no column is named like a needed role."""
        names = self.columns.names
        file = self.columns.path.name
        if len(names) == 1 and any(mark in names[0] for mark in "|:,;"):
            return UsageError(
                f"{file}: the header is one cell, {shown(names[0])}, expected commas, semicolons "
                "or tabs between columns; save the file so."
            )
        unnamed = [name for name in names if name.startswith("(column ")]
        blank = f" (name {first_names(unnamed)} in the header)" if unnamed else ""
        message = f"{file}: no column is named like the {role}: {_listed(names)}{blank}"
        of_options = {name for family in option_families(names) for name in family.values()}
        possible = [name for name in names if name not in of_options]
        near = with_word_of(role, possible) or get_close_matches(role, possible, n=1, cutoff=0.8)
        text_option = "--question " if role == "question" else ""
        return Undecided(message, f"--column {role}=", near[:1], text_option)


def _listed(names: Sequence[str]) -> str:
    """The first names of columns for a message, shortened, as a cell may be in their place."""
    return first_names([shortened(name, 40) for name in names], 12)


def not_used(names: Sequence[str]) -> str:
    """A clause on further plausible columns, which are not used."""
    return f" ({', '.join(names)} not used)" if names else ""
