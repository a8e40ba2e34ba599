"""Sections of a benchmark's page: rotated options, confidences, kinds of error, paraphrased
prompts.

Each has its scores, which are those of the runs, in a table, figures, LaTeX and JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from invented_runs import MODELS, START, Invented, make_run, write_runs
from medtasks.leaderboard.figures.plane import Plane
from medtasks.leaderboard.figures.plots import figures_of
from medtasks.leaderboard.publish import BoardOptions, publish
from medtasks.leaderboard.schema.board import BenchmarkBoard, Board
from medtasks.leaderboard.schema.model_findings import OrderChange
from medtasks.leaderboard.schema.score_tables import BoardRow, BoardTable

from medtasks.benchmarks.documents import prompt_text, task_documents
from medtasks.benchmarks.layout_checks import check_layout
from medtasks.benchmarks.layout_parts import HARMS
from medtasks.benchmarks.layouts import default_layout
from medtasks.catalog.registry import all_benchmarks, get_benchmark
from medtasks.catalog.spec import leaf_tasks, load_spec, load_specs
from medtasks.metrics.confidence import CONFIDENCE_NAMES
from medtasks.runs.replies import Reply
from medtasks.runs.samples import Sample
from medtasks.scoring.run_folder import write_run
from medtasks.scoring.run_record import RunRecord
from medtasks.scoring.scored_samples import scored_samples
from medtasks.scoring.scores import Scores

CONFIDENT = (
    Invented("invented/Calibrated-7B", "calibrated", seed=1),
    Invented("invented/Sure-7B", "overconfident", seed=2),
    Invented("invented/Guess-1B", "uniform", seed=3),
)
CONFIDENCES = ("mi_cxr", "mi_cxr_verbalised")
ERRORS = {name: name for name in ("kvasir_vqa_x1", "mi_cxr", "medstreambench")} | {
    "med_cmr": "med_cmr_mcq"
}
ROTATED = "mi_cxr_circular"
ROTATIONS = ("accuracy", "circular_accuracy", "rotation_consistency", "letter_preference")
PROMPTED = "mi_cxr_prompts"
OVER_PROMPTS = ("accuracy", "worst_prompt", "best_prompt", "prompt_spread", "prompt_agreement")
EACH_PROMPT = tuple(f"prompt_{number}" for number in range(1, 5))
RIGHT = {
    "Steady-7B": (0.6, 0.6, 0.6, 0.6),
    "Fickle-7B": (0.9, 0.2, 0.9, 0.9),
    "Weak-1B": (0.1, 0.1, 0.1, 0.1),
}
"""The share of questions that each model answers right under each prompt."""


@dataclass(frozen=True)
class Published:
    """Runs by model, and the board and site made of them."""

    runs: Mapping[str, Path]
    board: Board
    site: Path

    def benchmark(self, name: str = "mi_cxr") -> BenchmarkBoard:
        return next(one for one in self.board.benchmarks if one.name == name)

    def table(self, name: str, benchmark: str = "mi_cxr") -> BoardTable:
        return next(one for one in self.benchmark(benchmark).tables if one.name == name)

    def scores(self, model: str, group: str) -> dict[str, Any]:
        """What the run's own scores.json says of a group."""
        return json.loads((self.runs[model] / "scores.json").read_text(encoding="utf-8"))["groups"][
            group
        ]

    def written(self, benchmark: str = "mi_cxr") -> dict[str, Any]:
        """The benchmark in board.json."""
        boards = json.loads((self.site / "exports" / "board.json").read_text(encoding="utf-8"))[
            "benchmarks"
        ]
        return next(one for one in boards if one["name"] == benchmark)

    def latex(self, table: str, benchmark: str = "mi_cxr") -> str:
        """The table in LaTeX, headings on one line."""
        text = (self.site / "exports" / benchmark / f"{table}.tex").read_text(encoding="utf-8")
        return text.replace(r"\\", " ")

    def page(self, benchmark: str = "mi_cxr") -> str:
        return (self.site / f"benchmark-{benchmark}.html").read_text(encoding="utf-8")

    def is_drawn(self, plot: str, benchmark: str = "mi_cxr") -> bool:
        return (self.site / "figures" / benchmark / f"{plot}.svg").is_file()


def row_of(table: BoardTable, model: str) -> BoardRow:
    (row,) = (one for one in table.rows if one.model.startswith(model))
    return row


