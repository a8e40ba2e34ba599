"""Predictions made elsewhere, scored on this machine: once, and kept in the user's cache."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from medtasks.catalog.spec import leaf_tasks
from medtasks.core.errors import reading
from medtasks.core.files import canonical_json, check_regular, file_sha256
from medtasks.core.settings import current_settings
from medtasks.importers.layouts import Layout
from medtasks.importers.run import Imported, score_predictions
from medtasks.runs.comparisons import LevelGap, Paired
from medtasks.runs.folder import RunRecord, write_run
from medtasks.runs.manifest import RunManifest, now
from medtasks.runs.scores import Scores

from .scored_run import RunStore


@dataclass(frozen=True)
class PredictionFile:
    """A file of predictions for ``task``, with the options of ``medtasks score`` that affect what is printed."""

    path: Path
    layout: Layout
    task: str
    columns: Mapping[str, str]
    model: str = "unknown"
    verdicts_of: str | None = None

    @property
    def content(self) -> str:
        """What decides the scores, besides code and data: the file, the options, the settings in force.

        Raises:
            DataError: the file cannot be read.
        """
        options = [self.path.name, self.layout, self.task, dict(self.columns), self.model, self.verdicts_of]
        with reading(self.path, "check the path"):
            check_regular(self.path)
            return canonical_json([file_sha256(self.path), options, str(current_settings())])

    def contains(self) -> tuple[Collection[str], Collection[str]]:
        """The names of the tasks; no data are named."""
        return leaf_tasks(self.task), ()


class ScoredPredictions(BaseModel, frozen=True):
    """The run made of a file of predictions, without its samples.

    ``notes`` and ``counts`` say how the predictions were matched; ``with_verdict`` counts the samples with a verdict in
    the file.
    """

    manifest: RunManifest
    tasks: dict[str, Scores]
    groups: dict[str, Scores]
    kept: tuple[dict[str, Paired], dict[str, LevelGap]]
    notes: tuple[str, ...]
    counts: dict[str, int]
    with_verdict: int

    @classmethod
    def of(cls, made: Imported) -> ScoredPredictions:
        """The run as it is kept."""
        run, joined = made.run, made.joined
        kinds = ("missing", "unmatched", "strange", "duplicates", "ambiguous")
        counts = {kind: len(getattr(joined, kind)) for kind in kinds}
        return cls(
            manifest=run.manifest,
            tasks=run.tasks,
            groups=run.groups,
            kept=(run.comparisons, run.level_gaps),
            notes=tuple(made.notes),
            counts={**counts, "answered": len(joined.given), "of_other_tasks": made.others},
            with_verdict=sum(any(one.verdict for one in several) for several in joined.given.values()),
        )

    @property
    def run(self) -> RunRecord:
        """The run, without samples and tables."""
        return RunRecord(self.manifest, {}, self.tasks, self.groups, kept=self.kept)


def scored_predictions(file: PredictionFile, store: RunStore, out: Path | None = None) -> ScoredPredictions:
    """The scored run of the predictions; also written to the new directory ``out``, which needs its samples.

    Raises:
        MedtasksError: as `medtasks.importers.run.score_predictions`, or ``out`` exists.
    """
    key = store.key_of(file, file.content)
    known = store.tables.read(key) if out is None else None
    if known is not None:
        return ScoredPredictions.model_validate(known[0])
    made = score_predictions(
        file.path,
        file.layout,
        file.task,
        columns=dict(file.columns),
        model=file.model,
        verdicts_of=file.verdicts_of,
        created=now(),
    )
    if out is not None:
        write_run(out, made.run)
    scored = ScoredPredictions.of(made)
    if not made.run.manifest.problems:
        store.tables.write(key, scored.model_dump(mode="json"), {})
    return scored
