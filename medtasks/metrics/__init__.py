"""Text-overlap and multiple-choice metrics: per-sample sufficient statistics, then scores of their sums."""

from __future__ import annotations

from medtasks.metrics.accuracy import Accuracy
from medtasks.metrics.aggregate import Aggregate, GroupScore, aggregate, totals
from medtasks.metrics.base import MeanMetric, Metric, MetricUnavailableError
from medtasks.metrics.batch import lexical_statistics
from medtasks.metrics.bleu import Bleu
from medtasks.metrics.chrf import Chrf
from medtasks.metrics.exact_match import ExactMatch
from medtasks.metrics.meteor import Meteor
from medtasks.metrics.registry import LEXICAL, get_metric
from medtasks.metrics.rouge import Rouge

__all__ = [
    "LEXICAL",
    "Accuracy",
    "Aggregate",
    "Bleu",
    "Chrf",
    "ExactMatch",
    "GroupScore",
    "MeanMetric",
    "Meteor",
    "Metric",
    "MetricUnavailableError",
    "Rouge",
    "aggregate",
    "get_metric",
    "lexical_statistics",
    "totals",
]
