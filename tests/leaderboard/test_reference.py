"""Published figures: they load, map to what is scored here, and add up as their papers say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from medtasks.leaderboard.reference import (
    ReferenceCell,
    ReferenceRow,
    load_reference,
    read_reference,
    reference_benchmarks,
    reference_rows,
)
from scipy.optimize import linprog

from medtasks.errors import DataError, UsageError
from medtasks.metrics import get_metric
from medtasks.metrics.item_metrics import table4_overall
from medtasks.spec import load_specs

BENCHMARKS = ("kvasir_vqa_x1", "med_cmr", "medstreambench", "mi_cxr")
JUDGED: dict[str, set[str]] = {
    "kvasir_vqa_x1": {"judged_accuracy"},
    "med_cmr": {
        "open_total",
        "open_consistency",
        "open_coherence",
        "open_visual_accuracy",
        "open_ground_truth_correctness",
    },
    "medstreambench": {"content", "responsiveness", "stability", "overall"},
    "mi_cxr": set(),
}
"""Metrics that a judge gives, which the registry of computed ones need not know."""

Cell = tuple[str, str, str]  # table, model's label, column


def printed(benchmark: str) -> dict[Cell, Decimal | None]:
    return {(row.table, row.label, cell.column): cell.printed for row, cell in cells(benchmark)}


def cells(benchmark: str) -> list[tuple[ReferenceRow, ReferenceCell]]:
    return [(row, cell) for row in reference_rows(benchmark) for cell in row.cells]


def read(figures: dict[Cell, Decimal | None], *cell: str) -> Decimal:
    """A figure that must be readable."""
    table, label, column = cell
    figure = figures[table, label, column]
    assert figure is not None, cell
    return figure


def half_unit(*figures: Decimal) -> float:
    """Half a unit of the last digit, which these figures share: what rounding may have taken from each."""
    (exponent,) = {int(figure.as_tuple().exponent) for figure in figures}
    return float(5 * Decimal(10) ** (exponent - 1))


# What every file must hold


def test_there_is_one_file_for_each_benchmark() -> None:
    assert reference_benchmarks() == BENCHMARKS


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
    for row, cell in cells(benchmark):
        assert row.benchmark == benchmark
        assert specs[cell.task].metadata.benchmark.startswith(benchmark)  # tracks are benchmarks of their own
        assert cell.breakdown is None or cell.breakdown in specs[cell.task].metadata.breakdowns
        if cell.metric not in JUDGED[benchmark]:
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
    said = {row.model: row.trained_on_benchmark for row in reference_rows("kvasir_vqa_x1")}
    assert {model for model, trained in said.items() if trained == "no"} == {
        "Gemma 3 4B",
        "MedGemma 4B",
        "Qwen2.5-VL 7B",
    }
    assert set(said.values()) == {"yes", "no"}
    for benchmark in BENCHMARKS[1:]:
        assert {row.trained_on_benchmark for row in reference_rows(benchmark)} == {"unknown"}


# Kvasir-VQA-x1

MODELS = ("gemma3", "medgemma", "medgemma-ft", "Qwen 2.5-VL-7B", "Qwen2.5-VL-7B-ft")
LEVELS = tuple(f"Table 7, complexity level {level}" for level in (1, 2, 3))
OVERALL = "Table 7, overall"
CLASSES = tuple(cell.column for cell in reference_rows("kvasir_vqa_x1")[-1].cells)
LEVEL_1_ROWS = 5548  # protocol card


def misfit(parts: Sequence[Sequence[float]], wholes: Sequence[float]) -> float:
    """The least error, of the worst row, with which one set of shares of the parts makes the wholes of all rows."""
    matrix, target = np.array(parts), np.array(wholes)
    slack = -np.ones((len(target), 1))
    found = linprog(
        [*np.zeros(matrix.shape[1]), 1],
        A_ub=np.vstack([np.hstack([matrix, slack]), np.hstack([-matrix, slack])]),
        b_ub=np.concatenate([target, -target]),
        A_eq=[[*np.ones(matrix.shape[1]), 0]],
        b_eq=[1],
        bounds=[(0, None)] * (matrix.shape[1] + 1),
    )
    assert found.success
    return float(found.x[-1])


def levels_and_overall(figures: dict[Cell, Decimal | None], name: str) -> tuple[list[list[Decimal]], list[Decimal]]:
    """A class's scores by level, and overall, of the models of which all are readable."""
    parts, wholes = [], []
    for model in MODELS:
        row = [figures[table, model, name] for table in (*LEVELS, OVERALL)]
        if None not in row:
            *levels, overall = [figure for figure in row if figure is not None]
            parts.append(levels)
            wholes.append(overall)
    return parts, wholes


