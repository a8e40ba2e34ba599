"""Questions that are asked several times, with rotated options or paraphrased prompts.

All variants of a question are one item. A task's rows are this module's attribute with the task's
name, for ``process_docs: !function medtasks.benchmarks.variants.TASK``. What a variant is, and the
scores over all variants: `medtasks.benchmarks.rotated_options` (``metadata.options``) and
`medtasks.benchmarks.paraphrased_prompts` (``metadata.prompts``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, TypeAlias

from medtasks.benchmarks.documents import task_rows
from medtasks.benchmarks.paraphrased_prompts import (
    paraphrased_documents,
    prompt_scores,
    why_not_paraphrasable,
)
from medtasks.benchmarks.rotated_options import (
    in_plain_order,
    order_scores,
    rotated_documents,
    why_not_rotatable,
)
from medtasks.benchmarks.rows import Rows
from medtasks.catalog.benchmark import Benchmark, Document
from medtasks.catalog.items import Item, Joined, SampleView, Value
from medtasks.catalog.spec import TaskSpec, load_spec
from medtasks.catalog.task_model import ORDER_METRICS, Metadata, prompt_metrics
from medtasks.core.errors import UsageError
from medtasks.metrics.registry import get_metric

_Varied: TypeAlias = Literal["options", "prompts"]
"""The keys of ``metadata`` that ask each question several times."""


@dataclass(frozen=True)
class _VariantFields:
    """The document fields of the question, of the variant's number and of their count."""

    question: str
    number: str
    count: str


_FIELDS: Mapping[_Varied, _VariantFields] = {
    "options": _VariantFields("rotation_of", "rotation", "rotations"),
    "prompts": _VariantFields("prompt_of", "prompt", "prompts"),
}
"""By ``metadata.varied``."""


def __getattr__(name: str) -> Rows:
    """The rows of the task called ``name``.

    lmms-eval finds ``!function`` by attribute, and calls it without the name of the task.
    """
    if name.startswith("_"):
        raise AttributeError(name)
    rows = varied_rows(name, load_spec(name).metadata)
    if rows is None:
        raise UsageError(
            f"{name}: asks each question once; set metadata.options or metadata.prompts."
        )
    return rows


def varied_rows(task: str, metadata: Metadata) -> Rows | None:
    """The rows of a task that asks each question of its plain task in several variants.

    None if the task asks each question once. Rows that cannot be varied are left out: those without
    options to rotate, or with several rounds or answers.

    Raises:
        UsageError: the metadata do not fit the plain task, which ``compare_with`` names.
    """
    if metadata.varied is None:
        return None
    plain_task = _plain_task(task, metadata)
    if metadata.varied == "options":
        plain_rows = _rows_without(why_not_rotatable, task_rows(plain_task.name))
        rotations = partial(rotated_documents, task, metadata.options)
        return replace(plain_rows, variants=rotations)
    _check_prompts(task, metadata.prompts, plain_task)
    plain_rows = _rows_without(why_not_paraphrasable, task_rows(plain_task.name))
    paraphrases = partial(paraphrased_documents, metadata.prompts, plain_task.metrics[0])
    return replace(plain_rows, variants=paraphrases)


def _plain_task(task: str, metadata: Metadata) -> TaskSpec:
    """The task whose questions ``task`` asks several times."""
    plain_task = load_spec(metadata.compare_with)
    if plain_task.kind != "task" or plain_task.metadata.varied is not None:
        raise UsageError(
            f"{task}: metadata.compare_with is {metadata.compare_with!r}, expected a task that "
            f"asks each question once, which metadata.{metadata.varied} asks several times; name "
            "one."
        )
    return plain_task


def _rows_without(why_not_varied: Callable[[Document], str], rows: Rows) -> Rows:
    """``rows`` without those for which ``why_not_varied`` has a reason.

    A row that ``rows`` already leave out keeps the reason that it has there.
    """

    def why_unusable(document: Document) -> str:
        reason = "" if rows.unusable is None else rows.unusable(document)
        return reason or why_not_varied(document)

    return replace(rows, unusable=why_unusable)


def _check_prompts(task: str, prompts: Sequence[str], plain_task: TaskSpec) -> None:
    """Refuse prompts, or a first metric, with which the plain task cannot be compared."""
    if plain_task.template != prompts[0]:
        raise UsageError(
            f"{task}: metadata.prompts[0] is {prompts[0]!r}, expected {plain_task.template!r}, the "
            f"template of {plain_task.name}; begin with it."
        )
    metric = get_metric(plain_task.metrics[0])
    if metric.width != 2 or not metric.higher_is_better or "|scale:" in metric.signature:
        raise UsageError(
            f"{task}: the first metric is {metric.name}, expected a mean of values from 0 to 1, "
            "more being better, whose spread over prompts can be measured; put one first in "
            "metric_list."
        )


