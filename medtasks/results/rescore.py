"""Scoring without a model: existing responses under the current filters and metrics."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from medtasks.benchmarks.base import sample_items
from medtasks.errors import MedtasksError
from medtasks.files import canonical_json
from medtasks.filters import version_of
from medtasks.metrics.registry import get_metric
from medtasks.results.diagnostics import LevelGap
from medtasks.results.folder import RunRecord, SampleFiles, as_data_error, folder_digest, read_manifest
from medtasks.results.learned import with_learned_metrics
from medtasks.results.manifest import RunManifest, TaskFacts, outcome_counts, protocol_today, versions
from medtasks.results.paired import Paired
from medtasks.results.run import data_facts, scores_of
from medtasks.results.run_tables import RunTables, in_parts
from medtasks.results.samples import Outcome, Sample, SampleLines
from medtasks.results.scored import scored_again
from medtasks.results.scores import Scores
from medtasks.results.table_file import TableStore, code_hash
from medtasks.results.verdict_scores import judged_threshold, with_judged_scores
from medtasks.settings import using
from medtasks.spec import TaskSpec, load_spec


@dataclass(frozen=True, slots=True)
class Change:
    """One value that differs from before: ``what`` is ``filtered``, ``status`` or a metric's name."""

    task: str
    sample_id: str
    what: str
    before: Any
    after: Any


@dataclass(frozen=True)
class Rescored:
    """A run's samples and scores under the current rules, and the changes from those in its directory."""

    samples: dict[str, Sequence[Sample]]
    tasks: dict[str, Scores]
    groups: dict[str, Scores]
    manifest: RunManifest
    changes: tuple[Change, ...]
    tables: RunTables
    kept: tuple[dict[str, Paired], dict[str, LevelGap]] | None = None
    """The run's comparisons and level gaps, if they are cached."""

    @cached_property
    def run(self) -> RunRecord:
        """The run as scored now."""
        return RunRecord(self.manifest, self.samples, self.tasks, self.groups, self.tables, self.kept)


def rescore_folder(folder: Path, store: TableStore, *, whole: bool = False) -> Rescored:
    """The run in ``folder``, scored again, or its cached scores from ``store``.

    The cache key is a hash of the directory's contents, of all code, task files and rubrics, of the metrics' signatures
    and of the prepared data. Unless ``whole``, ``samples`` is empty, and scores may be those in the cache.

    Raises:
        MedtasksError: as :func:`rescore` and `medtasks.results.folder.read_run`.
    """
    key = _key(folder, store)
    kept = None if whole or key is None else store.read(key)
    if kept is not None:
        content, tables = kept
        return Rescored(
            samples={},
            tasks={name: Scores.model_validate(one) for name, one in content["tasks"].items()},
            groups={name: Scores.model_validate(one) for name, one in content["groups"].items()},
            manifest=RunManifest.model_validate(content["manifest"]),
            changes=tuple(map(Change, *content["changes"])),
            tables=RunTables({}, tables),
            kept=(
                {name: Paired.model_validate(one) for name, one in content["comparisons"].items()},
                {name: LevelGap.model_validate(one) for name, one in content["level_gaps"].items()},
            ),
        )
    with as_data_error(folder):
        again = rescore(read_manifest(folder), SampleFiles(folder), whole=whole)
    if key is not None and not again.manifest.problems:
        content = {
            "tasks": {name: one.model_dump(mode="json") for name, one in again.tasks.items()},
            "groups": {name: one.model_dump(mode="json") for name, one in again.groups.items()},
            "comparisons": {name: one.model_dump(mode="json") for name, one in again.run.comparisons.items()},
            "level_gaps": {name: one.model_dump(mode="json") for name, one in again.run.level_gaps.items()},
            "manifest": again.manifest.model_dump(mode="json"),
            "changes": [[getattr(one, field.name) for one in again.changes] for field in fields(Change)],
        }
        store.write(key, content, again.tables.made)
    return again


