"""What a table's columns contain and how its questions are answered, with the reason for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from medtasks.catalog.benchmark_file import DOCUMENT_FIELDS
from medtasks.cli.from_table.answer_columns import choose_answers, choose_options
from medtasks.cli.from_table.answer_kinds import AnswerGuess
from medtasks.cli.from_table.column_names import named_like, normalised, picture_families
from medtasks.cli.from_table.columns import TableColumn, TableColumns
from medtasks.cli.from_table.languages import guess_language
from medtasks.cli.from_table.roles import Line, Roles, not_used
from medtasks.cli.from_table.undecided import Undecided
from medtasks.cli.from_table.wishes import Wishes
from medtasks.core.schema import shown
from medtasks.core.text import shortened

_NO_GROUPS = ("question", "answer", "id", "cluster")
"""Roles whose usual names are not those of columns by which scores are broken down."""


@dataclass(frozen=True)
class Proposal:
    """The keys of a ``benchmark.yaml`` that follow from a table, and the decision on each.

    ``question`` is empty if all rows have the ``fixed_question``.
    """

    question: str
    fixed_question: str
    answer: str
    images: tuple[str, ...]
    options: str | Mapping[str, str] | None
    id: str | None
    cluster: str | None
    instructions: str | None
    breakdowns: tuple[str, ...]
    answers: AnswerGuess
    language: str
    lines: tuple[Line, ...]
    used: frozenset[str]


def propose(columns: TableColumns, wishes: Wishes) -> Proposal:
    """The proposal for a table that fulfils the ``wishes``.

    Roles are chosen one after the other, as a column that has one is not available for the next.

    Raises:
        Undecided: a choice is open; names the option that decides it.
        UsageError: a wish names no column of the table, or contradicts another one.
    """
    roles = Roles(columns, wishes)
    fixed_question = wishes.question or ""
    if fixed_question:
        question = ""
        roles.lines.append(Line("question", shortened(fixed_question, 36), "that of all rows"))
    else:
        question = roles.choose_one("question") or ""
    images = _choose_images(roles)
    options = choose_options(roles)
    answer = roles.choose_one("answer") or ""
    answers = choose_answers(roles, answer, options)
    row_id = _choose_id(roles)
    cluster = _choose_cluster(roles, images)
    instructions = roles.choose_one("instructions")
    breakdowns = _choose_breakdowns(roles)
    questions = columns[question].texts[:200] if question else [fixed_question]
    language = _choose_language(roles, questions)
    return Proposal(
        question=question,
        fixed_question=fixed_question,
        answer=answer,
        images=images,
        options=options,
        id=row_id,
        cluster=cluster,
        instructions=instructions,
        breakdowns=breakdowns,
        answers=answers,
        language=language,
        lines=tuple(roles.lines),
        used=frozenset(roles.used),
    )


def _choose_images(roles: Roles) -> tuple[str, ...]:
    """Choose the columns of pictures by their names and contents, and add the choice to ``roles``.

    Raises:
        Undecided: several columns may be the pictures.
    """
    names = roles.take_wish("image")
    if names is not None:
        return names
    free = roles.free()
    families = [family for family in picture_families(free) if len(family) > 1]
    if len(families) == 1:
        roles.add("image", families[0], "their names")
        return families[0]
    named = named_like("image", free)
    # in VLMEvalKit's layout, other cells are the indices of rows with the same picture
    likely = [name for name in named if roles.columns[name].pictures]
    with_pictures = [name for name in free if roles.columns[name].has_pictures]
    candidates = likely or with_pictures or named
    if not candidates:
        roles.lines.append(Line("image", "none", "no column has pictures or their paths"))
        return ()
    first = candidates[0]
    if len(candidates) > 1 and normalised(first) != "image":
        message = f"{roles.columns.path.name}: {' and '.join(map(shown, candidates))}"
        raise Undecided(f"{message} may each be the image column", "--column image=", candidates)
    reason = "its name" if first in named else "it contains pictures or their paths"
    roles.add("image", (first,), reason + not_used(candidates[1:]))
    roles.used.update(candidates)
    return (first,)


def _choose_id(roles: Roles) -> str | None:
    """Choose the column that identifies rows, and add the choice to ``roles``.

    Raises:
        Undecided: a column is named so, but repeats a text.
    """
    names = roles.take_wish("id")
    if names is not None:
        return names[0] if names else None
    for name in named_like("id", roles.free()):
        column = roles.columns[name]
        if sum(column.counts.values()) < roles.columns.rows:
            continue
        repetition = column.first_repeated()
        if repetition is not None:
            first, again = repetition
            message = (
                f"{again}: column {shown(name)} repeats the id of {first.unit} {first.line}, "
                "expected different ids: correct it, or use no id"
            )
            raise Undecided(message, "--column id=", ("",))
        roles.add("id", (name,), "its name, and no text repeats")
        return name
    return None


def _choose_cluster(roles: Roles, images: Sequence[str]) -> str | None:
    """Choose the column that rows of one patient share, and add the choice to ``roles``."""
    names = roles.take_wish("cluster")
    if names is not None:
        return names[0] if names else None
    candidates = named_like("cluster", roles.free())
    if candidates:
        roles.add("cluster", candidates[:1], "its name" + not_used(candidates[1:]))
        return candidates[0]
    shared = "the picture" if images else "none"
    roles.lines.append(Line("cluster", shared, "no column is named like patients or cases"))
    return None


def _choose_breakdowns(roles: Roles) -> tuple[str, ...]:
    """Choose the columns by whose values scores are broken down, and add them to ``roles``."""
    names = roles.take_wish("breakdowns")
    if names is not None:
        return names
    chosen = tuple(name for name in roles.free() if _is_breakdown(roles.columns[name]))
    for name in chosen:
        values = roles.columns[name].counts
        roles.add("breakdowns", (name,), f"{len(values)} values that repeat")
    return chosen


def _is_breakdown(column: TableColumn) -> bool:
    """Whether a column has few values that repeat, and no name with another meaning."""
    if column.name in DOCUMENT_FIELDS or not column.has_groups:
        return False
    return not any(named_like(role, (column.name,)) for role in _NO_GROUPS)


def _choose_language(roles: Roles, questions: Sequence[str]) -> str:
    """Choose the language of the questions, and add the choice to the lines of ``roles``."""
    if roles.wishes.language:
        roles.lines.append(Line("language", roles.wishes.language, "as you said"))
        return roles.wishes.language
    language, why = guess_language(questions)
    roles.lines.append(Line("language", language, why))
    return language
