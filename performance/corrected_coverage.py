"""Coverage of the intervals of scores corrected by people, on simulated benchmarks whose true
scores are known.

The tables of docs/statistics.md are printed by this script; it exits with 1 if a bound is missed.
Seeds are fixed. One process; about ten minutes, or fifteen seconds with
--quick.

    python performance/corrected_coverage.py [--quick]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from coverage_designs import SIZES, Draw, generator, rates_of

from medtasks.metrics.base import Array
from medtasks.stats.bootstrap import Rows
from medtasks.stats.corrected_interval import corrected_difference, corrected_interval
from medtasks.stats.labelled_answers import LabelledAnswers
from medtasks.stats.prediction_powered import CorrectedMean, corrected_mean

LEAST, LEAST_ON_AVERAGE = 0.92, 0.945
"""Bounds of the coverage of each cell, with 50 labels or more, and of all on average."""
TRUTHS = (0.6, 0.9, 0.98)
LABELS = (50, 100, 200, 500)
FEW_LABELS = (6, 10, 15, 20, 30)
GRADES = 5
"""A graded answer has 0 to so many points."""


@dataclass(frozen=True)
class Judge:
    """How often a judge calls right answers right, and wrong answers wrong."""

    name: str
    sensitivity: float
    specificity: float


JUDGES = (
    Judge("never wrong", 1.0, 1.0),
    Judge("good: 95 % right", 0.95, 0.95),
    Judge("bad: 65 % right", 0.65, 0.65),
    Judge("lenient: accepts 40 % of wrong answers", 0.99, 0.6),
    Judge("strict: rejects 20 % of right answers", 0.8, 0.99),
)


@dataclass(frozen=True)
class Questions:
    """Numbers of clusters and of questions in each, and the correlation of a cluster's answers."""

    design: str
    clusters: int
    correlation: float


QUESTIONS = (
    Questions("nine each", 20, 0.3),
    Questions("nine each", 50, 0.1),
    Questions("unequal, nine on average", 200, 0.3),
    Questions("one question each", 1000, 0.0),
)


@dataclass(frozen=True)
class Study:
    """One score: 0 and 1 or ``graded``, its true mean, its judge, its questions and its labels."""

    truth: float
    judge: Judge
    questions: Questions
    labels: int
    graded: bool = False

    def draw(self) -> Draw:
        """The random numbers of the study."""
        questions = self.questions
        key = (self.truth, self.judge.name, questions.design, questions.clusters, self.labels)
        return generator(*key, float(self.graded))

    def clusters(self, draw: Draw) -> Rows:
        """The cluster of each question."""
        sizes = SIZES[self.questions.design](draw, self.questions.clusters)
        return np.repeat(np.arange(len(sizes)), sizes)

    def rates(self, draw: Draw) -> Array:
        """The chance of a right answer, or the mean grade, in each cluster."""
        questions = self.questions
        return rates_of(draw, self.truth, questions.correlation, (questions.clusters,))  # type: ignore[arg-type]

    def labelled(self, draw: Draw, clusters: Rows, rates: Array) -> LabelledAnswers:
        """Answers with verdicts, and labels of a sample as `medtasks rate` draws it: strata are two
        tasks times three classes of verdicts, with proportional allocation and at least two each.
        """
        true_scores = self._true_scores(draw, rates[clusters])
        judged = self._judged(draw, true_scores)
        tasks = draw.integers(0, 2, len(clusters))
        classes = np.minimum((judged * 3).astype(np.int64), 2)
        human = np.full(len(clusters), np.nan)
        weights = np.zeros(len(clusters))
        for stratum in range(6):
            members = np.flatnonzero(tasks * 3 + classes == stratum)
            share = round(self.labels * len(members) / len(clusters))
            drawn = draw.permutation(members)[: max(2, share)]
            human[drawn] = true_scores[drawn]
            weights[drawn] = len(members) / max(1, len(drawn))
        ones = np.ones(len(clusters))
        none = np.zeros(len(clusters), dtype=np.bool_)
        return LabelledAnswers(judged, human, ones, weights, classes, tasks, clusters, none)

    def _true_scores(self, draw: Draw, rates: Array) -> Array:
        """What people would give: right or wrong, or a grade of 0 to 5 as a share."""
        if not self.graded:
            return (draw.random(len(rates)) < rates).astype(np.float64)
        spread = draw.beta(4 * rates + 1e-9, 4 * (1 - rates) + 1e-9)
        return draw.binomial(GRADES, spread) / GRADES

    def _judged(self, draw: Draw, true_scores: Array) -> Array:
        """What the judge gives: a grade is moved by up to two points, in the judge's direction."""
        sensitivity, specificity = self.judge.sensitivity, self.judge.specificity
        chance = draw.random(len(true_scores))
        if not self.graded:
            return np.where(true_scores == 1, chance < sensitivity, chance >= specificity) * 1.0
        moved = draw.integers(-2, 3, len(true_scores)) / GRADES + sensitivity - specificity
        wrong = chance > (sensitivity + specificity) / 2
        grades = np.clip(true_scores + np.where(wrong, moved, 0.0), 0, 1)
        return np.round(grades * GRADES) / GRADES


@dataclass(frozen=True)
class Outcome:
    """Of many studies: the share of intervals that hold the truth, their mean width, and the mean
    effective number of labels as a multiple of the labels.
    """

    coverage: float
    width: float
    worth: float


def outcome(study: Study, studies: int) -> Outcome:
    """The outcome of so many studies."""
    draw = study.draw()
    held, widths, worths = [], [], []
    for _ in range(studies):
        clusters = study.clusters(draw)
        mean = corrected_mean(study.labelled(draw, clusters, study.rates(draw)))
        low, high = corrected_interval(mean)
        held.append(low <= study.truth <= high)
        widths.append(high - low)
        worths.append(mean.worth / mean.labels)
    return Outcome(float(np.mean(held)), float(np.mean(widths)), float(np.mean(worths)))