def overall_misfit(figures: dict[Cell, Decimal | None], name: str) -> tuple[float, float]:
    """How far a class's overall column is from its levels pooled, and how far rounding alone could put it."""
    parts, wholes = levels_and_overall(figures, name)
    assert len(wholes) >= 3  # more than the two free shares
    rounding = half_unit(*wholes) + half_unit(*chain(*parts))  # the shares of the levels make 1
    return misfit([[float(figure) for figure in row] for row in parts], [float(f) for f in wholes]), rounding


POOLED = [name for name in CLASSES if name != "finding_presence"]


@pytest.mark.parametrize("name", POOLED)
def test_kvasir_overall_is_the_levels_pooled(name: str) -> None:
    off, rounding = overall_misfit(printed("kvasir_vqa_x1"), name)
    assert off <= rounding


@pytest.mark.parametrize("table", [LEVELS[1], OVERALL])
@pytest.mark.parametrize("model", ["medgemma", "Qwen 2.5-VL-7B"])
def test_kvasir_would_not_add_up_with_a_figure_misread(table: str, model: str) -> None:
    figures = printed("kvasir_vqa_x1")
    figures[table, model, "polyp_type"] = read(figures, table, model, "polyp_type") + 1
    off, rounding = overall_misfit(figures, "polyp_type")
    assert off > 5 * rounding


def test_kvasir_finding_presence_is_asked_at_level_1_alone() -> None:
    figures = printed("kvasir_vqa_x1")
    for model in MODELS:
        assert figures[OVERALL, model, "finding_presence"] == figures[LEVELS[0], model, "finding_presence"]
        assert (LEVELS[1], model, "finding_presence") not in figures


def fewest_rows(figures: Sequence[Decimal], whole: int) -> int:
    """The least number of rows of which every figure, a share of ``whole``, is a whole number of right answers."""
    shares = np.array([float(figure) / whole for figure in figures])
    for rows in range(1, 1000):
        if np.all(np.abs(np.round(shares * rows) / rows - shares) <= half_unit(*figures) / whole + 1e-12):
            return rows
    raise AssertionError(f"{figures} are shares of no common number of rows")


def test_kvasir_level_1_scores_are_shares_of_the_test_rows() -> None:
    # At level 1 a row has one class, so the classes' rows make up the level's. Every figure read takes part.
    figures = printed("kvasir_vqa_x1")
    rows = {}
    for name in CLASSES:
        read = [figures[LEVELS[0], model, name] for model in MODELS]
        rows[name] = fewest_rows([figure for figure in read if figure is not None], whole=100)
    assert sum(rows.values()) == LEVEL_1_ROWS


@pytest.mark.parametrize("track", ["normal", "transformed"])
def test_kvasir_overlaps_are_ordered_as_they_must_be(track: str) -> None:
    figures = printed("kvasir_vqa_x1")
    table = f"Table 6, {track} images"
    labels = [row.label for row in reference_rows("kvasir_vqa_x1") if row.table == table]
    assert len(labels) == 10
    for label in labels:
        one, two, longest = (float(read(figures, table, label, f"ROUGE-{kind}")) for kind in "12L")
        assert two < longest < one


# Med-CMR

DIMENSIONS = ("SOD", "FDD", "SU", "TP", "CR", "LTG", "MSI")
RELEASE = {"SOD": 1024, "FDD": 711, "SU": 371, "TP": 336, "CR": 1922, "LTG": 11582, "MSI": 709}
AS_PRINTED = RELEASE | {"SOD": 1023, "SU": RELEASE["MSI"], "MSI": RELEASE["SU"]}
"""The card: SU and MSI are swapped between the printed table and the release, and one SOD row is missing."""
MAIN = "Main results"


