"""Remove from a run the rows of data that must not be shared, keeping its scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from medtasks.benchmarks.error_kinds import derived_metrics
from medtasks.benchmarks.layout_parts import columns_of
from medtasks.benchmarks.layouts import all_layouts
from medtasks.benchmarks.variants import joined_items
from medtasks.catalog.benchmark import BoardLayout, with_derived
from medtasks.catalog.spec import load_spec, load_specs
from medtasks.core.errors import MedtasksError
from medtasks.runs.find import one_run
from medtasks.runs.samples import Sample
from medtasks.scoring.run_record import RunRecord, as_data_error, read_run, write_run
from medtasks.scoring.scored_samples import kept_confidences
from medtasks.scoring.scores import Scores
from medtasks.validate.rendered import texts_in

_LONGEST = 40


def layout_of(benchmark: str) -> BoardLayout:
    """The board layout with the tasks of ``benchmark``, its own or another's; without one no sample
    of it is shown.
    """
    layouts = all_layouts()
    tasks = {name for name, spec in load_specs().items() if spec.metadata.benchmark == benchmark}
    others = (
        layout
        for layout in layouts.values()
        if any(column.task in tasks for column in columns_of(layout))
    )
    return layouts.get(benchmark) or next(others, BoardLayout(benchmark, headline=()))


def is_withheld(benchmark: str) -> bool:
    """Whether only ids, extracted options and scores of the benchmark's samples may be shown."""
    return layout_of(benchmark).shows == "nothing"


def remove_rows(folder: Path, out: Path, report: Callable[[str], object] = lambda _: None) -> Path:
    """Write the run in ``folder`` to the new directory ``out``, without what its board layouts
    withhold.

    Samples of such a benchmark keep their ids, the correct and the chosen options, the groups of
    its breakdowns, scores and statistics. Prompts, responses, references, verdicts and media names
    are removed, and clusters (patients) get new numbers over all such tasks of the run, so only
    stripped runs of the same tasks are comparable. The scores do not change, but can no longer be
    recomputed from responses. If a score over several samples needs the answers, those among the
    document's ``guesses`` are kept, which are single words. A task or group whose scores would
    change even so is left out; ``report`` is called with a sentence on each.

    Raises:
        UsageError: ``folder`` is not, and does not contain, one run, or ``out`` exists.
        DataError: the run cannot be read.
        MedtasksError: all of its tasks would have to be left out.
    """
    folder = one_run(folder)
    with as_data_error(folder):
        before = RunRecord.scored(*read_run(folder))
        record, left_out = _without_rows(before, words=False)
        if left_out:
            record, left_out = _without_rows(before, words=True)
        if not record.samples:
            raise MedtasksError(
                f"{folder}: every task needs the texts of its rows; keep the directory private instead."
            )
        for reason in left_out:
            report(f"left out: {reason}")
        return write_run(out, record)


