"""Level of the paired test, its warnings, and the power that `medtasks plan` promises, on simulated
studies.

The sections of ``performance/coverage.py`` on tests; alone:

    python performance/coverage_tests.py [--quick]
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from coverage_designs import SIZES as DESIGNS
from coverage_designs import Draw, Integers
from coverage_report import Section, print_sections
from medtasks.leaderboard.rank.pilots import Contributions
from medtasks.leaderboard.rank.plan_basis import Basis, basis_of_pair, basis_of_score
from medtasks.leaderboard.rank.power import RightOrWrong

from medtasks.metrics.base import Array, MeanMetric
from medtasks.stats.cautions import FEW_FILLED, UNLIKE_COVERAGE, filled_clusters
from medtasks.stats.paired import clustered_score, paired_difference
from medtasks.stats.sign_flips import sign_flip_p

SIZES = {name.partition(",")[0]: sizes for name, sizes in DESIGNS.items()}
"""Questions per cluster by design; the short names are part of the seeds."""
ACCURACIES = (0.6, 0.9, 0.98)
CORRELATIONS = ((0.3, 0.3), (0.5, 0.1), (0.5, 0.0))
"""Of both models; models of unequal correlations are equal only on average."""
LEVEL = 0.05
EXCHANGEABLE, WARNED_ABOVE, OFTEN = 0.06, 0.07, 0.5
"""Bounds: false alarms of exchangeable models; of others, above which so many studies carry a
warning.
"""
POWER = (0.77, 0.83)
SEED = 0


@dataclass(frozen=True)
class Cell:
    """One design: the share of studies that tell equal models apart, and the share that is warned
    of.
    """

    alarms: float
    warned: float

    def __str__(self) -> str:
        return f"{self.alarms:.3f} ({100 * self.warned:.0f} %)"


def right_answers(draw: Draw, accuracy: float, correlation: float, sizes: Integers) -> Array:
    """Right answers by cluster, whose rates have a beta distribution of this intraclass
    correlation.
    """
    rates = np.full(len(sizes), accuracy)
    if correlation:
        both = 1 / correlation - 1
        rates = draw.beta(accuracy * both, (1 - accuracy) * both, len(sizes))
    return draw.binomial(sizes, rates).astype(np.float64)


def false_alarms(
    design: str, clusters: int, accuracy: float, correlations: tuple[float, float], studies: int
) -> Cell:
    """Two models of equal accuracy."""
    draw = np.random.default_rng(
        [SEED, clusters, round(100 * accuracy), round(10 * sum(correlations)), len(design)]
    )
    alarms = warned = 0
    for _ in range(studies):
        sizes = SIZES[design](draw, clusters)
        first, second = (
            right_answers(draw, accuracy, correlation, sizes) for correlation in correlations
        )
        alarms += sign_flip_p(first - second) <= LEVEL
        sides = (np.column_stack([side, sizes]) for side in (first, second))
        warned += filled_clusters(*sides, sizes.astype(np.float64)) < FEW_FILLED
    return Cell(alarms / studies, warned / studies)


def type_one_errors(quick: bool) -> Section:
    """Whether equal models are told apart, and whether that is warned of."""
    studies = 150 if quick else 1000
    counts = (50, 500) if quick else (20, 50, 100, 200, 500)
    rows, missed = [], []
    for correlations in CORRELATIONS:
        for design in SIZES:
            if design == "one question each" and len(set(correlations)) > 1:
                continue  # a lone answer is correlated with nothing, so the models are exchangeable
            for accuracy in ACCURACIES:
                cells = [
                    false_alarms(design, count, accuracy, correlations, studies) for count in counts
                ]
                correlated = f"icc {correlations[0]:g} and {correlations[1]:g}"
                which = f"{correlated}, accuracy {accuracy:g}, {design}"
                rows.append((which, *map(str, cells)))
                for count, cell in zip(counts, cells, strict=True):
                    error = math.sqrt(
                        max(cell.alarms * (1 - cell.alarms), LEVEL * (1 - LEVEL)) / studies
                    )
                    least = (
                        cell.alarms - 2.5 * error
                    )  # above the bound beyond what chance makes of one of many cells
                    if len(set(correlations)) == 1 and least > EXCHANGEABLE:
                        missed.append(
                            f"paired test, {which}, {count} clusters: false alarms "
                            f"{cell.alarms:.3f}"
                        )
                    if least > WARNED_ABOVE and cell.warned < OFTEN:
                        missed.append(
                            f"paired test, {which}, {count} clusters: {cell}, warned too rarely"
                        )
    title = (
        "False alarms of the paired test at the 5 % level, and studies that are warned of "
        f"({studies:,} studies each)"
    )
    return Section(title, ("models, clusters", *map(str, counts)), rows, missed)


def unlike_coverage(quick: bool) -> Section:
    """Scores over the questions that a model answers, of which one answers 95 %."""
    studies = 100 if quick else 1000
    answered = (0.95, 0.8, 0.6, 0.4)
    rows, missed = [], []
    for design in ("nine each", "log-normal"):
        cells = []
        for share in answered:
            draw = np.random.default_rng([SEED, round(100 * share), len(design)])
            alarms = warned = 0
            for _ in range(studies):
                sizes = SIZES[design](draw, 100)
                sides = []
                for accuracy in (0.95, share):
                    counts = right_answers(draw, accuracy, 0.3, sizes).astype(np.int64)
                    table = np.column_stack([right_answers(draw, 0.6, 0.3, counts), counts])
                    sides.append(clustered_score(table, np.arange(100), MeanMetric().score))
                difference = paired_difference(*sides)
                alarms += difference.p_value is not None and difference.p_value <= LEVEL
                warned += UNLIKE_COVERAGE in difference.cautions
            cell = Cell(alarms / studies, warned / studies)
            cells.append(cell)
            if (
                cell.alarms > WARNED_ABOVE + 2.5 * math.sqrt(LEVEL / studies)
                and cell.warned < OFTEN
            ):
                missed.append(
                    f"paired test, {design}, {share:.0%} answered: {cell}, warned too rarely"
                )
        rows.append((design, *map(str, cells)))
    title = (
        "False alarms if one model answers 95 % and the other fewer, 100 clusters "
        f"({studies:,} studies each)"
    )
    return Section(
        title, ("clusters", *(f"{100 * share:.0f} %" for share in answered)), rows, missed
    )


def true_power(
    population: RightOrWrong, sizes: Integers, difference: float, draw: Draw, studies: int
) -> float:
    drawn = (population.differences(sizes, difference, draw) for _ in range(studies))
    return sum(sign_flip_p(differences) <= LEVEL for differences in drawn) / studies


def assumed_power(quick: bool) -> Section:
    """The true power at the difference that `plan` prints without a pilot."""
    studies = 300 if quick else 4000
    counts = (50,) if quick else (20, 50, 200)
    rows, missed = [], []
    for design in SIZES:
        for score in (0.6,) if quick else (0.6, 0.9):
            cells = []
            for count in counts:
                draw = np.random.default_rng([SEED, count, round(10 * score), len(design)])
                sizes = SIZES[design](draw, count)
                population = RightOrWrong(score, 0.2)
                difference = Basis(population, "").detectable(sizes)
                assert difference is not None
                power = true_power(population, sizes, difference, draw, studies)
                cells.append(f"{power:.3f} (at {difference:.3f})")
                slack = 2.5 * math.sqrt(0.16 / studies)
                if not POWER[0] - slack <= power <= POWER[1] + slack:
                    missed.append(
                        f"plan, {design}, score {score:g}, {count} clusters: power {power:.3f}"
                    )
            rows.append((f"score {score:g}, {design}", *cells))
    title = (
        f"True power at the difference that plan prints, without a pilot ({studies:,} studies each)"
    )
    return Section(title, ("clusters", *map(str, counts)), rows, missed)


def pilot_power(pilots: int, studies: int = 200) -> Section:
    """The mean of the true power at the differences that `plan` prints after one pilot run or
    two.
    """
    rows, missed = [], []
    for design, counts in (("nine each", (50,)), ("log-normal", (50,))):
        for count in counts:
            draw = np.random.default_rng([SEED, count, len(design)])
            sizes = SIZES[design](draw, count)
            population = RightOrWrong(0.6, 0.2)
            powers: dict[str, list[float]] = {"one": [], "two": []}
            for _ in range(pilots):
                first, second = (right_answers(draw, 0.6, 0.2, sizes) for _ in range(2))
                bases = {"one": basis_of_score(contributed(first, sizes, right=first))}
                bases["two"] = basis_of_pair(contributed(first - second, sizes))
                for name, basis in bases.items():
                    difference = basis.detectable(
                        sizes, studies=80
                    )  # errors of single results average out
                    assert difference is not None
                    powers[name].append(true_power(population, sizes, difference, draw, studies))
            means = {name: float(np.mean(values)) for name, values in powers.items()}
            rows.append(
                (f"{design}, {count} clusters", *(f"{mean:.3f}" for mean in means.values()))
            )
            for name, mean in means.items():
                slack = 2.5 * float(np.std(powers[name])) / math.sqrt(pilots)
                if not POWER[0] - slack <= mean <= POWER[1] + slack:
                    missed.append(
                        f"plan, {name} pilot, {design}, {count} clusters: power {mean:.3f}"
                    )
    title = (
        "Mean true power at the difference that plan prints after one pilot run or two "
        f"({pilots} pilots each)"
    )
    return Section(title, ("clusters", "one pilot", "two pilots"), rows, missed)


def contributed(sums: Array, sizes: Integers, right: Array | None = None) -> Contributions:
    """What each cluster adds to a mean beyond its share of the items."""
    deviations = (sums - sizes / sizes.sum() * sums.sum()) / sizes.sum()
    return Contributions(deviations, sizes, right)


def sections(quick: bool) -> Iterator[Section]:
    """All tables, each as it is finished."""
    yield type_one_errors(quick)
    yield unlike_coverage(quick)
    yield assumed_power(quick)
    if not quick:
        yield pilot_power(20)


def main() -> None:
    """Simulate, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="fewer studies: under a minute on one core"
    )
    sys.exit(1 if print_sections(sections(parser.parse_args().quick)) else 0)


if __name__ == "__main__":
    main()
