"""Metrics of items whose values are computed elsewhere: means over items, totals of judges, rates
of errors.

An item is what the benchmark counts, such as all rounds of a stream; its value does not follow from
one prediction and one reference. Groups, intervals and paired tests start from summed statistics,
so they work as for any other metric.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from medtasks.catalog.task_model import ErrorKind
from medtasks.metrics.base import Array, Installed, MeanMetric, Metric, sign
from medtasks.metrics.closed_answer import VERSION as CLOSED_VERSION
from medtasks.metrics.facts import NO_FACTS, NOT_IN_SUMMARY, MetricFacts
from medtasks.metrics.normalisation import NORMALISED, normalise
from medtasks.metrics.streaming import DUE, EXPECTED_TIME, LAW, TOLERANCE, WEIGHTS

CLOSED = {
    "closed": f"exact-match-v{CLOSED_VERSION}",
    "early": "no_alert-or-uncertain",
    "alert_reason": "matched",
}


@dataclass(frozen=True, eq=False)
class ItemScore(Installed):
    """A score of the summed statistics of items, or of judged samples; NaN if nothing was measured.

    ``choices`` can change the score and are in the signature. ``timing`` are fields of a task's
    ``metadata.timing`` that the metric depends on; their values are in its reported signature.
    ``bounds`` are the least and the greatest score, if they are not 0 and 1. ``is_distance`` is as
    in `medtasks.stats.intervals.score_interval`.
    """

    name: str
    width: int
    score: Callable[[Array], Array]
    choices: Mapping[str, str] = field(default_factory=dict)
    _: KW_ONLY
    higher_is_better: bool = True
    timing: tuple[str, ...] = ()
    bounds: tuple[float, float] | None = None
    is_distance: bool = False
    facts: MetricFacts = NO_FACTS

    @cached_property
    def signature(self) -> str:
        return sign(self.name, **self.choices)


def item_mean(name: str, choices: Mapping[str, str] | None = None, **more: Any) -> ItemScore:
    """The mean of the values of items: statistics ``(value, 1)``, or ``(0, 0)`` if the metric does
    not apply.
    """
    return ItemScore(name, 2, MeanMetric().score, {"mean": "items", **(choices or {})}, **more)


def judged_mean(name: str, top: float, facts: MetricFacts = NO_FACTS) -> ItemScore:
    """The mean, over the judged samples, of a judge's total on a scale from 0 to ``top``."""
    choices = {"scale": f"0-{top:g}", "unjudged": "left-out"}
    return ItemScore(name, 2, MeanMetric().score, choices, bounds=(0.0, top), facts=facts)


_LEFT_OUT = {"default_expected": EXPECTED_TIME, "never_answerable": "left-out"}
_OVERALL = {"weights": WEIGHTS, "single_turn": "content", **CLOSED, **DUE}
_LENGTH = {"law": "stream-length"}

_FURTHER = MetricFacts(headline=NOT_IN_SUMMARY)
_LEAST = replace(_FURTHER, reference_score=0.0)
_LEAST_TIMED = replace(_LEAST, is_timed=True)


def _most(headline: int, *, is_timed: bool = False) -> MetricFacts:
    """Facts of a score in the summary that the reference answers bring to 1."""
    return MetricFacts(headline=headline, reference_score=1.0, is_timed=is_timed)