def _without_rows(before: RunRecord, *, words: bool) -> tuple[RunRecord, list[str]]:
    """The run without what is withheld, but with answers that are ``words``, and what was left out
    and why.
    """
    manifest = before.manifest
    withheld = {task for task, facts in manifest.tasks.items() if is_withheld(facts.benchmark)}
    # new names in the order of the old ones, so that the bootstrap resamples the same clusters
    clusters = sorted({sample.cluster for task in withheld for sample in before.samples[task]})
    names = {name: f"c{number:06d}" for number, name in enumerate(clusters, start=1)}
    kept: dict[str, Sequence[Sample]] = {}
    left_out = []

    def unchanged(name: str, old: Scores, new: Scores) -> bool:
        if old != new:
            changed = [
                metric for metric, score in old.metrics.items() if score != new.metrics.get(metric)
            ]
            what = [*changed, "breakdowns"][0]
            left_out.append(
                f"{name}, because its {what} would change without the texts of its rows"
            )
        return old == new

    for task, members in before.samples.items():
        without = members
        if task in withheld:
            fields = _fields_read(task, members)
            texts = (
                f"its scores depend on the field `{field}`, which is text ({text[:40]!r})"
                for sample in members
                for field in sorted(fields & sample.document.keys())
                for text in texts_in(sample.document[field])
                if len(text) > _LONGEST or " " in text.strip()
            )
            if why := next(texts, ""):
                left_out.append(f"{task}, because {why}")
                continue
            confidences = kept_confidences(members)
            without = [
                _without_row(sample, fields, names[sample.cluster], confidence, words=words)
                for sample, confidence in zip(members, confidences, strict=True)
            ]
        alone = RunRecord.scored(manifest.model_copy(update={"groups": {}}), {task: without})
        if unchanged(task, before.tasks[task], alone.tasks[task]):
            kept[task] = without
    groups = {name: leaves for name, leaves in manifest.groups.items() if kept.keys() >= {*leaves}}
    facts = {task: one for task, one in manifest.tasks.items() if task in kept}
    record = RunRecord.scored(manifest.model_copy(update={"tasks": facts, "groups": groups}), kept)
    for name in manifest.groups:
        if name not in groups:
            left_out.append(f"{name}, because one of its tasks is")
        elif not unchanged(name, before.groups[name], record.groups[name]):
            del groups[name], record.groups[name]
    return record, left_out


def _fields_read(task: str, samples: Sequence[Sample]) -> frozenset[str]:
    """The fields of documents that joining, breakdowns and pooled metrics read."""
    benchmark = load_spec(task).benchmark
    seen: set[str] = set()

    class Watched(dict[str, Any]):
        """A document that records which of its fields were read."""

        def __getitem__(self, key: str) -> Any:
            seen.add(key)
            return super().__getitem__(key)

        def get(self, key: str, default: Any = None) -> Any:
            seen.add(key)
            return super().get(key, default)

    views = [
        replace(view, document=Watched(view.document)) for view in (one.view() for one in samples)
    ]
    rates = () if benchmark.errors is None else (rate.name for rate in benchmark.errors.rates)
    task_of = {view.sample_id: task for view in views}
    derived = derived_metrics(benchmark, task_of, (*benchmark.pooled, *rates))
    joined = with_derived(joined_items(benchmark, views), [derived]).items
    for view in (*views, *(item.view for item in joined)):  # of incomplete items, too
        for breakdown in benchmark.breakdowns.values():
            breakdown(view)
    return frozenset(seen)


def _without_row(
    sample: Sample,
    fields: frozenset[str],
    cluster: str,
    confidence: float | str | None,
    *,
    words: bool,
) -> Sample:
    """The sample with these ``fields`` of its document, and of the gold answer and the extracted
    ones those that are options or, with ``words``, possible answers that are no sentences.
    """
    benchmark = load_spec(sample.task).benchmark
    guesses = sample.document.get("guesses", ()) if words else ()
    shown = {
        *benchmark.options,
        *(one for one in guesses if len(one) <= _LONGEST and " " not in one),
    }

    def option(filtered: str, status: str) -> str:
        return filtered if filtered in shown or filtered == f"[{status}]" else ""

    own = sample.document.get("choices") or benchmark.options  # their number is the chance level
    choices = {"choices": dict.fromkeys(own, "")} if len(own) != len(benchmark.options) else {}
    repeats = (
        one.model_copy(update={"filtered": option(one.filtered, one.status)})
        for one in sample.repeats
    )
    return sample.model_copy(
        update={
            "cluster": cluster,
            **dict.fromkeys(("media", "responses", "probabilities"), ()),
            "prompt": "",
            "target": sample.target if sample.target in shown else "",
            "confidence": confidence,
            "filtered": option(sample.filtered, sample.status),
            "repeats": tuple(repeats),
            "verdicts": {},
            "document": {
                **choices,
                **{key: value for key, value in sample.document.items() if key in fields},
            },
        }
    )
