"""The scores of a set of samples, as ``scores.json`` has them."""

from __future__ import annotations

from enum import Enum

from pydantic import BaseModel, Field

COVERAGE = 0.99
"""Share of items that need a response and, if judged, a verdict: below it a score is marked
incomplete.
"""


class Repeats(BaseModel, frozen=True):
    """One metric over several repeats of the same questions (arXiv 2605.15574): the score of each,
    their sample standard deviation, and the 95 % interval of the mean by Student's t.
    """

    values: tuple[float, ...]
    mean: float
    deviation: float
    interval: tuple[float, float]


class ScoreState(Enum):
    """Whether a metric has a value, or why it has none; the values are for people."""

    COMPUTED = "computed"
    NOT_COMPUTED = "not computed"
    NO_RESPONSE = "no response"
    AWAITS_JUDGE = "awaits a judge"


class MetricScore(BaseModel, frozen=True):
    """One metric over one set of items.

    ``value`` and ``interval`` are in the metric's own unit (fraction, or 0 to 100 for chrF); they
    are None if the metric could not be computed or has no interval, and ``reason`` says why.
    ``interval_method`` names how the interval is computed (`medtasks.stats.intervals`). ``samples``
    counts the items that the metric applies to.

    An accuracy has floors: ``chance`` is that of uniform guessing, ``constant`` that of always
    giving ``constant_answer``, the most frequent correct option. ``margin_over_floor`` is the value
    minus the higher one.

    If requests failed, ``answered`` counts the items with a response; if a judge is involved,
    ``judged`` counts the items whose value is known. In both cases ``bounds`` are the scores with
    all other items wrong and with all of them right, and ``incomplete`` marks a value over less
    than the threshold's share of the items.
    """

    value: float | None
    interval: tuple[float, float] | None
    interval_method: str | None = Field(default=None, exclude_if=lambda method: method is None)
    samples: int
    signature: str
    reason: str | None = None
    chance: float | None = Field(default=None, exclude_if=lambda value: value is None)
    constant: float | None = Field(default=None, exclude_if=lambda value: value is None)
    constant_answer: str | None = Field(default=None, exclude_if=lambda value: value is None)
    margin_over_chance: float | None = None
    margin_over_floor: float | None = Field(default=None, exclude_if=lambda value: value is None)
    answered: int | None = None
    judged: int | None = None
    bounds: tuple[float, float] | None = None
    incomplete: bool = False
    repeats: Repeats | None = None

    @property
    def state(self) -> ScoreState:
        """Whether there is a value, or why there is none."""
        if self.value is not None:
            return ScoreState.COMPUTED
        if self.answered == 0:
            return ScoreState.NO_RESPONSE
        if self.bounds is None:
            return ScoreState.NOT_COMPUTED
        return ScoreState.AWAITS_JUDGE

    @property
    def known(self) -> int:
        """Items whose value is known: they have a response and, if judged, a verdict."""
        counted = self.answered if self.judged is None else self.judged
        return self.samples if counted is None else counted


def coverage_text(items: int, answered: int | None, judged: int | None) -> str:
    """How many of ``items`` have a response and a verdict; empty if both counts are None.

    >>> coverage_text(13, 0, None), coverage_text(13, 12, 9)
    ('0 of 13 answered', '12 of 13 answered, 9 of 13 judged')
    """
    counts = {"answered": answered, "judged": judged}
    return ", ".join(
        f"{count:,} of {items:,} {word}" for word, count in counts.items() if count is not None
    )


class Letters(BaseModel, frozen=True):
    """Positional bias: how often each letter was correct and how often it was chosen (arXiv
    2605.15574, 3.2).

    If the questions were asked in several rotations, ``preference`` is by letter the share of
    answers that chose it minus the share expected (`medtasks.metrics.variants`), with its 95 %
    interval.
    """

    gold: dict[str, int]
    chosen: dict[str, int]
    null_chosen_when_wrong: int | None = None
    null_missed_when_right: int | None = None
    preference: dict[str, tuple[float, float | None, float | None]] | None = Field(
        default=None, exclude_if=lambda value: value is None
    )


class ReliabilityBin(BaseModel, frozen=True):
    """The answers with a confidence above ``low`` and up to ``high``: their mean confidence and
    their accuracy, whose 95 % interval is None if they are of one cluster.
    """

    low: float
    high: float
    answers: int
    confidence: float
    accuracy: float
    interval: tuple[float, float] | None = None


class Reliability(BaseModel, frozen=True):
    """Accuracy by confidence, and when the least certain answers are left out.

    ``without`` counts the answers without a confidence by reason. ``curve`` is the accuracy of the
    most confident 10 % of the answers, 20 %, … 100 % (`medtasks.metrics.confidence.accuracy_at`).
    """

    without: dict[str, int]
    bins: tuple[ReliabilityBin, ...]
    curve: tuple[float, ...]


class Scores(BaseModel, frozen=True):
    """All scores of one set of samples, over their ``items``; ``incomplete`` counts those with
    rounds that were not asked, which are not scored. ``without`` are the tasks of a group that it
    leaves out, because the run has none of their samples.
    """

    samples: int
    items: int
    clusters: int
    status: dict[str, int]
    metrics: dict[str, MetricScore]
    incomplete: int = 0
    breakdowns: dict[str, dict[str, Scores]] = {}
    letters: Letters | None = None
    without: tuple[str, ...] = Field(default=(), exclude_if=lambda value: not value)
    reliability: Reliability | None = Field(default=None, exclude_if=lambda value: value is None)
