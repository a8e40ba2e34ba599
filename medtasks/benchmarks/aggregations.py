"""Aggregation functions for ``metric_list``: corpus scores from values of ``process_results``.

With them the harness alone (``--include_path``, without our hook) prints the right score per task.
The hook replaces them with the same scores and their intervals, and adds the pooled scores of
groups.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from medtasks.benchmarks.pair_entries import BatchResponses, Entry, PairEntries, table_entries
from medtasks.catalog.contents import once
from medtasks.catalog.items import Turn, Value
from medtasks.catalog.spec import TaskSpec, load_specs
from medtasks.core.errors import MedtasksError, UsageError
from medtasks.metrics.base import MetricUnavailableError, corpus_score
from medtasks.metrics.registry import get_metric
from medtasks.metrics.stream_values import item_values


def responses_of(results: Sequence[str | Sequence[str]]) -> list[str]:
    """The filtered responses to one document, with all repeats."""
    responses: list[str] = []
    for result in results:
        if isinstance(result, str):
            responses.append(result)
        else:
            responses.extend(result)
    return responses


def sample_value(
    metric: str, results: Sequence[str | Sequence[str]], reference: str, cluster: str
) -> dict[str, Any]:
    """One sample's entry for one metric, as the harness collects it.

    ``statistics`` are summed over repeats (``repeats`` has each if there are several); ``cluster``
    is for clustered standard errors; mean-type metrics also have their ``score``; an unavailable
    metric has the reason instead. The ``results`` that a ``process_results`` gets should be passed
    on as they are: they know the text metrics computed for the whole batch.
    """
    known_entries = results.entries if isinstance(results, BatchResponses) else PairEntries()
    entries: list[Entry] = []
    try:  # asking `unavailable` first would look for WordNet's files once per sample
        for prediction in responses_of(results):
            entries.append(known_entries.entry(metric, prediction, reference))
    except MetricUnavailableError as error:
        return {"cluster": cluster, "unavailable": str(error)}
    if len(entries) == 1:
        return {"cluster": cluster, **entries[0]}
    repeats = [entry["statistics"] for entry in entries]
    (total,) = table_entries(get_metric(metric), np.sum(repeats, axis=0)[None])
    return {"cluster": cluster, **total, "repeats": repeats}


def scored_by(
    *metrics: str,
) -> Callable[[Mapping[str, Any], Sequence[str]], dict[str, dict[str, Any]]]:
    """A ``process_results`` that scores a filtered response against the target by ``metrics``.

    Without names, it scores by the metrics in the ``metric_list`` of the task. A status marker such
    as ``[none]`` is a wrong answer like any other.
    """

    def process_results(
        doc: Mapping[str, Any], results: Sequence[str]
    ) -> dict[str, dict[str, Any]]:
        names = metrics
        if not names and isinstance(results, BatchResponses):
            names = results.metrics
        elif not names:  # lmms-eval alone does not say which task it scores
            names = _metrics_of_tasks(process_results)
        values = {}
        for name in names:
            values[name] = sample_value(name, results, doc["target"], doc["cluster"])
        return values

    vars(process_results)[_SCORED] = metrics
    return process_results


_SCORED = "scored_metrics"
"""The attribute of a function made by :func:`scored_by` that has its metrics."""


def scored_metrics(function: object) -> tuple[str, ...] | None:
    """The names passed to :func:`scored_by`, which made the function; None for another function.

    >>> scored_metrics(scored_by("bleu", "chrf")), scored_metrics(print)
    (('bleu', 'chrf'), None)
    """
    return getattr(function, _SCORED, None)


@once
def tasks_scored_by(function: object) -> Mapping[str, TaskSpec]:
    """The installed tasks whose ``process_results`` is this function, by name."""
    tasks: dict[str, TaskSpec] = {}
    for name, spec in load_specs().items():
        if spec.kind == "task" and _process_results_of(spec) is function:
            tasks[name] = spec
    return tasks


def _process_results_of(spec: TaskSpec) -> object:
    """The function that a task names; None if it cannot be imported, as `validate` reports."""
    try:
        return spec.function("process_results")
    except MedtasksError:
        return None


def _metrics_of_tasks(function: object) -> tuple[str, ...]:
    """The metrics in the ``metric_list`` of all tasks that name this ``process_results``.

    Raises:
        UsageError: no installed task names it, or two list different metrics.
    """
    tasks = tasks_scored_by(function)
    if not tasks:
        raise UsageError(
            "scored_by() without names scores by the metric_list of the installed tasks that name "
            "it, but none does; pass the names of the metrics."
        )
    first, *further_specs = tasks.values()
    for spec in further_specs:
        if set(spec.metrics) != set(first.metrics):
            raise UsageError(
                f"tasks {first.name} and {spec.name} have the same `process_results` but different "
                "metrics, so lmms-eval alone cannot score them; give each a `scored_by()` of its "
                "own."
            )
    return first.metrics


def pending_value(cluster: str) -> dict[str, Any]:
    """The entry of a sample that awaits a judge."""
    return {"cluster": cluster, "pending": True}


def __getattr__(name: str) -> Callable[[Sequence[Mapping[str, Any]]], float | str]:
    """The aggregation of the metric ``name``, for ``!function`` in a task file.

    The metric may be ours or another package's.
    """
    if name.startswith("_"):
        raise AttributeError(name)
    metric = name.replace("_plus_plus", "++")

    def aggregation(values: Sequence[Mapping[str, Any]]) -> float | str:
        if any("turn" in value for value in values):
            return _score_of_turns(metric, values)
        return _score_of_samples(metric, values)

    aggregation.__name__ = aggregation.__qualname__ = metric
    return aggregation


def _score_of_samples(metric: str, values: Sequence[Mapping[str, Any]]) -> float | str:
    """The corpus score of a metric, or why it is not computed."""
    reasons = {value["unavailable"] for value in values if "unavailable" in value}
    if reasons:
        return f"not computed, because {min(reasons)}"
    pending = sum("pending" in value for value in values)
    if pending:
        return f"not computed, because {pending} of {len(values)} samples await a judge"
    statistics = np.array([value["statistics"] for value in values], dtype=np.float64)
    return corpus_score(get_metric(metric), statistics)


def _score_of_turns(metric: str, values: Sequence[Mapping[str, Any]]) -> float | str:
    """The corpus score of a metric over the items that the turns form, or why it is not computed.

    The harness does not say which task it aggregates; each value names the one whose
    ``metadata.timing`` counts.
    """
    turns_of_item: dict[tuple[str, str], list[Turn]] = {}
    for value in values:
        turn = Turn(**value["turn"])
        turns_of_item.setdefault((value["task"], turn.item), []).append(turn)
    items: list[Value] = []
    for (task, _), turns in turns_of_item.items():
        if len(turns) == turns[0].rounds:
            turns.sort(key=lambda turn: turn.number)
            items.append(item_values(turns, task)[metric])
    if not items:
        return "not computed, because no item has all of its rounds"
    pending = sum(item.pending for item in items)
    if pending:
        return f"not computed, because {pending} of {len(items)} items await a judge"
    statistics = np.array([item.statistics for item in items], dtype=np.float64)
    score = corpus_score(get_metric(metric), statistics)
    if np.isnan(score):
        return "not computed, because it applies to no item here"
    return score
