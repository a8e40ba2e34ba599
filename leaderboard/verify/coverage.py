"""How much of a release a run covers, and how many of its items have a score."""

from __future__ import annotations

from dataclasses import dataclass

from medtasks.catalog.registry import get_benchmark
from medtasks.runs.manifest import RunManifest
from medtasks.scoring.scores import COVERAGE, MetricScore

from .entries import Entry


@dataclass(frozen=True)
class ReleaseCoverage:
    """How many of a release's ``records`` are ``prepared``."""

    prepared: int
    records: int

    @property
    def share(self) -> float:
        return self.prepared / self.records


def release_coverage(manifest: RunManifest, benchmark: str) -> ReleaseCoverage:
    """How much of a benchmark's release is prepared, as the run's manifest states.

    If the data count records by task, only those of the run's tasks count. If the source had fewer
    records than were published, whatever it counted, all prepared records are compared with the
    published number, which says nothing about tasks whose rows it does not count
    (`RecordCounts.apart`).
    """
    facts = manifest.data[benchmark]
    published = _published_rows(manifest, benchmark)
    excluded = sum(facts.excluded.values())
    in_source = sum(entry.records for entry in facts.coverage) or facts.records
    if not facts.mini and in_source + excluded < published:
        return ReleaseCoverage(facts.records, published)
    if not facts.coverage:
        return ReleaseCoverage(facts.records, facts.records + excluded)
    prepared = records = 0
    for entry in facts.coverage:
        task = manifest.tasks.get(entry.task)
        if task is not None and task.benchmark == benchmark:
            prepared += entry.prepared
            records += entry.records
    return ReleaseCoverage(prepared, records)


def _published_rows(manifest: RunManifest, benchmark: str) -> int:
    """The published number of rows; 0 if it counts the rows of none of the run's tasks."""
    declared = get_benchmark(benchmark)
    for task, facts in manifest.tasks.items():
        if facts.benchmark != benchmark:
            continue
        if declared.counts.apart is None or declared.counts.apart not in task:
            return declared.counts.published.get("rows", 0)
    return 0


def released_share(entry: Entry) -> float:
    """The share of the published number of items that the run has; 1 if none is published."""
    benchmark = get_benchmark(entry.benchmark)
    # a task or group is named after the kind of its items
    kind = entry.name.removeprefix(benchmark.name).removeprefix("_")
    published = benchmark.counts.published.get(kind or "rows")
    if not published:
        return 1.0
    return min(1.0, len(entry.items) / published)


def is_incomplete(score: MetricScore) -> bool:
    """Whether too many items lack a response or a verdict, whatever the run's own threshold."""
    if score.incomplete:
        return True
    return score.value is not None and score.known < COVERAGE * score.samples
