"""The records of a file of ratings: the plan of a rater, and what the rater said of each answer."""

from __future__ import annotations

from typing import NamedTuple

from pydantic import Field

from medtasks.core.schema import Frozen

FORMAT = 1
"""The version of the format of rating files."""
GOLD = "gold"
"""Takes the place of a rubric if people rated the questions' gold answers."""
GOLD_CHOICES = ("right", "wrong", "ambiguous")
"""The possible verdicts on a question's gold answer."""
_LONGEST_COMMENT = 10_000
"""Characters."""


class AnswerKey(NamedTuple):
    """Identifies an answer by its run (`medtasks.runs.manifest.RunManifest.identity`), task and
    sample; ``run`` is empty if the question itself is rated.
    """

    run: str
    task: str
    sample_id: str


class RatedRun(Frozen):
    """A run whose answers could be drawn."""

    id: str
    model: str


class Stratum(Frozen):
    """The answers of one run to one task that the judge put into one class.

    ``verdict`` is that class (`medtasks.judge.ratable.verdict_class`); ``population`` counts the
    answers that could be drawn, ``drawn`` those that were.
    """

    run: str
    model: str
    task: str
    verdict: str
    population: int = Field(ge=1)
    drawn: int = Field(ge=0)

    @property
    def probability(self) -> float:
        """The probability that an answer of the stratum is drawn for the rater."""
        return self.drawn / self.population


class DrawnAnswer(Frozen):
    """An answer that a rater is asked about.

    ``response_hash`` identifies the rated text; ``stratum`` is the position of the answer's stratum
    in `RatingPlan.strata`, from 0.
    """

    run: str
    task: str
    sample_id: str
    response_hash: str
    stratum: int = Field(ge=0)

    @property
    def key(self) -> AnswerKey:
        return AnswerKey(self.run, self.task, self.sample_id)


class RatingPlan(Frozen):
    """The answers that a rater is asked about, and how they were drawn.

    Attributes:
        format: version of the format (`FORMAT`).
        rubric: name of the rubric, or `GOLD`.
        rubric_hash: identifies the rubric as raters see it.
        rater: name of the rater.
        seed: seed of the draw, which all raters share.
        samples: size of the first sample, then each larger size to which it was raised.
        overlap: number of answers that all raters get.
        hide_reference: whether the reference is hidden until the rater asks for it.
        frame: hash of the population and its strata. Files with the same frame, seed and overlap
            can be combined.
        runs: the runs whose answers could be drawn; none if questions are rated.
        strata: all strata of the population.
        left_out: number of answers that nobody can rate, by reason; they are in no stratum.
        answers: the drawn answers in the rater's order.
    """

    format: int = Field(default=FORMAT, ge=1, le=FORMAT)
    rubric: str
    rubric_hash: str
    rater: str
    seed: int
    samples: tuple[int, ...] = Field(min_length=1)
    overlap: int = Field(ge=0)
    hide_reference: bool
    frame: str
    runs: tuple[RatedRun, ...]
    strata: tuple[Stratum, ...] = Field(min_length=1)
    left_out: dict[str, int]
    answers: tuple[DrawnAnswer, ...] = Field(min_length=1)

    def stratum_of(self, answer: DrawnAnswer) -> Stratum:
        """The stratum that an answer was drawn from."""
        return self.strata[answer.stratum]


class Rating(Frozen):
    """What a rater said of one answer.

    Attributes:
        run, task, sample_id, response_hash, stratum: those of the `DrawnAnswer`.
        probability: sampling probability of its stratum at the time of the rating.
        scores: the scores by aspect of the rubric; None for an aspect that the rater could not
            decide. A rated question has the aspect `GOLD` with one of `GOLD_CHOICES`.
        cannot_tell: whether the rater could not decide one of the aspects.
        comment: the rater's remark, at most 10,000 characters.
        seconds: time with the answer on screen, without pauses; None if unknown.
        time: when the rating was saved, in ISO 8601.
    """

    run: str
    task: str
    sample_id: str
    response_hash: str
    stratum: int = Field(ge=0)
    probability: float = Field(gt=0, le=1)
    scores: dict[str, int | str | None]
    cannot_tell: bool = False
    comment: str = Field(default="", max_length=_LONGEST_COMMENT)
    seconds: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    time: str

    @property
    def key(self) -> AnswerKey:
        return AnswerKey(self.run, self.task, self.sample_id)

    @property
    def has_scores(self) -> bool:
        """Whether the rater decided any aspect."""
        return any(score is not None for score in self.scores.values())
