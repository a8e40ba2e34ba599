"""The selection of rows is compared with one that is made anew from a copy of the split."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import Rows
from datasets import Dataset
from medtasks.api import DataError, UsageError

from medtasks_challenges import kvasir_rows
from medtasks_challenges.split_order import check_order


def written_split(folder: Path, rows: Rows, layout: str) -> Path:
    """A copy of the split in one of its layouts."""
    if layout == "disk":
        Dataset.from_list(rows).save_to_disk(str(folder / "disk"))
        return folder / "disk"
    if layout == "jsonl":
        path = folder / "test.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return path
    (folder / "data").mkdir()
    for number, part in enumerate((rows[:1000], rows[1000:])):
        path = folder / "data" / f"test-{number:05}-of-00002.parquet"
        pq.write_table(pa.Table.from_pylist(part), path)
    return folder


@pytest.fixture
def documents(release_rows: Rows) -> Rows:
    """The rows as documents, before the selection."""
    return [{**row, "target": row["answer"]} for row in release_rows]


@pytest.mark.parametrize("layout", ["parquet", "jsonl", "disk"])
def test_both_selections_are_those_of_the_split(
    layout: str, release_rows: Rows, documents: Rows, tmp_path: Path
) -> None:
    split = written_split(tmp_path, release_rows, layout)
    check_order(split, kvasir_rows.shuffled(documents), level1_only=False)
    check_order(split, kvasir_rows.shuffled_level1(documents), level1_only=True)


def test_data_in_another_order_are_refused(
    release_rows: Rows, documents: Rows, tmp_path: Path
) -> None:
    split = written_split(tmp_path, release_rows, "jsonl")
    documents.reverse()
    with pytest.raises(DataError, match="of selected row 0 is .* in the prepared data; prepare"):
        check_order(split, kvasir_rows.shuffled(documents), level1_only=False)


def test_a_split_that_is_short_or_missing_is_refused(
    release_rows: Rows, documents: Rows, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    selection = kvasir_rows.shuffled(documents)
    with pytest.raises(UsageError, match="has no file test"):
        check_order(tmp_path / "empty", selection, level1_only=False)
    short = written_split(tmp_path, release_rows[:1499], "jsonl")
    with pytest.raises(DataError, match="has 1,499 rows to select from, expected at least 1,500"):
        check_order(short, selection, level1_only=False)


@pytest.mark.parametrize(
    ("change", "level1_only", "expected"),
    [
        ({"img_id": 5}, False, "field `img_id` of selected row 0 is 5, and 'img"),
        ({"question": None}, False, "field `question` of selected row 0 is None, and 'Question"),
        ({"complexity": "1"}, True, "field `complexity` of row 0 is '1', expected a whole number"),
    ],
)
def test_fields_of_another_type_are_named(
    change: dict[str, object],
    level1_only: bool,
    expected: str,
    release_rows: Rows,
    documents: Rows,
    tmp_path: Path,
) -> None:
    rows = [{**row, **change} for row in release_rows]
    split = written_split(tmp_path, rows, "jsonl")
    with pytest.raises(DataError, match=expected):
        check_order(split, kvasir_rows.shuffled(documents), level1_only=level1_only)


def test_values_of_different_types_are_refused(
    release_rows: Rows, documents: Rows, tmp_path: Path
) -> None:
    rows = [*release_rows[:-1], {**release_rows[-1], "complexity": "1"}]
    split = written_split(tmp_path, rows, "jsonl")
    with pytest.raises(DataError, match="complexity has values of different types .*; give an"):
        check_order(split, kvasir_rows.shuffled(documents), level1_only=False)
    pq.write_table(pa.Table.from_pylist(rows[:-1]), tmp_path / "test-0.parquet")
    pq.write_table(pa.Table.from_pylist(rows[-1:]), tmp_path / "test-1.parquet")
    with pytest.raises(DataError, match="cannot be read as Parquet with img_id, question, comple"):
        check_order(tmp_path, kvasir_rows.shuffled(documents), level1_only=False)


def test_a_damaged_folder_of_save_to_disk_is_refused(documents: Rows, tmp_path: Path) -> None:
    (tmp_path / "dataset_info.json").write_text("{}", encoding="utf-8")
    with pytest.raises(DataError, match="cannot be read as a saved dataset with img_id, question"):
        check_order(tmp_path, kvasir_rows.shuffled(documents), level1_only=False)
