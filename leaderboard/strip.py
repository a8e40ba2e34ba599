"""A run without the rows of data that must not be shared: what is left makes the same scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from medtasks.benchmarks.all_cards import all_cards
from medtasks.benchmarks.base import Benchmark
from medtasks.benchmarks.card import Card
from medtasks.errors import MedtasksError
from medtasks.registry import get_benchmark
from medtasks.results.find import one_run
from medtasks.results.folder import RunRecord, read_run, write_run
from medtasks.results.judged import judged_threshold
from medtasks.results.run import pooled_scores
from medtasks.results.samples import Repeat, Sample
from medtasks.spec import load_spec
from medtasks.validation.rendered import texts_in

__all__ = ["card_of", "is_stripped", "is_withheld", "strip_run"]

_LONGEST = 40


def card_of(benchmark: str) -> Card | None:
    """The card that shows the tasks of ``benchmark``: its own, or the one that it stands on beside another."""
    cards = all_cards()
    if benchmark in cards:
        return cards[benchmark]
    for card in cards.values():
        columns = [*card.headline, *(column for table in card.tables for column in table.columns)]
        if any(load_spec(column.task).metadata.benchmark == benchmark for column in columns):
            return card
    return None


def is_withheld(benchmark: str) -> bool:
    """Whether nothing of the benchmark's samples may be shown but ids, extracted options and scores."""
    card = card_of(benchmark)
    return card is None or card.shows == "nothing"


def is_stripped(samples: Sequence[Sample]) -> bool:
    """Whether these samples have neither prompts nor responses."""
    return bool(samples) and all(not sample.prompt and not sample.responses for sample in samples)


def strip_run(folder: Path, out: Path) -> Path:
    """Write the run in ``folder`` as the new folder ``out``, without what its benchmarks' cards withhold; return it.

    Samples of such a benchmark keep their ids, the options that were right and chosen, the groups of its breakdowns,
    scores and statistics. Prompts, responses, references, verdicts and media names are left out, and clusters
    (patients) are numbered anew, in one order whatever the model, over all such tasks of the folder: only stripped runs
    of the same tasks are comparable. The scores stay what they were; but who holds such a folder can no longer make
    them again from responses.

    Raises:
        UsageError: ``folder`` neither is nor holds one run's, or ``out`` exists.
        DataError: the run cannot be read.
        MedtasksError: a breakdown rests on a field that is text, or the scores would change.
    """
    manifest, samples = read_run(one_run(folder))
    threshold = judged_threshold(manifest.judge)
    withheld = {task for task, facts in manifest.tasks.items() if is_withheld(facts.benchmark)}
    names = _numbered({sample.cluster for task in withheld for sample in samples[task]})
    kept = {
        task: [_stripped(sample, _fields(task, members), names) for sample in members] if task in withheld else members
        for task, members in samples.items()
    }
    tasks, groups = pooled_scores(kept, manifest.groups, threshold=threshold)
    if (tasks, groups) != pooled_scores(samples, manifest.groups, threshold=threshold):
        raise MedtasksError(f"{folder}: its scores would change without the rows; keep the folder private instead.")
    return write_run(out, RunRecord(manifest=manifest, samples=kept, tasks=tasks, groups=groups))


def _numbered(clusters: set[str]) -> dict[str, str]:
    """New names in the order of the old ones, so that the bootstrap draws the same clusters."""
    return {name: f"c{number:06d}" for number, name in enumerate(sorted(clusters), start=1)}


class _Watched(dict[str, Any]):
    """A document that remembers which of its fields were looked at."""

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
    """The fields of documents that joining, breakdowns and pooled metrics look at."""
    metadata = load_spec(task).metadata
    benchmark = get_benchmark(metadata.benchmark)
    seen: set[str] = set()
    views = [replace(view, document=_Watched(view.document, seen)) for view in (one.view() for one in samples)]
    for item in benchmark.join(views).items:
        for breakdown in benchmark.breakdowns.values():
            breakdown(item.view)
        for pooled in benchmark.pooled.values():
            pooled(item)
    for sample in samples:
        for field in sorted(seen & sample.document.keys()):
            _refuse_text(task, field, sample.document[field])
    return frozenset(seen)


def _refuse_text(task: str, field: str, value: Any) -> None:
    for text in texts_in(value):
        if len(text) > _LONGEST or " " in text.strip():
            raise MedtasksError(
                f"{task}: its scores rest on the field `{field}`, which holds text ({text[:40]!r}); keep the folder "
                "private instead."
            )


def _stripped(sample: Sample, fields: frozenset[str], names: Mapping[str, str]) -> Sample:
    benchmark = get_benchmark(load_spec(sample.task).metadata.benchmark)
    return sample.model_copy(
        update={
            "cluster": names[sample.cluster],
            "media": (),
            "prompt": "",
            "target": sample.target if sample.target in benchmark.options else "",
            "responses": (),
            "filtered": _option(sample.filtered, sample.status, benchmark),
            "repeats": tuple(_repeat(one, benchmark) for one in sample.repeats),
            "verdicts": {},
            "document": {key: value for key, value in sample.document.items() if key in fields},
        }
    )


def _repeat(repeat: Repeat, benchmark: Benchmark) -> Repeat:
    return repeat.model_copy(update={"filtered": _option(repeat.filtered, repeat.status, benchmark)})


def _option(filtered: str, status: str, benchmark: Benchmark) -> str:
    """An option's letter, or why there is none; an open answer is left out."""
    return filtered if filtered in benchmark.options or filtered == f"[{status}]" else ""
