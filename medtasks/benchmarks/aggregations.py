"""Aggregation functions for ``metric_list``: corpus scores from the per-sample values of
``process_results``.

With them the harness alone (``--include_path``, without our hook) prints the right score per task.
The hook replaces them with the same scores and their intervals, and adds the pooled scores of
groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

import numpy as np

from medtasks.catalog.benchmark import Turn
from medtasks.catalog.registry import wrong_return
from medtasks.metrics.base import Array, Metric, MetricUnavailableError, corpus_score
from medtasks.metrics.registry import LEXICAL, get_metric, lexical_statistics
from medtasks.metrics.streaming import item_values


def responses_of(results: Sequence[str | Sequence[str]]) -> list[str]:
    """The filtered responses to one document, with all repeats."""
    return [text for one in results for text in ([one] if isinstance(one, str) else one)]


_Computed: TypeAlias = dict[
    str, Any
]  # the statistics of one pair, and the score of mean-type metrics
_TOGETHER: ContextVar[dict[tuple[str, str, str], _Computed] | None] = ContextVar(
    "together", default=None
)
"""What was computed for a batch of samples, by metric, prediction and reference."""


@contextmanager
def computed_together(metrics: Sequence[str], pairs: Sequence[tuple[str, str]]) -> Iterator[None]:
    """Compute the text metrics of these (prediction, reference) pairs in one batch for
    :func:`sample_value`. The numbers equal those of each pair alone, bit for bit
    (`medtasks.metrics.registry`).
    """
    distinct = list(dict.fromkeys(pairs))
    names = [name for name in metrics if name in LEXICAL] if len(distinct) > 1 else []
    found: dict[tuple[str, str, str], _Computed] = {}
    for name, table in (lexical_statistics(distinct, names) if names else {}).items():
        for (prediction, reference), one in zip(
            distinct, _computed(get_metric(name), table), strict=True
        ):
            found[name, prediction, reference] = one
    token = _TOGETHER.set(found)
    try:
        yield
    finally:
        _TOGETHER.reset(token)


def sample_value(
    metric: str, results: Sequence[str | Sequence[str]], reference: str, cluster: str
) -> dict[str, Any]:
    """One sample's entry for one metric, as the harness collects it.

    ``statistics`` are summed over repeats (``repeats`` has each if there are several); ``cluster``
    is for clustered standard errors; mean-type metrics also have their ``score``; an unavailable
    metric has the reason instead.
    """
    several: list[_Computed] = []
    batch = _TOGETHER.get()
    known = {} if batch is None else batch
    try:  # asking `unavailable` first would look for WordNet's files once per sample
        for prediction in responses_of(results):
            key = metric, prediction, reference
            if key not in known:
                known[key] = _computed_alone(get_metric(metric), prediction, reference)
            several.append(known[key])
    except MetricUnavailableError as error:
        return {"cluster": cluster, "unavailable": str(error)}
    if len(several) == 1:
        return {"cluster": cluster, **several[0]}
    repeats = [one["statistics"] for one in several]
    (together,) = _computed(get_metric(metric), np.sum(repeats, axis=0)[None])
    return {"cluster": cluster, **together, "repeats": repeats}


def scored_by(
    *metrics: str,
) -> Callable[[Mapping[str, Any], Sequence[str]], dict[str, dict[str, Any]]]:
    """A ``process_results`` that compares a filtered response with the target; every sample has the
    same ``metrics``.

    A status marker such as ``[none]`` is a wrong answer like any other.
    """

    def process_results(
        doc: Mapping[str, Any], results: Sequence[str]
    ) -> dict[str, dict[str, Any]]:
        return {
            metric: sample_value(metric, results, doc["target"], doc["cluster"])
            for metric in metrics
        }

    vars(process_results)[_SCORED] = metrics
    return process_results


_SCORED = "scored_metrics"
"""The attribute of a function made by :func:`scored_by` that has its metrics."""


def scored_metrics(function: object) -> tuple[str, ...] | None:
    """The metrics that a ``process_results`` made by :func:`scored_by` returns; None for any other
    function.

    >>> scored_metrics(scored_by("bleu", "chrf")), scored_metrics(print)
    (('bleu', 'chrf'), None)
    """
    return getattr(function, _SCORED, None)


def _computed_alone(metric: Metric, prediction: str, reference: str) -> _Computed:
    row: object = metric.statistics(prediction, reference)
    if isinstance(row, np.ndarray) and row.ndim == 1 and row.dtype.kind in "biuf":
        return _computed(metric, row[None])[0]
    expected = f"a numpy array of {metric.width} numbers, its `width`"
    raise wrong_return(
        f"`statistics` of metric {metric.name}", type(metric).statistics, row, expected
    )


def _computed(metric: Metric, table: Array) -> list[_Computed]:
    if metric.width != 2:
        return [{"statistics": row} for row in table.tolist()]
    scores = np.ravel(metric.score(table)).tolist()
    return [
        {"statistics": row, "score": score}
        for row, score in zip(table.tolist(), scores, strict=True)
    ]


def pending_value(cluster: str) -> dict[str, Any]:
    """The entry of a sample that awaits a judge."""
    return {"cluster": cluster, "pending": True}


def __getattr__(name: str) -> Callable[[Sequence[Mapping[str, Any]]], float | str]:
    """The aggregation of the metric called ``name``, ours or another package's, for ``!function``
    in a task file.
    """
    if name.startswith("_"):
        raise AttributeError(name)
    metric = name.replace("_plus_plus", "++")

    def aggregation(values: Sequence[Mapping[str, Any]]) -> float | str:
        if any("turn" in value for value in values):
            return _of_turns(metric, values)
        reasons = {value["unavailable"] for value in values if "unavailable" in value}
        if reasons:
            return f"not computed, because {min(reasons)}"
        pending = sum("pending" in value for value in values)
        if pending:
            return f"not computed, because {pending} of {len(values)} samples await a judge"
        statistics = np.array([value["statistics"] for value in values], dtype=np.float64)
        return corpus_score(get_metric(metric), statistics)

    aggregation.__name__ = aggregation.__qualname__ = metric
    return aggregation


def _of_turns(name: str, values: Sequence[Mapping[str, Any]]) -> float | str:
    """The metric over the items that the turns form. The harness does not say which task it
    aggregates; each value names the one whose ``metadata.timing`` counts.
    """
    groups: dict[tuple[str, str], list[Turn]] = {}
    for value in values:
        turn = Turn(**value["turn"])
        groups.setdefault((value["task"], turn.item), []).append(turn)
    items = [
        item_values(sorted(turns, key=lambda turn: turn.number), task)[name]
        for (task, _), turns in groups.items()
        if len(turns) == turns[0].rounds
    ]
    pending = sum(item.pending for item in items)
    if pending or not items:
        why = (
            f"{pending} of {len(items)} items await a judge"
            if items
            else "no item has all of its rounds"
        )
        return f"not computed, because {why}"
    score = corpus_score(
        get_metric(name), np.array([item.statistics for item in items], dtype=np.float64)
    )
    return "not computed, because it applies to no item here" if np.isnan(score) else score