@dataclass(frozen=True)
class DifferenceOutcome:
    """Of many differences of two models: the shares of intervals that hold the true one, and of
    tests at 5 % that reject it, by labels and by the judge's scores alone.
    """

    coverage: float
    rejected: float
    judged_difference: float


def difference_outcome(first: Study, second: Study, studies: int) -> DifferenceOutcome:
    """Two models on the same questions: their rates in a cluster rise and fall together."""
    draw = first.draw()
    truth = first.truth - second.truth
    held, rejected, judged = [], [], []
    for _ in range(studies):
        clusters = first.clusters(draw)
        easy = first.rates(draw) / first.truth
        means: list[CorrectedMean] = []
        judged_scores = []
        for study in (first, second):
            answers = study.labelled(draw, clusters, np.minimum(1.0, easy * study.truth))
            means.append(corrected_mean(answers))
            judged_scores.append(float(answers.judged.mean()))
        difference = corrected_difference(means[0], means[1])
        held.append(difference.low <= truth <= difference.high)
        rejected.append(difference.p_value <= 0.05)
        judged.append(judged_scores[0] - judged_scores[1])
    return DifferenceOutcome(*(float(np.mean(values)) for values in (held, rejected, judged)))


def _row(name: str, cells: Sequence[str]) -> None:
    print(f"| {name} | {' | '.join(cells)} |")


def _header(name: str, columns: Sequence[object]) -> None:
    _row(name, [str(column) for column in columns])
    _row("---", ["---:" for _ in columns])


@dataclass(frozen=True)
class Extent:
    """How much is simulated: which judges, true scores and numbers of labels, in how many studies
    each; ``slack`` is how far below `LEAST` chance alone may bring the coverage of a cell.
    """

    studies: int
    judges: Sequence[Judge] = JUDGES
    truths: Sequence[float] = TRUTHS
    labels: Sequence[int] = LABELS
    slack: float = 0.0


WHOLE = Extent(1000)
QUICK = Extent(60, JUDGES[1:4:2], (0.6, 0.98), (50, 200), slack=0.08)


def scores_table(extent: Extent) -> list[Outcome]:
    """Prints a row for each judge and true score, with the lowest coverage over all questions, and
    the effective number of labels as a multiple of theirs, with one question each.
    """
    outcomes: list[Outcome] = []
    _header("judge, true score", [f"{labels} labels" for labels in extent.labels])
    for graded in (False, True):
        for judge in extent.judges:
            for truth in extent.truths:
                cells = []
                for labels in extent.labels:
                    by_questions = [
                        outcome(Study(truth, judge, questions, labels, graded), extent.studies)
                        for questions in QUESTIONS
                    ]
                    outcomes += by_questions
                    least = min(result.coverage for result in by_questions)
                    worth = by_questions[-1].worth
                    cells.append(f"**{least:.3f}** × {worth:.1f}")
                kind = "graded" if graded else "right or wrong"
                _row(f"{judge.name}; {kind}, {truth}", cells)
                sys.stdout.flush()
    return outcomes


def few_labels_table(studies: int) -> None:
    """Prints the lowest and the mean coverage with few labels, over all judges and questions."""
    _header("true score", [f"{labels} labels" for labels in FEW_LABELS])
    for truth in TRUTHS:
        cells = []
        for labels in FEW_LABELS:
            coverages = [
                outcome(Study(truth, judge, questions, labels, graded), studies).coverage
                for judge in JUDGES
                for questions in QUESTIONS
                for graded in (False, True)
            ]
            cells.append(f"**{min(coverages):.3f}** {np.mean(coverages):.3f}")
        _row(str(truth), cells)
        sys.stdout.flush()


def differences_table(extent: Extent) -> list[DifferenceOutcome]:
    """Prints a row for each pair of judges: that of the first model, and that of the second."""
    outcomes = []
    pairs = ((JUDGES[1], JUDGES[1]), (JUDGES[3], JUDGES[4]), (JUDGES[2], JUDGES[3]))
    _header("judge of A; of B", ["A", "B", "judged A - B", "coverage", "p ≤ 0.05"])
    for first_judge, second_judge in pairs:
        for first_truth, second_truth in ((0.6, 0.6), (0.6, 0.5), (0.9, 0.9)):
            for labels in extent.labels[::2]:
                # rates must not be cut at 1, so these questions do not correlate
                questions = QUESTIONS[-1]
                first = Study(first_truth, first_judge, questions, labels)
                second = Study(second_truth, second_judge, questions, labels)
                result = difference_outcome(first, second, extent.studies)
                outcomes.append(result)
                cells = [
                    f"{first_truth}",
                    f"{second_truth}",
                    f"{result.judged_difference:+.3f}",
                    f"**{result.coverage:.3f}**",
                    f"{result.rejected:.3f}",
                ]
                _row(f"{first_judge.name}; {second_judge.name}, {labels} labels each", cells)
                sys.stdout.flush()
    return outcomes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer designs and studies")
    extent = QUICK if parser.parse_args().quick else WHOLE
    scores = scores_table(extent)
    print()
    if extent is WHOLE:
        few_labels_table(extent.studies // 5)
        print()
    differences = differences_table(extent)
    coverages = [result.coverage for result in [*scores, *differences]]
    least, average = min(coverages), float(np.mean(coverages))
    print(f"\nlowest coverage {least:.3f}, on average {average:.3f}, {len(coverages)} cells")
    sys.exit(int(least < LEAST - extent.slack or average < LEAST_ON_AVERAGE))


if __name__ == "__main__":
    main()
