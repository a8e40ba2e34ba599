"""A scored run: the one form of its scores in memory, in the user's cache and on boards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

from medtasks.catalog.spec import leaf_tasks, load_spec
from medtasks.metrics.timelines import Timeline
from medtasks.runs.manifest import RunManifest, versions
from medtasks.runs.samples import Sample
from medtasks.scoring.comparisons import LevelGap, Paired, comparisons, level_gaps
from medtasks.scoring.diagnostics import Diagnostics, diagnose
from medtasks.scoring.group_scores import scores_of
from medtasks.scoring.run_tables import RunTables
from medtasks.scoring.scores import COVERAGE, Scores
from medtasks.scoring.verification_outcome import Verification


@dataclass(frozen=True)
class Change:
    """One value that differs from before: ``what`` is ``filtered``, ``status`` or a metric's
    name.
    """

    task: str
    sample_id: str
    what: str
    before: Any
    after: Any


@dataclass(frozen=True)
class Difference:
    """A field of a task's samples that is not what is computed here.

    ``samples`` counts them. ``first`` is the id of the first one, ``found`` what its line has,
    ``expected`` what is computed here; None for a field that is absent.
    """

    task: str
    field: str
    samples: int
    first: str
    found: str | None
    expected: str | None


@dataclass(frozen=True)
class RunRecord:
    """A run with the scores of its tasks and groups.

    ``samples`` are by task; empty if they were not asked for. ``made`` are the tables that the
    scores were computed from, ``kept`` the ``comparisons`` and ``level_gaps``; None if they are
    made on first use.

    What follows is there once the run was verified (`medtasks.scoring.verification`).
    ``signatures`` are by task or group and metric, over all items. ``timelines`` are the first
    streaming items of a task, ``verification`` is its outcome, ``responses`` a hash of its
    responses, ``questions`` hashes of its documents by sample id, if they are those of the
    directory. ``changes`` are the values that differ from those in the directory, ``differences``
    all fields of samples that do, and ``amended`` these samples as they are scored here, by task
    (`medtasks.scoring.amended`). ``problems`` are learned metrics that could not be computed.
    ``mode`` is ``own`` or ``submitted`` if the scores depend on the argument ``own`` of
    `medtasks.scoring.verified_runs.scored_record`. ``predictions`` counts how predictions made
    elsewhere were matched.
    """

    manifest: RunManifest
    samples: Mapping[str, Sequence[Sample]] = field(compare=False)
    tasks: dict[str, Scores]
    groups: dict[str, Scores]
    made: RunTables | None = field(default=None, compare=False)
    kept: tuple[dict[str, Paired], dict[str, LevelGap]] | None = field(default=None, compare=False)
    signatures: dict[str, dict[str, str]] = field(default_factory=dict)
    timelines: dict[str, tuple[Timeline, ...]] = field(default_factory=dict)
    verification: dict[str, Verification] = field(default_factory=dict)
    responses: dict[str, str] = field(default_factory=dict)
    questions: dict[str, dict[str, str]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()
    differences: tuple[Difference, ...] = ()
    amended: Mapping[str, bytes] = field(default_factory=dict, compare=False)
    problems: tuple[str, ...] = ()
    mode: str = ""
    predictions: dict[str, int] = field(default_factory=dict)

    @classmethod
    def scored(
        cls,
        manifest: RunManifest,
        samples: Mapping[str, Sequence[Sample]],
        tables: RunTables | None = None,
    ) -> RunRecord:
        """The run with these scored samples, whose tables may have been made before."""
        tables = tables or RunTables(samples)
        threshold = max((facts.threshold for facts in manifest.judge.values()), default=COVERAGE)
        tasks, groups = scores_of(tables, manifest.groups, threshold=threshold)
        for name, members in manifest.groups.items():
            without = tuple(task for task in leaf_tasks(name) if task not in members)
            groups[name] = groups[name].model_copy(update={"without": without})
        return RunRecord(manifest, samples, tasks, groups, tables)

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(arbitrary_types_allowed=True)

    @property
    def rescored(self) -> RunRecord:
        """The run as ``medtasks score`` writes it: its manifest has the versions that score it
        now.
        """
        scoring = ("medtasks", "sacrebleu", "nltk", "numpy", "transformers", "torch")
        scored = {name: version for name, version in versions().items() if name in scoring}
        update = {"scored": scored, "problems": self.problems}
        return replace(self, manifest=self.manifest.model_copy(update=update))

    @property
    def scores(self) -> dict[str, Scores]:
        """The scores of tasks, then of groups."""
        return {**self.tasks, **self.groups}

    def intervals(self) -> dict[str, dict[str, Any]]:
        """Value, interval and its method by task or group and metric, as plain JSON."""
        fields = {"value", "interval", "interval_method", "reason"}
        intervals: dict[str, dict[str, Any]] = {}
        for name, scores in self.scores.items():
            intervals[name] = {}
            for metric, score in scores.metrics.items():
                intervals[name][metric] = score.model_dump(include=fields)
        return intervals

    @cached_property
    def tables(self) -> RunTables:
        """The tables of the run's tasks and groups."""
        return self.made or RunTables(self.samples)

    @cached_property
    def comparisons(self) -> dict[str, Paired]:
        """Tasks and groups compared with their partners (``compare_with``), if the run has both."""
        return comparisons(self.tables, self.tables) if self.kept is None else self.kept[0]

    @cached_property
    def level_gaps(self) -> dict[str, LevelGap]:
        """Gaps between adjacent levels, if the run has both."""
        return level_gaps(self.tables) if self.kept is None else self.kept[1]

    @property
    def results(self) -> dict[str, Any]:
        """The content of ``scores.json``, as plain JSON."""
        parts: dict[str, Mapping[str, BaseModel]] = {
            "tasks": self.tasks,
            "groups": self.groups,
            "comparisons": self.comparisons,
            "diagnostics": self.diagnostics,
            "level_gaps": self.level_gaps,
        }
        results: dict[str, Any] = {}
        for part, entries in parts.items():
            results[part] = {name: entry.model_dump(mode="json") for name, entry in entries.items()}
        return results

    @property
    def diagnostics(self) -> dict[str, Diagnostics]:
        diagnostics = {}
        for name, scores in self.scores.items():
            null_option = load_spec(name).benchmark.null_option
            diagnostics[name] = diagnose(scores, null_option, self.readings(name))
        return diagnostics

    def readings(self, name: str) -> Counter[str]:
        """How often the options of a task's or group's responses were named in which way."""
        readings: Counter[str] = Counter()
        for task in self.manifest.groups.get(name, (name,)):
            if task in self.manifest.tasks:
                readings.update(self.manifest.tasks[task].readings)
        return readings
