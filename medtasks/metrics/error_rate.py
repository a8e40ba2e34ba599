"""The rate of one kind of error, or of its opposite: how often it occurred among the cases in which it could."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from medtasks.metrics.closed_answer import NORMALISED, normalise
from medtasks.metrics.item_metrics import ItemMetric
from medtasks.task_model import ErrorKind

UNANSWERED = {"unanswered": "left-out"}
"""Part of the signature of rates over the cases with an answer."""


class ErrorRate(ItemMetric):
    """Occurrences divided by cases, 0..1. Statistics of an item: ``(occurrences, cases)``.

    Cases depend on the gold answers alone, so that all models have the same ones.

    Args:
        name: the column name.
        label: the heading on a leaderboard.
        cases: what is counted in the denominator, one hyphenated word; part of the signature.
        harms: whether the error could harm a patient if nobody noticed it.
        choices: other choices that can change the score, for the signature.
        higher_is_better: True for the rate of a correct outcome, such as sensitivity.
        timing: as `OverItems.timing`.
    """

    bounds = (0.0, 1.0)

    def __init__(
        self,
        name: str,
        label: str,
        *,
        cases: str,
        harms: bool = False,
        choices: Mapping[str, str] = MappingProxyType({}),
        higher_is_better: bool = False,
        timing: tuple[str, ...] = (),
    ) -> None:
        super().__init__(name, {"cases": cases, **choices}, higher_is_better=higher_is_better, timing=timing)
        self.signature = self.signature.replace("mean:items", "ratio:of-sums", 1)
        self.label = label
        self.harms = harms


NO_OPTION = ErrorRate("no_option_rate", "No single option", cases="questions")
"""Responses to multiple-choice questions without exactly one selectable option."""


def declared_rate(kind: ErrorKind) -> ErrorRate:
    """The rate of a kind of error that a task file declares (`medtasks.benchmarks.declared_errors`).

    >>> kind = ErrorKind(name="missed", label="Missed", gold=["Polyp"], answer_other_than=["polyp", "a lesion"])
    >>> declared_rate(kind).signature.partition("|texts:")[0]
    'missed|ratio:of-sums|cases:gold=polyp|errors:answer=not(polyp,lesion)'
    """
    unanswered = {} if kind.higher_is_better else UNANSWERED
    return ErrorRate(
        kind.name,
        kind.label,
        cases=_listed(kind, "gold"),
        harms=kind.harms,
        choices={"errors": _listed(kind, "answer"), "texts": NORMALISED, **unanswered},
        higher_is_better=kind.higher_is_better,
    )


def _listed(kind: ErrorKind, key: str) -> str:
    among, other_than = (
        ",".join(normalise(text).replace(" ", "-") for text in getattr(kind, name))
        for name in (key, f"{key}_other_than")
    )
    return f"{key}={among}" if among else f"{key}=not({other_than})"
