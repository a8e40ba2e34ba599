"""Benchmark folders: benchmarks without code, described by a ``benchmark.yaml`` beside the prompt.

A folder has ``benchmark.yaml``, the prompt templates that it names, and the data and pictures or
their paths. `BenchmarkFile` is the schema. :mod:`medtasks.catalog.folder_tasks` has the task files
that follow from it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, PlainValidator, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from medtasks.catalog.key_types import ABSENT, Name, Names, TaskKeys, refuse_if
from medtasks.catalog.marked_yaml import parse_yaml
from medtasks.catalog.task_package import OURS
from medtasks.core.errors import MedtasksError, UsageError
from medtasks.core.findings import Finding, Place, finding
from medtasks.core.schema import Keys, field_name, own_problems, problems, shown, text_that
from medtasks.core.text import first_names

FILE_NAME = "benchmark.yaml"
"""The file that makes a directory a benchmark folder."""

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
        question: the question.
        answer: the gold answer: an option's letter or text, a label, or any text.
        image: the pictures; a cell is a path below ``images``, a URL, base64, or a list of these.
        options: the column of each letter, or one column whose cells list the options.
        id: the id of a row; by default a hash of its content.
        cluster: what correlated rows share, such as the patient; by default the first picture.
        instructions: a further text that templates can show as ``instructions``.
    """

    question: Name
    answer: Name
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
        version: raised whenever rows or prompts change on purpose.
    """

    name: BenchmarkName
    title: Name
    data: Name
    columns: FolderColumns
    answers: AnswerKind
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
    version: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0

    @model_validator(mode="after")
    def _without_contradictions(self) -> BenchmarkFile:
        """Refuse keys that do not fit the kind of answers, and columns that hide a field."""
        message = f"name is {self.name}, which is the name of this program"
        refuse_if(self.name == OURS, "name", message, "choose another")
        has_options = self.columns.options is not None
        message = "answers is options, but columns.options is missing"
        fix = "name the columns of the options"
        refuse_if(self.answers == "options" and not has_options, "columns", message, fix)
        message = f"answers is {self.answers}, but columns.options is set"
        fix = "write answers: options, or remove columns.options"
        refuse_if(self.answers != "options" and has_options, "answers", message, fix)
        message = f"answer_form is set, but answers is {self.answers}"
        fix = "write answers: options, or remove answer_form"
        is_set = "answer_form" in self.model_fields_set
        refuse_if(self.answers != "options" and is_set, "answer_form", message, fix)
        message = f"labels are set, but answers is {self.answers}"
        fix = "write answers: closed, or remove labels"
        refuse_if(self.answers != "closed" and self.labels, "labels", message, fix)
        message = f"rubric is set, but answers is {self.answers}"
        fix = "write answers: open, or remove rubric"
        refuse_if(self.answers != "open" and self.rubric is not None, "rubric", message, fix)
        for key in ("breakdowns", "visible"):
            taken = sorted(DOCUMENT_FIELDS.intersection(getattr(self, key)))
            message = f"{key} has {first_names(taken)}, which every question has already"
            refuse_if(taken, key, message, "rename the column, or remove it here")
        for column in self.visible:
            message = f"visible has {shown(column)}, which is no name of a template variable"
            fix = "rename the column with letters, digits and underscores"
            refuse_if(not column.isidentifier(), "visible", message, fix)
        return self


@dataclass(frozen=True)
class BenchmarkFolder:
    """A benchmark folder whose ``benchmark.yaml`` is valid.

    Attributes:
        path: the folder.
        file: the content of its ``benchmark.yaml``.
        lines: the line of every key of it, by the path of keys.
    """

    path: Path
    file: BenchmarkFile
    lines: Mapping[Keys, int]

    @property
    def name(self) -> str:
        """The name of the benchmark."""
        return self.file.name

    @property
    def data(self) -> Path:
        """The file of rows."""
        return self.path / Path(self.file.data).expanduser()

    @property
    def images(self) -> Path:
        """The directory of the pictures that rows name by paths."""
        if self.file.images is None:
            return self.data.parent
        return self.path / Path(self.file.images).expanduser()

    @property
    def templates(self) -> tuple[str, ...]:
        """The names of the prompts' templates, which begin with the benchmark's name."""
        return tuple(f"{self.name}/{prompt}" for prompt in self.file.prompt)

    @property
    def rubrics(self) -> dict[str, Path]:
        """The rubric's file by its name: that of the file, after the benchmark's name."""
        file = self.file.rubric
        if file is None:
            return {}
        stem = Path(file).stem
        name = stem if stem.startswith(f"{self.name}_") else f"{self.name}_{stem}"
        return {name: self.path / file}

    @property
    def row_columns(self) -> dict[Keys, str]:
        """Every column that ``benchmark.yaml`` names, by the keys that name it."""
        named: dict[Keys, str] = {}
        for key, value in self.file.columns:
            if isinstance(value, str):
                named["columns", key] = value
            elif isinstance(value, dict):
                named |= {("columns", key, letter): column for letter, column in value.items()}
            elif value:
                named |= {("columns", key, number): column for number, column in enumerate(value)}
        for key in ("breakdowns", "visible"):
            for number, column in enumerate(getattr(self.file, key)):
                named[key, number] = column
        return named

    def place(self, *keys: str | int) -> Place:
        """Where the value at ``keys`` is in ``benchmark.yaml``, or what it would be added to."""
        return _place(self.path / FILE_NAME, self.lines, keys)


def is_benchmark_folder(path: Path) -> bool:
    """Whether a directory has a ``benchmark.yaml``."""
    return (path / FILE_NAME).is_file()


def load_benchmark_folder(path: Path) -> BenchmarkFolder:
    """The benchmark folder at ``path``.

    Raises:
        UsageError: it is no benchmark folder.
        MedtasksError: its ``benchmark.yaml`` is not valid; names the line, and counts the others.
    """
    folder, defects = read_benchmark_folder(path)
    if folder is None:
        first = defects[0]
        more = f" ({len(defects) - 1} more: medtasks validate {path})" if defects[1:] else ""
        place = f"{first.file}, line {first.line}"
        raise MedtasksError(f"{place}: {first.message}{more}")
    return folder


def read_benchmark_folder(path: Path) -> tuple[BenchmarkFolder | None, list[Finding]]:
    """The benchmark folder at ``path``, or None and everything that is wrong with its files.

    Raises:
        UsageError: there is no ``benchmark.yaml``.
    """
    file = path / FILE_NAME
    if not is_benchmark_folder(path):
        state = "has no benchmark.yaml" if path.is_dir() else "is not a directory"
        raise UsageError(
            f"{path}: {state}, expected a benchmark folder; check the path, or begin one with "
            "`medtasks new NAME --from ROWS`."
        )
    try:
        text = file.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        message = f"not a readable UTF-8 file ({error})"
        return None, [finding("MT101", path.name, message, Place(file, 1), fix="fix or restore it")]
    marked = parse_yaml(text, file)
    if marked.defects:
        return None, marked.defects
    if not isinstance(marked.content, dict):
        message = f"the file contains {shown(marked.content)}, expected keys such as `name: my_vqa`"
        return None, [finding("MT102", path.name, message, Place(file, 1))]
    try:
        folder = BenchmarkFolder(path, BenchmarkFile.model_validate(marked.content), marked.lines)
    except ValidationError as error:
        return None, list(_schema_findings(error, path, marked.lines))
    defects = list(_missing_files(folder))
    return (None if defects else folder), defects


_CODES = {"extra_forbidden": "MT107", "missing": "MT110", "MT113": "MT113", "MT114": "MT114"}
"""The rule for each of pydantic's types of error; all others are MT109."""


