"""Published figures: they load, map to what is scored here, and a wrong file is refused by file and field."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from medtasks.leaderboard.board.reference import (
    load_reference,
    read_reference,
)
from reference_figures import cells, printed

from medtasks.catalog.registry import all_benchmarks
from medtasks.catalog.spec import load_specs
from medtasks.core.errors import DataError, UsageError
from medtasks.metrics.registry import get_metric

BENCHMARKS = ("kvasir_vqa_x1", "med_cmr", "medstreambench", "mi_cxr")


# What every file must hold


def test_there_is_one_file_for_each_benchmark() -> None:
    assert tuple(sorted(name for name, one in all_benchmarks().items() if one.figures is not None)) == BENCHMARKS


@pytest.mark.parametrize(
    ("benchmark", "figures", "unreadable"),
    [("kvasir_vqa_x1", 503, 7), ("med_cmr", 63, 0), ("medstreambench", 81, 0), ("mi_cxr", 154, 0)],
)
def test_no_figure_was_lost(benchmark: str, figures: int, unreadable: int) -> None:
    values = [cell.value for _, cell in cells(benchmark)]
    assert (len(values) - values.count(None), values.count(None)) == (figures, unreadable)


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_every_cell_stands_once(benchmark: str) -> None:
    assert len(printed(benchmark)) == len(cells(benchmark))


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_every_figure_maps_to_a_task_a_metric_and_a_breakdown(benchmark: str) -> None:
    specs = load_specs()
    for _, cell in cells(benchmark):
        assert specs[cell.task].metadata.benchmark.startswith(benchmark)  # tracks are benchmarks of their own
        assert cell.breakdown is None or cell.breakdown in specs[cell.task].metadata.breakdowns
        assert get_metric(cell.metric).name == cell.metric


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_values_are_in_the_unit_of_our_metric(benchmark: str) -> None:
    top = {"chrf": 100, "open_total": 100}
    for _, cell in cells(benchmark):
        if cell.value is not None:
            low = -np.inf if cell.metric == "bleurt" else 0
            assert low <= cell.value <= top.get(cell.metric, 1), cell


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_an_unreadable_cell_says_why(benchmark: str) -> None:
    for _, cell in cells(benchmark):
        assert cell.printed is not None or cell.notes


def test_rows_say_whether_the_model_was_trained_on_the_benchmark() -> None:
    said = {row.model: row.trained for row in load_reference("kvasir_vqa_x1").rows}
    assert {model for model, trained in said.items() if trained == "no"} == {
        "Gemma 3 4B",
        "MedGemma 4B",
        "Qwen2.5-VL 7B",
    }
    assert set(said.values()) == {"yes", "no"}
    for benchmark in BENCHMARKS[1:]:
        assert {row.trained for row in load_reference(benchmark).rows} == {"unknown"}


# Files that are not what they should be

GOOD = """
benchmark: some_benchmark
paper: {title: A paper, arxiv: "0000.00000", year: 2026}
models:
  - {name: First, family: F, type: general, trained_on_benchmark: no}
  - {name: Second, printed_as: [second], family: F, size: 7B, type: closed, trained_on_benchmark: yes, notes: [Why]}
tables:
  - name: Table 1
    source: paper
    notes: [Of the table]
    columns:
      - {name: A, task: some_task, metric: accuracy, unit: percent}
      - {name: B, task: other_task, metric: bleurt, unit: score, notes: [Of the column]}
    rows:
      - [First, 50.0, -0.530]
      - [second, 12.5, null]
    cell_notes:
      - {row: second, column: B, note: Of the cell}
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "some_benchmark.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_row_is_what_one_table_prints_for_one_model(tmp_path: Path) -> None:
    first, second = read_reference(written(tmp_path, GOOD), "some_benchmark").rows
    assert (first.label, first.model, first.size, first.trained) == ("First", "First", None, "no")
    assert (second.label, second.model, second.size, second.trained) == ("second", "Second", "7B", "yes")
    assert second.notes == ("Of the table", "Why")
    half, score = first.cells
    assert (half.column, half.task, half.metric, half.value) == ("A", "some_task", "accuracy", 0.5)
    assert (score.printed, score.value) == ("-0.530", -0.53)
    unreadable = second.cells[1]
    assert (unreadable.value, unreadable.notes) == (None, ("Of the column", "Of the cell"))


