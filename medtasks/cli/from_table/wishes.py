"""What the user of ``medtasks new --from`` has decided, as its options or answers state it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, get_args

from medtasks.catalog.benchmark_file import AnswerForm, AnswerKind
from medtasks.core.errors import UsageError
from medtasks.core.schema import unknown

ROLES = (
    *("question", "image", "options", "answer", "id", "cluster", "instructions", "breakdowns"),
)
"""What ``--column ROLE=NAME`` can name."""


@dataclass(frozen=True)
class Wishes:
    """What the user has decided; everything else is guessed.

    Attributes:
        columns: names of columns by role; no names if no column has the role.
        question: the question of all rows, in place of a column of questions.
        answers: how questions are answered.
        answer_form: how the answer column names options.
        language: ISO 639 code.
    """

    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    question: str | None = None
    answers: AnswerKind | None = None
    answer_form: AnswerForm | None = None
    language: str | None = None

    def with_option(self, option: str, value: str) -> Wishes:
        """These wishes and another one, as on the command line: an option up to its value, and the
        value; see `Undecided`.
        """
        if option == "--question ":
            return replace(self, question=value)
        if option == "--answers ":
            return replace(self, answers=_known("kind of answers", value, AnswerKind))
        if option == "--answer-form ":
            return replace(self, answer_form=_known("form of answers", value, AnswerForm))
        if option == "--language ":
            return replace(self, language=value)
        role = option.removeprefix("--column ").removesuffix("=")
        if role not in ROLES:
            raise UsageError(f"--column {role}={value}: {unknown('role', role, ROLES)}")
        names = tuple(name.strip() for name in value.split(",") if name.strip())
        question = None if role == "question" else self.question
        return replace(self, columns={**self.columns, role: names}, question=question)


def wishes_of(
    columns: Sequence[str],
    question: str | None,
    answers: AnswerKind | None,
    answer_form: AnswerForm | None,
    language: str | None,
) -> Wishes:
    """What the options decide; ``columns`` are as in ``--column``.

    Raises:
        UsageError: one of ``columns`` is not ROLE=NAME, or its role is unknown; or there are a
            question of all rows, which must not be blank, and a column of questions.
    """
    if question is not None and not question.strip():
        raise UsageError("--question: is blank, expected the question of all rows; write it.")
    wishes = Wishes(answers=answers, answer_form=answer_form, language=language)
    for column in columns:
        role, sign, names = column.partition("=")
        if not sign:
            raise UsageError(f"--column {column}: expected ROLE=NAME, such as answer={column}.")
        wishes = wishes.with_option(f"--column {role.strip()}=", names)
    if question is None:
        return wishes
    if "question" in wishes.columns:
        raise UsageError(
            "--question: --column question names a column of questions, too; leave one out."
        )
    return wishes.with_option("--question ", question.strip())


def _known(kind: str, value: str, choices: Any) -> Any:
    """``value``, which must be one of the values of the literal type ``choices``."""
    values = get_args(choices)
    if value not in values:
        raise UsageError(unknown(kind, value, values))
    return value
