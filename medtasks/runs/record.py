"""A scored run: the one form of its scores in memory, in the user's cache, in result directories and on boards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict

from medtasks.benchmarks.streams import Timeline
from medtasks.catalog.spec import load_spec
from medtasks.runs.comparisons import Diagnostics, LevelGap, Paired, comparisons, diagnose, level_gaps
from medtasks.runs.manifest import RunManifest, scoring_versions
from medtasks.runs.samples import Sample
from medtasks.runs.scores import COVERAGE, Scores
from medtasks.runs.scoring import scores_of
from medtasks.runs.table import RunTables


@dataclass(frozen=True)
class Change:
    """One value that differs from before: ``what`` is ``filtered``, ``status`` or a metric's name."""

    task: str
    sample_id: str
    what: str
    before: Any
    after: Any


@dataclass(frozen=True)
class Verification:
    """The outcome for one task of a run, and the reason.

    ``verified``: scored from the responses, with the data prepared here. ``unverifiable``: the data are not here, so
    questions and gold answers are taken as submitted, or the scores themselves (``claimed``). ``refused``: never
    ranked; ``samples`` are the first ones with another prompt.
    """

    outcome: Literal["verified", "unverifiable", "refused"] = "verified"
    reason: str = ""
    claimed: bool = False
    samples: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunRecord:
    """A run with the scores of its tasks and groups.

    ``samples`` are by task; empty if they were not asked for. ``made`` are the tables that the scores were computed
    from, ``kept`` the ``comparisons`` and ``level_gaps``; None if they are made on first use.

    What follows is there once the run was verified (`medtasks.verify`). ``signatures`` are by task or group and metric
    the reproducibility signatures of the scores over all items; breakdowns add their part. ``timelines`` are the first
    streaming items of a task, ``verification`` is its outcome, ``responses`` a hash of its responses. ``notes`` are for
    readers, ``changes`` the values that differ from those in the directory, ``problems`` learned metrics that could not
    be computed. ``mode`` is ``own`` or ``submitted`` if the scores depend on the argument ``own`` of
    `medtasks.verify.scored.scored_record`. ``predictions`` counts how predictions made elsewhere were matched.
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
    notes: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()
    problems: tuple[str, ...] = ()
    mode: str = ""
    predictions: dict[str, int] = field(default_factory=dict)

    @classmethod
    def scored(
        cls, manifest: RunManifest, samples: Mapping[str, Sequence[Sample]], tables: RunTables | None = None
    ) -> RunRecord:
        """The run with this manifest and these scored samples, whose tables may have been made before."""
        tables = tables or RunTables(samples)
        threshold = max((facts.threshold for facts in manifest.judge.values()), default=COVERAGE)
        scores = scores_of(tables, manifest.groups, threshold=threshold)
        return RunRecord(manifest, samples, *scores, tables)

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(arbitrary_types_allowed=True)

    @property
    def rescored(self) -> RunRecord:
        """The run as ``medtasks score`` writes it: its manifest has the versions that score it now."""
        update = {"scored": scoring_versions(), "problems": self.problems}
        return replace(self, manifest=self.manifest.model_copy(update=update))

    @property
    def scores(self) -> dict[str, Scores]:
        """The scores of tasks, then of groups."""
        return {**self.tasks, **self.groups}

    def intervals(self) -> dict[str, dict[str, Any]]:
        """Value and interval by task or group and metric, as plain JSON."""
        return {
            name: {
                metric: score.model_dump(include={"value", "interval", "reason"})
                for metric, score in one.metrics.items()
            }
            for name, one in self.scores.items()
        }

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
        return {
            key: {name: one.model_dump(mode="json") for name, one in members.items()} for key, members in parts.items()
        }

    @property
    def diagnostics(self) -> dict[str, Diagnostics]:
        """Diagnostics by task and group."""
        return {
            name: diagnose(scores, load_spec(name).benchmark.null_option, self.readings(name))
            for name, scores in self.scores.items()
        }

    def readings(self, name: str) -> Counter[str]:
        """How often the options of a task's or group's responses were named in which way."""
        facts = self.manifest.tasks
        tasks = self.manifest.groups.get(name, (name,))
        return sum((Counter(facts[task].readings) for task in tasks if task in facts), Counter[str]())
