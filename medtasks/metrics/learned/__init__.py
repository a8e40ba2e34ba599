"""Metrics of a neural model: BERTScore and BLEURT, batched, on a GPU if there is one, cached.

The extra ``learned`` installs what they need. Importing this package does not import torch or transformers; scoring
does.
"""

from __future__ import annotations

from collections.abc import Mapping

from medtasks.metrics.learned._metric import LearnedMetric
from medtasks.metrics.learned.models import BertScore, Bleurt

__all__ = ["LEARNED", "BertScore", "Bleurt"]

LEARNED: Mapping[str, LearnedMetric] = {metric.name: metric for metric in (BertScore(), Bleurt())}
"""The learned metrics by name, with the models of the scripts behind table 6 of arXiv 2506.09958."""