def prompted_run(name: str, number: int) -> RunRecord:
    """The run of a model that is right on the first questions of a task, under each prompt on its
    share of them.
    """
    record = make_run(
        Invented(f"invented/{name}", "oracle", seed=number), (PROMPTED,), created=START.isoformat()
    )
    samples = {}
    for task in leaf_tasks(PROMPTED):
        spec, documents = load_spec(task), task_documents(task)
        asked = list(dict.fromkeys(one["prompt_of"] for one in documents))
        answered = []
        for one in documents:
            right = asked.index(one["prompt_of"]) < RIGHT[name][one["prompt"] - 1] * len(asked)
            said = str(one["target"]) if right else "EABCD"["ABCDE".index(one["target"])]
            answered.append(
                Sample.answered(
                    task, one, (Reply(said),), prompt_text(one, ""), spec.prompt_hash or ""
                )
            )
        samples[task] = scored_samples(spec, answered)
    return RunRecord.scored(record.manifest, samples)


def write_prompted(root: Path) -> dict[str, Path]:
    folders = {name: root / name / "20261101_000000_medtasks" for name in RIGHT}
    return {
        name: write_run(path, prompted_run(name, number))
        for number, (name, path) in enumerate(folders.items())
    }


WRITE: Mapping[str, Callable[[Path], dict[str, Path]]] = {
    "rotations": lambda root: write_runs(root, (MODELS[0], MODELS[3]), (ROTATED,)),
    "confidences": lambda root: write_runs(root, CONFIDENT, CONFIDENCES),
    "errors": lambda root: write_runs(root, (MODELS[0], MODELS[3]), tuple(ERRORS.values())),
    "prompts": write_prompted,
}


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Published]:
    @cache
    def made(which: str) -> Published:
        root = tmp_path_factory.mktemp(which)
        runs = WRITE[which](root / "runs")
        board = publish(
            [*runs.values()], root / "site", BoardOptions(demonstration=True), figures=("svg",)
        )
        return Published(runs, board, root / "site")

    return made


def test_a_plain_layout_shows_variants_of_tasks_below_the_headline() -> None:
    layout = default_layout("mi_cxr")
    variants = {ROTATED: ROTATIONS, PROMPTED: (*OVER_PROMPTS, *EACH_PROMPT)}
    assert not variants.keys() & {one.task for one in layout.headline}
    shown = {(column.task, column.metric) for table in layout.tables for column in table.columns}
    assert {(task, metric) for task, metrics in variants.items() for metric in metrics} <= shown


@pytest.mark.slow
def test_rotations_are_in_a_table_a_figure_latex_and_json(
    published: Callable[[str], Published],
) -> None:
    made = published("rotations")
    table, keys = made.table("option-order"), [f"{ROTATED}.{metric}" for metric in ROTATIONS]
    assert [column.key for column in table.columns][:4] == keys
    plots = {plot.name: plot for plot in made.benchmark().plots}
    assert plots["option-order"].columns == tuple(keys)
    assert made.is_drawn("option-order")
    labels = ("right in every rotation", "same option in every", "letter preference")
    assert all(label in made.latex("option-order") for label in labels)
    assert made.written()["letters"] == [
        one.model_dump(mode="json") for one in made.benchmark().letters
    ]
    scores, row = made.scores("Guess-1B", ROTATED)["metrics"], row_of(table, "guess")
    assert [row.cells[key].value for key in keys] == [
        scores[metric]["value"] for metric in ROTATIONS
    ]

    # the page has each letter with its interval
    letters = Scores.model_validate(made.scores("Guess-1B", ROTATED)).letters
    assert letters is not None
    assert letters.preference is not None
    (counts,) = (one for one in made.benchmark().letters if one.model.startswith("guess"))
    assert counts.preference == letters.preference
    value, low, high = (end if end is not None else float("nan") for end in letters.preference["A"])
    assert low <= value <= high != low
    shown = f"{100 * value:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]"
    assert f"<small>{shown}</small>" in made.page()
    (own,) = (path for path in made.site.glob("model-*.html") if "guess" in path.name)
    assert shown in own.read_text(encoding="utf-8")


