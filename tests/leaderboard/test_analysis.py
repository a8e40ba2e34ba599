"""``medtasks.open`` and what Python computes of runs: its tables and objects say what directories
and commands say.
"""

from __future__ import annotations

import inspect
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow as pa
import pytest
from invented_runs import MODELS, Invented, edit_json, write_run_of, write_runs
from pydantic_core import to_jsonable_python
from typer.testing import CliRunner

import medtasks
from medtasks.benchmarks.documents import task_documents
from medtasks.cli import compare as compare_commands
from medtasks.cli import leaderboard as leaderboard_commands
from medtasks.cli import plan as plan_commands
from medtasks.cli import score as score_commands
from medtasks.cli.app import app
from medtasks.core.cache import cache_root
from medtasks.core.errors import DataError, UsageError
from medtasks.metrics.registry import get_metric
from medtasks.python_api.columns import ITEMS, SAMPLES, SCORES
from medtasks.python_api.latency_table import LATENCIES

TASK = "med_cmr_mcq"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Judged runs of three models on parts of three benchmarks."""
    groups = (TASK, "mi_cxr", "kvasir_vqa_x1_level3")
    return [*write_runs(tmp_path_factory.mktemp("runs"), MODELS[:3], groups).values()]


@pytest.fixture(scope="module")
def runs(folders: list[Path]) -> medtasks.Runs:
    return medtasks.open(*(folder.parent for folder in folders))


def test_every_name_of_the_package_is_there_and_in_the_stub() -> None:
    assert all(getattr(medtasks, name) is not None for name in medtasks.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        medtasks.nothing  # noqa: B018
    stub = Path(medtasks.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    assert {name for name in medtasks.__all__ if f" as {name}\n" not in stub} == {"__version__"}


@pytest.mark.parametrize(
    ("function", "command", "of_python", "several"),
    [
        (medtasks.score, score_commands.score, {"predictions"}, {"columns": "column"}),
        (medtasks.compare, compare_commands.compare, {"progress"}, {}),
        (medtasks.plan, plan_commands.plan, set(), {"pilots": "pilot", "shares": "share"}),
        (medtasks.board, leaderboard_commands.build, {"runs", "layouts"}, {}),
    ],
    ids=["score", "compare", "plan", "board"],
)
def test_arguments_are_called_as_the_options_of_the_command(
    function: Any, command: Any, of_python: set[str], several: dict[str, str]
) -> None:
    arguments = inspect.signature(function).parameters.keys() - of_python
    assert {several.get(name, name) for name in arguments} <= inspect.signature(
        command
    ).parameters.keys()


def test_a_run_is_opened_once_and_what_cannot_be_opened_is_one_sentence(
    folders: list[Path], tmp_path: Path
) -> None:
    folder = folders[0]
    ways = ((folder,), (str(folder.parent),), (folder, folder.parent), ([folder, str(folder)],))
    found = [medtasks.open(*paths) for paths in ways]
    assert [[run.path for run in one] for one in found] == [[folder]] * 4
    assert (
        medtasks.board([folder, folder], demonstration=True).runs.keys()
        == medtasks.board(folder).runs.keys()
    )
    for paths, said in (
        ([], r"needs a path"),
        ([[]], r"needs a path"),
        (["nowhere"], r"nowhere: no such directory"),
        ([tmp_path], r"contains no result directory \(…_medtasks\)"),
    ):
        with pytest.raises(UsageError, match=said):
            medtasks.open(*paths)


def test_samples_are_the_lines_of_the_files(runs: medtasks.Runs) -> None:
    run = runs[0]
    assert run.path is not None
    lines = [
        json.loads(line)
        for task in run.manifest.tasks
        for line in (run.path / "samples" / f"{task}.jsonl")
        .read_text(encoding="utf-8")
        .splitlines()
    ]
    rows = run.samples().arrow.to_pylist()
    assert len(rows) == len(lines)
    for row, line in zip(rows, lines, strict=True):
        same = (
            "sample_id",
            "task",
            "cluster",
            "media",
            "prompt",
            "target",
            "responses",
            "filtered",
            "status",
        )
        assert {name: row[name] for name in same} == {name: line[name] for name in same}
        assert (row["run"], row["model"], row["response"]) == (
            run.name,
            run.model,
            line["responses"][0],
        )
        assert json.loads(row["document"]) == line["document"]
        assert json.loads(row["verdicts"]) == line["verdicts"]
        assert row["question"] == line["document"].get("question")
        scores = {
            name.removeprefix("score_"): row[name] for name in row if name.startswith("score_")
        }
        assert {name: value for name, value in scores.items() if name in line["scores"]} == line[
            "scores"
        ]
        assert {scores[name] for name in scores.keys() - line["scores"].keys()} <= {None}


def test_samples_are_read_again_if_their_file_changes_or_the_cache_is_damaged_or_cannot_be_written(
    folders: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(shutil.copytree(folders[0], tmp_path / "20261101_000000_medtasks"))
    (run,) = medtasks.open(folder)
    first = run.samples("mi_cxr_icr").arrow
    kept = list((cache_root() / "view").glob("*.parquet"))
    assert kept
    for file in kept:
        file.write_bytes(b"damaged")
    assert run.samples("mi_cxr_icr").arrow == first
    assert run.samples("mi_cxr_icr").arrow == first  # out of the cache
    with monkeypatch.context() as patch:
        patch.setenv("MEDTASKS_CACHE", str(kept[0]))  # not a directory
        assert run.samples("mi_cxr_icr").arrow == first
    edit_json(
        folder / "samples" / "mi_cxr_icr.jsonl",
        lambda one: one.update(filtered="E", failed=["down"]),
        line=0,
    )
    changed = run.samples("mi_cxr_icr").arrow.to_pylist()
    assert [(row["filtered"], row["failed"]) for row in changed[:2]] == [
        ("E", "down"),
        (changed[1]["filtered"], None),
    ]


def test_samples_of_a_group_are_those_of_its_tasks_in_all_runs(runs: medtasks.Runs) -> None:
    table = runs.samples("mi_cxr").arrow
    assert set(table["task"].to_pylist()) == set(runs[0].manifest.groups["mi_cxr"])
    assert set(table["run"].to_pylist()) == {run.name for run in runs}
    with pytest.raises(
        UsageError, match=r"no run opened here has it \(did you mean 'accuracy'\?\)"
    ):
        runs.items(metric="acuracy")
    with pytest.raises(
        UsageError, match=r"no run opened here has it \(did you mean 'mi_cxr_icr'\?\)"
    ):
        runs.items("mi_cxr_irc")
    with pytest.raises(UsageError, match="no run opened here has it"):
        runs.samples("mi_cxr_cot")


def test_scores_are_those_of_the_run_with_intervals_and_groups(runs: medtasks.Runs) -> None:
    run = runs[0]
    rows = {
        (row["task"], row["metric"], row["breakdown"], row["group"]): row
        for row in run.scores().arrow.to_pylist()
    }
    written = json.loads((run.path / "scores.json").read_text(encoding="utf-8"))  # type: ignore[operator]
    checked = 0
    for task, scores in {**written["tasks"], **written["groups"]}.items():
        groups = [
            (name, key, one)
            for name, several in scores["breakdowns"].items()
            for key, one in several.items()
        ]
        for breakdown, group, one in [(None, None, scores), *groups]:
            for metric, score in one["metrics"].items():
                row = rows.pop((task, metric, breakdown, group))
                ends = None if row["low"] is None else [row["low"], row["high"]]
                assert (row["value"], ends, row["items"]) == (
                    score["value"],
                    score["interval"],
                    score["samples"],
                )
                checked += 1
    assert checked > 300
    assert not rows


def test_the_score_follows_from_the_items(runs: medtasks.Runs) -> None:
    """Summed statistics give the score, and for a mean so do the items' own values."""
    for task, metric in (("kvasir_vqa_x1_level3", "chrf"), ("mi_cxr", "accuracy")):
        rows = runs[1].items(task, metric).arrow.to_pylist()
        total = np.sum([row["statistics"] for row in rows if row["state"] == "scored"], axis=0)
        (score,) = [
            row
            for row in runs[1].scores().arrow.to_pylist()
            if (row["task"], row["metric"], row["breakdown"]) == (task, metric, None)
        ]
        assert float(get_metric(metric).score(total)) == pytest.approx(score["value"], abs=1e-12)
        assert len(rows) == score["items"]
    assert np.mean([row["value"] for row in rows]) == pytest.approx(score["value"], abs=1e-12)