def _key(folder: Path, store: TableStore) -> str | None:
    """The cache key of the directory; None without a cache, or if the directory is invalid (reading it says why)."""
    if store.folder is None:
        return None
    try:
        manifest = read_manifest(folder)
        specs = [load_spec(task) for task in manifest.tasks]
        signatures = {
            name: get_metric(name).signature for spec in specs for name in (*spec.scores, *spec.metadata.learned)
        }
        with using(miniature=manifest.miniature):
            data = {name: _fingerprint(name) for name in sorted({spec.metadata.benchmark for spec in specs})}
        parts = [folder_digest(folder), code_hash(), signatures, data]
    except MedtasksError:
        return None
    return hashlib.sha256(canonical_json(parts).encode()).hexdigest()


def _fingerprint(benchmark: str) -> str | None:
    """Fingerprint of the prepared data, in which some metrics count references; None if they are not prepared."""
    try:
        return data_facts(benchmark).fingerprint
    except MedtasksError:
        return None


def rescore(manifest: RunManifest, samples: Mapping[str, Sequence[Sample]], *, whole: bool = True) -> Rescored:
    """A run's samples, scored again; unless ``whole``, without the samples.

    The manifest keeps what the run was made with; the versions that score it now are in ``scored``.

    Raises:
        UsageError: a task of the run no longer exists.
        NotPreparedError: a metric needs the prepared data (CIDEr's references), which are missing.
        MedtasksError: the samples of a task in the manifest are missing.
    """
    lacking = sorted(manifest.tasks.keys() - samples.keys())
    if lacking:
        raise MedtasksError(f"samples/{lacking[0]}.jsonl: missing, although the manifest names the task; restore it.")
    again: dict[str, Sequence[Sample]] = {}
    tables = RunTables(again)
    changes: list[Change] = []
    problems: list[str] = []
    facts: dict[str, TaskFacts] = {}
    for name in manifest.tasks:
        spec = load_spec(name)
        lines, outcomes = SampleLines(()), []
        kept = whole or spec.benchmark.join is not sample_items  # whose groups join samples of several tasks
        parts = [*in_parts(spec, sorted(samples[name], key=lambda sample: sample.sample_id))]
        while parts:
            part = parts.pop(0)  # to free the samples of each part as the next is scored
            with using(miniature=manifest.miniature):
                scored = with_learned_metrics(spec, scored_again(spec, part), problems)
            made = with_judged_scores(spec, scored, manifest.judge)
            changes += [change for pair in zip(part, made, strict=True) for change in _changes(name, *pair)]
            outcomes += [sample.outcome for sample in made]
            tables.add(name, made)
            if kept:
                lines.add(made)
        tables.of(name)
        again[name] = lines
        facts[name] = facts_today(spec, manifest.tasks[name], outcomes)
    tasks, groups = scores_of(tables, manifest.groups, threshold=judged_threshold(manifest.judge))
    by = {key: value for key, value in versions().items() if key in _SCORING}
    renewed = manifest.model_copy(update={"tasks": facts, "scored": by, "problems": tuple(problems)})
    return Rescored(again if whole else {}, tasks, groups, renewed, tuple(changes), tables)


_SCORING = frozenset({"medtasks", "sacrebleu", "nltk", "numpy", "bert-score", "transformers", "torch"})
"""Packages that can affect the scores of existing responses."""


def _changes(task: str, before: Sample, after: Sample) -> list[Change]:
    pairs: list[tuple[str, Any, Any]] = [
        ("filtered", before.filtered, after.filtered),
        ("status", before.status, after.status),
    ]
    names = dict.fromkeys((*before.scores, *after.scores))
    pairs += [(name, before.scores.get(name), after.scores.get(name)) for name in names]
    return [Change(task, before.sample_id, what, old, new) for what, old, new in pairs if old != new]


def facts_today(spec: TaskSpec, facts: TaskFacts, outcomes: Sequence[Outcome]) -> TaskFacts:
    """The task's facts under the current rules, with the prompt that was actually used."""
    return facts.model_copy(
        update={
            "filters": {name: version_of(name) for name in spec.filters},
            "protocol_hash": protocol_today(spec, facts),
            "yaml_hash": spec.yaml_hash,
            **outcome_counts(outcomes),
        }
    )
