"""Scoring without a model: a folder again, and predictions made elsewhere; both give what the run
gave.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_samples import made_manifest
from medtasks.leaderboard.intake.collect import collect
from medtasks.leaderboard.intake.remove_rows import remove_rows
from medtasks.leaderboard.verify.scored_run import scored_run

from medtasks.benchmarks.documents import task_documents
from medtasks.catalog.registry import all_benchmarks
from medtasks.catalog.spec import load_spec
from medtasks.core.errors import DataError, UsageError
from medtasks.core.garbage_collection import without_garbage_collection
from medtasks.core.settings import read_subset, using
from medtasks.harness import run_tasks
from medtasks.importers.imported_run import PredictionFile, score_predictions, scored_predictions
from medtasks.runs.manifest import now
from medtasks.runs.protocol import task_facts
from medtasks.runs.replies import Answer, Probabilities, Reply, Slot
from medtasks.runs.unfinished import AnswerStore, RunPlan
from medtasks.scoring import run_tables
from medtasks.scoring.comparisons import Paired, comparisons, level_gaps
from medtasks.scoring.finished_run import data_facts, score_unfinished
from medtasks.scoring.kept_runs import keep_finished, keep_written
from medtasks.scoring.run_cache import RunStore, user_store
from medtasks.scoring.run_folder import RunFolder, read_run, write_run
from medtasks.scoring.run_record import RunRecord
from medtasks.scoring.verification import SubmittedTask
from medtasks.scoring.verified_runs import scored_record

TASKS = [*all_benchmarks(), "mi_cxr_stagewise", "mi_cxr_sampled", "mi_cxr_report"]
STREAM = "medstreambench_proactive"
FEW = ["kvasir_vqa_x1", "mi_cxr_icr", "mi_cxr_stagewise_icr", STREAM]
GUESS = "policy=noisy_oracle,accuracy=0.6,seed=2"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of few tasks, with levels and with two ways to ask the same."""
    return run_tasks("medtasks_baseline", GUESS, FEW, tmp_path_factory.mktemp("run"))


def scored(folder: Path, out: Path) -> Path:
    again = scored_record(*read_run(folder), own=True, whole=True)
    return write_run(out, again.rescored)


def files(folder: Path, *left_out: str) -> dict[str, bytes]:
    paths = sorted(
        path for path in folder.rglob("*") if path.is_file() and path.name not in left_out
    )
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


@pytest.mark.slow
def test_scoring_again_changes_nothing_but_the_manifest(tmp_path: Path) -> None:
    folder = run_tasks("medtasks_baseline", GUESS, TASKS, tmp_path / "run", limit=12)
    again = scored_record(*read_run(folder), own=True, whole=True)
    assert again.changes == ()
    once = write_run(tmp_path / "once", again.rescored)
    assert files(once, "manifest.json") == files(folder, "manifest.json")
    before, after = (json.loads((path / "manifest.json").read_text()) for path in (folder, once))
    assert before.pop("scored") is None
    assert after.pop("scored")["medtasks"] == before["versions"]["medtasks"]
    assert after == before


