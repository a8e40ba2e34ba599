"""A scored run as boards see it: its tables, and its facts as strings without local paths and secrets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import numpy as np

from medtasks.catalog.registry import get_benchmark
from medtasks.catalog.spec import leaf_tasks, load_spec
from medtasks.core.redaction import shown, shown_facts
from medtasks.core.text import counted
from medtasks.metrics.base import Array
from medtasks.metrics.streaming import Timeline
from medtasks.runs.manifest import RunManifest, created_at
from medtasks.runs.record import RunFolder, RunRecord, as_data_error
from medtasks.runs.samples import without_garbage_collection
from medtasks.runs.scores import Scores
from medtasks.runs.signature import changed_options
from medtasks.runs.table import ItemTable, Lazy, shared
from medtasks.runs.verdicts import judge_names
from medtasks.verify.scored import scored_record
from medtasks.verify.store import RunStore as RunStore
from medtasks.verify.store import compressed

from ..board.board import BoardRun
from ..board.commands import commands
from ..board.models import model_arguments, model_key, model_name

T = TypeVar("T")


@dataclass(frozen=True)
class Entry:
    """A task or group of one run (`medtasks.runs.record.RunRecord`); ``signatures`` are by metric.

    Only the items that are scored are listed; the table has the others as its last rows.
    """

    name: str
    scores: Scores
    table: ItemTable
    signatures: Mapping[str, str]
    timelines: tuple[Timeline, ...] = ()

    @property
    def benchmark(self) -> str:
        return load_spec(self.name).metadata.benchmark

    @cached_property
    def _scored(self) -> int:
        return int(np.count_nonzero(self.table.complete))

    def _first(self, values: tuple[T, ...]) -> tuple[T, ...]:
        return values if self._scored == len(values) else shared(values[: self._scored])

    @cached_property
    def items(self) -> tuple[str, ...]:
        """The sorted ids."""
        return self._first(self.table.unique)

    @cached_property
    def clusters(self) -> tuple[str, ...]:
        return self._first(self.table.clusters)

    @property
    def groups(self) -> Mapping[str, tuple[tuple[str, ...], ...]]:
        """Each item's keys by breakdown."""
        return {name: self._first(keys) for name, keys in self.table.groups.items()}

    @property
    def statistics(self) -> Mapping[str, Array]:
        """By metric ``(items, width)``; a row of NaN is an item without a value (unjudged or not computed), a row of
        zeros of a mean-type metric an item to which it does not apply (NaN in wider ones)."""
        return Lazy(self.scores.metrics, self.part)

    def part(self, metric: str, key: str = "") -> Array:
        """The statistics of a metric with items that are judged by parts reduced to the part ``key``
        (`Benchmark.parts`)."""
        column = self.table.column(metric, key)
        found = column.statistics
        if found.shape[1] == 2 and not column.present.all():
            found = np.where(column.present[:, None], found, 0.0)
        return found[: self._scored]


