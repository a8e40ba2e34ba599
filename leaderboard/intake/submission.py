"""A submitted run that could be read, as its checks use it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from typing_extensions import Unpack

from medtasks.runs.manifest import RunManifest, TaskFacts
from medtasks.runs.samples import Sample

from ..verify.scored_run import ScoredRun
from .submission_findings import ProblemDetails, SubmissionFinding, problem


@dataclass(frozen=True)
class Requirements:
    """What is required of submissions.

    ``coverage`` is the share of a release's records that must be prepared. ``demonstration`` allows
    miniature data. Rows that must not be shared are errors if the repository is ``public``, and
    warnings otherwise.
    """

    coverage: float = 0.95
    demonstration: bool = False
    public: bool = True


STRICT = Requirements()
"""The requirements of a public leaderboard."""


@dataclass(frozen=True)
class Submission:
    """A run that could be read, as it was submitted and as it is scored here.

    ``name`` is that of the submission, and ``required`` is what is required of it.
    """

    folder: Path
    name: str
    manifest: RunManifest
    samples: Mapping[str, Sequence[Sample]]
    scored: ScoredRun
    required: Requirements

    @cached_property
    def tasks(self) -> dict[str, TaskFacts]:
        """The facts of the tasks that are installed, as they were submitted."""
        installed = self.scored.entries
        return {name: facts for name, facts in self.manifest.tasks.items() if name in installed}

    def problem(
        self,
        code: str,
        where: str,
        observed: str,
        field: str = "",
        file: str = "manifest.json",
        **details: Unpack[ProblemDetails],
    ) -> SubmissionFinding:
        """A finding about one of the run's files; the other arguments are those of `problem`."""
        return problem(code, where, observed, file=self.folder / file, field=field, **details)

    def in_tasks(
        self,
        code: str,
        observed: str,
        tasks: Sequence[str],
        field: str = "",
        file: str = "manifest.json",
        **details: Unpack[ProblemDetails],
    ) -> SubmissionFinding:
        """A finding about all of the tasks, with their number.

        ``field`` is that of the first task's facts.
        """
        first = tasks[0]
        if len(tasks) > 1:
            observed += f" (in {len(tasks):,} tasks)"
        place = f"tasks.{first}.{field}" if field else ""
        return self.problem(code, first, observed, place, file, **details)