ITEM_METRICS: tuple[ItemScore, ...] = (
    item_mean("content", CLOSED, facts=_most(40)),
    item_mean("content_closed", {"questions": "closed", **CLOSED}, facts=_most(42)),
    item_mean(
        "content_closed_fallback",
        {"questions": "closed", "mismatches": "judged", **CLOSED},
        facts=MetricFacts(headline=43),
    ),
    item_mean(
        "content_fallback", {"mismatches": "judged", **CLOSED}, facts=MetricFacts(headline=41)
    ),
    item_mean("content_open", {"questions": "open"}, facts=MetricFacts(headline=44)),
    item_mean("responsiveness", DUE, timing=LAW, facts=_most(50, is_timed=True)),
    item_mean("responsiveness_stream_length", {**_LENGTH, **DUE}, timing=TOLERANCE, facts=_FURTHER),
    item_mean("stability", DUE, facts=_most(51, is_timed=True)),
    item_mean("overall", _OVERALL, timing=LAW, facts=_most(52, is_timed=True)),
    item_mean("overall_stream_length", {**_OVERALL, **_LENGTH}, timing=TOLERANCE, facts=_FURTHER),
    item_mean(
        "false_alarm_rate", DUE, higher_is_better=False, timing=TOLERANCE, facts=_LEAST_TIMED
    ),
    item_mean("miss_rate", _LEFT_OUT, higher_is_better=False, facts=_LEAST_TIMED),
    item_mean(
        "signed_delay",
        {"unit": "s", "missed": "left-out", **_LEFT_OUT},
        higher_is_better=False,
        facts=replace(_FURTHER, unit="seconds", is_signed=True),
    ),
    item_mean("invalid_rate", higher_is_better=False, facts=_LEAST),
)
"""Scores of streaming items (`medtasks.metrics.streaming`), 0..1 except ``signed_delay``: seconds,
over items with a positive response and a t*. Those that end in ``_stream_length`` are under that
law whatever the task declares; ``content_fallback`` counts closed answers as the optional fallback
judge does. A signed mean is best at 0; its ``higher_is_better`` means only that late is worse than
early.
"""

UNANSWERED = {"unanswered": "left-out"}
"""Part of the signature of rates over the cases with an answer."""


@dataclass(frozen=True, eq=False)
class ErrorRate(MeanMetric):
    """Occurrences divided by cases, 0..1. Statistics of an item: ``(occurrences, cases)``.

    Cases depend on the gold answers alone, so that all models have the same ones. ``timing`` is as
    for `ItemScore`.

    Args:
        name: the column name.
        label: the heading on a leaderboard.
        cases: what is counted in the denominator, one hyphenated word; part of the signature.
        harms: whether the error could harm a patient if it goes unnoticed.
        higher_is_better: True for the rate of a correct outcome, such as sensitivity.
        choices: other choices that can change the score, for the signature.
    """

    bounds = (0.0, 1.0)
    facts = MetricFacts(headline=NOT_IN_SUMMARY)

    name: str
    label: str
    _: KW_ONLY
    cases: str
    harms: bool = False
    choices: Mapping[str, str] = field(default_factory=dict)
    higher_is_better: bool = False
    timing: tuple[str, ...] = ()

    @cached_property
    def signature(self) -> str:
        return sign(self.name, ratio="of-sums", cases=self.cases, **self.choices)


NO_OPTION = ErrorRate("no_option_rate", "No single option", cases="questions")
"""Responses to multiple-choice questions without exactly one selectable option."""

METRICS: tuple[Metric, ...] = (*ITEM_METRICS, NO_OPTION)


def declared_rate(kind: ErrorKind) -> ErrorRate:
    """The rate of a kind of error that a task file declares (`medtasks.benchmarks.error_kinds`).

    >>> others = ["polyp", "a lesion"]
    >>> kind = ErrorKind(name="missed", label="Missed", gold=["Polyp"], answer_other_than=others)
    >>> declared_rate(kind).signature.partition("|texts:")[0]
    'missed|ratio:of-sums|cases:gold=polyp|errors:answer=not(polyp,lesion)'
    """
    errors = _condition("answer", kind.answer, kind.answer_other_than)
    choices = {"errors": errors, "texts": NORMALISED}
    if not kind.higher_is_better:
        choices |= UNANSWERED
    return ErrorRate(
        kind.name,
        kind.label,
        cases=_condition("gold", kind.gold, kind.gold_other_than),
        harms=kind.harms,
        choices=choices,
        higher_is_better=kind.higher_is_better,
    )


def _condition(name: str, texts: Sequence[str], other_than: Sequence[str]) -> str:
    """The texts that a gold or given answer must be, or must not be, for a signature."""
    among = _joined(texts)
    if among:
        return f"{name}={among}"
    return f"{name}=not({_joined(other_than)})"


def _joined(texts: Sequence[str]) -> str:
    return ",".join(normalise(text).replace(" ", "-") for text in texts)


def sum_in_order(columns: Array) -> Array:
    """Sum over the last axis, in its order: numpy's own order may change with the number of
    rows.
    """
    total = np.zeros(columns.shape[:-1])
    for column in np.moveaxis(columns, -1, 0):
        total = total + column
    return total
