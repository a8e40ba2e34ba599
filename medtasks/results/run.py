"""From the harness's sample log to a finished run: complete samples, scores, manifest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from medtasks.benchmarks import get_benchmark
from medtasks.benchmarks.documents import is_blind
from medtasks.data.store import open_prepared
from medtasks.errors import MedtasksError
from medtasks.filters import status_of
from medtasks.metrics import get_metric
from medtasks.results.folder import RunRecord, write_run
from medtasks.results.judged import judged_threshold, with_judged_scores
from medtasks.results.learned import with_learned_metrics
from medtasks.results.manifest import DataFacts, RubricFacts, RunManifest, TaskFacts, task_facts, versions
from medtasks.results.samples import Repeat, Sample, duplicate_ids
from medtasks.results.scoring import COVERAGE, Scores, intervals, score_samples
from medtasks.spec import TaskSpec, load_spec
from medtasks.stats import clustered_standard_error

__all__ = ["CollectedRun", "collect_run", "data_facts", "finish_run", "make_sample", "pooled_scores", "standard_errors"]

LoggedTask = tuple[TaskSpec, Sequence[Mapping[str, Any]], dict[str, Any], int]
"""Specification, the harness's sample log, generation settings in force, number of documents."""
JudgedSamples = tuple[dict[str, list[Sample]], dict[str, RubricFacts]]
"""Samples with their verdicts, and the facts for the manifest."""


@dataclass(frozen=True)
class CollectedRun:
    """Scored samples of a run whose manifest is still missing what only the end of the run knows."""

    samples: dict[str, list[Sample]]
    tasks: dict[str, Scores]
    groups: dict[str, Scores]
    facts: dict[str, TaskFacts]
    members: dict[str, tuple[str, ...]]
    model: dict[str, Any]
    standard_errors: dict[str, dict[str, float | None]] = field(default_factory=dict)
    judge: dict[str, RubricFacts] = field(default_factory=dict)

    def intervals(self) -> dict[str, dict[str, Any]]:
        """Value and interval per task or group and metric, as plain JSON."""
        return intervals({**self.tasks, **self.groups})


def collect_run(
    tasks: Sequence[LoggedTask],
    groups: Mapping[str, Sequence[str]],
    model: dict[str, Any],
    judging: Callable[[dict[str, list[Sample]]], JudgedSamples] | None = None,
) -> CollectedRun:
    """Samples and scores of one harness run; ``groups`` maps a group to those of its tasks that were run.

    ``judging`` gives the samples their verdicts before they are scored.

    Raises:
        MedtasksError: a document was answered twice (a wrong sharding), so no score can be trusted.
    """
    samples: dict[str, list[Sample]] = {}
    facts: dict[str, TaskFacts] = {}
    for spec, logged, generation, asked in tasks:
        samples[spec.name] = with_judged_scores(
            spec, with_learned_metrics(spec, [_sample(spec, entry) for entry in logged])
        )
        repeated = duplicate_ids(samples[spec.name])
        if repeated:
            raise MedtasksError(
                f"{spec.name}: {len(repeated)} documents were answered more than once, {repeated[0]} among "
                "them; the back-end shards by something else than the global rank."
            )
        statuses = [sample.status for sample in samples[spec.name]]
        facts[spec.name] = task_facts(spec, generation, asked, statuses, blind=is_blind() or bool(model.get("blind")))
    judge: dict[str, RubricFacts] = {}
    if judging is not None:
        samples, judge = judging(samples)
    tasks_scores, groups_scores = pooled_scores(samples, groups, threshold=judged_threshold(judge))
    return CollectedRun(
        samples=samples,
        tasks=tasks_scores,
        groups=groups_scores,
        facts=facts,
        members={name: tuple(members) for name, members in groups.items()},
        model=model,
        standard_errors=standard_errors(samples, groups),
        judge=judge,
    )


def finish_run(run: CollectedRun, settings: dict[str, Any], directory: Path | None, *, created: str) -> RunRecord:
    """Add the manifest, and write the folder where there is a ``directory``."""
    benchmarks = sorted({facts.benchmark for facts in run.facts.values()})
    model = {key: value for key, value in run.model.items() if key != "processes"}
    manifest = RunManifest(
        created=created,
        processes=run.model.get("processes", 1),
        versions=versions(),
        model=model,
        settings=settings,
        tasks=run.facts,
        groups=run.members,
        data={name: data_facts(name) for name in benchmarks},
        judge=run.judge,
    )
    record = RunRecord(manifest=manifest, samples=run.samples, tasks=run.tasks, groups=run.groups)
    if directory is not None:
        write_run(directory, record)
    return record


