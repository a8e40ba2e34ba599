"""What forgers do to a run's directory, and what check and build make of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from invented_runs import edit_json
from medtasks.leaderboard.board.build import build_board
from medtasks.leaderboard.intake.check import CheckReport, check_results
from medtasks.leaderboard.intake.collect import collect
from medtasks.leaderboard.intake.submission import Requirements
from medtasks.leaderboard.schema.board import Board

from medtasks.benchmarks.documents import asked_prompt
from medtasks.catalog.spec import load_spec
from medtasks.runs.manifest import RunManifest
from medtasks.runs.samples import Sample
from medtasks.scoring.run_folder import read_run, write_run
from medtasks.scoring.run_record import RunRecord
from medtasks.scoring.scored_samples import scored_samples

Samples = dict[str, list[Sample]]
Forge = Callable[[Samples], Samples]


def rewritten(folder: Path, out: Path, forge: Forge) -> Path:
    """The run with forged samples, scored by our own rules, manifest and scores to match: it agrees
    with itself.
    """
    manifest, samples = read_run(folder)
    forged = {
        task: scored_samples(load_spec(task), members) for task, members in forge(samples).items()
    }
    return write_run(out / folder.name, RunRecord.scored(counted(manifest, forged), forged))


def counted(manifest: RunManifest, samples: Samples) -> RunManifest:
    facts = {
        task: one.model_copy(update={"asked": len(samples[task])}).with_outcomes(
            [sample.outcome for sample in samples[task]]
        )
        for task, one in manifest.tasks.items()
    }
    return manifest.model_copy(update={"tasks": facts})


def each(change: Callable[[Sample], Sample]) -> Forge:
    """A forgery of every sample by itself, with the prompt that its new document gives."""

    def forge(samples: Samples) -> Samples:
        return {
            task: [prompted(change(one)) for one in members] for task, members in samples.items()
        }

    return forge


def every(change: Callable[[Sample], dict[str, Any]]) -> Forge:
    """A forgery that changes fields of every sample, and leaves its prompt."""
    return lambda samples: {
        task: [one.model_copy(update=change(one)) for one in members]
        for task, members in samples.items()
    }


def wrong_ones_left_out(samples: Samples) -> Samples:
    """Nothing in the folder says that there ever were more documents."""
    return {
        task: [one for one in members if one.scores["accuracy"]] or members[:1]
        for task, members in samples.items()
    }


def add_strangers(folder: Path, task: str) -> None:
    """A task of a package that is not installed here, with its samples, its data and its scores."""

    def add(manifest: Any) -> None:
        manifest["tasks"]["nobodys_task"] = {**manifest["tasks"][task], "benchmark": "nobodys"}
        manifest["data"]["nobodys"] = next(iter(manifest["data"].values()))

    edit_json(folder / "manifest.json", add)
    edit_json(folder / "scores.json", lambda it: it["tasks"].update(nobodys_task=it["tasks"][task]))
    text = (folder / "samples" / f"{task}.jsonl").read_text(encoding="utf-8")
    (folder / "samples" / "nobodys_task.jsonl").write_text(
        text.replace(task, "nobodys_task"), encoding="utf-8"
    )


def prompted(sample: Sample) -> Sample:
    document = {**sample.document, "target": sample.target}
    return sample.model_copy(update={"prompt": asked_prompt(load_spec(sample.task), document)})


def check(*folders: Path, **options: Any) -> CheckReport:
    required = Requirements(coverage=0.0, demonstration=True)
    return check_results(folders, required, **{"environment": {}, **options})


def codes(report: CheckReport, severity: str = "error") -> set[str]:
    return {one.code for one in report.findings if one.severity == severity}


def board(*folders: Path) -> Board:
    digests, refused = collect(folders)
    assert not refused
    return build_board(digests, title="x", demonstration=True)


def places(found: Board) -> list[str]:
    """The models of the first ranking, best first."""
    (benchmark,) = found.benchmarks
    return [
        found.models[one.model].name for ranking in benchmark.rankings[:1] for one in ranking.ranked
    ]


def apart(found: Board) -> dict[str, str]:
    (benchmark,) = found.benchmarks
    return {
        found.models[one.model].name: "; ".join(one.reasons) for one in benchmark.tables[0].apart
    }


RELEASE = {"fingerprint": "a" * 64, "mini": False, "records": 20654}


def on_a_release(folder: Path, out: Path) -> Path:
    """The run as if its data were a release's, which nobody can make here."""
    manifest, samples = read_run(folder)
    data = {name: one.model_copy(update=RELEASE) for name, one in manifest.data.items()}
    run = RunRecord.scored(manifest.model_copy(update={"data": data}), samples)
    return write_run(out / folder.name, run)