def test_every_column_is_described_and_other_libraries_read_the_tables(runs: medtasks.Runs) -> None:
    scores = runs[0].scores()
    for table in (runs[0].samples(), scores, runs[0].items("mi_cxr"), runs[0].latency()):
        assert all(table.columns.values())
        assert (
            len(table)
            == len(table.to_pandas())
            == len(polars.DataFrame(table))
            == pa.table(table).num_rows
        )
        assert "<td>" in table._repr_html_()
    assert scores.columns.keys() == SCORES.keys()
    page = (Path(__file__).parents[2] / "docs" / "python.md").read_text(encoding="utf-8")
    for name, text in {**SAMPLES, **SCORES, **ITEMS, **LATENCIES}.items():
        assert f"| `{name}{'…' * name.endswith('_')}` | {text} |" in page


def test_a_damaged_run_is_one_sentence_when_it_is_read(folders: list[Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(folders[0], tmp_path / "20261101_000000_medtasks"))
    (folder / "samples" / "mi_cxr_icr.jsonl").write_text('{"scores": {}, "media": 1}\n')
    (run,) = medtasks.open(tmp_path)
    with pytest.raises(DataError, match=r"mi_cxr_icr\.jsonl, line 1: field `sample_id` is missing"):
        run.samples("mi_cxr_icr")
    edit_json(folder / "manifest.json", lambda manifest: manifest.update(tasks=3))
    (again,) = medtasks.open(tmp_path)
    with pytest.raises(DataError, match=r"manifest\.json: not the manifest of a run"):
        again.manifest  # noqa: B018


def test_hostile_names_are_quoted_in_a_notebook(tmp_path: Path) -> None:
    write_run_of(tmp_path, Invented("<script>alert(1)</script>", "oracle"), ["mi_cxr_icr"])
    found = medtasks.open(tmp_path)
    for text in (
        found._repr_html_(),
        found[0]._repr_html_(),
        medtasks.board(found)._repr_markdown_(),
    ):
        assert "<script" not in text.replace("\\<script", "")


def command(*arguments: object) -> str:
    """What the command line prints."""
    done = CliRunner().invoke(app, [*map(str, arguments)])
    assert (done.exit_code, done.stderr) == (0, ""), done.exception
    return done.stdout


@pytest.mark.slow
def test_a_comparison(runs: medtasks.Runs) -> None:
    found = medtasks.compare(runs[0], str(runs[1].path), task=TASK)
    printed = json.loads(command("compare", runs[0].path, runs[1].path, "--task", TASK, "--json"))
    assert printed["lines"] == to_jsonable_python(found.lines)
    text = command("compare", runs[0].path, runs[1].path, "--task", TASK)
    for row in found.table.rows:
        assert " ".join(row[:6]) in " ".join(text.split())
        assert all(f"<td>{cell}</td>" in found._repr_html_() for cell in row if cell)


@pytest.mark.slow
def test_a_plan(runs: medtasks.Runs) -> None:
    found = medtasks.plan("mi_cxr", pilots=[runs[1]], difference=5)
    printed = json.loads(
        command("plan", "mi_cxr", "--pilot", runs[1].path, "--difference", "5", "--json")
    )
    assert printed["subsets"] == to_jsonable_python(found.subsets)
    assert (printed["basis"], printed["needed"]["clusters"]) == (found.basis, found.needed)


@pytest.mark.slow
def test_a_board(runs: medtasks.Runs, tmp_path: Path) -> None:
    folders = [run.path for run in runs]
    command("leaderboard", "build", *folders, "--demonstration", "--out", tmp_path / "page")
    built = json.loads((tmp_path / "page" / "exports" / "board.json").read_text(encoding="utf-8"))
    made = medtasks.board(runs)
    assert made.model_dump(mode="json") == built
    for one in built["benchmarks"]:  # a notebook shows the headline tables
        exported = tmp_path / "page" / "exports" / one["name"] / f"{one['tables'][0]['name']}.md"
        assert exported.read_text(encoding="utf-8") in made._repr_markdown_()


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
    assert len(medtasks.rank(runs, "mi_cxr_icr").ranking.ranked) == len(runs)  # no page shows it
    with pytest.raises(UsageError, match="no run can be ranked"):
        medtasks.rank(runs, "mi_cxr_cot")


@pytest.mark.slow
def test_a_figure(runs: medtasks.Runs, tmp_path: Path) -> None:
    made = medtasks.board(runs)
    picture = medtasks.plot(made, benchmark="med_cmr")
    assert picture._repr_svg_().startswith("<?xml")
    assert picture.alt
    assert picture.save(tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(UsageError, match="figure is written as svg, png, pdf, not as doc"):
        picture.save(tmp_path / "figure.doc")
    with pytest.raises(UsageError, match=f"not on this board, which has .*{picture.name}"):
        medtasks.plot(made, "nothing", "med_cmr")


def test_predictions_in_any_frame_score_as_their_file(tmp_path: Path) -> None:
    documents = task_documents("mi_cxr_icr")[1:]
    rows = [{"sample_id": one["sample_id"], "response": one["target"]} for one in documents]
    saved = tmp_path / "20261125_000000_medtasks"
    first = medtasks.score(rows, task="mi_cxr_icr", model="mine", out=saved)
    for frame in (
        iter(rows),
        pandas.DataFrame(rows),
        polars.DataFrame(rows),
        pa.Table.from_pylist(rows),
    ):
        run = medtasks.score(frame, task="mi_cxr_icr", model="mine")
        assert (run.model, len(run.samples())) == ("mine", 5)
        assert "5 of 6 documents have a prediction" in run.notes
        assert run.scores().arrow.drop_columns(["run"]) == first.scores().arrow.drop_columns(
            ["run"]
        )
    file = tmp_path / "predictions.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    printed = json.loads(
        command("score", file, "--task", "mi_cxr_icr", "--model", "mine", "--json")
    )
    assert json.loads((saved / "scores.json").read_text())["tasks"] == printed["tasks"]
    (again,) = medtasks.open(tmp_path)
    assert again.scores().arrow == first.scores().arrow


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        (7, UsageError, "are of type int, expected a data frame"),
        ({"sample_id": "a"}, UsageError, "are of type dict, expected a data frame"),
        (["a"], UsageError, "predictions, row 1: is of type str, expected a mapping"),
        ([{"sample_id": "icr-33"}], DataError, "predictions, row 1: field `response`"),
        (
            [{"sample_id": "nobody", "response": "A"}],
            DataError,
            "none of its 1 predictions matches a document",
        ),
    ],
)
def test_predictions_that_cannot_be_scored_are_one_sentence(
    given: Any, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        medtasks.score(given, task="mi_cxr_icr")


def test_a_board_refuses_what_it_cannot_rank(tmp_path: Path) -> None:
    folder = write_run_of(tmp_path, Invented("lab/a", "oracle"), ["mi_cxr_icr"])
    (folder / "samples" / "mi_cxr_icr.jsonl").write_text("{}\n")
    write_run_of(tmp_path, Invented("lab/b", "oracle"), ["mi_cxr_icr"])
    made = medtasks.board(medtasks.open(tmp_path))
    assert [one.folder for one in made.refused] == [f"{folder.name} (lab/a)"]
    assert len(made.runs) == 1