@pytest.mark.parametrize("sure", [False, True])
def test_a_run_scored_in_parts_is_the_run_scored_at_once(
    folder: Path, sure: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if sure:  # only the last answer has a probability, so all others lack theirs
        manifest, samples = read_run(folder)
        *others, last = samples["mi_cxr_icr"]
        samples["mi_cxr_icr"] = [
            *others,
            last.model_copy(update={"probabilities": (Probabilities(0.9),)}),
        ]
        folder = write_run(tmp_path / "run", RunRecord.scored(manifest, samples))
    record = scored_record(*RunFolder(folder).read(), own=True, whole=True)
    monkeypatch.setattr(run_tables, "PART_SIZE", 4)
    parts = scored_record(*RunFolder(folder).read(), own=True, whole=True)
    assert parts == record
    assert {name: [*of] for name, of in parts.samples.items()} == {
        name: [*of] for name, of in record.samples.items()
    }
    assert len(record.samples["mi_cxr_icr"]) > 4
    assert ("confidence" in str(record.tasks["mi_cxr_icr"].metrics.keys())) is sure


def test_samples_whose_data_are_not_here_are_freed_without_a_search_for_cycles(
    folder: Path,
) -> None:
    manifest, samples = read_run(folder)
    other = {"fingerprint": "a" * 64, "mini": False, "records": 10**6}
    data = {name: facts.model_copy(update=other) for name, facts in manifest.data.items()}
    known = [weakref.ref(sample) for several in samples.values() for sample in several]
    with without_garbage_collection():
        record = scored_record(manifest.model_copy(update={"data": data}), samples)
        del samples
        assert record.scores
        assert [one for one in known if one() is not None] == []


def test_scored_twice_gives_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    once = scored(folder, tmp_path / "once")
    assert files(scored(once, tmp_path / "twice")) == files(once)


def test_a_folder_is_scored_once_until_it_changes(folder: Path, tmp_path: Path) -> None:
    store = RunStore(tmp_path / "kept")
    cold = scored_run(folder, store, own=True)
    with without_scoring():
        warm = scored_run(folder, store, own=True)
        (shown,), _ = collect(
            [folder], store
        )  # a board does not score again what `medtasks score` has scored
    assert not cold.samples
    assert warm == cold
    assert shown == cold
    again = comparisons(warm.record.tables, warm.record.tables)
    assert dumped(warm.record.comparisons) == dumped(again) != {}
    assert warm.record.level_gaps == level_gaps(warm.record.tables) != {}
    whole = scored_run(folder, store, own=True, whole=True)
    assert {name: len(found) for name, found in whole.samples.items()} == {
        name: facts.attempted for name, facts in whole.manifest.tasks.items()
    }

    copy = Path(shutil.copytree(folder, tmp_path / "copy_medtasks"))
    path = copy / "samples" / "mi_cxr_icr.jsonl"
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    right = next(line for line in lines if line["scores"]["accuracy"])
    right["responses"] = ["none of them"]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    changed = scored_run(copy, store, own=True)
    assert [
        (one.task, one.sample_id, one.what, one.before, one.after) for one in changed.record.changes
    ] == [
        ("mi_cxr_icr", right["sample_id"], "filtered", right["target"], "[none]"),
        ("mi_cxr_icr", right["sample_id"], "status", "ok", "none"),
        ("mi_cxr_icr", right["sample_id"], "accuracy", 1.0, 0.0),
    ]


@pytest.mark.parametrize(
    "tasks", [FEW, pytest.param(["medstreambench", "med_cmr"], marks=pytest.mark.slow)]
)
def test_what_a_run_has_scored_serves_the_board(tasks: list[str], tmp_path: Path) -> None:
    with using(cache=tmp_path / "cache"):
        folder = run_tasks("medtasks_baseline", GUESS, tasks, tmp_path / "run")
        with without_scoring():
            kept = scored_run(folder, user_store())
            own = scored_run(folder, user_store(), own=True)
            assert own.record.comparisons == kept.record.comparisons
    fresh = scored_run(folder)
    assert kept == fresh
    assert list(kept.entries) == list(fresh.entries)
    for name, entry in fresh.entries.items():
        other = kept.entries[name]
        assert (other.items, other.clusters) == (entry.items, entry.clusters)
        assert {**other.table.groups} == {**entry.table.groups}
        for metric in entry.scores.metrics:
            np.testing.assert_array_equal(other.statistics(metric), entry.statistics(metric))


def test_a_run_that_is_not_verified_is_not_kept_at_its_end(folder: Path, tmp_path: Path) -> None:
    other = {"fingerprint": "a" * 64, "mini": False, "records": 10**6}
    copy = edited(
        folder, tmp_path / "run", "manifest.json", lambda it: it["data"]["mi_cxr"].update(other)
    )
    keep_finished(copy, RunRecord.scored(*read_run(copy)), RunStore(tmp_path / "kept"))
    assert not (tmp_path / "kept").exists()


def dumped(found: Mapping[str, Paired]) -> dict[str, Any]:
    return {name: one.model_dump(mode="json") for name, one in found.items()}


def test_what_score_writes_needs_no_scoring_either(folder: Path, tmp_path: Path) -> None:
    store = RunStore(tmp_path / "kept")
    again = scored_run(folder, store, own=True, whole=True).record
    out = write_run(tmp_path / "again_medtasks", again.rescored)
    keep_written(out, again, store)
    with without_scoring():
        kept = scored_run(out, store)
    fresh = scored_run(out)
    assert kept == fresh


@contextlib.contextmanager
def without_scoring() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SubmittedTask, "__init__", None)
        yield


