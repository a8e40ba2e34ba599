"""Aggregation functions for ``metric_list``: corpus scores from the per-sample values of ``process_results``.

They let the harness alone (``--include_path``, without our hook) print the right score per task. The hook then
replaces these by the same scores with intervals, and adds the pooled ones of groups.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from medtasks.metrics import MetricUnavailableError, aggregate, get_metric

__all__ = [
    "accuracy",
    "bleu",
    "chrf",
    "chrf_plus_plus",
    "cider",
    "exact_match",
    "meteor",
    "open_total",
    "pending_value",
    "responses_of",
    "rouge1",
    "rouge2",
    "rougeL",
    "sample_value",
]


def responses_of(results: Sequence[str | Sequence[str]]) -> list[str]:
    """The filtered responses to one document: one, or one for each repeat."""
    return [text for one in results for text in ([one] if isinstance(one, str) else one)]


def sample_value(metric: str, results: Sequence[str | Sequence[str]], reference: str, cluster: str) -> dict[str, Any]:
    """One sample's entry for one metric, as the harness collects it.

    ``statistics`` are the metric's sufficient statistics, summed over repeats and given for each under ``repeats``
    where there are several; ``cluster`` serves clustered standard errors, and mean-type metrics also state their
    ``score``; an unavailable metric states why instead.
    """
    known = get_metric(metric)
    try:  # asking first would look for WordNet's files once per sample
        repeats = [known.statistics(prediction, reference) for prediction in responses_of(results)]
    except MetricUnavailableError as error:
        return {"cluster": cluster, "unavailable": str(error)}
    statistics = np.sum(repeats, axis=0) if len(repeats) > 1 else repeats[0]
    value: dict[str, Any] = {"cluster": cluster, "statistics": statistics.tolist()}
    if len(repeats) > 1:
        value["repeats"] = [one.tolist() for one in repeats]
    if known.width == 2:
        value["score"] = float(known.score(statistics))
    return value


def pending_value(cluster: str) -> dict[str, Any]:
    """The entry of a sample that awaits a judge."""
    return {"cluster": cluster, "pending": True}


def _corpus_score(metric: str) -> Callable[[Sequence[Mapping[str, Any]]], float | str]:
    def corpus_score(values: Sequence[Mapping[str, Any]]) -> float | str:
        reasons = {value["unavailable"] for value in values if "unavailable" in value}
        if reasons:
            return f"not computed, because {min(reasons)}"
        pending = sum("pending" in value for value in values)
        if pending:
            return f"not computed, because {pending} of {len(values)} samples await a judge"
        statistics = np.array([value["statistics"] for value in values], dtype=np.float64)
        return aggregate(get_metric(metric), statistics).overall.score

    corpus_score.__name__ = corpus_score.__qualname__ = metric
    return corpus_score


rouge1 = _corpus_score("rouge1")
rouge2 = _corpus_score("rouge2")
rougeL = _corpus_score("rougeL")
meteor = _corpus_score("meteor")
chrf = _corpus_score("chrf")
chrf_plus_plus = _corpus_score("chrf++")
bleu = _corpus_score("bleu")
exact_match = _corpus_score("exact_match")
accuracy = _corpus_score("accuracy")
cider = _corpus_score("cider")
open_total = _corpus_score("open_total")


def __getattr__(name: str) -> Callable[[Sequence[Mapping[str, Any]]], float | str]:
    """The aggregation of any other metric of that name, such as another package's, for ``!function`` in a task file."""
    if name.startswith("_"):
        raise AttributeError(name)
    return _corpus_score(name)
