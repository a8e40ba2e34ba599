"""Questions that are asked several times, with rotated options or paraphrased prompts: each is one item."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from medtasks.benchmarks.base import Benchmark, Item, Joined, SampleView, Value
from medtasks.benchmarks.documents import Rows
from medtasks.benchmarks.paraphrases import paraphrased_rows, prompt_scores
from medtasks.benchmarks.rotations import in_plain_order, order_scores, rotated_rows
from medtasks.task_model import ORDER_METRICS, Metadata, prompt_metrics


class _Kind(NamedTuple):
    """The document fields of the question, of the variant's number and of their count; the scores of the variants
    together and their names by count; and the view that an item keeps of each."""

    of: str
    number: str
    total: str
    scores: Callable[[Benchmark, Sequence[SampleView], Sequence[Mapping[str, Value]]], dict[str, Value]]
    metrics: Callable[[int], tuple[str, ...]]
    view: Callable[[Benchmark, SampleView], SampleView]


_KINDS = (
    _Kind("rotation_of", "rotation", "rotations", order_scores, lambda _: ORDER_METRICS, in_plain_order),
    _Kind("prompt_of", "prompt", "prompts", prompt_scores, prompt_metrics, lambda _, view: view),
)


def varied_rows(task: str, metadata: Metadata) -> Rows | None:
    """The rows of a task that asks each question several times; None for another."""
    if metadata.options is not None:
        return rotated_rows(task, metadata)
    return paraphrased_rows(task, metadata) if metadata.prompts else None


def question_of(document: Mapping[str, object]) -> object:
    """The question that a document is a variant of; None if it is asked once."""
    return next((document[kind.of] for kind in _KINDS if kind.of in document), None)


def joined_items(benchmark: Benchmark, samples: Sequence[SampleView]) -> Joined:
    """The benchmark's items; all variants of a question are one item, with the scores of the variants as well.

    Any other metric of such an item is the mean over its variants, so that each question counts once. The views of an
    item name targets and answers in the plain order. With a failed variant the item's values are unknown, without one
    that was asked it is incomplete.
    """
    kind = next((one for one in _KINDS if any(one.of in sample.document for sample in samples)), None)
    if kind is None:
        return benchmark.join(samples)
    questions: dict[str, list[SampleView]] = {}
    plain: list[SampleView] = []
    for sample in samples:
        question = sample.document.get(kind.of)
        (plain if question is None else questions.setdefault(question, [])).append(sample)
    found = benchmark.join(plain) if plain else Joined(())
    items, incomplete = list(found.items), dict(found.incomplete)
    for question, views in sorted(questions.items()):
        views.sort(key=lambda view: int(view.document[kind.number]))
        kept = tuple(kind.view(benchmark, view) for view in views)
        if len(views) < views[0].document[kind.total]:
            incomplete[question] = kept
            continue
        asked = [benchmark.join([view]).items[0].values for view in views]
        values = {name: _mean([one[name] for one in asked]) for name in asked[0]}
        scores = kind.scores(benchmark, views, asked)
        items.append(Item(question, views[0].cluster, kept, {**values, **scores}))
    count = max(int(views[0].document[kind.total]) for views in questions.values())
    return Joined(tuple(items), incomplete, kind.metrics(count))


def _mean(values: Sequence[Value]) -> Value:
    """The mean of one metric over the variants; if one failed, its lowest and highest values."""
    rows = [(one.low, one.high) if one.statistics is None else (one.statistics, one.statistics) for one in values]
    failed = any(one.failed for one in values)
    ends = [
        None if None in side else tuple(math.fsum(column) / len(side) for column in zip(*side, strict=True))
        for side in zip(*rows, strict=True)
    ]
    return Value(low=ends[0], high=ends[1], failed=True) if failed else Value(statistics=ends[0])
