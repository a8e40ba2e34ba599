"""What Python computes of runs is what the commands print."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from invented_runs import Invented, shared_runs, write_run_of
from pydantic_core import to_jsonable_python

import medtasks
from medtasks.benchmarks.documents import task_documents
from medtasks.cli.app import main
from medtasks.core.errors import DataError, UsageError

TASK = "med_cmr_mcq"


@pytest.fixture(scope="module")
def runs() -> medtasks.Runs:
    return medtasks.open(*(folder.parent for folder in shared_runs().values()))


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run the command line in this process; its output."""

    def call(*arguments: object) -> str:
        monkeypatch.setattr("sys.argv", ["medtasks", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        assert (ended.value.code or 0, said.err) == (0, "")
        return said.out

    return call


@pytest.mark.slow
def test_a_comparison(command: Any, runs: medtasks.Runs) -> None:
    found = medtasks.compare(runs[0], str(runs[1].path), task=TASK)
    printed = json.loads(command("compare", runs[0].path, runs[1].path, "--task", TASK, "--json"))
    assert printed["lines"] == to_jsonable_python(found.lines)
    text = command("compare", runs[0].path, runs[1].path, "--task", TASK)
    for row in found.table.rows:
        assert " ".join(row[:6]) in " ".join(text.split())
        assert all(f"<td>{cell}</td>" in found._repr_html_() for cell in row if cell)


def test_a_plan(command: Any, runs: medtasks.Runs) -> None:
    found = medtasks.plan("mi_cxr", pilots=[runs[1]], difference=5)
    printed = json.loads(command("plan", "mi_cxr", "--pilot", runs[1].path, "--difference", "5", "--json"))
    assert printed["subsets"] == to_jsonable_python(found.subsets)
    assert (printed["basis"], printed["needed"]["clusters"]) == (found.basis, found.needed)


@pytest.mark.slow
def test_a_board(command: Any, runs: medtasks.Runs, tmp_path: Path) -> None:
    folders = [run.path for run in runs]
    command("leaderboard", "build", *folders, "--demonstration", "--out", tmp_path / "page")
    built = json.loads((tmp_path / "page" / "exports" / "board.json").read_text(encoding="utf-8"))
    made = medtasks.board(runs)
    assert made.model_dump(mode="json") == built
    assert all(f"<caption>{one['title']}</caption>" in made._repr_html_() for one in built["benchmarks"])


def test_ranks_are_those_of_the_board(runs: medtasks.Runs) -> None:
    made = medtasks.rank(runs, TASK)
    (on_board,) = [
        ranking
        for benchmark in medtasks.board(runs).benchmarks
        for ranking in benchmark.rankings
        if (ranking.column.task, ranking.column.metric) == (TASK, "accuracy")
    ]
    assert made.ranking == on_board
    assert [row[2] for row in made.table.rows] == [
        run.model for one in on_board.ranked for run in runs if run.scored.model == one.model
    ]


def test_a_score_that_no_page_shows_is_ranked_too(runs: medtasks.Runs) -> None:
    assert len(medtasks.rank(runs, "mi_cxr_icr").ranking.ranked) == len(runs)
    with pytest.raises(UsageError, match="no run can be ranked"):
        medtasks.rank(runs, "mi_cxr_cot")


@pytest.mark.slow
def test_a_figure(runs: medtasks.Runs, tmp_path: Path) -> None:
    made = medtasks.board(runs)
    picture = medtasks.plot(made, benchmark="med_cmr")
    assert picture.svg.startswith("<?xml")
    assert picture.alt
    assert picture.save(tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(UsageError, match="figure is written as svg, png, pdf, not as doc"):
        picture.save(tmp_path / "figure.doc")
    with pytest.raises(UsageError, match=f"not on this board, which has .*{picture.name}"):
        medtasks.plot(made, "nothing", "med_cmr")


def rows(task: str) -> list[dict[str, str]]:
    return [{"sample_id": one["sample_id"], "response": one["target"]} for one in task_documents(task)]


@pytest.mark.parametrize("kind", ["list", "iterator", "pandas", "polars", "arrow"])
def test_predictions_in_any_frame_score_as_their_file(kind: str, command: Any, tmp_path: Path) -> None:
    import pandas
    import polars
    import pyarrow

    given = rows("mi_cxr_icr")[1:]
    frame = {
        "list": lambda: given,
        "iterator": lambda: iter(given),
        "pandas": lambda: pandas.DataFrame(given),
        "polars": lambda: polars.DataFrame(given),
        "arrow": lambda: pyarrow.Table.from_pylist(given),
    }[kind]()
    run = medtasks.score(frame, benchmark="mi_cxr_icr", model="mine", out=tmp_path / "20261125_000000_medtasks")
    file = tmp_path / "predictions.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in given))
    printed = json.loads(command("score", file, "--task", "mi_cxr_icr", "--model", "mine", "--json"))
    written = json.loads((tmp_path / "20261125_000000_medtasks" / "scores.json").read_text())
    assert written["tasks"] == printed["tasks"]
    assert run.model == "mine"
    assert "5 of 6 documents have a prediction" in run.notes
    assert len(run.samples()) == 5
    (saved,) = medtasks.open(tmp_path)
    assert saved.scores().arrow.drop_columns(["run"]) == run.scores().arrow.drop_columns(["run"])


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        (7, UsageError, "are of type int, expected a data frame"),
        ({"sample_id": "a"}, UsageError, "are of type dict, expected a data frame"),
        (["a"], UsageError, "predictions, row 1: is of type str, expected a mapping"),
        ([{"sample_id": "icr-33"}], DataError, "predictions, row 1: field `response`"),
        ([{"sample_id": "nobody", "response": "A"}], DataError, "none of its 1 predictions matches a document"),
    ],
)
def test_predictions_that_cannot_be_scored_are_one_sentence(given: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        medtasks.score(given, benchmark="mi_cxr_icr")


def test_logs_of_the_harness_alone_are_opened(tmp_path: Path) -> None:
    from lmms_eval.loggers import EvaluationTracker

    tracker = EvaluationTracker(output_path=str(tmp_path))
    tracker.general_config_tracker.model_name_sanitized = "model"
    tracker.date_id = "20260101_000000"
    samples = [
        {"doc_id": number, "doc": one, "target": one["target"], "resps": [[one["target"]]], "filtered_resps": ["A"],
         "arguments": ("?",), "doc_hash": "0"}
        for number, one in enumerate(task_documents("mi_cxr_icr", media=False))
    ]  # fmt: skip
    tracker.save_results_samples("mi_cxr_icr", samples)
    (run,) = medtasks.open(tmp_path)
    assert run.samples().arrow["filtered"].to_pylist() == [one["target"] for one in samples]
    (score,) = [
        row for row in run.scores().arrow.to_pylist() if row["breakdown"] is None and row["metric"] == "accuracy"
    ]
    assert score["value"] == 1.0


def test_a_board_refuses_what_it_cannot_rank(tmp_path: Path) -> None:
    folder = write_run_of(tmp_path, Invented("lab/a", "oracle"), ["mi_cxr_icr"])
    (folder / "samples" / "mi_cxr_icr.jsonl").write_text("{}\n")
    write_run_of(tmp_path, Invented("lab/b", "oracle"), ["mi_cxr_icr"])
    made = medtasks.board(medtasks.open(tmp_path))
    assert [one.folder for one in made.refused] == [folder.name]
    assert len(made.runs) == 1