@dataclass(frozen=True)
class ScoredRun(RunRecord):
    """One run, scored here, from the directory called ``folder`` with the content ``digest``."""

    folder: str = ""
    digest: str = ""

    @classmethod
    def of(cls, run: RunRecord, folder: str = "", digest: str = "") -> ScoredRun:
        return cls(**{one.name: getattr(run, one.name) for one in fields(run)}, folder=folder, digest=digest)

    @cached_property
    def model(self) -> str:
        return model_key(self.manifest)

    @cached_property
    def public(self) -> BoardRun:
        """What a board shows of the run."""
        manifest = self.manifest
        tasks = dict(sorted(manifest.tasks.items()))
        model = {key: value for key, value in model_arguments(manifest).items() if key != "processes"}
        scored = {f"{name} (scored)": shown(one) for name, one in sorted((manifest.scored or {}).items())}
        judges = {}
        for name, facts in sorted(manifest.judge.items()):
            combined = f", {facts.combine}" if len(facts.judges) > 1 else ""
            names = ", ".join(map(shown, facts.judges))
            judges[name] = f"{names} (rubric {facts.rubric_hash}, judge {facts.judge_hash}{combined})"
        counts = {}
        for task, one in tasks.items():
            statuses = {f"status {key}": count for key, count in one.status.items()}
            ends = {f"finish {key}": count for key, count in one.finish.items()}
            counts[task] = {"asked": one.asked, "answered": one.answered, **statuses, **ends}
        return BoardRun(
            key=f"run-{self.digest[:12]}",
            folder=shown(self.folder),
            digest=self.digest,
            created=created_at(manifest),
            model=self.model,
            versions={**shown_facts(manifest.versions), **scored},
            model_facts={**shown_facts(model), "name": model_name(manifest)},
            settings={**shown_facts(manifest.settings), "processes": str(manifest.processes)},
            generation={task: shown(one.generation) for task, one in tasks.items()},
            protocols={task: one.protocol_hash for task, one in tasks.items()},
            prompts={task: one.prompt_hash for task, one in tasks.items()},
            data={name: one.fingerprint for name, one in sorted(manifest.data.items())},
            judges=judges,
            judged_by={task: shown(names) for task, names in judge_names(manifest).items()},
            counts=counts,
            commands=commands(manifest, self.folder),
            mini=bool(manifest.miniature),
            notes=tuple(map(shown, (*run_notes(manifest, self.scores), *self.notes))),
            usage=manifest.usage,
        )

    @cached_property
    def blind(self) -> bool:
        """Whether a task was asked without its media."""
        return any(one.blind for one in self.manifest.tasks.values())

    @cached_property
    def entries(self) -> Mapping[str, Entry]:
        entries = {}
        for name, scores in self.scores.items():
            table = self.tables.of(name, self.manifest.groups.get(name, ()))
            lines = (line.model_copy(update={"model": self.model}) for line in self.timelines.get(name, ()))
            entries[name] = Entry(name, scores, table, self.signatures[name], tuple(lines))
        return entries

    @cached_property
    def complete(self) -> Mapping[str, bool]:
        """Whether every prepared document was asked, by task and group, according to the manifest."""
        complete = {
            task: facts.attempted == facts.asked and not self.tasks[task].incomplete
            for task, facts in self.manifest.tasks.items()
        }
        for name in self.groups:  # tasks without prepared rows are never run
            members = self.manifest.groups[name]
            complete[name] = all(complete[task] for task in members) and {*leaf_tasks(name)} <= {*members}
        return complete


@without_garbage_collection()
def scored_run(
    run: Path | RunFolder, store: RunStore | None = None, *, own: bool = False, whole: bool = False
) -> ScoredRun:
    """The run in a result directory, scored by the data and rules of this machine.

    Args:
        run: the run; tasks of packages that are not installed are left out, and so are their groups, with a note.
        store: keeps the run, and its columns out of memory; None scores it now.
        own: as in `medtasks.verify.scored.scored_record`.
        whole: with the samples.

    Raises:
        UsageError: it is not a result directory, or none of its tasks is installed.
        DataError: it cannot be read, or manifest and samples do not match; names file and field.
        MedtasksError: the samples cannot be scored.
    """
    store = store or RunStore(None)
    source = RunFolder(run) if isinstance(run, Path) else run
    content = source.content
    key = store.key_of(content, *source.contains())
    found = None if whole else store.read_run(key, own=own)
    if found is None or (own and found.kept is None):
        if found is None:
            with as_data_error(source.directory):
                found = scored_record(*source.read(), source.name, own=own, whole=whole)
        if own:
            found = replace(found, kept=(found.comparisons, found.level_gaps))
        store.keep(key, found)
        if not whole:  # with less in memory: a board has many runs
            found = store.read_run(key, own=own) or compressed(found)
    return ScoredRun.of(found, source.name, content)


