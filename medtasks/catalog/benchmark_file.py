"""The schema of ``benchmark.yaml``, the description of a benchmark without code."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, PlainValidator, model_validator
from pydantic_core import PydanticCustomError

import medtasks
from medtasks.catalog.board_layout import PublishedPart
from medtasks.catalog.key_types import ABSENT, Name, Names, TaskKeys, refuse_if
from medtasks.core.schema import shown, text_that
from medtasks.core.text import first_names

AnswerKind: TypeAlias = Literal["options", "yes/no", "closed", "open"]
"""How questions are answered: by an option's letter, by *yes* or *no*, by one of a list of labels,
or by any text.
"""

AnswerForm: TypeAlias = Literal["letter or text", "letter", "text", "index0", "index1"]
"""How the answer column names an option: by its letter, its text, or its number from 0 or 1."""

YES_NO = ("yes", "no")
"""The labels of ``answers: yes/no``."""

LETTERS = tuple("ABCDEFGHIJ")
"""The letters that options may have."""

TEMPLATE_NAMES = frozenset({"question", "choices", "options", "instructions"})
"""What every template can show, if the benchmark has it, beside the columns under ``visible``."""

DOCUMENT_FIELDS = frozenset(
    {
        *("abstention", "answer", "benchmark", "cluster", "frames", "guesses", "ideal_response"),
        *("item_id", "media", "prompt", "prompt_metric", "prompt_of", "prompts", "rotation"),
        *("rotation_of", "rotations", "round", "rounds", "sample_id", "target", "task_mode"),
        *("option_order", "prompt_half", "prompt_template", "times", "window_end"),
        *TEMPLATE_NAMES,
    }
)
"""Fields of documents, whose names no further column may have."""


def _names_or_name(value: Any) -> tuple[str, ...]:
    """A name, or a list of different names, as a tuple."""
    names = value if isinstance(value, list) else [value]
    are_names = all(isinstance(name, str) and name.strip() for name in names)
    if not names or not are_names or len(set(names)) < len(names):
        words = "a name, or a list of different names"
        raise PydanticCustomError("expected", "{words}", {"words": words})
    return tuple(names)


def _option_columns(value: Any) -> str | dict[str, str]:
    """The column of each option by its letter, or the column that lists the options."""
    if isinstance(value, str) and value.strip():
        return value
    if isinstance(value, dict):
        are_letters = all(letter in LETTERS for letter in value)
        are_columns = all(isinstance(name, str) and name.strip() for name in value.values())
        if len(value) > 1 and are_letters and are_columns:
            return dict(sorted(value.items()))
    words = "the columns of at least two letters such as {A: A, B: B}, or the name of one column"
    raise PydanticCustomError("expected", "{words}", {"words": words})


def _label_texts(value: Any) -> tuple[str, ...]:
    """At least two different labels as texts; whole numbers are written as they are."""
    labels = value if isinstance(value, list) else []
    for position, label in enumerate(labels):
        if isinstance(label, bool):
            words = f"text: YAML reads yes and no as {str(label).lower()}, so quote them"
            raise PydanticCustomError("expected", "{words}", {"words": words, "at": position})
    texts = [str(label).strip() for label in labels if isinstance(label, str | int)]
    folded = {text.casefold() for text in texts if text}
    if len(folded) < 2 or len(folded) < len(labels):
        words = "a list of at least two labels that differ in more than case"
        raise PydanticCustomError("expected", "{words}", {"words": words})
    return tuple(texts)


NamesOrName = Annotated[tuple[str, ...], PlainValidator(_names_or_name)]
OptionColumns = Annotated[str | dict[str, str], PlainValidator(_option_columns)]
Labels = Annotated[tuple[str, ...], PlainValidator(_label_texts)]
BenchmarkName = Annotated[
    str,
    text_that(
        "a name of lower-case letters, digits and underscores such as my_vqa",
        re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*").fullmatch,
    ),
]
Language = Annotated[
    str,
    text_that(
        'an ISO 639 code such as en or de (quote "no")',
        re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]+)*").fullmatch,
    ),
]


class FolderColumns(TaskKeys):
    """``columns``: what the columns of the data file contain, by their names there.

    Args:
        question: the question, unless all rows have the same one.
        answer: the gold answer: an option's letter or text, a label, or any text.
        image: the pictures; a cell is a path below ``images``, a URL, base64, or a list of these.
        options: the column of each letter, or one column whose cells list the options.
        id: the id of a row; by default a hash of its content.
        cluster: what correlated rows share, such as the patient; by default the first picture.
        instructions: a further text that templates can show as ``instructions``.
    """

    answer: Name
    question: Name = ABSENT
    image: NamesOrName = ()
    options: OptionColumns = ABSENT
    id: Name = ABSENT
    cluster: Name = ABSENT
    instructions: Name = ABSENT


class BenchmarkFile(TaskKeys):
    """The content of ``benchmark.yaml``.

    Args:
        name: name of the benchmark and first part of the names of its tasks.
        title: its name as people write it.
        data: the file of rows, relative to the folder or absolute.
        columns: what its columns contain.
        answers: how questions are answered.
        question: the question of all rows, if no column has questions.
        answer_form: how the answer column names an option.
        images: directory of the pictures; by default that of the data file.
        labels: the answers that ``answers: closed`` allows; by default all gold answers.
        rubric: the rubric file by which a judge scores open answers.
        breakdowns: columns by whose values scores are broken down.
        visible: further columns that templates can show, under their own names.
        prompt: the prompt's template or, as a list, also paraphrases of it.
        language: ISO 639 code of questions and answers.
        licence: licence of rows and pictures.
        paper: identifier of the paper.
        source: where the data are from.
        shows: which part of samples leaderboards may publish.
        version: raised whenever rows or prompts change on purpose.
    """

    name: BenchmarkName
    title: Name
    data: Name
    columns: FolderColumns
    answers: AnswerKind
    question: Name = ABSENT
    answer_form: AnswerForm = "letter or text"
    images: Name = ABSENT
    labels: Labels = ()
    rubric: Name = ABSENT
    breakdowns: Names = ()
    visible: Names = ()
    prompt: NamesOrName = ("question.j2",)
    language: Language = "en"
    licence: Name = "unknown"
    paper: Name = "unpublished"
    source: Name = "local files"
    shows: PublishedPart = "nothing"
    version: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0

    @model_validator(mode="after")
    def _without_contradictions(self) -> BenchmarkFile:
        """Refuse a reserved name, and keys that do not fit each other."""
        message = f"name is {self.name}, which is the name of this program"
        refuse_if(self.name == medtasks.__name__, "name", message, "choose another")
        self._check_question()
        is_options = self.answers == "options"
        message = "answers is options, but columns.options is missing"
        is_missing = is_options and self.columns.options is None
        refuse_if(is_missing, "columns", message, "name the columns of the options")
        self._refuse_unless(is_options, "options", "columns.options", self.columns.options)
        is_form_set = "answer_form" in self.model_fields_set
        self._refuse_unless(is_options, "options", "answer_form", is_form_set)
        self._refuse_unless(self.answers == "closed", "closed", "labels", self.labels)
        self._refuse_unless(self.answers == "open", "open", "rubric", self.rubric)
        self._check_columns()
        return self

    def _check_question(self) -> None:
        """Refuse two questions of a row, and none."""
        column = self.columns.question
        is_twice = self.question is not None and column is not None
        message = "question is set, and so is columns.question"
        refuse_if(is_twice, "question", message, "remove one of the two")
        is_absent = self.question is None and column is None
        message = "columns.question is missing"
        fix = "name the column of the questions, or write question: TEXT if all rows have the same"
        refuse_if(is_absent, "columns", message, fix)

    def _refuse_unless(self, fits: bool, answers: str, key: str, value: object) -> None:
        """Refuse a ``key`` that only one kind of ``answers`` has, unless it is not set."""
        message = f"{key} is set, but answers is {self.answers}"
        fix = f"write answers: {answers}, or remove {key}"
        at = "answers" if "." in key else key
        refuse_if(not fits and value, at, message, fix)

    def _check_columns(self) -> None:
        """Refuse further columns that would hide a field of documents, or name no variable."""
        for key in ("breakdowns", "visible"):
            taken = sorted(DOCUMENT_FIELDS.intersection(getattr(self, key)))
            message = f"{key} has {first_names(taken)}, which every question has already"
            refuse_if(taken, key, message, "rename the column, or remove it here")
        for column in self.visible:
            message = (
                f"visible has {shown(column)}, which cannot be the name of a template variable"
            )
            fix = "rename the column with letters, digits and underscores"
            refuse_if(not column.isidentifier(), "visible", message, fix)
