"""The columnar table: a group's is that of its samples, and what is written is what is read."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from made_samples import made_sample

from medtasks.catalog.items import Value
from medtasks.catalog.registry import get_benchmark
from medtasks.catalog.spec import load_spec
from medtasks.core.errors import DataError, MedtasksError
from medtasks.runs.replies import Probabilities
from medtasks.runs.samples import Sample
from medtasks.scoring.columns import ItemState, MetricColumn, column_of, reduced_columns, reduced_to
from medtasks.scoring.comparisons import compare_tables
from medtasks.scoring.group_scores import score_samples, score_table
from medtasks.scoring.item_table import ItemTable, item_table
from medtasks.scoring.pooled_tables import pooled_table
from medtasks.scoring.run_cache import TableStore, code_hash
from medtasks.scoring.run_tables import RunTables, in_parts

MI_CXR = get_benchmark("mi_cxr")
TASKS = ("mi_cxr_tel_single", "mi_cxr_icr")
KNOWN, OPEN = (
    Value(statistics=(1.0, 2.0), judge="b"),
    Value(low=(0.0, 1.0), high=(1.0, 1.0), judge="a"),
)
VALUES = [
    Value(statistics=(0.1, 1.0), parts={"x": Value(statistics=(0.3, 1.0))}),
    Value(low=(0.0, 2.0), high=(2.0, 2.0), parts={"y": OPEN}, failed=True),
    KNOWN,
    None,
]


def part_of(values: Sequence[Value | None], part: str) -> MetricColumn:
    reduced = reduced_columns({"accuracy": values})["accuracy", part]
    return reduced_to(column_of("accuracy", values), reduced, np.arange(len(values)))


def sample(task: str, number: int) -> Sample:
    right, rouge = number % 3 > 0, task == TASKS[1]
    return made_sample(
        task,
        number,
        right,
        sample_id=f"s{number:02d}",
        cluster=f"p{number % 4}",
        scores={"accuracy": float(right), **({"rougeL": 0.1 * number} if rouge else {})},
        statistics={
            "accuracy": (float(right), 1.0),
            **({"rougeL": (0.1 * number, 1.0)} if rouge else {}),
        },
    )


@pytest.fixture(scope="module")
def samples() -> dict[str, list[Sample]]:
    return {
        task: [sample(task, number) for number in range(start, 20)]
        for start, task in enumerate(TASKS)
    }


def test_a_groups_table_gives_the_scores_of_all_its_samples(
    samples: dict[str, list[Sample]],
) -> None:
    tables = [item_table(members, MI_CXR, ["family"]) for members in samples.values()]
    pooled = score_table(pooled_table(tables, ("family",)))
    assert pooled == score_samples(
        [one for members in samples.values() for one in members], MI_CXR, ["family"]
    )
    assert pooled.items == 39
    assert list(pooled.metrics) == ["accuracy", "rougeL"]
    assert pooled.metrics["rougeL"].samples == 19


def with_parts(table: ItemTable, part: str, share: float) -> ItemTable:
    """The table, of whose items every third counts ``share`` in a part."""
    values = [
        Value((1.0, 1.0), parts={} if row % 3 else {part: Value((share + row, 1.0))})
        for row in range(len(table.items))
    ]
    reduced = reduced_columns({"accuracy": values})
    return replace(table, columns={"accuracy": column_of("accuracy", values)}, reduced=reduced)


def test_an_item_counts_in_a_part_of_a_group_as_in_its_task(
    samples: dict[str, list[Sample]],
) -> None:
    tables = [
        with_parts(item_table(samples[task], MI_CXR), "x", share)
        for task, share in zip(TASKS, (0.25, 0.5), strict=True)
    ]
    expected = {
        (task, item): row
        for table in tables
        for task, item, row in zip(
            table.tasks, table.items, table.column("accuracy", "x").statistics, strict=True
        )
    }
    pooled = pooled_table(tables)
    found = pooled.column("accuracy", "x").statistics
    for task, item, row in zip(pooled.tasks, pooled.items, found, strict=True):
        np.testing.assert_array_equal(row, expected[task, item])
    assert len(np.unique(found)) > 10


def test_runs_are_compared_in_a_part_by_what_their_items_count_in_it(
    samples: dict[str, list[Sample]],
) -> None:
    by_family = replace(MI_CXR, scoring=replace(MI_CXR.scoring, parts="family"))
    made = replace(item_table(samples[TASKS[0]], MI_CXR, ["family"]), benchmark=by_family)
    found = compare_tables(
        ("one", with_parts(made, "TEL", 0.5)), ("other", with_parts(made, "TEL", 0.25))
    )
    assert found.metrics["accuracy"].difference == 0
    assert found.breakdowns["family"]["TEL"].metrics["accuracy"].difference == pytest.approx(
        0.25 * 7 / 20
    )


def test_a_question_that_two_tasks_ask_has_two_ids(samples: dict[str, list[Sample]]) -> None:
    table = RunTables(samples).of("mi_cxr", TASKS)
    assert table.items[2:4] == ("s01", "s01") or table.items[1:3] == ("s01", "s01")
    assert len(set(table.unique)) == 39


def test_what_is_known_of_each_item() -> None:
    waiting = Value(low=(0.0, 1.0), high=(1.0, 1.0))
    column = column_of("accuracy", [*VALUES, OPEN, waiting, Value(statistics=(0.0, 0.0)), Value()])
    assert column.present.tolist() == [True, True, True, False, True, True, True, True]
    assert column.known.tolist() == [True, False, True, False, False, False, True, False]
    assert column.state.tolist() == [
        ItemState.PRESENT,
        ItemState.FAILED,
        ItemState.PRESENT,
        ItemState.ABSENT,
        ItemState.PENDING,
        ItemState.AWAITING,
        ItemState.PRESENT,
        ItemState.PRESENT,
    ]
    assert column.applies.tolist() == [True, True, True, False, True, True, False, True]
    assert column.judges_of(np.arange(8)) == ["a", "b"]
    assert column.judges_of(np.array([0, 1])) == []
    assert column.judges_of(np.array([4])) == ["a"]


def test_repeats_count_where_every_item_has_as_many_and_more_than_one() -> None:
    once, twice = (Value(statistics=(1.0, 1.0), repeats=((1.0, 1.0),) * count) for count in (1, 2))
    assert column_of("accuracy", [once, once]).repeats is None
    assert column_of("accuracy", [once, twice]).repeats is None
    assert column_of("accuracy", [twice, None]).repeats is None
    other = Value(statistics=(2.0, 2.0), repeats=((0.0, 1.0), (2.0, 1.0)))
    found = column_of("accuracy", [twice, twice, other]).take(np.array([2, 0])).repeats
    assert found is not None
    assert found[:, 0, 0].tolist() == [0.0, 1.0]


def test_a_part_keeps_limits_and_judges_apart_from_the_whole() -> None:
    whole = Value(
        statistics=(1.0, 1.0),
        judge="w",
        parts={"p": Value(low=(0.0, 1.0), high=(1.0, 1.0), judge="p")},
    )
    part = part_of([whole, KNOWN, None], "p")
    assert part.judges_of(np.array([0])) == ["p"]
    assert part.judges_of(np.array([0, 1, 2])) == ["b", "p"]
    assert (part.state == ItemState.PENDING).tolist() == [True, False, False]
    bounds = part.bounds(np.array([0, 1]))
    assert bounds is not None
    assert [side.tolist() for side in bounds] == [[[0, 1], [1, 2]], [[1, 1], [1, 2]]]


def test_the_rows_of_a_breakdowns_groups(samples: dict[str, list[Sample]]) -> None:
    table = item_table(samples[TASKS[0]], MI_CXR, ["family"])
    assert {key: rows.tolist() for key, rows in table.rows_by_group("family").items()} == {
        "TEL": list(range(20))
    }
    with pytest.raises(
        MedtasksError, match=r"^mi_cxr: breakdown 'mood' is unknown; choose from \w+, .*\.$"
    ):
        item_table(samples[TASKS[0]], MI_CXR, ["mood"])


def test_samples_of_one_task_have_the_same_metrics(samples: dict[str, list[Sample]]) -> None:
    odd = samples[TASKS[0]][3].model_copy(update={"scores": {}})
    with pytest.raises(
        MedtasksError,
        match=r"sample s03 of mi_cxr_tel_single has the metrics \[\], expected \['acc",
    ):
        item_table([*samples[TASKS[0]][:3], odd], MI_CXR)


def check_same(one: ItemTable, other: ItemTable, arrays: Sequence[str]) -> None:
    """The tables are equal, of each column these arrays."""
    for name in (field.name for field in fields(ItemTable)):
        made, expected = getattr(one, name), getattr(other, name)
        if name == "columns":
            assert list(made) == list(expected)
            for key, part in itertools.product(made, arrays):
                np.testing.assert_array_equal(
                    getattr(made[key], part), getattr(expected[key], part)
                )
        elif name == "reduced":
            assert list(made) == list(expected)
            for key, part in itertools.product(made, arrays):
                np.testing.assert_array_equal(made[key][0], expected[key][0])
                np.testing.assert_array_equal(
                    getattr(made[key][1], part), getattr(expected[key][1], part)
                )
        else:
            np.testing.assert_equal(made, expected)


@pytest.mark.parametrize("order", [1, -1])
def test_a_table_made_in_parts_is_that_of_all_samples(
    samples: dict[str, list[Sample]], order: int
) -> None:
    task = TASKS[1]
    lost = {
        "status": "failed",
        "failed": ("gone",),
        "statistics": {},
        "limits": {"accuracy": ((0.0, 1.0), (1.0, 1.0))},
    }
    members = [*samples[task][:-1], samples[task][-1].model_copy(update=lost)]
    tables = RunTables({task: ()})
    for begin in range(0, len(members), 7)[::order]:
        tables.add(task, members[begin : begin + 7])
    every = ("statistics", "state", "ranges", "judge", "repeats")
    check_same(tables.of(task), RunTables({task: members}).of(task), every)
    assert tables.of(task) is tables.made[task]


def test_all_parts_of_a_task_have_the_same_metrics(samples: dict[str, list[Sample]]) -> None:
    tables = RunTables({})
    tables.add(TASKS[0], samples[TASKS[0]][:3])
    tables.add(TASKS[0], [samples[TASKS[0]][3].model_copy(update={"scores": {}})])
    with pytest.raises(
        MedtasksError, match=r"sample s03 of mi_cxr_tel_single has the metrics \[.*expected \['acc"
    ):
        tables.of(TASKS[0])


def test_samples_are_scored_in_parts_unless_their_items_need_all_of_them(
    samples: dict[str, list[Sample]],
) -> None:
    plain = samples[TASKS[0]][0]
    sure = plain.model_copy(update={"probabilities": (Probabilities(0.9),)})

    def sizes(task: str, members: list[Sample]) -> list[int]:
        return [len(part) for part in in_parts(load_spec(task), members)]

    assert sizes(TASKS[0], [plain] * 5000) == [4096, 904]
    assert sizes(TASKS[0], [*[plain] * 4999, sure]) == [5000]
    assert sizes("med_cmr_mcq_cr_circular", [plain] * 5000) == [5000]
    assert sizes("medstreambench_future", [plain] * 5000) == [5000]
    assert sizes(TASKS[0], []) == [0]


def test_a_run_without_its_samples_has_the_tables_that_were_made(
    samples: dict[str, list[Sample]],
) -> None:
    tables = RunTables(samples)
    first = tables.of(TASKS[0])
    assert tables.of(TASKS[0]) is first
    tables.of("mi_cxr", TASKS)
    assert set(tables.made) == set(tables.tasks) == set(TASKS)
    left = RunTables({}, tables.made)
    assert set(left.tasks) == set(TASKS)
    assert left.of(TASKS[0]).items == first.items
    assert left.of("mi_cxr", TASKS).unique == tables.of("mi_cxr", TASKS).unique


def test_statistics_of_another_width_are_refused() -> None:
    with pytest.raises(DataError, match="statistics of bleu have 2 numbers, expected 10"):
        column_of("bleu", [KNOWN])


def test_what_is_written_is_read(samples: dict[str, list[Sample]], tmp_path: Path) -> None:
    made = item_table(samples[TASKS[1]], MI_CXR, ["family"])
    values = [*VALUES, *[None] * 15]
    columns = {**made.columns, "accuracy": column_of("accuracy", values)}
    table = replace(made, columns=columns, reduced=reduced_columns({"accuracy": values}))
    store = TableStore(tmp_path / "kept")
    store.write("key", {"some": [1.5, None]}, {"t": table})
    found = store.read("key")
    assert found is not None
    told, tables = found
    assert told == {"some": [1.5, None]}
    kept = tables["t"]
    not_kept = {name: getattr(table, name) for name in ("statuses", "target", "chosen", "options")}
    check_same(replace(kept, **not_kept), table, ("statistics", "present"))
    assert compare_tables(("a", kept), ("b", kept)) == compare_tables(("a", table), ("b", table))
    assert store.read("other") is None
    assert TableStore(None).read("key") is None


def test_other_code_is_another_key(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("A = 1\n", encoding="utf-8")
    before = code_hash(tmp_path)
    assert code_hash(tmp_path) == before != code_hash()
    (tmp_path / "one.py").write_text("A = 2\n", encoding="utf-8")
    assert code_hash(tmp_path) != before