def pooled_error(figures: dict[Cell, Decimal | None], label: str, counts: dict[str, int]) -> tuple[float, float]:
    columns = [read(figures, MAIN, label, name) for name in DIMENSIONS]
    overall = read(figures, MAIN, label, "MCQ All")
    total = sum(counts.values())
    pooled = sum(float(figure) * counts[name] for name, figure in zip(DIMENSIONS, columns, strict=True)) / total
    return abs(pooled - float(overall)), half_unit(overall) + half_unit(*columns)


MED_CMR = tuple(row.label for row in reference_rows("med_cmr"))


@pytest.mark.parametrize("label", MED_CMR)
def test_med_cmr_overall_is_the_seven_dimensions_pooled(label: str) -> None:
    error, rounding = pooled_error(printed("med_cmr"), label, AS_PRINTED)
    assert error <= rounding


@pytest.mark.parametrize("label", MED_CMR)
def test_med_cmr_does_not_pool_with_the_releases_labels(label: str) -> None:
    error, rounding = pooled_error(printed("med_cmr"), label, RELEASE)
    assert error > rounding


@pytest.mark.parametrize("name", DIMENSIONS)
def test_med_cmr_would_not_pool_with_a_figure_misread(name: str) -> None:
    figures = printed("med_cmr")
    off = Decimal(10) if AS_PRINTED[name] < 1000 else Decimal(1)  # a digit of the tens, or of the ones
    figures[MAIN, "GPT-5", name] = read(figures, MAIN, "GPT-5", name) - off
    error, rounding = pooled_error(figures, "GPT-5", AS_PRINTED)
    assert error > rounding


@pytest.mark.parametrize("name", DIMENSIONS)
def test_med_cmr_columns_are_shares_of_the_printed_counts(name: str) -> None:
    figures = [cell.printed or Decimal("NaN") for _, cell in cells("med_cmr") if cell.column == name]
    shares, rows = np.array([float(figure) for figure in figures]), AS_PRINTED[name]
    assert np.all(np.abs(100 * np.round(shares * rows / 100) / rows - shares) <= half_unit(*figures) + 1e-9)


def test_med_cmr_swapped_columns_are_kept_out_of_rankings() -> None:
    assert {cell.column for _, cell in cells("med_cmr") if not cell.rankable} == {"SU", "MSI"}


def test_med_cmr_margins_that_the_text_states() -> None:
    figures = printed("med_cmr")
    open_source = [row.label for row in reference_rows("med_cmr") if row.type != "closed"]
    for column, stated in (("MCQ All", Decimal("8.47")), ("Open All", Decimal("0.82"))):
        best = max(read(figures, MAIN, label, column) for label in open_source)
        assert read(figures, MAIN, "GPT-5", column) - best == stated
    assert all(read(figures, MAIN, label, "LTG") < 46 for label in open_source)


# MedStreamBench

STREAM_ROWS = reference_rows("medstreambench")
APPROXIMATE = {"retrospective": 3820, "present": 402, "future": 885, "proactive": 311}
"""Items per mode as the card has them, "about": the paper prints none."""


def table4_error(figures: dict[Cell, Decimal | None], label: str) -> tuple[float, float]:
    def mean(column: str) -> float:
        return float(read(figures, "Table 4", label, column))

    means: dict[str, tuple[float, float | None]] = {
        "retrospective": (mean("Retrospective Content"), None),
        "present": (mean("Present Content"), None),
        "future": (mean("Future Content"), mean("Future Resp.")),
        "proactive": (mean("Proactive Content"), mean("Proactive Resp.")),
    }
    row = [figure for (_, model, _), figure in figures.items() if model == label and figure is not None]
    # the mode means weigh 1 in total, and the overall is rounded itself
    return abs(table4_overall(means, APPROXIMATE) - mean("Overall Score")), 2 * half_unit(*row)


