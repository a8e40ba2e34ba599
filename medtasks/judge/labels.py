"""What people said of a run's answers, from a CSV file, a rating file or a folder of ratings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from medtasks.core.files import short_hash
from medtasks.runs.samples import Sample
from medtasks.scoring.rubric_scorer import judged_responses

Unit: TypeAlias = tuple[str, str]
"""Task and sample id: two tasks may ask about one sample."""
Documents: TypeAlias = Mapping[Unit, Mapping[str, Any]]
Labels: TypeAlias = dict[str, dict[Unit, dict[str, int]]]
"""Scores by rater, unit and aspect."""


@dataclass(frozen=True)
class LabelledRun:
    """The run that labels are about: its documents and what identifies its first responses.

    ``identity`` is `medtasks.runs.manifest.RunManifest.identity`.
    """

    identity: str
    documents: Documents
    response_hashes: Mapping[Unit, str]

    @classmethod
    def of(
        cls, identity: str, samples: Mapping[str, Sequence[Sample]], tasks: Sequence[str]
    ) -> LabelledRun:
        """The run with these samples; only those of ``tasks`` are labelled."""
        documents: dict[Unit, Mapping[str, Any]] = {}
        hashes: dict[Unit, str] = {}
        for task in tasks:
            for sample in samples[task]:
                unit = (task, sample.sample_id)
                documents[unit] = sample.whole_document()
                hashes[unit] = short_hash(judged_responses(sample)[0])
        return cls(identity, documents, hashes)


@dataclass(frozen=True)
class HumanLabel:
    """What one person said of one answer: a score by aspect.

    ``weight`` is the number of answers that the label stands for; None if the answers are no
    probability sample. ``stratum`` names the stratum it was drawn from, if that is known.
    """

    rater: str
    unit: Unit
    scores: Mapping[str, int]
    stratum: str = ""
    weight: float | None = None


@dataclass(frozen=True)
class LabelledStratum:
    """A stratum of the run's answers: how many there are, and how many labels.

    ``cannot_tell`` counts ratings in it without any score.
    """

    name: str
    task: str
    verdict: str
    population: int
    labels: int
    cannot_tell: int


@dataclass(frozen=True)
class HumanLabels:
    """The labels of a run, and what was found beside them.

    Attributes:
        labels: one for each rater and answer with a score.
        absent: ids of labelled samples that the run does not have.
        stale: number of ratings of a response that has changed since.
        cannot_tell: number of ratings without any score.
        torn: names of rating files whose last line was cut off, so that it is not read.
        strata: the strata of the run, if it was drawn from some; also those without a label.
        why_unweighted: why labels have no weight, so that nothing can be estimated for all
            answers; empty if they have one.
    """

    labels: tuple[HumanLabel, ...]
    absent: tuple[str, ...] = ()
    stale: int = 0
    cannot_tell: int = 0
    torn: tuple[str, ...] = ()
    strata: tuple[LabelledStratum, ...] = ()
    why_unweighted: str = ""

    @property
    def by_rater(self) -> Labels:
        """The scores by rater, unit and aspect."""
        labels: Labels = {}
        for label in self.labels:
            labels.setdefault(label.rater, {})[label.unit] = dict(label.scores)
        return labels
