"""How far the judges of a run agree with the people who labelled its answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from medtasks.catalog.rubric import Rubric
from medtasks.judge.agreement import agreement_report
from medtasks.judge.labels import HumanLabels
from medtasks.runs.agreement_report import AgreementReport
from medtasks.runs.samples import Sample


def agreement_with_people(
    samples: Mapping[str, Sequence[Sample]],
    rubric: Rubric,
    tasks: Sequence[str],
    labels: HumanLabels,
) -> AgreementReport:
    """Agreement of all raters of the first responses, from the verdicts in the samples.

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
            name = f"{task}/{sample.sample_id}"
            clusters[name] = sample.cluster
            for judge, scores in _verdicts(sample, rubric).items():
                ratings.setdefault(judge, {})[name] = scores
    judges = set(ratings)
    for rater, by_unit in labels.by_rater.items():
        rater_name = f"{rater} (labels)" if rater in judges else rater
        ratings[rater_name] = {
            f"{task}/{sample}": by_unit[task, sample] for task, sample in by_unit
        }
    return agreement_report(rubric, ratings, clusters)


def _verdicts(sample: Sample, rubric: Rubric) -> dict[str, Mapping[str, float]]:
    """The scores of each judge that has a verdict on a sample's first response."""
    responses = sample.verdicts.get(rubric.name, ())
    verdicts: dict[str, Mapping[str, float]] = {}
    if responses:
        for judge, verdict in responses[0].judges.items():
            if verdict.scores is not None:
                verdicts[judge] = verdict.scores
    return verdicts