def edited(folder: Path, copy: Path, name: str, change: Callable[[dict[str, Any]], object]) -> Path:
    shutil.copytree(folder, copy)
    first, *rest = (
        (copy / name).read_text(encoding="utf-8").split("\n", 0 if name == "manifest.json" else 1)
    )
    fields = json.loads(first)
    change(fields)
    (copy / name).write_text("\n".join([json.dumps(fields), *rest]), encoding="utf-8")
    return copy


def test_an_edited_document_is_that_of_the_data(folder: Path, tmp_path: Path) -> None:
    expected = scored_run(folder, own=True).record.tasks
    for number, document in enumerate(({}, {"qtype": ["x"]})):

        def change(line: dict[str, Any], document: dict[str, Any] = document) -> None:
            line["document"] = {**line["document"], **document} if document else {}

        copy = edited(folder, tmp_path / f"{number}" / "run", "samples/mi_cxr_icr.jsonl", change)
        assert scored_run(copy, own=True).record.tasks == expected
        with pytest.raises(DataError, match="run: its samples and manifest do not fit"):
            remove_rows(copy, tmp_path / "stripped")


def test_a_run_with_numbers_that_json_lacks_is_not_stripped(folder: Path, tmp_path: Path) -> None:
    nan = {"version": float("nan")}
    copy = edited(
        folder, tmp_path / "run", "manifest.json", lambda it: it["tasks"]["mi_cxr_icr"].update(nan)
    )
    with pytest.raises(DataError, match=r"run: its samples and manifest do not fit .*: nan"):
        remove_rows(copy, tmp_path / "stripped")
    assert not (tmp_path / "stripped").exists()


def test_a_named_pipe_in_place_of_samples_is_not_opened(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "run")
    path = tmp_path / "run" / "samples" / "mi_cxr_icr.jsonl"
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(DataError, match=r"mi_cxr_icr\.jsonl: cannot be read .a named pipe"):
        scored_run(tmp_path / "run")


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"contains no manifest\.json"):
        read_run(tmp_path)
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(DataError, match="not the manifest of a run"):
        read_run(tmp_path)


