"""How far the judges of a run agree with the people who labelled its answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from medtasks.catalog.rubric import Rubric
from medtasks.judge.agreement import agreement_report
from medtasks.judge.labels import HumanLabels
from medtasks.runs.agreement_report import AgreementReport
from medtasks.runs.samples import Sample


@dataclass(frozen=True)
class RatedResponses:
    """The first responses of a run with the scores of all judges and people under a rubric.

    ``ratings`` are the scores by rater, response and aspect, ``clusters`` those of the responses.
    """

    rubric: Rubric
    ratings: Mapping[str, Mapping[str, Mapping[str, float]]]
    clusters: Mapping[str, str]

    @classmethod
    def of(
        cls,
        samples: Mapping[str, Sequence[Sample]],
        rubric: Rubric,
        tasks: Sequence[str],
        labels: HumanLabels,
    ) -> RatedResponses:
        """The responses of a run.

        Args:
            samples: the samples of the run by task.
            rubric: the rubric of verdicts and labels.
            tasks: the tasks that were judged under it.
            labels: what people said.
        """
        ratings: dict[str, dict[str, Mapping[str, float]]] = {}
        clusters: dict[str, str] = {}
        for task in tasks:
            for sample in samples[task]:
                response = f"{task}/{sample.sample_id}"
                clusters[response] = sample.cluster
                for judge, scores in _verdicts(sample, rubric).items():
                    ratings.setdefault(judge, {})[response] = scores
        judges = set(ratings)
        for rater, by_unit in labels.by_rater.items():
            of_rater: dict[str, Mapping[str, float]] = {}
            for (task, sample_id), scores in by_unit.items():
                of_rater[f"{task}/{sample_id}"] = scores
            ratings[f"{rater} (labels)" if rater in judges else rater] = of_rater
        return cls(rubric, ratings, clusters)

    def agreement(self) -> AgreementReport:
        """The agreement of every pair of raters, and of all."""
        return agreement_report(self.rubric, self.ratings, self.clusters)


def _verdicts(sample: Sample, rubric: Rubric) -> dict[str, Mapping[str, float]]:
    """The scores of each judge that has a verdict on a sample's first response."""
    responses = sample.verdicts.get(rubric.name, ())
    verdicts: dict[str, Mapping[str, float]] = {}
    if responses:
        for judge, verdict in responses[0].judges.items():
            if verdict.scores is not None:
                verdicts[judge] = verdict.scores
    return verdicts
