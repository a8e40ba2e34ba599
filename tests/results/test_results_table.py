"""The columnar table: a group's is that of its samples, and what is written is what is read."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from medtasks.benchmarks.base import Value
from medtasks.errors import DataError
from medtasks.registry import get_benchmark
from medtasks.results.samples import Sample
from medtasks.results.scoring import Scored, score_samples, score_tables
from medtasks.results.table import Column, ItemTable, RunTables, column_of, item_table, pooled_table
from medtasks.results.table_file import TableStore

MI_CXR = get_benchmark("mi_cxr")
TASKS = ("mi_cxr_tel_single", "mi_cxr_icr")
KNOWN, OPEN = Value(statistics=(1.0, 2.0), judge="b"), Value(low=(0.0, 1.0), high=(1.0, 1.0), judge="a")
VALUES = [
    Value(statistics=(0.1, 1.0), parts={"x": Value(statistics=(0.3, 1.0))}),
    Value(low=(0.0, 2.0), high=(2.0, 2.0), parts={"y": OPEN}, failed=True),
    KNOWN,
    None,
]


def sample(task: str, number: int) -> Sample:
    right = float(number % 3 > 0)
    return Sample(
        sample_id=f"s{number:02d}",
        task=task,
        cluster=f"p{number % 4}",
        media=(),
        prompt_hash="0",
        prompt="When?",
        target="A",
        responses=("A",),
        filtered="A" if right else "B",
        status="ok",
        scores={"accuracy": right, **({"rougeL": 0.1 * number} if task == TASKS[1] else {})},
        statistics={"accuracy": (right, 1.0), **({"rougeL": (0.1 * number, 1.0)} if task == TASKS[1] else {})},
        document={"target": "A", "qtype": task, "group_type": "TEL"},
    )


@pytest.fixture(scope="module")
def samples() -> dict[str, list[Sample]]:
    return {task: [sample(task, number) for number in range(start, 20)] for start, task in enumerate(TASKS)}


def test_a_groups_table_gives_the_scores_of_all_its_samples(samples: dict[str, list[Sample]]) -> None:
    tables = [item_table(members, MI_CXR, ["family"]) for members in samples.values()]
    pooled = score_tables({"": Scored(pooled_table(tables), MI_CXR, ("family",))})[""]
    assert pooled == score_samples([one for members in samples.values() for one in members], MI_CXR, ["family"])
    assert pooled.items == 39
    assert list(pooled.metrics) == ["accuracy", "rougeL"]
    assert pooled.metrics["rougeL"].samples == 19


def test_a_question_that_two_tasks_ask_has_two_ids(samples: dict[str, list[Sample]]) -> None:
    table = RunTables(samples).of("mi_cxr", TASKS)
    assert table.items[2:4] == ("s01", "s01") or table.items[1:3] == ("s01", "s01")
    assert len(set(table.unique)) == 39


def test_a_part_takes_the_place_of_the_whole_where_there_is_one() -> None:
    column = column_of("accuracy", VALUES)
    cut = column.part("x")
    np.testing.assert_array_equal(cut.statistics, [[0.3, 1.0], [np.nan] * 2, [1.0, 2.0], [np.nan] * 2])
    assert column.part("y").judges_of(np.array([1])) == ["a"]
    assert column.part("z") is column


def test_statistics_of_another_width_are_refused() -> None:
    with pytest.raises(DataError, match="statistics of bleu have 2 numbers, expected 10"):
        column_of("bleu", [KNOWN])


def test_what_is_written_is_read(samples: dict[str, list[Sample]], tmp_path: Path) -> None:
    repeated = [Value(statistics=(1.0, 2.0), repeats=((1.0, 1.0), (0.0, 1.0)))] * 19
    made = item_table(samples[TASKS[1]], MI_CXR, ["family"])
    odd = column_of("accuracy", [*VALUES, *[None] * 15])
    table = ItemTable(
        **{**_fields(made), "columns": {**made.columns, "odd": odd, "r": column_of("accuracy", repeated)}}
    )
    store = TableStore(tmp_path / "kept")
    store.write("key", {"some": [1.5, None]}, {"t": table})
    found = store.read("key")
    assert found is not None
    told, tables = found
    assert told == {"some": [1.5, None]}
    for name, one in _fields(tables["t"]).items():
        if name == "columns":
            assert list(one) == list(table.columns)
            assert all(_same(one[metric], column) for metric, column in table.columns.items())
        elif name == "complete":
            np.testing.assert_array_equal(one, table.complete)
        else:
            assert one == getattr(table, name)
    assert store.read("other") is None
    assert TableStore(None).read("key") is None


def _fields(table: ItemTable) -> dict[str, object]:
    return {one.name: getattr(table, one.name) for one in fields(table)}


def _same(one: Column, other: Column) -> bool:
    arrays = ("statistics", "low", "high", "present", "failed", "pending", "awaiting", "judge")
    for name in arrays:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert one.judges == other.judges
    assert (one.repeats is None) == (other.repeats is None)
    if one.repeats is not None:
        np.testing.assert_array_equal(one.repeats, other.repeats)
    assert list(one.parts) == list(other.parts)
    return all(_same(part, other.parts[key]) for key, part in one.parts.items())
