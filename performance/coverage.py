"""Coverage of the intervals of single scores, and level and power of the tests, on simulated
benchmarks.

The tables of docs/statistics.md are printed by this script; it exits with 1 if a bound is missed.
Seeds are fixed.

    python performance/coverage.py [--quick]
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from coverage_designs import SIZES, TEXTS, Text, generator, rates_of
from coverage_report import Section, print_sections

from medtasks.metrics.base import Array, MeanMetric
from medtasks.stats.bootstrap import TAILS, joint_resamples
from medtasks.stats.proportions import share_ends

LEAST, LEAST_ON_AVERAGE, WIDEST = 0.92, 0.945, 1.05
"""Bounds: coverage of every cell, coverage on average, and width relative to percentiles."""
ACCURACIES = (0.6, 0.9, 0.98)
CORRELATIONS = (0.0, 0.1, 0.3, 0.5)
CLUSTERS = (4, 6, 10, 20, 50, 100, 200)
BOUND_FROM = 10
EQUAL = ("one question each", "nine each")
TEXT_CLUSTERS = (20, 50)
TEXT_RATES = (0.6, 0.9)
TEXT_CORRELATIONS = (0.1, 0.3, 0.5)
MEAN = MeanMetric().score


@dataclass(frozen=True)
class Cell:
    """Accuracies of one design: the shares of intervals that hold the true one, and mean widths.

    ``percentile_coverage`` and ``percentile_width`` are those of percentiles of a cluster
    bootstrap; NaN if not simulated.
    """

    design: str
    accuracy: float
    correlation: float
    clusters: int
    coverage: float
    width: float
    percentile_coverage: float
    percentile_width: float

    @property
    def place(self) -> tuple[float, str, int]:
        """The row and column of the table; correlations share one."""
        return self.accuracy, self.design, self.clusters

    def __str__(self) -> str:
        design = f"{self.design}, icc {self.correlation}, {self.clusters} clusters"
        return f"accuracy {self.accuracy}, {design}"


def accuracy_cell(
    design: str, accuracy: float, correlation: float, clusters: int, studies: int, resampled: int
) -> Cell:
    """So many studies of one design; percentiles of the first ``resampled``."""
    draw = generator(design, accuracy, correlation, clusters)
    sizes = np.array([SIZES[design](draw, clusters) for _ in range(studies)])
    right = draw.binomial(sizes, rates_of(draw, accuracy, correlation, sizes.shape)).astype(
        np.float64
    )
    low, high = intervals_of(right, sizes.astype(np.float64))
    below, above = percentiles_of(right[:resampled], sizes[:resampled])
    return Cell(
        design,
        accuracy,
        correlation,
        clusters,
        coverage=float(np.mean((low <= accuracy) & (accuracy <= high))),
        width=float(np.mean(high[: resampled or None] - low[: resampled or None])),
        percentile_coverage=float(np.mean((below <= accuracy) & (accuracy <= above)))
        if resampled
        else np.nan,
        percentile_width=float(np.mean(above - below)) if resampled else np.nan,
    )


def intervals_of(right: Array, sizes: Array) -> tuple[Array, Array]:
    """Both ends of the intervals of accuracies, with right answers and questions ``(studies,
    clusters)``.
    """
    total, count = right.sum(axis=1), sizes.sum(axis=1)
    without = (total[:, None] - right) / (count[:, None] - sizes)
    return share_ends(total / count, without, right, sizes, total)


def percentiles_of(right: Array, sizes: Array) -> tuple[Array, Array]:
    """Both ends of the percentile intervals of a cluster bootstrap; all studies share its draws."""
    entries = [(np.column_stack(study), MEAN) for study in zip(right, sizes, strict=True)]
    low, high = np.quantile(joint_resamples(entries), TAILS, axis=1)
    return low, high


def accuracy_cells(quick: bool) -> list[Cell]:
    """All cells; in quick mode percentiles only where their width is compared."""
    studies, resampled = (2000, 0) if quick else (5000, 500)
    cells = []
    for design in SIZES:
        for accuracy in ACCURACIES:
            for correlation in (0.0,) if design == "one question each" else CORRELATIONS:
                for clusters in CLUSTERS:
                    compared = has_width_bound(design, accuracy, clusters)
                    number = 500 if compared else resampled
                    cells.append(
                        accuracy_cell(design, accuracy, correlation, clusters, studies, number)
                    )
    return cells


def has_width_bound(design: str, accuracy: float, clusters: int) -> bool:
    return design in EQUAL and accuracy == 0.6 and clusters >= 100


def accuracy_section(cells: list[Cell]) -> Section:
    """The lowest coverage over the intraclass correlations; in brackets that of percentiles."""
    rows = []
    for accuracy in ACCURACIES:
        for design in SIZES:
            row = [f"{accuracy}, {design}"]
            for clusters in CLUSTERS:
                place = (accuracy, design, clusters)
                chosen = [cell for cell in cells if cell.place == place]
                percentiles = min(cell.percentile_coverage for cell in chosen)
                text = shown(min(cell.coverage for cell in chosen))
                row.append(text if np.isnan(percentiles) else f"**{text}** {shown(percentiles)}")
            rows.append(tuple(row))
    bounded = [cell for cell in cells if cell.clusters >= BOUND_FROM]
    mean = fmean(cell.coverage for cell in bounded)
    missed = [f"{cell}: coverage {cell.coverage:.3f}" for cell in bounded if cell.coverage < LEAST]
    if mean < LEAST_ON_AVERAGE:
        missed.append(f"accuracies: coverage {mean:.3f} on average")
    title = (
        f"Intervals of accuracies: coverage, {mean:.3f} on average from {BOUND_FROM} clusters on"
    )
    return Section(title, ("accuracy, questions per cluster", *map(str, CLUSTERS)), rows, missed)


def width_section(cells: list[Cell]) -> Section:
    """Widths relative to percentiles, where those cover."""
    rows, missed = [], []
    for cell in cells:
        if has_width_bound(cell.design, cell.accuracy, cell.clusters):
            ratio = cell.width / cell.percentile_width
            numbers = (f"{cell.width:.4f}", f"{cell.percentile_width:.4f}", f"{ratio:.3f}")
            rows.append((str(cell), *numbers))
            if ratio > WIDEST:
                missed.append(f"{cell}: {ratio:.3f} times as wide as percentiles")
    return Section("Mean widths", ("", "interval", "percentiles", "ratio"), rows, missed)


def text_section(quick: bool) -> Section:
    """Coverage of scores of texts: the lowest over the intraclass correlations, or in quick mode
    their mean.
    """
    studies = 25 if quick else 1000
    rows, missed = [], []
    for text in TEXTS:
        for rate in TEXT_RATES:
            truths = {
                correlation: text.truth(rate, correlation) for correlation in TEXT_CORRELATIONS
            }
            for clusters in TEXT_CLUSTERS:
                row = [f"{text.name}, rate {rate}, {clusters} clusters"]
                covered: list[float] = []
                for design in SIZES:
                    shares = [
                        text_coverage(text, design, rate, correlation, clusters, truth, studies)
                        for correlation, truth in truths.items()
                    ]
                    covered += shares
                    row.append(shown(fmean(shares) if quick else min(shares)))
                    if not quick:
                        low = [share for share in shares if too_low(share, studies)]
                        missed += [f"{row[0]}, {design}: {share:.3f}" for share in low]
                if quick and too_low(fmean(covered), studies * len(covered)):
                    missed.append(f"{row[0]}: {fmean(covered):.3f} on average")
                rows.append(tuple(row))
    title = f"Intervals of scores of texts: {'mean' if quick else 'lowest'} coverage"
    return Section(title, ("score", *SIZES), rows, missed)


def text_coverage(
    text: Text,
    design: str,
    rate: float,
    correlation: float,
    clusters: int,
    truth: float,
    studies: int,
) -> float:
    draw = generator(text.name, design, rate, correlation, clusters)
    return fmean(
        text.covers(draw, SIZES[design](draw, clusters), rate, correlation, truth)
        for _ in range(studies)
    )


def too_low(coverage: float, studies: int) -> bool:
    """Whether a simulated coverage is below the bound by more than two standard errors of the
    simulation.
    """
    error = (LEAST * (1 - LEAST) / studies) ** 0.5
    return coverage < LEAST - 2 * error


def shown(share: float) -> str:
    return f"{share:.3f}".removeprefix("0")


def sections(quick: bool) -> Iterator[Section]:
    cells = accuracy_cells(quick)
    yield accuracy_section(cells)
    yield width_section(cells)
    yield text_section(quick)
    if importlib.util.find_spec("coverage_tests") is not None:
        yield from importlib.import_module("coverage_tests").sections(quick)


def main() -> None:
    """Simulate, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="fewer studies: under two minutes on two cores"
    )
    options = parser.parse_args()
    begin = time.perf_counter()
    missed = print_sections(sections(options.quick))
    print(f"{time.perf_counter() - begin:,.0f} s")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
