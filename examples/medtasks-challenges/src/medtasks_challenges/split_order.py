"""The organisers' selection of rows, made anew from a copy of the hub's test split.

Prepared data have the rows in the order of their source. Whether that is the hub's order shows only
a copy of the split itself: its Parquet files, JSON lines, or a folder of ``Dataset.save_to_disk``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from medtasks.api import DataError, Document, UsageError, read_jsonl

from medtasks_challenges.kvasir_rows import SEED, SELECTED

if TYPE_CHECKING:
    from datasets import Dataset

COLUMNS = ["img_id", "question", "complexity"]
_PATTERNS = ("test*.parquet", "test*.jsonl")


def check_order(split: Path, documents: Sequence[Document], *, level1_only: bool) -> None:
    """Raise an error unless the documents are the organisers' rows, in their order.

    Args:
        split: a copy of the test split: a file, or a directory that contains it.
        documents: the selected documents.
        level1_only: whether only rows of complexity 1 are selected, as in subtask 2.

    Raises:
        UsageError: there is no such split.
        DataError: the split cannot be read or is too short, or a document is not the row at its
            place.
    """
    rows = _read(split)
    if level1_only:
        rows = rows.select(_level1_numbers(rows, split))
    if len(rows) < SELECTED:
        raise DataError(
            f"{split}: has {len(rows):,} rows to select from, expected at least {SELECTED:,}; give "
            "the whole test split."
        )
    selection = rows.shuffle(seed=SEED).select(range(SELECTED))
    for number, (row, document) in enumerate(zip(selection, documents, strict=True)):
        for field in ("img_id", "question"):
            if row[field] != document[field]:
                raise DataError(
                    f"{split}: field `{field}` of selected row {number} is {row[field]!r:.80}, "
                    f"and {document[field]!r:.80} in the prepared data; prepare the data from "
                    "this split."
                )


def _level1_numbers(rows: Dataset, split: Path) -> list[int]:
    """The numbers of the rows of complexity 1: `Dataset.filter` would show a progress bar."""
    numbers = []
    for number, complexity in enumerate(rows["complexity"]):
        if not isinstance(complexity, int):
            raise DataError(
                f"{split}: field `complexity` of row {number} is {complexity!r:.80}, expected a "
                "whole number; give an unchanged copy of the split."
            )
        if complexity == 1:
            numbers.append(number)
    return numbers


def _read(split: Path) -> Dataset:
    """The columns that are compared, of all rows."""
    from datasets import Dataset

    if (split / "dataset_info.json").is_file():
        return _read_saved(split)
    files = _files(split)
    if files[0].suffix == ".jsonl":
        rows = []
        for file in files:
            for line in read_jsonl(file):
                rows.append({column: line.row.get(column) for column in COLUMNS})
        try:
            return Dataset.from_list(rows)
        except pa.ArrowException as error:
            raise DataError(
                f"{split}: one of {', '.join(COLUMNS)} has values of different types ({error}), "
                "expected one type in all rows; give an unchanged copy of the split."
            ) from error
    try:
        rows_of_files = pa.concat_tables([pq.read_table(file, columns=COLUMNS) for file in files])
    except (OSError, pa.ArrowException) as error:
        raise DataError(
            f"{split}: cannot be read as Parquet with {', '.join(COLUMNS)} ({error}); check the "
            "files."
        ) from error
    return Dataset.from_dict(rows_of_files.to_pydict())


def _read_saved(split: Path) -> Dataset:
    """The columns of a folder of ``Dataset.save_to_disk``."""
    from datasets import load_from_disk

    try:
        return load_from_disk(str(split)).select_columns(COLUMNS)
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        reason = " ".join(str(error).split())
        raise DataError(
            f"{split}: cannot be read as a saved dataset with {', '.join(COLUMNS)} ({reason}); "
            "check the files."
        ) from error


def _files(split: Path) -> list[Path]:
    """The files of a split in order: the file itself, or those of the first pattern that matches.

    Raises:
        UsageError: there are none.
    """
    if split.is_file():
        return [split]
    for pattern in _PATTERNS:
        files = sorted(split.rglob(pattern))
        if files:
            return files
    raise UsageError(f"--split {split}: has no file {' or '.join(_PATTERNS)}; check the path.")
