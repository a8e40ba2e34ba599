"""``medtasks export``: huggingface_hub and the validator of Every Eval Ever read the files, which
say the same numbers; the hub is a server of its routes.

Runs for the hub are on data that say they are a release: the miniature data of Med-CMR under
another fingerprint.
"""

from __future__ import annotations

import base64
import json
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import yaml
from huggingface_hub import HfApi, parse_eval_result_entries
from huggingface_hub.errors import HfHubHTTPError
from invented_runs import MODELS, Invented, edit_json, write_run_of, write_runs
from local_server import Answer, LocalServer
from made_release import on_release, write_release
from medtasks.leaderboard.exports.hub import push
from medtasks.leaderboard.exports.inspect_logs import write_inspect_logs
from medtasks.leaderboard.exports.publishable import no_score
from typer.testing import CliRunner

from medtasks.benchmarks import layouts
from medtasks.cli.app import app
from medtasks.core.errors import DataError, MedtasksError, UsageError
from medtasks.importers.prediction_files import read_predictions
from medtasks.scoring.run_folder import read_manifest, read_run

GOOD = Invented("lab/Good-7B", "noisy_oracle", seed=1, accuracy=0.8)
GROUP = "med_cmr_mcq"
COMMIT = "5503434ddd753f426f4b38109466949a1217c2bb"
FAILED = {"status": "failed", "responses": [""], "failed": ["no connection"], "statistics": {}, "filtered": "[failed]",
          "scores": {"accuracy": None}, "limits": {"accuracy": [[0.0, 1.0], [1.0, 1.0]]}}  # fmt: skip


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of prepared data (``MEDTASKS_DATA``)."""
    source = {"kind": "hub", "name": "aaassddaadf/Med-CMR", "revision": COMMIT}
    return write_release(tmp_path_factory.mktemp("release"), source=source).parent


def write_release_run(root: Path, model: Invented = GOOD, **options: Any) -> Path:
    """A complete run that was asked those data."""
    return on_release(write_run_of(root, model, [GROUP], mini=False, **options))


@pytest.fixture
def run(release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A complete run on that release."""
    folder = write_release_run(tmp_path / "results")
    monkeypatch.setenv("MEDTASKS_DATA", str(release))
    return folder


def export(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["export", *map(str, arguments)])


def test_the_hub_s_own_reader_reads_the_headline_score(run: Path, tmp_path: Path) -> None:
    done = export(
        "hub",
        run,
        "--model",
        "lab/Good-7B",
        "--out",
        tmp_path,
        "--source-url",
        "https://example.org/board",
    )
    assert done.exit_code == 0, done.output + str(done.exception)
    (file,) = (tmp_path / ".eval_results").iterdir()
    entry, other = parse_eval_result_entries(yaml.safe_load(file.read_text(encoding="utf-8")))
    assert other.task_id == f"{GROUP}.accuracy_dimension_mean"
    written = json.loads((run / "scores.json").read_text())["groups"][GROUP]["metrics"]["accuracy"]
    assert (file.name, entry.dataset_id, entry.task_id) == (
        "med_cmr.yaml",
        "aaassddaadf/Med-CMR",
        f"{GROUP}.accuracy",
    )
    assert (entry.value, entry.dataset_revision) == (written["value"], COMMIT)
    assert (entry.date, entry.source_url) == (
        "2026-11-01T00:00:00+00:00",
        "https://example.org/board",
    )
    assert entry.notes is not None
    low, high = written["interval"]
    assert (
        f"95 % interval {low:.6g} to {high:.6g} (wilson-clustered, cluster: image)" in entry.notes
    )
    assert "43 items" in entry.notes
    assert "signature accuracy|" in entry.notes
    assert export("benchmark", "med_cmr", "--out", tmp_path / "eval.yaml").exit_code == 0
    registered = yaml.safe_load((tmp_path / "eval.yaml").read_text(encoding="utf-8"))
    assert registered["name"] == "Med-CMR"
    assert {entry.task_id, other.task_id} < {task["id"] for task in registered["tasks"]}
    refused = export("benchmark", "mi_cxr", "--out", tmp_path / "eval.yaml").exception
    assert isinstance(refused, UsageError)
    assert "mi_cxr: its source is not a dataset on the hub" in str(refused)


