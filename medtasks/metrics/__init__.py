"""Metrics: sufficient statistics per sample or item, then scores of their sums."""

from __future__ import annotations

from medtasks.metrics import streaming
from medtasks.metrics.aggregate import corpus_score, totals
from medtasks.metrics.base import MeanMetric, Metric, MetricUnavailableError
from medtasks.metrics.batch import lexical_statistics
from medtasks.metrics.bleu import Bleu
from medtasks.metrics.chrf import Chrf
from medtasks.metrics.item_metrics import ITEM_METRICS, DimensionMean, ItemMetric, JudgedMean
from medtasks.metrics.matches import Accuracy, ExactMatch
from medtasks.metrics.meteor import Meteor
from medtasks.metrics.registry import LEXICAL, get_metric
from medtasks.metrics.rouge import Rouge
from medtasks.metrics.streaming import Stream, StreamRound

__all__ = [
    "ITEM_METRICS",
    "LEXICAL",
    "Accuracy",
    "Bleu",
    "Chrf",
    "DimensionMean",
    "ExactMatch",
    "ItemMetric",
    "JudgedMean",
    "MeanMetric",
    "Meteor",
    "Metric",
    "MetricUnavailableError",
    "Rouge",
    "Stream",
    "StreamRound",
    "corpus_score",
    "get_metric",
    "lexical_statistics",
    "streaming",
    "totals",
]