@pytest.mark.parametrize("label", [row.label for row in STREAM_ROWS])
def test_medstreambench_overall_follows_from_its_modes(label: str) -> None:
    error, rounding = table4_error(printed("medstreambench"), label)
    assert error <= rounding


@pytest.mark.parametrize(
    "column", ["Retrospective Content", "Present Content", "Future Content", "Future Resp.", "Proactive Content"]
)
def test_medstreambench_would_not_add_up_with_a_figure_misread(column: str) -> None:
    figures = printed("medstreambench")
    figures["Table 4", "Lingshu-7B", column] = read(figures, "Table 4", "Lingshu-7B", column) + Decimal("0.01")
    error, rounding = table4_error(figures, "Lingshu-7B")
    assert error > rounding


def test_medstreambench_leaders_are_those_of_the_table() -> None:
    # The text names Lingshu-7B for the medical models; the table has HuluMed-7B before it, and a note says so.
    best: dict[str, ReferenceRow] = {}
    for row in STREAM_ROWS:
        if row.type not in best or (row.cells[-1].value or 0) > (best[row.type].cells[-1].value or 0):
            best[row.type] = row
    leaders = {kind: row.model for kind, row in best.items()}
    assert leaders == {"closed": "Gemini-2.5-Pro", "general": "InternVL3.5-8B", "medical": "HuluMed-7B"}
    assert any("Lingshu-7B" in note for note in best["medical"].notes)


# MI-CXR

README = "README, results"
SUBTYPES = {
    README: ("TEL (Single)", "TEL (Multi)", "TEL (E→R)", "ICR", "GTS (Single)", "GTS (Multi)", "Overall"),
    "Table 19": (
        "TEL Single (E/R)",
        "TEL Multiple (E/R)",
        "TEL E→R / R→E",
        "ICR",
        "GTS Single Abnormality",
        "GTS Multi Abnormality",
        "Overall",
    ),
}
SUBTYPES["Table 20"] = SUBTYPES["Table 19"]


def subtypes_misfit(figures: dict[Cell, Decimal | None], *tables: str) -> tuple[float, float]:
    rows = []
    for table in tables:
        labels = dict.fromkeys(model for held, model, _ in figures if held == table)
        rows += [[read(figures, table, label, column) for column in SUBTYPES[table]] for label in labels]
    numbers = np.array(rows, dtype=float)
    return misfit(numbers[:, :-1].tolist(), numbers[:, -1].tolist()), 2 * half_unit(*chain(*rows))


def test_mi_cxr_overall_is_the_subtypes_pooled() -> None:
    off, rounding = subtypes_misfit(printed("mi_cxr"), README)
    assert off <= rounding


@pytest.mark.parametrize("column", SUBTYPES[README][:-1])
def test_mi_cxr_would_not_add_up_with_a_figure_misread(column: str) -> None:
    figures = printed("mi_cxr")
    figures[README, "Lingshu-7B", column] = read(figures, README, "Lingshu-7B", column) + Decimal("0.100")
    off, rounding = subtypes_misfit(figures, README)
    assert off > rounding


def test_mi_cxr_prompting_tables_pool_with_other_shares() -> None:
    # A note says so: one set of rows cannot have made both these tables and the zero-shot one.
    assert all(any("pooled" in note for note in cell.notes) for cell in overall_cells("Table 19", "Table 20"))
    off, rounding = subtypes_misfit(printed("mi_cxr"), *SUBTYPES)
    assert off > 10 * rounding


def overall_cells(*tables: str) -> list[ReferenceCell]:
    return [cell for row, cell in cells("mi_cxr") if row.table in tables and cell.column == "Overall"]


def test_mi_cxr_stated_mean_fits_the_models_held() -> None:
    # 29.3 % is the mean of 14 models, 12 of which are held: the other two must lie among them.
    held = [cell.printed or Decimal("NaN") for cell in overall_cells(README)]
    others = (14 * Decimal("0.293") - sum(held)) / 2
    assert len(held) == 12
    assert min(held) < others < max(held)