def release_coverage(manifest: RunManifest, benchmark: str) -> tuple[int, int]:
    """The number of prepared records, and the number in the release.

    They are those of the run's tasks if the data count records by task. If the source had fewer records than were
    published, whatever it counted, all prepared records are compared with the published number, which says nothing
    about tasks whose rows it does not count (`Benchmark.apart`).
    """
    facts, known = manifest.data[benchmark], get_benchmark(benchmark)
    own = {task for task, one in manifest.tasks.items() if one.benchmark == benchmark}
    counts_rows = any(known.apart is None or known.apart not in task for task in own)
    published = known.published.get("rows", 0) if counts_rows else 0
    excluded = sum(facts.excluded.values())
    source = sum(entry.records for entry in facts.coverage) or facts.records
    if not facts.mini and source + excluded < published:
        return facts.records, published
    if not facts.coverage:
        return facts.records, facts.records + excluded
    entries = [entry for entry in facts.coverage if entry.task in own]
    return sum(one.prepared for one in entries), sum(one.records for one in entries)


def run_notes(manifest: RunManifest, scores: Mapping[str, Scores]) -> Iterator[str]:
    """What a reader must know about a run and the ``scores`` of its tasks and groups, a sentence each: where it comes
    from, its data, what was asked, and how it was judged."""
    if "layout" in manifest.model:
        yield (
            f"predictions from elsewhere ({manifest.model['layout']}): prompt, generation settings and frames are "
            "unknown, so it is comparable with no other run"
        )
    if manifest.scored is not None:
        before, now = manifest.versions.get("medtasks", "?"), manifest.scored.get("medtasks", "?")
        yield f"rescored: run with medtasks {before}, scored again with {now}"
    if manifest.miniature:
        yield f"miniature data ({', '.join(sorted(manifest.miniature))}): a demonstration, not a benchmark result"
    for name, facts in sorted(manifest.data.items()):
        prepared, records = release_coverage(manifest, name)
        if prepared < records:
            yield f"{name}: coverage {prepared / records:.0%} ({prepared:,} of the release's {records:,} records)"
        for why, count in sorted(facts.excluded.items()):
            yield f"{name}: excluded when the data were prepared: {count:,} ({why})"
    tasks = dict(sorted(manifest.tasks.items()))
    for task, one in tasks.items():
        for why, count in sorted(one.excluded.items()):
            yield f"{task}: documents excluded: {count:,} ({why})"
    if blind := [task for task, one in tasks.items() if one.blind]:
        yield "blind: prompts without media" + ("" if len(blind) == len(tasks) else f" ({', '.join(blind)})")
    for subset in sorted({one.subset for one in tasks.values()} - {""}):
        yield f"subset of the clusters ({subset}): comparable with runs of the same subset only"
    answered = sum(one.answered for one in tasks.values())
    asked = sum(one.asked for one in tasks.values())
    limit, offset = manifest.settings.get("limit"), manifest.settings.get("offset")
    if limit is not None or offset:
        yield f"run with --limit: {answered:,} of {asked:,} documents"
    elif answered < asked:
        yield f"{answered:,} of {asked:,} documents were answered"
    for task, one in tasks.items():
        for why, count in sorted(one.failed.items()):
            yield f"{task}: {counted(count, 'request')} without a response ({why})"
        if share := one.cut_off:
            yield f"{task}: {share:.0%} of the responses were cut off at the token limit"
        if texts := one.readings.get("text"):
            options = texts + one.readings.get("letter", 0)
            yield f"{task}: {texts:,} of {options:,} options were named by text, not by letter"
    yield from manifest.problems
    if incomplete := sum(scores[task].incomplete for task in tasks if task in scores):
        yield f"streaming items not scored because not all of their rounds were asked: {incomplete:,}"
    for option, value in changed_options(manifest.settings).items():
        yield f"run with --{option} {value}"
    if manifest.settings.get("predict_only"):
        yield "run with --predict_only"
    judged = {task for facts in manifest.judge.values() for task in facts.tasks}
    if unjudged := [task for task in tasks if task not in judged and load_spec(task).metadata.rubrics]:
        yield f"not judged: {', '.join(unjudged)}"
    for name, rubric in sorted(manifest.judge.items()):
        if rubric.unjudged:
            reasons = ", ".join(f"{why}: {count:,}" for why, count in sorted(rubric.unjudged.items()))
            yield f"{name}: {sum(rubric.unjudged.values()):,} of {rubric.asked:,} responses unjudged ({reasons})"
        yield from (f"{name}: {warning}" for warning in rubric.warnings)
