"""Paraphrased prompts on the board: table, figures, LaTeX, JSON, and the models whose order depends on the prompt."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from invented_runs import START, Invented, make_run
from medtasks.leaderboard.board.board import BenchmarkBoard, OrderChange
from medtasks.leaderboard.publish import publish

from medtasks.benchmarks.documents import prompt_text, task_documents
from medtasks.benchmarks.layouts import default_layout
from medtasks.catalog.spec import leaf_tasks, load_spec
from medtasks.runs.folder import write_run
from medtasks.runs.record import RunRecord
from medtasks.runs.replies import Reply
from medtasks.runs.scored import Answered, scored_samples

pytestmark = pytest.mark.slow

GROUP = "mi_cxr_prompts"
OVER = ("accuracy", "worst_prompt", "best_prompt", "prompt_spread", "prompt_agreement")
EACH = tuple(f"prompt_{number}" for number in range(1, 5))
RIGHT = {"Steady-7B": (0.6, 0.6, 0.6, 0.6), "Fickle-7B": (0.9, 0.2, 0.9, 0.9), "Weak-1B": (0.1, 0.1, 0.1, 0.1)}
"""The share of questions that each model answers right under each prompt."""


def run_of(name: str, number: int) -> RunRecord:
    """The run of a model that is right on the first questions of a task, under each prompt on its share of them."""
    record = make_run(Invented(f"invented/{name}", "oracle", seed=number), (GROUP,), created=START.isoformat())
    samples = {}
    for task in leaf_tasks(GROUP):
        spec, documents = load_spec(task), task_documents(task)
        asked = list(dict.fromkeys(one["prompt_of"] for one in documents))

        def reply(one: dict[str, Any], asked: list[str] = asked) -> str:
            right = asked.index(one["prompt_of"]) < RIGHT[name][one["prompt"] - 1] * len(asked)
            return str(one["target"]) if right else "EABCD"["ABCDE".index(one["target"])]

        answered = [
            Answered(one, (Reply(reply(one)),), prompt_text(one, ""), spec.prompt_hash or "") for one in documents
        ]
        samples[task] = scored_samples(spec, answered)
    return RunRecord.scored(record.manifest, samples)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("site")


@pytest.fixture(scope="module")
def benchmark(site: Path) -> BenchmarkBoard:
    folders = [
        write_run(site / "runs" / name / "20261101_000000_medtasks", run_of(name, number))
        for number, name in enumerate(RIGHT)
    ]
    (found,) = publish(folders, site / "board", demonstration=True, figures=("svg",)).benchmarks
    return found


def model(benchmark: BenchmarkBoard, name: str) -> str:
    (found,) = {row.model for table in benchmark.tables for row in table.rows if row.model.startswith(name.lower())}
    return found


def test_every_score_is_in_a_table_a_figure_latex_and_json(benchmark: BenchmarkBoard, site: Path) -> None:
    table = next(one for one in benchmark.tables if one.name == "prompt-sensitivity")
    keys = [f"{GROUP}.{metric}" for metric in (*OVER, *EACH)]
    assert [column.key for column in table.columns] == keys
    plots = {plot.name: plot for plot in benchmark.plots}
    assert plots["prompt-sensitivity"].columns == tuple(keys[: len(OVER)])
    assert plots["prompts"].columns == plots["prompt-ranks"].columns == tuple(keys[len(OVER) :])
    drawn = {one.stem for one in (site / "board" / "figures").rglob("*.svg")}
    assert drawn >= {"prompt-sensitivity", "prompts", "prompt-ranks"}
    latex = (site / "board" / "exports" / "mi_cxr" / "prompt-sensitivity.tex").read_text(encoding="utf-8")
    assert all(label in latex for label in ("mean over prompts", "spread over prompts", "best prompt", "prompt 4"))
    written = json.loads((site / "board" / "exports" / "board.json").read_text(encoding="utf-8"))["benchmarks"][0]
    assert written["prompt_order"] == json.loads(benchmark.model_dump_json())["prompt_order"]
    (run,) = (site / "runs" / "Fickle-7B").iterdir()
    scores = json.loads((run / "scores.json").read_text(encoding="utf-8"))["groups"][GROUP]["metrics"]
    (row,) = (one for one in table.rows if one.model == model(benchmark, "Fickle"))
    assert [row.cells[key].value for key in keys] == [scores[metric]["value"] for metric in (*OVER, *EACH)]
    assert all("|" in row.cells[key].signature for key in keys)


def test_ranks_and_the_pairs_whose_order_depends_on_the_prompt(benchmark: BenchmarkBoard, site: Path) -> None:
    table = next(one for one in benchmark.tables if one.name == "prompt-ranks")
    rows = {row.model: row.cells for row in table.rows}
    steady, fickle, weak = (model(benchmark, name) for name in ("Steady", "Fickle", "Weak"))
    expected = {steady: (2, 1, 2, 2), fickle: (1, 2, 1, 1), weak: (3, 3, 3, 3)}
    for name, ranks in expected.items():
        cells = [rows[name][f"{GROUP}.{metric}.rank"] for metric in EACH]
        assert tuple(one.value for one in cells) == ranks
        assert all(one.low is not None and one.high is not None and one.low <= one.value <= one.high for one in cells)
    order = benchmark.prompt_order
    assert order is not None
    first, second = sorted((steady, fickle))
    assert order.changes == (OrderChange(first=first, second=second, ahead=(1, 3, 4), behind=(2,)),)
    assert (order.task, order.prompts, order.pairs) == (GROUP, 4, 3)
    orders = [(2, 1, 3) if number == 1 else (1, 2, 3) for number in range(4)]  # fickle, steady, weak
    taus = [tau(one, other) for at, one in enumerate(orders) for other in orders[at + 1 :]]
    assert order.tau == pytest.approx(sum(taus) / 6)
    assert order.lowest_tau == pytest.approx(1 / 3)
    page = (site / "board" / "benchmark-mi_cxr.html").read_text(encoding="utf-8")
    assert "1 of 3 pairs of models changes its order between the 4 prompts" in page
    assert "under prompts 1, 3, 4, behind under 2" in page
    latex = (site / "board" / "exports" / "mi_cxr" / "prompt-ranks.tex").read_text(encoding="utf-8")
    assert "prompt 2" in latex


def tau(one: tuple[int, ...], other: tuple[int, ...]) -> float:
    """Kendall's tau of rankings without ties, by its definition."""
    pairs = [(i, j) for i, j in product(range(3), range(3)) if i < j]
    return sum(1 if (one[i] < one[j]) == (other[i] < other[j]) else -1 for i, j in pairs) / len(pairs)


def test_a_plain_layout_shows_paraphrased_tasks_below_the_headline() -> None:
    layout = default_layout("mi_cxr")
    assert not [one for one in layout.headline if one.task.endswith("_prompts")]
    shown = {(column.task, column.metric) for table in layout.tables for column in table.columns}
    assert {(GROUP, metric) for metric in (*OVER, *EACH)} <= shown