@pytest.mark.parametrize("table", ["Table 2", "Table 16"])
def test_mi_cxr_variant_is_shares_of_183_questions(table: str) -> None:
    figures = [figure for (held, _, _), figure in printed("mi_cxr").items() if held == table and figure is not None]
    assert len(figures) == 14
    assert fewest_rows(figures, whole=1) == 183  # not of the 400 that appendix D gives; a note says so
    assert all(any("183" in note for note in cell.notes) for row, cell in cells("mi_cxr") if row.table == table)


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
    first, second = read_reference(written(tmp_path, GOOD)).rows
    assert (first.label, first.model, first.size, first.trained_on_benchmark) == ("First", "First", None, "no")
    assert (second.label, second.model, second.size, second.trained_on_benchmark) == ("second", "Second", "7B", "yes")
    assert second.notes == ("Of the table", "Why")
    half, score = first.cells
    assert (half.column, half.task, half.metric, half.value, half.rounding) == (
        "A",
        "some_task",
        "accuracy",
        0.5,
        Decimal("0.05"),
    )
    assert (str(score.printed), score.value, score.rounding) == ("-0.530", -0.53, Decimal("0.0005"))
    unreadable = second.cells[1]
    assert (unreadable.value, unreadable.rounding, unreadable.notes) == (None, None, ("Of the column", "Of the cell"))


def test_models_may_stand_side_by_side(tmp_path: Path) -> None:
    text = GOOD[: GOOD.index("    columns:")] + (
        "    models_across: [First, second]\n"
        "    rows_are: {task: some_task, breakdown: kind, metric: accuracy, unit: percent}\n"
        "    rows: [[easy, 90, 80], [hard, 10, 20]]\n"
    )
    _, second = read_reference(written(tmp_path, text)).rows
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
        (replaced("50.0", "50,0"), "row 'First' has 3 figures, expected 2"),
        (replaced("50.0", "fifty"), "column 'A' is 'fifty', expected a plain number or null"),
        (replaced("-0.530", "nan"), "column 'B' is 'nan', expected a plain number"),
        (replaced(", -0.530", ""), "row 'First' has 1 figures, expected 2"),
        (replaced("[second, ", "[First, "), "row 'First' occurs 2 times"),
        (replaced("{name: B", "{name: A"), "column 'A' occurs 2 times"),
        (replaced("[second, ", "[Third, "), r"`cell_notes` names \('second', 'B'\)"),
        (replaced("printed_as: [second]", "printed_as: [other]"), "'other' is not both in a table and in `models`"),
        (replaced("row: second", "row: third"), r"`cell_notes` names \('third', 'B'\)"),
        (replaced("12.5", "null"), "row 'second', column 'A' is null; say why in `cell_notes`"),
        (replaced("trained_on_benchmark: no", "trained_on_benchmark: maybe"), "field `models.0.trained_on_benchmark`"),
        (replaced("year: 2026", "year: soon"), "field `paper.year`"),
        (replaced("unit: percent", "unit: percents"), "field `tables.0.columns.0.unit`"),
        (replaced("unit: percent", "unit: percent, group: easy"), "column 'A' has one of `breakdown` and `group`"),
        (replaced("    source: paper", "    source: paper\n    source: other"), "key 'source' twice"),
        (replaced("    source: paper", "    source: paper\n    sauce: other"), "field `tables.0.sauce`"),
        (replaced("    rows:", "    models_across: [First]\n    rows:"), "either `columns`, or both"),
        (replaced("benchmark: some_benchmark", "benchmark: other"), "field `benchmark` is 'other'"),
        (lambda: "[1, 2", "not a readable YAML file"),
        (lambda: "- 1", r"field `\(file\)`"),
    ],
)
def test_a_wrong_file_is_refused_by_file_and_field(tmp_path: Path, edit: Callable[[], str], message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        read_reference(written(tmp_path, edit()))
    assert "some_benchmark.yaml" in str(caught.value)


def test_a_benchmark_without_figures_is_refused() -> None:
    with pytest.raises(UsageError, match=r"'other' has no published figures here; choose from kvasir_vqa_x1, "):
        load_reference("other")


def test_what_is_not_held_is_said() -> None:
    for benchmark in BENCHMARKS:
        assert load_reference(benchmark).gaps
