"""A run's samples with their verdicts, and the facts on how they were judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from medtasks.core.errors import MedtasksError
from medtasks.runs.manifest import RubricFacts
from medtasks.runs.samples import Sample

Samples = Mapping[str, list[Sample]]
"""The samples of a run, by task."""


@dataclass(frozen=True)
class JudgedRubric:
    """A run's samples with their verdicts under one rubric, and the facts on judging them."""

    samples: dict[str, list[Sample]]
    facts: RubricFacts


@dataclass
class Judged:
    """A run's samples with verdicts and scores, and the facts on all rubrics for its manifest.

    ``report`` has a paragraph for each rubric that was just judged, and a line for each that failed
    beside them; ``failed`` the errors of these. What a rubric without a single verdict would have
    made of the run is in ``unused``; ``samples`` and ``facts`` are unchanged by it.
    """

    samples: dict[str, list[Sample]]
    facts: dict[str, RubricFacts]
    report: list[str] = field(default_factory=list)
    failed: dict[str, MedtasksError] = field(default_factory=dict)
    unused: dict[str, JudgedRubric] = field(default_factory=dict)

    @property
    def error(self) -> MedtasksError | None:
        """All failures as one error; None if there was none."""
        distinct = {str(error): error for error in self.failed.values()}
        if not distinct:
            return None
        if len(distinct) == 1:
            return next(iter(distinct.values()))
        return MedtasksError(" ".join(distinct))