def _schema_findings(
    error: ValidationError, path: Path, lines: Mapping[Keys, int]
) -> Iterator[Finding]:
    """The values of a ``benchmark.yaml`` that its schema refuses."""
    for problem in own_problems(list(problems(error, BenchmarkFile))):
        code = _CODES.get(problem.kind, "MT109")
        place = _place(path / FILE_NAME, lines, problem.keys)
        yield finding(code, path.name, problem.message, place, field_name(problem.keys))


def _missing_files(folder: BenchmarkFolder) -> Iterator[Finding]:
    """The files that a ``benchmark.yaml`` names, but that do not exist."""
    if not folder.data.is_file():
        yield _file_finding(folder, "MT109", "data", f"{folder.data}, expected a file of rows")
    elif not folder.images.is_dir():
        yield _file_finding(folder, "MT109", "images", f"{folder.images}, expected a directory")
    for prompt in folder.file.prompt:
        if not _is_in_folder(folder, prompt, ".j2"):
            state = f"{shown(prompt)}, expected a .j2 file in the folder"
            yield _file_finding(folder, "MT201", "prompt", state)
    rubric = folder.file.rubric
    if rubric is not None and not _is_in_folder(folder, rubric, ".yaml"):
        state = f"{shown(rubric)}, expected a .yaml file in the folder"
        yield _file_finding(folder, "MT109", "rubric", state)


def _is_in_folder(folder: BenchmarkFolder, name: str, suffix: str) -> bool:
    """Whether ``name`` is a file with this suffix directly in the folder; templates of a package
    may be in ``templates/`` instead.
    """
    if Path(name).name != name or not name.endswith(suffix):
        return False
    packaged = folder.path / "templates" / folder.name / name
    return (folder.path / name).is_file() or packaged.is_file()


def _file_finding(folder: BenchmarkFolder, code: str, key: str, state: str) -> Finding:
    """The finding that a file named at ``key`` is not what was expected."""
    message = f"field `{key}` is {state}"
    return finding(code, folder.path.name, message, folder.place(key), key)


def _place(file: Path, lines: Mapping[Keys, int], keys: Keys) -> Place:
    """The line of the value at ``keys``, or of the mapping that lacks it."""
    for length in range(len(keys), 0, -1):
        if keys[:length] in lines:
            return Place(file, lines[keys[:length]])
    return Place(file, 1)
