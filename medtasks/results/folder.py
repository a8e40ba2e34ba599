"""Writing a run's folder: ``manifest.json``, ``scores.json`` and ``samples/<task>.jsonl``, whole or not at all."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from medtasks.errors import UsageError
from medtasks.results.files import canonical_json
from medtasks.results.manifest import RunManifest
from medtasks.results.samples import Sample, write_samples
from medtasks.results.scoring import Scores

__all__ = ["RunRecord", "write_run"]


@dataclass(frozen=True)
class RunRecord:
    """One finished run: its manifest, its samples per task, its scores per task and group."""

    manifest: RunManifest
    samples: dict[str, list[Sample]]
    tasks: dict[str, Scores]
    groups: dict[str, Scores]


def write_run(directory: Path, run: RunRecord) -> Path:
    """Write ``run`` as the new folder ``directory`` and return it; a crash leaves no half of it.

    Raises:
        UsageError: the folder exists; finished results are never overwritten.
    """
    if directory.exists():
        raise UsageError(f"{directory}: exists already; results are never overwritten, choose another folder.")
    directory.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(dir=directory.parent, prefix=f".{directory.name}."))
    try:
        (partial / "samples").mkdir()
        for task, samples in sorted(run.samples.items()):
            write_samples(partial / "samples" / f"{task}.jsonl", samples)
        scores = {
            "tasks": {name: scores.model_dump(mode="json") for name, scores in run.tasks.items()},
            "groups": {name: scores.model_dump(mode="json") for name, scores in run.groups.items()},
        }
        (partial / "scores.json").write_text(canonical_json(scores, indent=1) + "\n", encoding="utf-8")
        manifest = run.manifest.model_dump(mode="json")
        (partial / "manifest.json").write_text(canonical_json(manifest, indent=1) + "\n", encoding="utf-8")
        partial.chmod(0o755)
        partial.rename(directory)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return directory