@pytest.mark.slow
def test_confidences_are_the_scores_of_each_run(published: Callable[[str], Published]) -> None:
    made = published("confidences")
    for group, name, of in (
        ("mi_cxr", "confidence", "option;right=accuracy"),
        ("mi_cxr_verbalised", "confidence-mi_cxr_verbalised", "stated;right=accuracy;filter=4"),
    ):
        scores, row = made.scores("Sure-7B", group)["metrics"], row_of(made.table(name), "sure")
        for metric in CONFIDENCE_NAMES:
            cell = row.cells[f"{group}.{metric}"]
            assert (cell.value, [cell.low, cell.high]) == (
                scores[metric]["value"],
                scores[metric]["interval"],
            )
            assert f"confidence-of:{of}" in cell.signature
    given = {
        key.rpartition(".")[2]: cell.value
        for key, cell in row_of(made.table(name), "guess").cells.items()
    }
    assert given == {"confidence_given": 0.0}
    for name in (
        "confidence",
        "reliability",
        "coverage",
    ):  # a model without probabilities is not listed
        assert not [row for row in made.table(name).rows if row.model.startswith("guess")]


@pytest.mark.slow
def test_the_reliability_table_has_accuracy_minus_confidence(
    published: Callable[[str], Published],
) -> None:
    made = published("confidences")
    sure = row_of(made.table("reliability"), "sure")
    reliability = made.benchmark().reliability
    (calibrated,) = (
        one for one in reliability if one.task == "mi_cxr" and "calibrated" in one.model
    )
    values = {key: cell.value for key, cell in sure.cells.items() if cell.value is not None}
    assert list(values) == ["mi_cxr.accuracy.bin-15"]
    assert sure.cells["mi_cxr.accuracy.bin-15"].signature.endswith(
        "|minus:confidence|bin:0.9333-1.0000"
    )
    ece = row_of(made.table("confidence"), "sure").cells["mi_cxr.ece"].value
    assert -values["mi_cxr.accuracy.bin-15"] == pytest.approx(ece)
    empty = [cell.reason for cell in sure.cells.values() if cell.value is None]
    assert empty == ["no answer with this confidence"] * (len(calibrated.reliability.bins) - 1)


@pytest.mark.slow
def test_accuracy_by_confidence_and_coverage_is_drawn_and_exported(
    published: Callable[[str], Published],
) -> None:
    made = published("confidences")
    figures = figures_of(made.board, made.benchmark())
    for kind in ("reliability", "coverage"):
        plane = figures[kind].shape
        assert isinstance(plane, Plane)
        assert len(plane.curves) == 2
        assert all(
            0 <= point.x <= 100 and 0 <= point.y <= 100
            for curve in plane.curves
            for point in curve.points
        )
    ((point,),) = (
        curve.points for curve in figures["reliability"].shape.curves if "Sure" in curve.label
    )
    assert point.x > 94  # it is always sure
    assert point.y < point.x  # and right less often, so below the diagonal
    for name in ("confidence", "reliability", "coverage"):
        for full in (name, f"{name}-mi_cxr_verbalised"):
            assert made.is_drawn(full)
            assert "invented/Sure-7B" in made.latex(full).replace(r"\allowbreak{}", "")
    assert made.written()["reliability"] == [
        one.model_dump(mode="json") for one in made.benchmark().reliability
    ]
    for text in (
        "Line chart of accuracy by confidence",
        "99 % sure",
        "Line chart of accuracy by coverage",
    ):
        assert text in made.page()


@pytest.mark.slow
@pytest.mark.parametrize("name", ERRORS)
def test_kinds_of_error_are_in_a_table_a_figure_latex_and_json(
    name: str, published: Callable[[str], Published]
) -> None:
    made = published("errors")
    table = made.table("errors", name)
    (plot,) = (one for one in made.benchmark(name).plots if one.name == "errors")
    columns = {column.key: column for column in table.columns}
    harmful = [key for key, column in columns.items() if column.remark == HARMS]
    assert harmful
    assert plot.columns[: len(harmful)] == tuple(harmful)  # apart from the others, which follow
    assert all(columns[key].remark and not columns[key].higher_is_better for key in plot.columns)
    assert all(columns[key].label.lower() in table.note for key in harmful)
    scores, row = made.scores("Guess-1B", ERRORS[name])["metrics"], row_of(table, "guess")
    for key in plot.columns:
        score, cell = scores[columns[key].metric], row.cells[key]
        assert (cell.value, cell.items) == (score["value"], score["samples"])
        assert columns[key].label in made.latex("errors", name)
    (kept,) = (one for one in made.written(name)["tables"] if one["name"] == "errors")
    assert [one["remark"] for one in kept["columns"]] == [column.remark for column in table.columns]
    assert made.is_drawn("errors", name)
    assert f"<small>{HARMS}</small>" in made.page(name)