def data_facts(benchmark: str) -> DataFacts:
    """Which prepared data the samples of ``benchmark`` come from."""
    manifest = open_prepared(benchmark).manifest
    return DataFacts(
        fingerprint=manifest.fingerprint,
        mini=manifest.mini,
        records=manifest.counts.rows,
        excluded=dict(manifest.excluded),
        coverage=manifest.coverage,
    )


def pooled_scores(
    samples: Mapping[str, list[Sample]], groups: Mapping[str, Sequence[str]], *, threshold: float = COVERAGE
) -> tuple[dict[str, Scores], dict[str, Scores]]:
    """Scores of every task, and of every group over all samples of its tasks.

    ``threshold`` is the share of verdicts below which a judged score is marked incomplete.
    """
    pooled = {name: [sample for member in members for sample in samples[member]] for name, members in groups.items()}
    tasks = {name: _scores(name, members, threshold) for name, members in samples.items()}
    return tasks, {name: _scores(name, members, threshold) for name, members in pooled.items()}


def _scores(name: str, samples: list[Sample], threshold: float) -> Scores:
    spec = load_spec(name)
    benchmark = get_benchmark(spec.metadata.benchmark)
    return score_samples(samples, benchmark, spec.metadata.breakdowns, spec.metadata.pooled, threshold=threshold)


def standard_errors(
    samples: Mapping[str, list[Sample]], groups: Mapping[str, Sequence[str]]
) -> dict[str, dict[str, float | None]]:
    """Per task and group the clustered standard errors of the mean-type metrics whose items all have a value."""
    pooled = {name: [sample for member in members for sample in samples[member]] for name, members in groups.items()}
    return {name: _standard_errors(name, members) for name, members in {**samples, **pooled}.items()}


def _standard_errors(name: str, samples: list[Sample]) -> dict[str, float | None]:
    items = get_benchmark(load_spec(name).metadata.benchmark).join([sample.view() for sample in samples]).items
    errors: dict[str, float | None] = {}
    for metric in dict.fromkeys(metric for item in items for metric in item.values):
        values = [(item.values[metric].statistics, item.cluster) for item in items if metric in item.values]
        rows = [row for row, _ in values if row is not None]
        if get_metric(metric).width == 2 and len(rows) == len(values) and any(row[1] for row in rows):
            statistics = np.array(rows, dtype=np.float64)
            errors[metric] = clustered_standard_error(statistics, [cluster for _, cluster in values])
    return errors


def _sample(spec: TaskSpec, logged: Mapping[str, Any]) -> Sample:
    said = logged["filtered_resps"][0]
    raw = logged["resps"][0]
    return make_sample(
        spec,
        logged["doc"],
        (raw,) if isinstance(raw, str) else tuple(raw),
        [said] if isinstance(said, str) else list(said),
        {metric: logged[metric] for metric in spec.metrics if metric in logged},
        prompt=logged["arguments"][0],
        prompt_hash=spec.prompt_hash or "",
    )


def make_sample(
    spec: TaskSpec,
    document: Mapping[str, Any],
    responses: Sequence[str],
    filtered: Sequence[str],
    values: Mapping[str, Mapping[str, Any]],
    *,
    prompt: str,
    prompt_hash: str,
) -> Sample:
    """The sample line of one document: its raw and filtered responses (several, where it was asked several times),
    and what the task's ``process_results`` made of them."""
    fields = dict(document)
    return Sample(
        sample_id=fields.pop("sample_id"),
        task=spec.name,
        cluster=fields.pop("cluster"),
        media=tuple(fields.pop("media")),
        prompt_hash=prompt_hash,
        prompt=prompt,
        target=fields.pop("target"),
        responses=tuple(responses),
        filtered=filtered[0],
        status=status_of(spec.filters[-1], filtered[0]),
        scores={metric: value.get("score") for metric, value in values.items()},
        statistics={metric: tuple(value["statistics"]) for metric, value in values.items() if "statistics" in value},
        repeats=_repeats(spec, filtered, values),
        pending=tuple(metric for metric, value in values.items() if value.get("pending")),
        document=fields,
    )


def _repeats(spec: TaskSpec, said: Sequence[str], values: Mapping[str, Mapping[str, Any]]) -> tuple[Repeat, ...]:
    """Each response's part in the sample, where there are several."""
    if len(said) < 2:
        return ()
    return tuple(
        Repeat(
            filtered=filtered,
            status=status_of(spec.filters[-1], filtered),
            statistics={name: tuple(value["repeats"][number]) for name, value in values.items() if "repeats" in value},
        )
        for number, filtered in enumerate(said)
    )