def question_of(document: Mapping[str, object]) -> object:
    """The question that a document is a variant of; None if it is asked once."""
    return document.get("rotation_of", document.get("prompt_of"))


def joined_items(benchmark: Benchmark, samples: Sequence[SampleView]) -> Joined:
    """The benchmark's items, where all variants of a question are one item.

    Such an item has the scores over all variants as well. Any other metric of it is the mean over
    its variants, which name targets and answers in the plain order. With a failed variant the
    item's values are unknown, without one that was asked it is incomplete.
    """
    varied = _varied_in(samples)
    if varied is None:
        return benchmark.scoring.join(samples)
    fields = _FIELDS[varied]
    asked_once = [sample for sample in samples if sample.document.get(fields.question) is None]
    joined = benchmark.scoring.join(asked_once) if asked_once else Joined(())
    items = list(joined.items)
    incomplete = dict(joined.incomplete)
    most_variants = 0
    for question, variants in _variants_by_question(samples, fields).items():
        expected = int(variants[0].document[fields.count])
        most_variants = max(most_variants, expected)
        if len(variants) < expected:
            incomplete[question] = _in_plain_order(benchmark, variants, varied)
        else:
            items.append(_item_of_variants(benchmark, question, variants, varied))
    metrics = ORDER_METRICS if varied == "options" else prompt_metrics(most_variants)
    return Joined(tuple(items), incomplete, metrics)


def _variants_by_question(
    samples: Sequence[SampleView], fields: _VariantFields
) -> dict[str, list[SampleView]]:
    """The variants of each question in the order of their numbers, questions sorted."""
    variants_of_question: dict[str, list[SampleView]] = {}
    for sample in samples:
        question = sample.document.get(fields.question)
        if question is not None:
            variants_of_question.setdefault(question, []).append(sample)
    for variants in variants_of_question.values():
        variants.sort(key=lambda variant: int(variant.document[fields.number]))
    return dict(sorted(variants_of_question.items()))


def _varied_in(samples: Sequence[SampleView]) -> _Varied | None:
    """How the samples' questions are varied; None if they are all asked once."""
    for varied, fields in _FIELDS.items():
        if any(fields.question in sample.document for sample in samples):
            return varied
    return None


def _in_plain_order(
    benchmark: Benchmark, variants: Sequence[SampleView], varied: _Varied
) -> tuple[SampleView, ...]:
    """The variants, with rotated options named as in the plain order."""
    if varied == "options":
        return tuple(in_plain_order(benchmark, variant) for variant in variants)
    return tuple(variants)


def _item_of_variants(
    benchmark: Benchmark, question: str, variants: Sequence[SampleView], varied: _Varied
) -> Item:
    """The item of a question of which every variant was asked."""
    values = [benchmark.scoring.join([variant]).items[0].values for variant in variants]
    means: dict[str, Value] = {}
    for metric in values[0]:
        means[metric] = _mean([by_metric[metric] for by_metric in values])
    scores = _scores_over(benchmark, variants, varied, values)
    samples = _in_plain_order(benchmark, variants, varied)
    return Item(question, variants[0].cluster, samples, {**means, **scores})


def _scores_over(
    benchmark: Benchmark,
    variants: Sequence[SampleView],
    varied: _Varied,
    values: Sequence[Mapping[str, Value]],
) -> dict[str, Value]:
    """The scores over all variants of a question; ``values`` are the metrics of each."""
    if varied == "options":
        return order_scores(benchmark, variants)
    return prompt_scores(benchmark, variants, values)


def _mean(values: Sequence[Value]) -> Value:
    """The mean of one metric over the variants of a question.

    If a variant failed, it is a range: the mean with the failed ones at their lowest, and at their
    highest.
    """
    if not any(value.failed for value in values):
        return Value(statistics=_mean_statistics([_lowest(value) for value in values]))
    return Value(
        low=_mean_statistics([_lowest(value) for value in values]),
        high=_mean_statistics([_highest(value) for value in values]),
        failed=True,
    )


def _lowest(value: Value) -> tuple[float, ...] | None:
    """The statistics of a value, or else the lower end of its range."""
    return value.low if value.statistics is None else value.statistics


def _highest(value: Value) -> tuple[float, ...] | None:
    """The statistics of a value, or else the upper end of its range."""
    return value.high if value.statistics is None else value.statistics


def _mean_statistics(rows: Sequence[tuple[float, ...] | None]) -> tuple[float, ...] | None:
    """The mean of each column; None unless all rows are known."""
    known_rows: list[tuple[float, ...]] = []
    for row in rows:
        if row is None:
            return None
        known_rows.append(row)
    columns = zip(*known_rows, strict=True)
    return tuple(math.fsum(column) / len(rows) for column in columns)
