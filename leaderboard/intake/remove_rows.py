"""Remove from a run the rows of data that must not be shared, keeping its scores."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from medtasks.benchmarks.error_kinds import derived_metrics
from medtasks.benchmarks.variants import joined_items
from medtasks.catalog.items import with_derived
from medtasks.catalog.spec import load_spec
from medtasks.core.errors import MedtasksError
from medtasks.runs.find import one_run
from medtasks.runs.samples import Sample
from medtasks.runs.times import FoundTimes
from medtasks.scoring.answer_confidence import kept_confidences
from medtasks.scoring.run_folder import as_data_error, read_run, write_run
from medtasks.scoring.run_record import RunRecord
from medtasks.scoring.scores import Scores
from medtasks.validate.leaks import texts_in

from .shown_layouts import is_withheld

_LONGEST = 40
"""Characters of the longest text that is kept, such as an option's name."""


def remove_rows(folder: Path, out: Path, report: Callable[[str], object] = lambda _: None) -> Path:
    """Write the run in ``folder`` to the new directory ``out``, without what layouts withhold.

    Samples of such a benchmark keep their ids, the correct and the chosen options, the groups of
    its breakdowns, scores and statistics. Prompts, responses, references, verdicts and media names
    are removed, and clusters (patients) get new numbers over all such tasks of the run, so only
    stripped runs of the same tasks are comparable. The scores do not change, but can no longer be
    recomputed from responses. If a score over several samples needs the answers, those among the
    document's ``guesses`` are kept, which are single words. The seconds of requests are kept, which
    have no texts. A task or group whose scores would
    change even so is left out; ``report`` is called with a sentence on each.

    Raises:
        UsageError: ``folder`` is not, and does not contain, one run, or ``out`` exists.
        DataError: the run cannot be read.
        MedtasksError: all of its tasks would have to be left out.
    """
    folder = one_run(folder)
    with as_data_error(folder):
        before = RunRecord.scored(*read_run(folder))
        stripped = _without_rows(before, words=False)
        if stripped.left_out:
            stripped = _without_rows(before, words=True)
        if not stripped.record.samples:
            raise MedtasksError(
                f"{folder}: every task needs the texts of its rows; "
                "keep the directory private instead."
            )
        for reason in stripped.left_out:
            report(f"left out: {reason}")
        stored = FoundTimes.of(folder)
        if stored.problem is not None:
            report(f"left out: {stored.problem}")
        return write_run(out, stripped.record, stored.times)


@dataclass(frozen=True)
class _Stripped:
    """A run without what is withheld; ``left_out`` says which tasks it lacks, and why."""

    record: RunRecord
    left_out: list[str] = field(default_factory=list)


def _without_rows(before: RunRecord, *, words: bool) -> _Stripped:
    """The run without what is withheld, and without tasks and groups whose scores would change.

    With ``words``, answers that are single words are kept.
    """
    manifest = before.manifest
    kept_tasks, left_out = _stripped_tasks(before, words=words)
    facts = {task: facts for task, facts in manifest.tasks.items() if task in kept_tasks}
    whole_groups = {}
    for name, members in manifest.groups.items():
        if kept_tasks.keys() >= set(members):
            whole_groups[name] = members
    stripped_manifest = manifest.model_copy(update={"tasks": facts, "groups": whole_groups})
    record = RunRecord.scored(stripped_manifest, kept_tasks)

    unchanged = set()
    for name in manifest.groups:
        if name not in whole_groups:
            left_out.append(f"{name}, because one of its tasks is")
            continue
        changed = _changed_score(before.groups[name], record.groups[name])
        if changed is None:
            unchanged.add(name)
        else:
            left_out.append(_would_change(name, changed))
    return _Stripped(_with_groups(record, unchanged), left_out)


def _with_groups(run: RunRecord, names: Collection[str]) -> RunRecord:
    """The run with only those of its groups that are in ``names``, in the same order."""
    members = {name: tasks for name, tasks in run.manifest.groups.items() if name in names}
    scores = {name: score for name, score in run.groups.items() if name in names}
    return replace(run, manifest=run.manifest.model_copy(update={"groups": members}), groups=scores)


def _stripped_tasks(
    before: RunRecord, *, words: bool
) -> tuple[dict[str, Sequence[Sample]], list[str]]:
    """The samples of the tasks whose scores stay the same, and why other tasks are left out."""
    manifest = before.manifest
    withheld = {task for task, facts in manifest.tasks.items() if is_withheld(facts.benchmark)}
    clusters = _cluster_names(before, withheld)
    kept: dict[str, Sequence[Sample]] = {}
    left_out: list[str] = []
    for task, samples in before.samples.items():
        if task in withheld:
            fields = _fields_read(task, samples)
            reason = _reason_to_keep_texts(samples, fields)
            if reason:
                left_out.append(f"{task}, because {reason}")
                continue
            samples = _stripped_samples(samples, fields, clusters, words=words)
        alone = RunRecord.scored(manifest.model_copy(update={"groups": {}}), {task: samples})
        changed = _changed_score(before.tasks[task], alone.tasks[task])
        if changed is None:
            kept[task] = samples
        else:
            left_out.append(_would_change(task, changed))
    return kept, left_out