def predictions(folder: Path, task: str) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for path in sorted((folder / "samples").glob(f"{task}*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]


def as_jsonl(lines: list[dict[str, Any]]) -> str:
    rows = [{"sample_id": line["sample_id"], "response": line["responses"][0]} for line in lines]
    return "\n".join(json.dumps(row) for row in rows)


def by_question(lines: list[dict[str, Any]]) -> str:
    names = ("img_id", "question")
    rows = [
        {**{name: line["document"][name] for name in names}, "response": line["responses"][0]}
        for line in lines
    ]
    return "\n".join(json.dumps(row) for row in rows)


@pytest.mark.parametrize(("task", "write"), [("kvasir_vqa_x1", by_question), (STREAM, as_jsonl)])
def test_predictions_of_our_own_run_give_its_own_numbers(
    folder: Path, tmp_path: Path, task: str, write: Any
) -> None:
    path = tmp_path / "predictions.jsonl"
    path.write_text(write(predictions(folder, task)), encoding="utf-8")
    made = score_predictions(PredictionFile(path, "jsonl", task))
    ours = json.loads((folder / "scores.json").read_text())
    assert made.predictions["missing"] == made.predictions["unmatched"] == 0
    given = made.results
    for kind in ("tasks", "groups"):
        assert given[kind] == {name: ours[kind][name] for name in given[kind]}
    out = write_run(tmp_path / "out", made)
    assert scored_record(*read_run(out), own=True, whole=True).changes == ()


def test_predictions_are_scored_once_until_they_or_their_data_change(
    folder: Path, tmp_path: Path
) -> None:
    store, task = RunStore(tmp_path / "kept"), "kvasir_vqa_x1_level1"
    path, lines = tmp_path / "predictions.jsonl", predictions(folder, task)
    path.write_text(as_jsonl(lines), encoding="utf-8")
    file = PredictionFile(path, "jsonl", task)
    cold = scored_predictions(file, store)
    (entry,) = (tmp_path / "kept").iterdir()
    written = entry.stat().st_mtime_ns
    assert scored_predictions(file, store) == cold
    assert entry.stat().st_mtime_ns == written  # else it was scored and written again
    assert cold.results == score_predictions(file).results
    assert (
        scored_predictions(replace(file, model="other"), store).manifest.model["model"] == "other"
    )

    path.write_text(as_jsonl(lines[:20]), encoding="utf-8")
    fewer = scored_predictions(file, store)
    assert (fewer.predictions["answered"], fewer.predictions["missing"]) == (20, len(lines) - 20)
    out = tmp_path / "out"
    assert (
        scored_predictions(file, store, out).tasks == fewer.tasks
    )  # with its samples, which are not kept
    assert len(read_run(out)[1][task]) == 20


def test_missing_predictions_are_in_no_score_and_are_counted(folder: Path, tmp_path: Path) -> None:
    lines = predictions(folder, "kvasir_vqa_x1_level1")
    path = tmp_path / "predictions.jsonl"
    stranger = json.dumps({"sample_id": "stranger", "response": "?"})
    other = json.dumps({"sample_id": "stranger", "response": "?", "task": "kvasir_vqa_x1_level2"})
    path.write_text("\n".join([as_jsonl(lines[:20]), stranger, other]), encoding="utf-8")
    made = score_predictions(PredictionFile(path, "jsonl", "kvasir_vqa_x1_level1"))
    facts = made.manifest.tasks["kvasir_vqa_x1_level1"]

    assert (facts.asked, facts.answered) == (len(lines), 20)
    found = ("missing", "unmatched", "of_other_tasks")
    assert [made.predictions[name] for name in found] == [len(lines) - 20, 1, 1]
    assert made.tasks["kvasir_vqa_x1_level1"].samples == 20
    assert (facts.prompt_hash, facts.template) == ("unknown", "")


def test_a_file_that_fits_nothing_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "predictions.jsonl"
    path.write_text(json.dumps({"sample_id": "stranger", "response": "?"}))
    with pytest.raises(
        DataError, match="none of its 1 predictions matches a document of mi_cxr_icr"
    ):
        score_predictions(PredictionFile(path, "jsonl", "mi_cxr_icr"))
    with pytest.raises(UsageError, match="the harness logs each task in a file of its own"):
        score_predictions(PredictionFile(path, "lmms-eval", "mi_cxr"))


def test_replies_of_an_unfinished_subset_go_to_the_documents_that_were_asked(
    tmp_path: Path,
) -> None:
    """Whoever scores them later need not set ``MEDTASKS_SUBSET``."""
    task = "mi_cxr_icr"
    with using(subset=read_subset("0.5@1")):
        documents = task_documents(task)
        facts = task_facts(load_spec(task), {}, len(documents))
        manifest = made_manifest(tasks={task: facts}, data={"mi_cxr": data_facts("mi_cxr")})
    assert [one["sample_id"] for one in documents] != [
        one["sample_id"] for one in task_documents(task)[: len(documents)]
    ]
    store = AnswerStore(tmp_path)
    store.write_plan(RunPlan(manifest=manifest, documents={task: tuple(range(len(documents)))}))
    store.add(
        Answer(Slot(task, number, 0, ""), Reply(one["target"]))
        for number, one in enumerate(documents)
    )
    store.close()
    assert score_unfinished(tmp_path, created=now()).tasks[task].metrics["accuracy"].value == 1.0
