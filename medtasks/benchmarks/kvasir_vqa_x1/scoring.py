"""Kvasir-VQA-x1: text overlap with the reference answer, by complexity and question class (paper, section 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from medtasks.benchmarks.aggregations import sample_value
from medtasks.benchmarks.base import SampleView
from medtasks.metrics.registry import LEXICAL

MEDICO_METRICS = ("bleu", "rouge1", "rouge2", "rougeL", "meteor")


def _complexity(view: SampleView) -> tuple[str, ...]:
    return (f"level{view.document['complexity']}",)


def _question_class(view: SampleView) -> tuple[str, ...]:
    # a class named twice in one row is one aspect
    return tuple(sorted(set(view.document["question_class"])))


BREAKDOWNS = {"complexity": _complexity, "question_class": _question_class}


def process_results(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Sufficient statistics of every text metric for one filtered response; every sample has the same keys."""
    return {metric: sample_value(metric, results, doc["target"], doc["cluster"]) for metric in LEXICAL}


def process_medico2025(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Sufficient statistics of the challenge's metrics for one filtered response."""
    return {metric: sample_value(metric, results, doc["target"], doc["cluster"]) for metric in MEDICO_METRICS}