def _cluster_names(run: RunRecord, tasks: Collection[str]) -> dict[str, str]:
    """New names of the clusters in the tasks.

    They are in the order of the old ones, so that the bootstrap resamples the same clusters.
    """
    clusters: set[str] = set()
    for task in tasks:
        clusters.update(sample.cluster for sample in run.samples[task])
    return {name: f"c{number:06d}" for number, name in enumerate(sorted(clusters), start=1)}


def _changed_score(before: Scores, after: Scores) -> str | None:
    """The name of a metric whose score differs, or ``breakdowns``; None if all are equal."""
    if before == after:
        return None
    for metric, score in before.metrics.items():
        if score != after.metrics.get(metric):
            return metric
    return "breakdowns"


def _would_change(name: str, changed: str) -> str:
    """Why the task or group ``name`` is left out."""
    return f"{name}, because its {changed} would change without the texts of its rows"


def _reason_to_keep_texts(samples: Sequence[Sample], fields: Collection[str]) -> str:
    """Why the scores need a text of the rows; empty if the ``fields`` they read have none."""
    for sample in samples:
        for name in sorted(fields & sample.document.keys()):
            for text in texts_in(sample.document[name]):
                if len(text) > _LONGEST or " " in text.strip():
                    return f"its scores depend on the field `{name}`, which is text ({text[:40]!r})"
    return ""


class _Watched(dict[str, Any]):
    """A document that adds to ``fields_read`` which of its fields were read."""

    def __init__(self, document: Mapping[str, Any], fields_read: set[str]) -> None:
        super().__init__(document)
        self._fields_read = fields_read

    def __getitem__(self, key: str) -> Any:
        self._fields_read.add(key)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self._fields_read.add(key)
        return super().get(key, default)


def _fields_read(task: str, samples: Sequence[Sample]) -> frozenset[str]:
    """The fields of documents that joining, breakdowns and pooled metrics read."""
    benchmark = load_spec(task).benchmark
    fields_read: set[str] = set()
    sample_views = []
    for sample in samples:
        view = sample.view()
        sample_views.append(replace(view, document=_Watched(view.document, fields_read)))
    pooled = list(benchmark.scoring.pooled)
    if benchmark.scoring.errors is not None:
        pooled += [rate.name for rate in benchmark.scoring.errors.rates]
    task_of = {view.sample_id: task for view in sample_views}
    derived = derived_metrics(benchmark, task_of, pooled)
    items = with_derived(joined_items(benchmark, sample_views), [derived]).items
    item_views = [item.view for item in items]
    # the samples of incomplete items are in no item
    for view in (*sample_views, *item_views):
        for breakdown in benchmark.breakdowns.values():
            breakdown(view)
    return frozenset(fields_read)


def _stripped_samples(
    samples: Sequence[Sample],
    fields: Collection[str],
    clusters: Mapping[str, str],
    *,
    words: bool,
) -> list[Sample]:
    """The samples without their texts; ``clusters`` are their new names by the old ones."""
    stripped = []
    for sample, confidence in zip(samples, kept_confidences(samples), strict=True):
        document = _stripped_document(sample, fields)
        kept = _kept_answers(sample, words=words)
        repeats = []
        for repeat in sample.repeats:
            filtered = _kept_answer(repeat.filtered, repeat.status, kept)
            repeats.append(repeat.model_copy(update={"filtered": filtered}))
        update = {
            "cluster": clusters[sample.cluster],
            "media": (),
            "responses": (),
            "probabilities": (),
            "prompt": "",
            "target": sample.target if sample.target in kept else "",
            "confidence": confidence,
            "filtered": _kept_answer(sample.filtered, sample.status, kept),
            "repeats": tuple(repeats),
            "verdicts": {},
            "document": document,
        }
        stripped.append(sample.model_copy(update=update))
    return stripped


def _kept_answers(sample: Sample, *, words: bool) -> set[str]:
    """The answers that are no texts of the row: options and, with ``words``, single words."""
    kept = set(load_spec(sample.task).benchmark.options)
    if words:
        for guess in sample.document.get("guesses", ()):
            if len(guess) <= _LONGEST and " " not in guess:
                kept.add(guess)
    return kept


def _kept_answer(filtered: str, status: str, kept: Collection[str]) -> str:
    """The extracted answer if it is kept or stands for a status, otherwise empty."""
    return filtered if filtered in kept or filtered == f"[{status}]" else ""


def _stripped_document(sample: Sample, fields: Collection[str]) -> dict[str, Any]:
    """The fields of a sample's document that scores read, and the number of its options."""
    options = load_spec(sample.task).benchmark.options
    choices = sample.document.get("choices") or options
    document: dict[str, Any] = {}
    if len(choices) != len(options):
        # their number is the chance level
        document["choices"] = dict.fromkeys(choices, "")
    for name, value in sample.document.items():
        if name in fields:
            document[name] = value
    return document
