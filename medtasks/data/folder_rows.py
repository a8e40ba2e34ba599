"""The rows of a benchmark folder as records, and everything that is wrong with them.

A faulty row raises nothing: all faults are collected, so that one look at a spreadsheet fixes it.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import Field

from medtasks.catalog.benchmark_file import YES_NO
from medtasks.catalog.benchmark_folder import BenchmarkFolder
from medtasks.catalog.records import Record, Where, distinct
from medtasks.core.errors import DataError, reading
from medtasks.core.files import canonical_json, file_sha256
from medtasks.core.schema import Keys, field_name, shown, suggestion
from medtasks.core.text import first_names
from medtasks.data.folder_cells import (
    EXPECTED_ANSWERS,
    folded_label,
    gold_label,
    gold_letter,
    listed_options,
)
from medtasks.data.folder_pictures import FolderPictures
from medtasks.data.media.images import index_media
from medtasks.data.progress import Progress
from medtasks.data.release import Release
from medtasks.data.row_faults import RowCells, RowFault
from medtasks.data.sources import SourceRow
from medtasks.data.tables import read_table_file

MOST_LABELS = 100
"""Different gold answers of a closed question without ``labels``: more are open answers."""


class FolderRecord(Record):
    """One row of a benchmark folder.

    ``answer`` is an option's letter, one of the ``labels``, or a text. ``further`` are the columns
    of ``breakdowns`` and ``visible``.
    """

    question: str
    answer: str
    choices: dict[str, str] = Field(default_factory=dict)
    labels: tuple[str, ...] = ()
    instructions: str = ""
    further: dict[str, str] = Field(default_factory=dict)


@dataclass
class FolderReading:
    """The records of the rows without faults, the place of each, and all faults."""

    records: list[FolderRecord] = field(default_factory=list)
    places: list[Where] = field(default_factory=list)
    faults: list[RowFault] = field(default_factory=list)


def folder_state(folder: BenchmarkFolder) -> str:
    """A hash of the data file and of the keys of ``benchmark.yaml`` on which records depend.

    Raises:
        DataError: the data file cannot be read.
    """
    keys = {"columns", "question", "answers", "answer_form", "labels", "breakdowns", "visible"}
    settings = folder.file.model_dump(mode="json", include=keys, warnings=False)
    with reading(folder.data, "restore it"):
        data = file_sha256(folder.data)
    return hashlib.sha256(canonical_json([settings, data]).encode()).hexdigest()


def folder_records(folder: BenchmarkFolder, release: Release) -> list[FolderRecord]:
    """The records of all rows of a folder.

    Raises:
        DataError: a row is faulty; names the first three, and counts the others.
    """
    reading = read_folder(folder, release)
    if not reading.faults:
        return reading.records
    sentences = " ".join(map(str, reading.faults[:3]))
    number = len(reading.faults)
    more = "" if number <= 3 else f" ({number - 3:,} more: medtasks validate {folder.path})"
    raise DataError(f"{folder.name}: {sentences}{more}")


def read_folder(folder: BenchmarkFolder, release: Release) -> FolderReading:
    """Read all rows of a folder; pictures in rows are kept by ``release``.

    Raises:
        DataError: the data file cannot be read at all.
    """
    rows = read_table_file(folder.data).rows
    absent = list(_absent_columns(folder, rows))
    if absent:
        return FolderReading(faults=absent)
    reader = _RowReader(folder, FolderPictures(folder, release, rows))
    reading = FolderReading()
    for row in rows:
        reader.read(row, reading)
    _add_labels(folder, reading)
    _check_ids(folder, reading)
    return reading


def _absent_columns(folder: BenchmarkFolder, rows: Sequence[SourceRow]) -> Iterator[RowFault]:
    """The columns that ``benchmark.yaml`` names, but no row has."""
    columns: dict[str, None] = {}
    for row in rows:
        columns |= dict.fromkeys(map(str, row.row))
    for keys, column in folder.row_columns.items():
        if column not in columns:
            message = (
                f"field `{field_name(keys)}` is {shown(column)}, which is not a column of "
                f"{folder.data.name}{suggestion(column, columns)}, expected one of "
                f"{first_names(columns, 8)}"
            )
            yield RowFault("MT304", None, keys, message, "correct the name")


@dataclass
class _RowReader:
    """Reads one row after the other."""

    folder: BenchmarkFolder
    pictures: FolderPictures

    def read(self, source_row: SourceRow, reading: FolderReading) -> None:
        """Add the record of a row, or its faults, to ``reading``."""
        cells = RowCells(source_row.row, source_row.where, reading.faults)
        columns = self.folder.file.columns
        before = len(reading.faults)
        question = self.folder.file.question or cells.required(
            columns.question, "columns", "question"
        )
        choices = self._choices(cells)
        answer = self._answer(cells, choices)
        media = self._media(cells)
        record_id = cells.required(columns.id, "columns", "id") if columns.id else ""
        cluster = cells.required(columns.cluster, "columns", "cluster") if columns.cluster else ""
        instructions = ""
        if columns.instructions:
            instructions = cells.text(columns.instructions, "columns", "instructions")
        further = self._further(cells)
        if len(reading.faults) > before:
            return
        content = [question, answer, instructions, *choices.values(), *media, *further.values()]
        sample_id = record_id or _content_hash(content)
        record = FolderRecord(
            sample_id=sample_id,
            cluster=cluster or (media[0] if media else sample_id),
            media=media,
            question=question,
            answer=answer,
            choices=choices,
            instructions=instructions,
            further=further,
        )
        reading.records.append(record)
        reading.places.append(source_row.where)

    def _choices(self, cells: RowCells) -> dict[str, str]:
        """The texts of the options by letter; options whose cell is empty do not exist."""
        columns = self.folder.file.columns.options
        if columns is None:
            return {}
        keys: Keys = ("columns", "options")
        if isinstance(columns, str):
            choices = cells.converted(columns, keys, listed_options) or {}
        else:
            choices = {}
            for letter, column in columns.items():
                text = cells.text(column, *keys, letter)
                if text:
                    choices[letter] = text
        if len(choices) < 2 and not cells.is_faulty(keys):
            message = f"{len(choices)} options have a text, expected at least two"
            cells.refuse("MT311", keys, message)
        counts = Counter(text.casefold() for text in choices.values())
        for letter, text in choices.items():
            if counts[text.casefold()] > 1:
                message = f"option {letter} is {shown(text)}, as is another option"
                cells.refuse("MT311", keys, message, "make the options different")
                break
        return choices

    def _answer(self, cells: RowCells, choices: Mapping[str, str]) -> str:
        """The gold answer: a letter, a label as ``benchmark.yaml`` writes it, or a text."""
        keys: Keys = ("columns", "answer")
        text = cells.required(self.folder.file.columns.answer, *keys)
        labels = labels_of(self.folder)
        if not text:
            return ""
        if choices:
            return self._gold_letter(text, choices, cells)
        if labels:
            label = gold_label(text, labels)
            if not label:
                expected = f"expected one of {first_names(labels, 8)}"
                message = f"the answer is {shown(text)}, {expected}"
                cells.refuse("MT307", keys, message)
            return label
        return text

    def _gold_letter(self, text: str, choices: Mapping[str, str], cells: RowCells) -> str:
        """The letter of the option that a gold answer names, in the form of ``answer_form``."""
        keys: Keys = ("columns", "answer")
        form = self.folder.file.answer_form
        letter = gold_letter(text, choices, form)
        if not letter:
            options = ", ".join(f"{name}: {shown(option)}" for name, option in choices.items())
            expected = EXPECTED_ANSWERS[form]
            message = f"the answer is {shown(text)}, expected {expected} of {options}"
            cells.refuse("MT307", keys, message)
        if form == "letter or text":
            by_text = gold_letter(text, choices, "text")
            if by_text not in ("", letter):
                message = f"the answer {shown(text)} is a letter, and also the text of {by_text}"
                fix = "set `answer_form` in benchmark.yaml to letter or text"
                cells.refuse("MT307", keys, message, fix)
        return letter

    def _media(self, cells: RowCells) -> tuple[str, ...]:
        """The names of the row's pictures."""
        names: list[str] = []
        for number, column in enumerate(self.folder.file.columns.image):
            keys: Keys = ("columns", "image", number)
            names += cells.converted(column, keys, self.pictures.names, "MT402") or ()
        return tuple(names)

    def _further(self, cells: RowCells) -> dict[str, str]:
        """The values of the columns of ``breakdowns`` and ``visible``, which may be empty."""
        values: dict[str, str] = {}
        for key in ("breakdowns", "visible"):
            for number, column in enumerate(getattr(self.folder.file, key)):
                values[column] = cells.text(column, key, number)
        return values


