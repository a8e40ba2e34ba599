"""Remove from a run the rows of data that must not be shared, keeping its scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from medtasks.benchmarks.all_cards import all_cards
from medtasks.benchmarks.base import Benchmark, with_derived
from medtasks.benchmarks.card import Card
from medtasks.benchmarks.card_check import card_columns
from medtasks.benchmarks.declared_errors import declared_metrics
from medtasks.benchmarks.errors import pooled_metrics
from medtasks.benchmarks.variants import joined_items
from medtasks.errors import MedtasksError
from medtasks.registry import get_benchmark
from medtasks.results.confidence import kept_confidences
from medtasks.results.find import one_run
from medtasks.results.folder import RunRecord, as_data_error, read_run, write_run
from medtasks.results.run import pooled_scores
from medtasks.results.samples import Repeat, Sample
from medtasks.results.verdict_scores import judged_threshold
from medtasks.spec import load_spec, load_specs
from medtasks.validation.rendered import texts_in

_LONGEST = 40


def card_of(benchmark: str) -> Card | None:
    """The board layout with the tasks of ``benchmark``: its own, or another benchmark's."""
    cards = all_cards()
    tasks = {name for name, spec in load_specs().items() if spec.metadata.benchmark == benchmark}
    others = (card for card in cards.values() if any(column.task in tasks for column in card_columns(card)))
    return cards.get(benchmark) or next(others, None)


def is_withheld(benchmark: str) -> bool:
    """Whether only ids, extracted options and scores of the benchmark's samples may be shown."""
    card = card_of(benchmark)
    return card is None or card.shows == "nothing"


def is_stripped(samples: Sequence[Sample]) -> bool:
    """Whether these samples have neither prompts nor responses."""
    return bool(samples) and all(not sample.prompt and not sample.responses for sample in samples)


def strip_run(folder: Path, out: Path) -> Path:
    """Write the run in ``folder`` to the new directory ``out``, without what its board layouts withhold.

    Samples of such a benchmark keep their ids, the correct and the chosen options, the groups of its breakdowns, scores
    and statistics. Prompts, responses, references, verdicts and media names are removed, and clusters (patients) get
    new numbers over all such tasks of the run, so only stripped runs of the same tasks are comparable. The scores do
    not change, but can no longer be recomputed from responses.

    Raises:
        UsageError: ``folder`` is not, and does not contain, one run, or ``out`` exists.
        DataError: the run cannot be read.
        MedtasksError: a breakdown uses a field that is text, or the scores would change.
    """
    folder = one_run(folder)
    with as_data_error(folder):
        return _strip(folder, out)


def _strip(folder: Path, out: Path) -> Path:
    manifest, samples = read_run(folder)
    threshold = judged_threshold(manifest.judge)
    withheld = {task for task, facts in manifest.tasks.items() if is_withheld(facts.benchmark)}
    names = _numbered({sample.cluster for task in withheld for sample in samples[task]})
    kept = {
        task: _stripped_task(task, members, names) if task in withheld else members for task, members in samples.items()
    }
    tasks, groups = pooled_scores(kept, manifest.groups, threshold=threshold)
    if (tasks, groups) != pooled_scores(samples, manifest.groups, threshold=threshold):
        raise MedtasksError(f"{folder}: its scores would change without the rows; keep the directory private instead.")
    return write_run(out, RunRecord(manifest=manifest, samples=kept, tasks=tasks, groups=groups))


def _numbered(clusters: set[str]) -> dict[str, str]:
    """New names in the order of the old ones, so that the bootstrap resamples the same clusters."""
    return {name: f"c{number:06d}" for number, name in enumerate(sorted(clusters), start=1)}


class _Watched(dict[str, Any]):
    """A document that records which of its fields were read."""

    def __init__(self, fields: Mapping[str, Any], seen: set[str]) -> None:
        super().__init__(fields)
        self._seen = seen

    def __getitem__(self, key: str) -> Any:
        self._seen.add(key)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self._seen.add(key)
        return super().get(key, default)


def _fields(task: str, samples: Sequence[Sample]) -> frozenset[str]:
    """The fields of documents that joining, breakdowns and pooled metrics read."""
    metadata = load_spec(task).metadata
    benchmark = get_benchmark(metadata.benchmark)
    seen: set[str] = set()
    views = [replace(view, document=_Watched(view.document, seen)) for view in (one.view() for one in samples)]
    task_of = {one.sample_id: task for one in views}
    rates = () if benchmark.errors is None else (rate.name for rate in benchmark.errors.rates)
    derived = (*declared_metrics(benchmark, task_of), pooled_metrics(benchmark, (*benchmark.pooled, *rates)))
    joined = with_derived(joined_items(benchmark, views), derived).items
    for view in (*views, *(item.view for item in joined)):  # of incomplete items, too
        for breakdown in benchmark.breakdowns.values():
            breakdown(view)
    for sample in samples:
        for field in sorted(seen & sample.document.keys()):
            _refuse_text(task, field, sample.document[field])
    return frozenset(seen)


def _refuse_text(task: str, field: str, value: Any) -> None:
    for text in texts_in(value):
        if len(text) > _LONGEST or " " in text.strip():
            raise MedtasksError(
                f"{task}: its scores depend on the field `{field}`, which is text ({text[:40]!r}); keep the "
                "directory private instead."
            )


def _stripped_task(task: str, samples: Sequence[Sample], names: Mapping[str, str]) -> list[Sample]:
    fields = _fields(task, samples)
    confidences = kept_confidences(samples)
    return [_stripped(sample, fields, names, one) for sample, one in zip(samples, confidences, strict=True)]


def _stripped(
    sample: Sample, fields: frozenset[str], names: Mapping[str, str], confidence: float | str | None
) -> Sample:
    benchmark = load_spec(sample.task).benchmark
    own = sample.document.get("choices") or benchmark.options  # their number is the chance level
    return sample.model_copy(
        update={
            "cluster": names[sample.cluster],
            "media": (),
            "prompt": "",
            "target": sample.target if sample.target in benchmark.options else "",
            "responses": (),
            "probabilities": (),
            "confidence": confidence,
            "filtered": _option(sample.filtered, sample.status, benchmark),
            "repeats": tuple(_repeat(one, benchmark) for one in sample.repeats),
            "verdicts": {},
            "document": {
                **({"choices": dict.fromkeys(own, "")} if len(own) != len(benchmark.options) else {}),
                **{key: value for key, value in sample.document.items() if key in fields},
            },
        }
    )


def _repeat(repeat: Repeat, benchmark: Benchmark) -> Repeat:
    return repeat.model_copy(update={"filtered": _option(repeat.filtered, repeat.status, benchmark)})


def _option(filtered: str, status: str, benchmark: Benchmark) -> str:
    """An option's letter, or why there is none; open answers are removed."""
    return filtered if filtered in benchmark.options or filtered == f"[{status}]" else ""
