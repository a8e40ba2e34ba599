"""ROUGE-1, ROUGE-2 and ROUGE-L as the ``rouge-score`` package defines them (F1, no stemming)."""

from __future__ import annotations

from functools import cache
from typing import Any

from medtasks.metrics.base import Array, MeanMetric, mean_statistics, package_version, sign

__all__ = ["Rouge"]


class Rouge(MeanMetric):
    """Mean ROUGE F1 (0..1), Lin 2004, computed by ``rouge-score`` without its Porter stemmer.

    The mean is exact. HF ``evaluate`` reports the median of 1,000 bootstrap means instead, which is random in
    the fourth digit. An empty prediction or reference scores 0; the tokens are runs of ``[a-z0-9]`` of the
    lower-cased text, so a text without one is empty.

    Args:
        name: ``rouge1``, ``rouge2`` or ``rougeL``.

    >>> Rouge("rouge1").statistics("two pink polyps", "two polyps").tolist()
    [0.8, 1.0]
    """

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def signature(self) -> str:
        """Name, F1, stemming and the library's version."""
        return sign(f"{self.name}|f1", stem="no", rouge_score=package_version("rouge-score"))

    def statistics(self, prediction: str, reference: str) -> Array:
        """``(F1, 1)``."""
        return mean_statistics(float(_scorer(self.name).score(reference, prediction)[self.name].fmeasure))


@cache
def _scorer(name: str) -> Any:
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer([name], use_stemmer=False)