def test_models_may_stand_side_by_side(tmp_path: Path) -> None:
    text = GOOD[: GOOD.index("    columns:")] + (
        "    models_across: [First, second]\n"
        "    rows_are: {task: some_task, breakdown: kind, metric: accuracy, unit: percent}\n"
        "    rows: [[easy, 90, 80], [hard, 10, 20]]\n"
    )
    _, second = read_reference(written(tmp_path, text), "some_benchmark").rows
    assert [(cell.column, cell.breakdown, cell.group, cell.value) for cell in second.cells] == [
        ("easy", "kind", "easy", 0.8),
        ("hard", "kind", "hard", 0.2),
    ]


def replaced(old: str, new: str) -> Callable[[], str]:
    def edit() -> str:
        assert old in GOOD
        return GOOD.replace(old, new)

    return edit


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (
            replaced("50.0", "150.0"),
            r"table 'Table 1', row 'First', column 'A' is 150.0, expected 0 to 100 \(percent\)",
        ),
        (replaced("50.0", "-1"), "column 'A' is -1, expected 0 to 100"),
        (replaced("50.0", "50,0"), "row 'First' has 4 cells, expected a label and 2 figures"),
        (replaced("50.0", "fifty"), "column 'A' is 'fifty', expected a plain number or null"),
        (replaced("-0.530", "nan"), "column 'B' is 'nan', expected a plain number"),
        (replaced(", -0.530", ""), "row 'First' has 2 cells, expected a label and 2 figures"),
        (replaced("[second, ", "[First, "), "row 'First' is duplicated"),
        (replaced("{name: B", "{name: A"), "column 'A' is duplicated"),
        (replaced("[second, ", "[Third, "), r"`cell_notes` names \('second', 'B'\)"),
        (replaced("printed_as: [second]", "printed_as: [other]"), "'other' is not both in a table and in `models`"),
        (replaced("row: second", "row: third"), r"`cell_notes` names \('third', 'B'\)"),
        (replaced("12.5", "null"), "row 'second', column 'A' is null; say why in `cell_notes`"),
        (
            replaced("trained_on_benchmark: no", "trained_on_benchmark: maybe"),
            r"field `models\[0\].trained_on_benchmark`",
        ),
        (replaced("year: 2026", "year: soon"), "field `paper.year`"),
        (replaced("unit: percent", "unit: percents"), r"field `tables\[0\].columns\[0\].unit`"),
        (replaced("unit: percent", "unit: percent, group: easy"), "column 'A' has one of `breakdown` and `group`"),
        (replaced("    source: paper", "    source: paper\n    source: other"), "key 'source' is duplicated"),
        (replaced("    source: paper", "    source: paper\n    sauce: other"), r"field `tables\[0\].sauce`"),
        (replaced("    rows:", "    models_across: [First]\n    rows:"), "either `columns`, or both"),
        (replaced("benchmark: some_benchmark", "benchmark: other"), "field `benchmark` is 'other'"),
        (lambda: "[1, 2", "not a readable YAML file"),
        (lambda: "- 1", "the content is .*, expected a mapping"),
    ],
)
def test_a_wrong_file_is_refused_by_file_and_field(tmp_path: Path, edit: Callable[[], str], message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        read_reference(written(tmp_path, edit()), "some_benchmark")
    assert "some_benchmark.yaml" in str(caught.value)


def test_a_benchmark_without_figures_is_refused() -> None:
    with pytest.raises(UsageError, match="'other' is unknown; choose from kvasir_vqa_x1, "):
        load_reference("other")


def test_what_is_not_held_is_said() -> None:
    for benchmark in BENCHMARKS:
        assert load_reference(benchmark).gaps
