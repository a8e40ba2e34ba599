"""A proposal as the user sees it: printed as a table and, on a terminal, asked about."""

from __future__ import annotations

import sys
from collections.abc import Callable

from medtasks.cli.console import fail, table, write
from medtasks.cli.from_table.columns import TableColumns
from medtasks.cli.from_table.proposal import Proposal, propose
from medtasks.cli.from_table.undecided import Undecided
from medtasks.cli.from_table.wishes import Wishes
from medtasks.core.errors import UsageError
from medtasks.core.text import counted, first_names, printable

_SETTINGS = {"answers": "--answers ", "answer_form": "--answer-form ", "language": "--language "}
"""The options of what can be changed besides the roles of columns."""
_SHORTEST_QUESTION = 2
"""Words of a question that is entered in place of a column; fewer are a misspelt column."""

Ask = Callable[[str], str]
"""Asks a question and returns the answer; empty for Enter."""


def terminal() -> Ask | None:
    """Asks the person at the terminal; None if there is none."""
    return _input if sys.stdin.isatty() and sys.stdout.isatty() else None


def _input(question: str) -> str:
    """The line that a person enters; the end of the input ends the program."""
    try:
        return input(question)
    except EOFError as error:
        raise UsageError("the input has ended; nothing was written.") from error


def decided(columns: TableColumns, wishes: Wishes, ask: Ask | None) -> Proposal:
    """The proposal that the user accepts, after it is printed.

    Without ``ask``, a proposal in which nothing is open is accepted.

    Raises:
        Undecided: a choice is open, and nobody can be asked.
        UsageError: a wish cannot be fulfilled, and nobody can be asked.
    """
    while True:
        proposal, wishes = _without_open_choices(columns, wishes, ask)
        _print(columns, proposal)
        changes = ask("Enter to accept, or a change such as cluster=patient: ") if ask else ""
        if not changes.strip():
            return proposal
        wishes = _changed(columns, wishes, changes)


def _without_open_choices(
    columns: TableColumns, wishes: Wishes, ask: Ask | None
) -> tuple[Proposal, Wishes]:
    """The proposal, after the user has been asked for every choice that is open."""
    while True:
        try:
            return propose(columns, wishes), wishes
        except Undecided as undecided:
            if ask is None:
                raise
            wishes = _answered(columns, wishes, undecided, ask)


def _answered(columns: TableColumns, wishes: Wishes, undecided: Undecided, ask: Ask) -> Wishes:
    """The wishes with the user's answer to an open choice; an unusable answer is asked again."""
    candidates = undecided.candidates if len(undecided.candidates) > 1 else columns.names
    write(printable(f"{undecided.reason}."))
    if undecided.text_option:
        write("Enter the number of a column, or the question if it is the same for all rows.")
    for number, candidate in enumerate(candidates, start=1):
        write(f"  {number}  {printable(candidate or '(none)')}")
    while True:
        answer = ask(f"{undecided.option.split()[-1].rstrip('=')}: ").strip()
        value = answer
        if answer.isdecimal() and 1 <= int(answer) <= len(candidates):
            value = candidates[int(answer) - 1]
        elif undecided.text_option and len(answer.split()) >= _SHORTEST_QUESTION:
            return wishes.with_option(undecided.text_option, answer)
        elif answer not in candidates:
            fail(f"expected a number from 1 to {len(candidates)}.")
            continue
        return wishes.with_option(undecided.option, value)


def _changed(columns: TableColumns, wishes: Wishes, changes: str) -> Wishes:
    """The wishes with a change such as ``cluster=patient``; without it if it is not possible."""
    key, sign, value = changes.partition("=")
    key = key.strip().replace("-", "_")
    if not sign:
        fail("expected a change such as cluster=patient, or Enter.")
        return wishes
    option = _SETTINGS.get(key, f"--column {key}=")
    try:
        changed = wishes.with_option(option, value.strip())
        propose(columns, changed)
    except Undecided:  # will be asked
        return changed
    except UsageError as error:
        fail(error)
        return wishes
    return changed


def _print(columns: TableColumns, proposal: Proposal) -> None:
    """Print what was decided, with the reasons, and which columns are not used."""
    rows = [(line.key, line.value, line.why, line.example) for line in proposal.lines]
    write(printable(f"{columns.path.name}: {counted(columns.rows, 'row')}"))
    if columns.other_sheets:
        write(printable(f"not read: sheets after the first ({first_names(columns.other_sheets)})"))
    table(("", "column or value", "why", "first value"), rows)
    unused = [name for name in columns.names if name not in proposal.used]
    if unused:
        write(printable(f"not used: {', '.join(unused)}"))
