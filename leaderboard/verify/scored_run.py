"""A scored run as boards see it: its tables, and its facts without local paths and secrets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from medtasks.catalog.spec import leaf_tasks
from medtasks.core.garbage_collection import without_garbage_collection
from medtasks.core.redaction import shown, shown_facts
from medtasks.runs.manifest import RunManifest, created_at
from medtasks.runs.run_signatures import filters_text
from medtasks.runs.samples import Sample
from medtasks.runs.training_record import FACT
from medtasks.scoring.judge_identity import judge_names
from medtasks.scoring.latency import RunLatency
from medtasks.scoring.run_cache import RunStore as RunStore
from medtasks.scoring.run_cache import compressed
from medtasks.scoring.run_folder import RunFolder, as_data_error
from medtasks.scoring.run_record import RunRecord
from medtasks.scoring.scores import Scores
from medtasks.scoring.verification_outcome import Verification
from medtasks.scoring.verified_runs import scored_record

from ..schema.board import BoardRun
from .claimed_latency import NO_LATENCY, TimedRun
from .commands import commands
from .entries import Entry as Entry
from .model_identity import model_arguments, model_key, model_name
from .run_notes import run_notes
from .training import training_notes


@dataclass(frozen=True)
class ScoredRun:
    """One run, scored here, from the directory called ``folder`` with the content ``digest``.

    ``record`` has its samples, tables and scores, ``latency`` how long the model took.
    """

    record: RunRecord
    folder: str = ""
    digest: str = ""
    latency: RunLatency = NO_LATENCY

    @property
    def manifest(self) -> RunManifest:
        return self.record.manifest

    @property
    def samples(self) -> Mapping[str, Sequence[Sample]]:
        """The samples by task; empty if they were not asked for."""
        return self.record.samples

    @property
    def scores(self) -> dict[str, Scores]:
        """The scores of tasks, then of groups."""
        return self.record.scores

    @property
    def verification(self) -> dict[str, Verification]:
        """How far each task could be verified here."""
        return self.record.verification

    @cached_property
    def model(self) -> str:
        """The model's slug."""
        return model_key(self.manifest)

    @cached_property
    def public(self) -> BoardRun:
        """What a board shows of the run."""
        manifest = self.manifest
        tasks = dict(sorted(manifest.tasks.items()))
        trained_on = self._trained_on
        notes = [*run_notes(manifest, self.scores), *self.record.notes]
        for benchmark, sentence in trained_on.items():
            notes.append(f"{benchmark}: {sentence}")
        judged_by = judge_names(manifest)
        presentation = {task: facts.presentation for task, facts in tasks.items()}
        frames = {task: facts.frames for task, facts in tasks.items()}
        return BoardRun(
            key=f"run-{self.digest[:12]}",
            folder=shown(self.folder),
            digest=self.digest,
            created=created_at(manifest),
            model=self.model,
            versions=_shown_versions(manifest),
            model_facts=_shown_model(manifest),
            settings={**shown_facts(manifest.settings), "processes": str(manifest.processes)},
            generation={task: shown(facts.generation) for task, facts in tasks.items()},
            protocols={task: facts.protocol_hash for task, facts in tasks.items()},
            prompts={task: facts.prompt_hash for task, facts in tasks.items()},
            filters={task: filters_text(facts.filters) for task, facts in tasks.items()},
            frames=_shown_if_any(frames),
            presentation=_shown_if_any(presentation),
            data={name: facts.fingerprint for name, facts in sorted(manifest.data.items())},
            judges=_shown_judges(manifest),
            judged_by={task: shown(names) for task, names in judged_by.items()},
            counts=_task_counts(manifest),
            commands=commands(manifest, self.folder),
            mini=bool(manifest.miniature),
            notes=tuple(map(shown, notes)),
            trained_on=trained_on,
            usage=manifest.usage,
            latency=self.latency,
        )

    @property
    def _trained_on(self) -> dict[str, str]:
        """By benchmark, what the model was trained on."""
        if self.manifest.training is None:
            return {}  # without reading the tables
        samples: dict[str, frozenset[str]] = {}
        for task in self.record.tasks:
            items = self.record.tables.of(task).samples
            samples[task] = frozenset(sample for item in items for sample in item)
        return training_notes(self.manifest, samples)

    @cached_property
    def blind(self) -> bool:
        """Whether a task was asked without its media."""
        return any(facts.blind for facts in self.manifest.tasks.values())

    @cached_property
    def entries(self) -> Mapping[str, Entry]:
        """The run's tasks and groups, by name."""
        record = self.record
        entries = {}
        for name, scores in record.scores.items():
            table = record.tables.of(name, self.manifest.groups.get(name, ()))
            timelines = []
            for timeline in record.timelines.get(name, ()):
                timelines.append(timeline.model_copy(update={"model": self.model}))
            entries[name] = Entry(
                name, scores, table, record.signatures[name], tuple(timelines), record.questions
            )
        return entries

    @cached_property
    def complete(self) -> Mapping[str, bool]:
        """Whether every prepared document was asked, by task and group, as the manifest states."""
        complete = {}
        for task, facts in self.manifest.tasks.items():
            all_asked = facts.attempted == facts.asked
            complete[task] = all_asked and not self.record.tasks[task].incomplete
        for name in self.record.groups:
            members = self.manifest.groups[name]
            # tasks without prepared rows are never run
            has_all_tasks = {*leaf_tasks(name)} <= {*members}
            complete[name] = has_all_tasks and all(complete[task] for task in members)
        return complete


