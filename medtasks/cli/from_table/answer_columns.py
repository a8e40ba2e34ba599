"""The columns of options and answers, and how the questions of a table are answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from medtasks.catalog.benchmark_file import LETTERS
from medtasks.cli.from_table.answer_kinds import (
    AnswerGuess,
    guess_form,
    guess_kind,
    options_in_rows,
)
from medtasks.cli.from_table.column_names import named_like, option_families
from medtasks.cli.from_table.columns import TableColumn
from medtasks.cli.from_table.roles import Line, Roles
from medtasks.cli.from_table.undecided import Undecided
from medtasks.core.errors import UsageError
from medtasks.core.schema import shown


def choose_options(roles: Roles) -> str | Mapping[str, str] | None:
    """Choose the columns of the options, and add the choice to ``roles``.

    Returns the columns by letter, or the column that lists all options; None without options.

    Raises:
        Undecided: several columns may be the options, or none is and there must be one.
    """
    names = roles.take_wish("options")
    if names is not None:
        return _options_of(names)
    wish = roles.wishes.answers
    if wish not in (None, "options"):
        return None
    free = roles.free()
    families = option_families(free)
    lists = named_like("options", free)
    candidates = [",".join(family.values()) for family in families] + lists
    if len(candidates) > 1:
        message = f"{roles.columns.path.name}: {' and '.join(map(shown, candidates))}"
        raise Undecided(f"{message} may each be the options", "--column options=", candidates)
    if families:
        _require_letters(roles, families[0])
        roles.add("options", list(families[0].values()), "their names")
        return families[0]
    if lists:
        _require_lists(roles.columns[lists[0]])
        roles.add("options", lists, "its name, and it lists options")
        return lists[0]
    if wish == "options":
        raise roles.absent("options")
    return None


def _options_of(names: Sequence[str]) -> str | Mapping[str, str] | None:
    """The value of ``columns.options`` for the columns that the user has named."""
    if not names:
        return None
    if len(names) == 1:
        return names[0]
    return dict(zip(LETTERS, names, strict=False))


def _require_letters(roles: Roles, family: Mapping[str, str]) -> None:
    """Refuse more options than there are letters."""
    if len(family) > len(LETTERS):
        names = list(family.values())
        most = len(LETTERS)
        raise UsageError(
            f"{roles.columns.path.name}: the columns {shown(names[0])} to {shown(names[-1])} are "
            f"more than {most} options, expected at most {most}; remove columns, or "
            "name those of the options with --column options=."
        )


def _require_lists(column: TableColumn) -> None:
    """Refuse a column that is named like options, but whose cells rarely list two or more."""
    number = len(column.cells)
    rows = [row for row in range(number) if len(column.options(row)) < 2]
    if 2 * len(rows) < number:
        return
    text = shown(column.texts[rows[0]])
    message = (
        f"{column.places[rows[0]]}: column {shown(column.name)} is {text}, expected options such "
        'as ["left", "right"] or A. left | B. right: correct it, or use no options'
    )
    raise Undecided(message, "--column options=", ("",))


def choose_answers(
    roles: Roles, answer: str, options: str | Mapping[str, str] | None
) -> AnswerGuess:
    """Choose how the questions are answered, and add the choice to the lines of ``roles``.

    ``answer`` is the column of the gold answers, ``options`` what :func:`choose_options` returned.

    Raises:
        Undecided: several kinds of answers fit.
        UsageError: the answers are letters, and there are no options.
    """
    column = roles.columns[answer]
    wish = roles.wishes.answers
    if options is not None:
        choices = options_in_rows(roles.columns, options)
        guess = guess_form(column, choices, roles.wishes.answer_form)
    elif wish is None:
        _refuse_letters(column)
        guess = guess_kind(column)
    else:
        guess = AnswerGuess(wish, "as you said")
    roles.lines.append(Line("answers", guess.kind, guess.why))
    return guess


def _refuse_letters(column: TableColumn) -> None:
    """Refuse answers that are letters of options which no column has."""
    if column.counts and all(text.upper() in LETTERS for text in column.counts):
        raise UsageError(
            f"{column.places[0].file}: column {shown(column.name)} has letters, but no columns are "
            "named like options; pass --column options=A,B with their names, or --answers "
            "closed if the letters are labels."
        )