def undecodable_pictures(
    folder: BenchmarkFolder, reading: FolderReading, progress: Progress | None = None
) -> Iterator[RowFault]:
    """A fault for each row with a picture file that is not a whole picture.

    Pictures in rows are decoded when they are read.
    """
    images = folder.images.resolve()
    names: set[str] = set()
    for record in reading.records:
        names.update(name for name in record.media if (images / name).is_file())
    errors = index_media(images, names, progress=progress).errors
    for record, where in zip(reading.records, reading.places, strict=True):
        for name in record.media:
            if name in errors:
                error = str(errors[name]).replace(str(images / name), f"picture {name}")
                message, _, fix = error.rstrip(".").rpartition("; ")
                yield RowFault("MT402", where, ("columns", "image"), message, fix)


def labels_of(folder: BenchmarkFolder) -> tuple[str, ...]:
    """The labels that ``benchmark.yaml`` allows; none if the gold answers are the labels."""
    if folder.file.answers == "yes/no":
        return YES_NO
    return folder.file.labels


def _add_labels(folder: BenchmarkFolder, reading: FolderReading) -> None:
    """Give the records of closed questions their labels."""
    if folder.file.answers not in ("yes/no", "closed"):
        return
    labels = labels_of(folder) or _distinct_answers(reading.records)
    if not 2 <= len(labels) <= MOST_LABELS and reading.records:
        message = f"the rows have {len(labels):,} different answers, expected 2 to {MOST_LABELS}"
        fix = "list `labels`, or write answers: open"
        reading.faults.append(RowFault("MT307", None, ("answers",), message, fix))
        return
    for position, record in enumerate(reading.records):
        answer = gold_label(record.answer, labels)
        reading.records[position] = record.model_copy(update={"answer": answer, "labels": labels})


def _distinct_answers(records: Sequence[FolderRecord]) -> tuple[str, ...]:
    """The gold answers, sorted; of those that differ only in case or a full stop, the first."""
    answers: dict[str, str] = {}
    for record in records:
        answers.setdefault(folded_label(record.answer), record.answer)
    return tuple(sorted(answers.values()))


def _check_ids(folder: BenchmarkFolder, reading: FolderReading) -> None:
    """Report ids that several rows have; rows without an id that are equal are numbered."""
    if folder.file.columns.id is None:
        reading.records = distinct(reading.records)
        return
    first_places: dict[str, Where] = {}
    for record, where in zip(reading.records, reading.places, strict=True):
        earlier = first_places.setdefault(record.sample_id, where)
        if earlier is not where:
            message = f"the id {shown(record.sample_id)} is that of {earlier.unit} {earlier.line}"
            keys: Keys = ("columns", "id")
            reading.faults.append(RowFault("MT305", where, keys, message, "make ids unique"))


def _content_hash(texts: Sequence[str]) -> str:
    """The id of a row without one: 16 hex digits of the SHA-256 of its texts."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]