def _shown_versions(manifest: RunManifest) -> dict[str, str]:
    """The versions that ran the model and, if other versions scored the run again, those."""
    versions = shown_facts(manifest.versions)
    for name, version in sorted((manifest.scored or {}).items()):
        versions[f"{name} (scored)"] = shown(version)
    return versions


def _shown_model(manifest: RunManifest) -> dict[str, str]:
    """The facts about the model with its name."""
    facts = dict(model_arguments(manifest))
    facts.pop("processes", None)
    facts.pop(FACT, None)  # thousands of ids, which `training_notes` sums up
    return {**shown_facts(facts), "name": model_name(manifest)}


def _shown_judges(manifest: RunManifest) -> dict[str, str]:
    """Each rubric's judges, with the hashes of the rubric and of the panel."""
    judges = {}
    for name, facts in sorted(manifest.judge.items()):
        names = ", ".join(map(shown, facts.judges))
        combined = f", {facts.combine}" if len(facts.judges) > 1 else ""
        hashes = f"rubric {facts.rubric_hash}, judge {facts.judge_hash}"
        judges[name] = f"{names} ({hashes}{combined})"
    return judges


def _task_counts(manifest: RunManifest) -> dict[str, dict[str, int]]:
    """The numbers of documents of each task: asked, answered, by status, and by how they ended."""
    counts = {}
    for task, facts in sorted(manifest.tasks.items()):
        of_task = {"asked": facts.asked, "answered": facts.answered}
        for status, count in facts.status.items():
            of_task[f"status {status}"] = count
        for end, count in facts.finish.items():
            of_task[f"finish {end}"] = count
        counts[task] = of_task
    return counts


def _shown_if_any(facts: Mapping[str, Mapping[str, object]]) -> dict[str, str]:
    """The facts of each task as text, without those of tasks that have none."""
    return {task: shown(values) for task, values in facts.items() if values}


@without_garbage_collection()
def scored_run(
    run: Path | RunFolder, store: RunStore | None = None, *, own: bool = False, whole: bool = False
) -> ScoredRun:
    """The run in a result directory, scored by the data and rules of this machine.

    Args:
        run: the run; tasks of packages that are not installed are left out, and so are their
            groups, with a note.
        store: keeps the run, and its columns out of memory; None scores it now.
        own: as in `medtasks.scoring.verified_runs.scored_record`.
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
    timed = TimedRun(source.directory, store, f"{key}{'own' if own else ''}")
    latency = timed.kept_latency
    lacks_latency = latency is None and timed.needs_samples
    record = None if whole or lacks_latency else store.read_run(key, own=own)
    lacks_comparisons = own and record is not None and record.kept is None
    if record is None or lacks_comparisons:
        if record is None:
            has_samples = whole or lacks_latency
            with as_data_error(source.directory):
                record = scored_record(*source.read(), source.name, own=own, whole=has_samples)
        if own:
            record = replace(record, kept=(record.comparisons, record.level_gaps))
        store.keep(key, record)
        latency = latency or timed.latency(record)
        if not whole:
            # with less in memory: a board has many runs
            record = store.read_run(key, own=own) or compressed(replace(record, samples={}))
    return ScoredRun(record, source.name, content, latency or timed.latency(record))