def test_reasons_that_are_sentences_end_with_one_full_stop() -> None:
    assert str(no_score(["first", "second."])) == "no score may be published: first; second."


@pytest.mark.slow
def test_runs_that_may_not_be_published_are_refused(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = f"{GROUP}_cr"
    write_run_of(tmp_path / "mini", GOOD, [GROUP])
    write_release_run(tmp_path / "blind", blind=True)
    write_release_run(tmp_path / "limited", limit=2)
    with monkeypatch.context() as patch:
        patch.setenv("MEDTASKS_SUBSET", "0.999@0")
        write_release_run(tmp_path / "subset")
    failed = write_release_run(tmp_path / "failed")
    edit_json(failed / "samples" / f"{task}.jsonl", lambda sample: sample.update(FAILED), line=0)
    facts = {
        "answered": read_manifest(failed).tasks[task].answered - 1,
        "failed": {"no connection": 1},
    }
    edit_json(failed / "manifest.json", lambda it: it["tasks"][task].update(facts))
    monkeypatch.setenv("MEDTASKS_DATA", str(release))
    for name, why in {
        "mini": "miniature data: a demonstration, not a benchmark result",
        "blind": "blind: prompts without media",
        "limited": "run with --limit: ",
        "subset": "only a subset of the clusters was asked",
        "failed": "1 request without a response",
    }.items():
        done = export("hub", tmp_path / name, "--model", "lab/Good-7B", "--out", tmp_path)
        assert isinstance(done.exception, UsageError)
        assert why in str(done.exception)
    assert not (tmp_path / ".eval_results").exists()


def test_several_models_and_a_wrong_name_are_refused(run: Path) -> None:
    edited = Path(shutil.copytree(run, run.parents[1] / "Other-7B" / run.name))
    edit_json(
        edited / "manifest.json",
        lambda it: it["model"].update(pretrained="lab/Other-7B", revision="1"),
    )
    assert "the runs are of several models" in str(
        export("hub", run.parents[1], "--model", "lab/Good-7B").exception
    )
    assert "--model Good: expected owner/name" in str(
        export("hub", run, "--model", "Good").exception
    )


def test_claimed_scores_are_references_on_a_board_and_never_ranked(
    run: Path, tmp_path: Path
) -> None:
    export("hub", run, "--model", "lab/Claimed-7B", "--out", tmp_path / "copy")
    build = ("leaderboard", "build", run, "--no-published", "--out", tmp_path / "page", "--claimed")
    done = CliRunner().invoke(app, [*map(str, build), f"lab/Claimed-7B={tmp_path / 'copy'}"])
    assert done.exit_code == 0, done.output + str(done.exception)
    board = json.loads((tmp_path / "page" / "exports" / "board.json").read_text(encoding="utf-8"))
    (med_cmr,) = board["benchmarks"]
    (figure, _) = med_cmr["published"]
    (own,) = [one["cells"][f"{GROUP}.accuracy"] for one in med_cmr["tables"][0]["rows"]]
    assert (figure["model"], figure["value"], figure["rankable"]) == (
        "lab/Claimed-7B",
        own["value"],
        False,
    )
    assert all(len(ranking["ranked"]) == 1 for ranking in med_cmr["rankings"])
    page = (tmp_path / "page" / "benchmark-med_cmr.html").read_text(encoding="utf-8")
    assert "claimed in the model&#39;s repository, not re-run and not verified" in page


def test_claims_that_cannot_be_shown_are_one_sentence(run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy" / ".eval_results"
    folder.mkdir(parents=True)
    build = (
        "leaderboard",
        "build",
        run,
        "--out",
        tmp_path / "page",
        "--claimed",
        f"lab/a={tmp_path / 'copy'}",
    )
    dataset = "{id: aaassddaadf/Med-CMR, task_id: x}"
    for content, said in (
        (
            "- {dataset: {id: x/y}, value: 1}",
            "med_cmr.yaml: not scores in the hub's format (KeyError",
        ),
        (f"- {{dataset: {dataset}, value: high}}", "field `value` is 'high', expected a number"),
        (f"- {{dataset: {dataset}, value: 1}}", "this board has no column for x of aaassddaadf"),
    ):
        (folder / "med_cmr.yaml").write_text(content)
        assert said in str(CliRunner().invoke(app, [*map(str, build)]).exception)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    """The address of a server of the routes with which huggingface_hub opens a pull request, and
    what is sent to it.
    """
    posted: list[tuple[str, bytes]] = []

    def answer(path: str, body: bytes) -> Answer:
        posted.append((path, body))
        page = f"{server.url}/lab/Good-7B"
        answered: dict[str, Any] = {"commitUrl": f"{page}/commit/{COMMIT}", "commitOid": COMMIT}
        answered["pullRequestUrl"] = f"{page}/discussions/3"
        if "/preupload/" in path:
            names = [file["path"] for file in json.loads(body)["files"]]
            answered = {
                "files": [
                    {"path": name, "uploadMode": "regular", "shouldIgnore": False} for name in names
                ]
            }
        status = 404 if path.startswith("/closed") else 200
        return status, {"Content-Type": "application/json"}, json.dumps(answered).encode()

    with LocalServer(answer) as server:
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", server.url)
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
        monkeypatch.setenv("HF_TOKEN", "hf_none")
        yield server.url, posted


def test_a_pull_request_has_the_files(
    run: Path,
    hub: tuple[str, list[tuple[str, bytes]]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    done = export("hub", run, "--model", "lab/Good-7B", "--push")
    assert done.exit_code == 0, done.exception
    address, posted = hub
    assert f"pull request: {address}/lab/Good-7B/discussions/3" in done.stdout
    path, body = posted[-1]
    assert path.startswith("/api/models/lab/Good-7B/commit/main")
    assert "create_pr=1" in path
    lines = [json.loads(line) for line in body.splitlines()]
    (file,) = [line["value"] for line in lines if line["key"] == "file"]
    entry, _ = parse_eval_result_entries(yaml.safe_load(base64.b64decode(file["content"])))
    assert (file["path"], entry.task_id) == (".eval_results/med_cmr.yaml", f"{GROUP}.accuracy")
    assert not (tmp_path / ".eval_results").exists()


def test_a_hub_that_refuses_or_cannot_be_reached_is_one_sentence(
    hub: tuple[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """huggingface_hub tries again for half a minute to reach it, so what it raises then is raised
    here at once.
    """
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", f"{hub[0]}/closed")
    with pytest.raises(MedtasksError, match=r"lab/a: the hub did not take the pull request"):
        push({"a.yaml": b"-"}, "lab/a")
    client = HfHubHTTPError.__bases__[0]("Connection refused")  # of httpx or httpx2
    monkeypatch.setattr(HfApi, "create_commit", Mock(side_effect=client))
    with pytest.raises(
        MedtasksError, match=r"lab/a: the hub did not take the pull request \(.*Connection refused"
    ):
        push({}, "lab/a")


OPEN, CHOICE, STREAM = "med_cmr_open_cr", "mi_cxr_tel_single", "medstreambench_proactive"
GUESS = MODELS[3]


@pytest.mark.slow
def test_inspect_reads_the_logs_and_finds_our_scores(tmp_path: Path) -> None:
    log = pytest.importorskip("inspect_ai.log")
    write_runs(tmp_path / "results", [GUESS], [OPEN, CHOICE, STREAM])
    exported = write_inspect_logs([tmp_path / "results"], tmp_path / "logs")
    written, notes = exported.files, exported.notes
    assert len(written) == 3
    assert any("PhysioNet" in note for note in notes)
    (folder,) = tmp_path.glob("results/*/*_medtasks")
    _, samples = read_run(folder)
    expected = json.loads((folder / "scores.json").read_text(encoding="utf-8"))["tasks"]
    for path in written:
        found = log.read_eval_log(path)
        task = found.eval.task
        ours = {sample.sample_id: sample for sample in samples[task]}
        assert (found.status, found.eval.model) == ("success", GUESS.name)
        assert {sample.id for sample in found.samples} == ours.keys()
        for sample in found.samples:
            mine = ours[sample.id]
            said = (sample.output.completion, sample.input[0].text, sample.target)
            assert said == (mine.responses[0], mine.prompt, mine.target)
            values = {name: score.value for name, score in sample.scores.items()}
            assert values == {
                name: value for name, value in mine.scores.items() if value is not None
            }
            assert not any(part.type == "image" for part in sample.input[0].content)
        totals = {score.name: score.metrics for score in found.results.scores}
        for name, score in expected[task]["metrics"].items():
            assert score["value"] == (
                totals[name]["score"].value if "score" in totals[name] else None
            )
            if score["interval"] is not None:
                assert [totals[name][end].value for end in ("ci95_low", "ci95_high")] == score[
                    "interval"
                ]
        predictions = {
            one.keys["sample_id"]: one.response for one in read_predictions(path, "inspect", {})
        }  # our own reader, too
        assert predictions == {name: sample.responses[0] for name, sample in ours.items()}


@pytest.mark.slow
def test_a_failed_request_is_an_error_and_has_no_score(tmp_path: Path) -> None:
    log = pytest.importorskip("inspect_ai.log")
    for out, said in ((tmp_path / "logs", "no result directory"), (tmp_path, "exists already")):
        with pytest.raises(UsageError, match=said):
            write_inspect_logs([tmp_path], out)
    folder = write_run_of(tmp_path, GUESS, [CHOICE])
    edit_json(folder / "samples" / f"{CHOICE}.jsonl", lambda sample: sample.update(FAILED), line=0)
    (path,) = write_inspect_logs([tmp_path], tmp_path / "logs").files
    first = log.read_eval_log(path).samples[0]
    assert first.error.message == "no connection"
    assert not first.scores


@pytest.mark.slow
def test_responses_of_several_runs_to_one_question_have_different_identities(
    tmp_path: Path,
) -> None:
    """Inspect Scout keeps one transcript of each identity, whatever log it is in."""
    log = pytest.importorskip("inspect_ai.log")
    for model in (GUESS, MODELS[2]):
        write_run_of(tmp_path / "results", model, [CHOICE])
    samples = []
    for path in write_inspect_logs([tmp_path / "results"], tmp_path / "logs").files:
        samples += log.read_eval_log(path).samples
    assert len({sample.id for sample in samples}) == len(samples) / 2
    assert len({sample.uuid for sample in samples}) == len(samples)
    messages = [message.id for sample in samples for message in sample.messages]
    assert len(set(messages)) == len(messages)


def test_logs_that_cannot_all_be_written_leave_no_directory(tmp_path: Path) -> None:
    pytest.importorskip("inspect_ai.log")
    write_run_of(tmp_path / "results", GUESS, [CHOICE])
    broken = write_run_of(tmp_path / "results", MODELS[2], [CHOICE])
    (broken / "samples" / f"{CHOICE}.jsonl").write_text("{", encoding="utf-8")
    with pytest.raises(DataError, match=f"{CHOICE}.jsonl, line 1"):
        write_inspect_logs([tmp_path / "results"], tmp_path / "logs")
    assert [path.name for path in tmp_path.iterdir()] == ["results"]


def test_a_clock_that_no_archive_can_record_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("inspect_ai.log")
    write_run_of(tmp_path, GUESS, [CHOICE])
    monkeypatch.setattr(time, "time", lambda: 5 * 365 * 86_400.0)
    with pytest.raises(MedtasksError, match="clock is in the year 1974, expected 1980 or later"):
        write_inspect_logs([tmp_path], tmp_path / "logs")


def test_pictures_are_included_only_where_the_licence_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = pytest.importorskip("inspect_ai.log")
    known = layouts.all_layouts()
    allowed = {**known, "mi_cxr": replace(known["mi_cxr"], shows="media")}
    monkeypatch.setattr("medtasks.leaderboard.exports.inspect_logs.layout_of", allowed.__getitem__)
    write_run_of(tmp_path, GUESS, [CHOICE])
    exported = write_inspect_logs([tmp_path], tmp_path / "logs")
    (path,) = exported.files
    notes = exported.notes
    assert notes == []
    for sample in log.read_eval_log(path, resolve_attachments=True).samples:
        pictures = [part.image for part in sample.input[0].content if part.type == "image"]
        assert len(pictures) == len(sample.metadata["media"]) == 5
        assert all(one.startswith("data:image/png;base64,") for one in pictures)


EVER = "every-eval-ever"
OPTIONS = ("--model", "lab/Good-7B", "--organization", "Our lab")


@pytest.mark.slow  # .ci/run installs the package before the slow tests
def test_its_own_validator_accepts_the_files_with_the_numbers_of_the_run(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    validate = pytest.importorskip("every_eval_ever.validate")
    types = pytest.importorskip("every_eval_ever.eval_types")
    done = export(EVER, run, *OPTIONS, "--relationship", "first_party", "--out", tmp_path / "data")
    assert done.exit_code == 0, done.output + str(done.exception)
    monkeypatch.chdir(tmp_path)
    files = sorted(Path("data").rglob("*.json*"))
    assert [file.parent for file in files] == [Path("data/med_cmr/lab/Good-7B")] * 2
    for file in files:
        report = validate.validate_file(
            file,
            repo_path=str(file),
            available_files={str(one) for one in files},
            read_repo_file=lambda name: Path(name).read_text(encoding="utf-8"),
            run_semantic_checks=True,
        )
        assert (report.errors, report.warnings) == ([], [])
    whole, samples = sorted(files, key=lambda file: file.suffix)
    record = types.EvaluationLog.model_validate_json(whole.read_text(encoding="utf-8"))
    written = json.loads((run / "scores.json").read_text(encoding="utf-8"))["groups"][GROUP][
        "metrics"
    ]
    first, second = record.evaluation_results
    assert first.evaluation_result_id == f"{GROUP}.accuracy"
    assert second.evaluation_result_id == f"{GROUP}.accuracy_dimension_mean"
    interval = first.score_details.uncertainty.confidence_interval
    assert first.score_details.score == written["accuracy"]["value"]
    assert [interval.lower, interval.upper] == written["accuracy"]["interval"]
    assert interval.method == "wilson-clustered, cluster: image"
    assert first.metric_config.additional_details["signature"].startswith("accuracy|")
    assert first.source_data.additional_details["revision"] == COMMIT
    assert record.model_info.id == "lab/Good-7B"
    lines = [json.loads(line) for line in samples.read_text(encoding="utf-8").splitlines()]
    values = [
        line["evaluation"]
        for line in lines
        if line["evaluation_result_id"] == first.evaluation_result_id
    ]
    assert len(values) == written["accuracy"]["samples"] == 43
    assert sum(one["score"] for one in values) / 43 == pytest.approx(written["accuracy"]["value"])
    assert all(one["is_correct"] == (one["score"] == 1) for one in values)


@pytest.mark.slow  # .ci/run installs the package before the slow tests
def test_wrong_options_and_miniature_data_are_one_sentence(tmp_path: Path) -> None:
    pytest.importorskip("every_eval_ever")
    write_run_of(tmp_path, GOOD, [GROUP])
    for options, said in (
        (
            (*OPTIONS, "--relationship", "friends"),
            "--relationship friends: choose from first_party",
        ),
        (OPTIONS, "miniature data"),
    ):
        assert said in str(export(EVER, tmp_path, *options, "--out", tmp_path / "data").exception)
    assert not (tmp_path / "data").exists()


def test_without_the_package_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("every_eval_ever", "every_eval_ever.eval_types"):
        monkeypatch.setitem(sys.modules, name, None)
    done = export(EVER, tmp_path, *OPTIONS, "--out", tmp_path / "data")
    assert isinstance(done.exception, UsageError)
    assert "install it: pip install --no-deps every-eval-ever" in str(done.exception)