def test_every_declared_rate_is_named_by_a_group_and_shown_by_a_plain_layout() -> None:
    for benchmark in all_benchmarks().values():
        declared = (
            {rate.name for rate in benchmark.scoring.errors.rates}
            if benchmark.scoring.errors
            else set()
        )
        specs = (
            spec for spec in load_specs().values() if spec.metadata.benchmark == benchmark.name
        )
        assert declared <= {name for spec in specs for name in spec.metadata.pooled}
    layout, errors = default_layout("mi_cxr"), get_benchmark("mi_cxr").scoring.errors
    assert errors is not None
    drawn = {plot.name: plot for plot in layout.plots}["mi-cxr-errors"]
    assert [column.metric for column in drawn.columns] == [rate.name for rate in errors.rates]
    assert "mi-cxr-errors" in {table.name for table in layout.tables}
    check_layout(layout)


@pytest.mark.slow
def test_prompts_are_in_a_table_figures_latex_and_json(
    published: Callable[[str], Published],
) -> None:
    made = published("prompts")
    table = made.table("prompt-sensitivity")
    keys = [f"{PROMPTED}.{metric}" for metric in (*OVER_PROMPTS, *EACH_PROMPT)]
    assert [column.key for column in table.columns] == keys
    plots = {plot.name: plot for plot in made.benchmark().plots}
    assert plots["prompt-sensitivity"].columns == tuple(keys[: len(OVER_PROMPTS)])
    assert (
        plots["prompts"].columns
        == plots["prompt-ranks"].columns
        == tuple(keys[len(OVER_PROMPTS) :])
    )
    assert all(made.is_drawn(name) for name in ("prompt-sensitivity", "prompts", "prompt-ranks"))
    labels = ("mean over prompts", "spread over prompts", "best prompt", "prompt 4")
    assert all(label in made.latex("prompt-sensitivity") for label in labels)
    assert (
        made.written()["prompt_order"]
        == json.loads(made.benchmark().model_dump_json())["prompt_order"]
    )
    scores, row = made.scores("Fickle-7B", PROMPTED)["metrics"], row_of(table, "fickle")
    assert [row.cells[key].value for key in keys] == [
        scores[one]["value"] for one in (*OVER_PROMPTS, *EACH_PROMPT)
    ]


@pytest.mark.slow
def test_ranks_and_the_pairs_whose_order_depends_on_the_prompt(
    published: Callable[[str], Published],
) -> None:
    made = published("prompts")
    table = made.table("prompt-ranks")
    for name, ranks in {
        "steady": (2, 1, 2, 2),
        "fickle": (1, 2, 1, 1),
        "weak": (3, 3, 3, 3),
    }.items():
        cells = [row_of(table, name).cells[f"{PROMPTED}.{metric}.rank"] for metric in EACH_PROMPT]
        assert tuple(one.value for one in cells) == ranks
        assert all(
            one.low is not None and one.high is not None and one.low <= one.value <= one.high
            for one in cells
        )
    order = made.benchmark().prompt_order
    assert order is not None
    first, second = sorted(row_of(table, name).model for name in ("steady", "fickle"))
    assert order.changes == (OrderChange(first=first, second=second, ahead=(1, 3, 4), behind=(2,)),)
    assert (order.task, order.prompts, order.pairs) == (PROMPTED, 4, 3)
    # one of three pairs is turned between prompt 2 and the others, none between the others
    orders = [(2, 1, 3) if number == 2 else (1, 2, 3) for number in range(1, 5)]
    taus = [1 / 3 if one != other else 1.0 for one, other in combinations(orders, 2)]
    assert order.tau == pytest.approx(sum(taus) / 6)
    assert order.lowest_tau == pytest.approx(1 / 3)
    assert "1 of 3 pairs of models changes its order between the 4 prompts" in made.page()
    assert "under prompts 1, 3, 4, behind under 2" in made.page()
    assert "prompt 2" in made.latex("prompt-ranks")
