"""Size, power and coverage of paired comparisons with few and many clusters, on simulated studies.

The studies are those of ``tests/stats/simulated.py``. For each design and number of clusters: how
often the cluster sign-flip test, Student's t with the jackknife's standard error, and a normal
distribution with the same standard error reject at the 5 % level, and how often 95 % intervals (of
the sign-flip test, by t, and percentiles of the cluster bootstrap) hold the truth.

    python performance/paired_test.py [--studies N] [--clusters N ...] [--seed S]
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
from scipy.special import stdtrit

from medtasks.metrics.base import Array
from medtasks.metrics.registry import get_metric
from medtasks.stats.bootstrap import TAILS, joint_resamples
from medtasks.stats.sign_flips import exact_share, saddlepoint_share

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "stats"))
from simulated import (
    EVEN,
    HEAVY,
    SINGLE,
    UNEQUAL,
    Rates,
    Study,
    alike,
    apart,
    by_size,
    skewed,
    studies,
)

EQUAL: dict[str, tuple[str, str, Rates]] = {
    "accuracy, even clusters": ("accuracy", EVEN, alike()),
    "accuracy, unequal clusters": ("accuracy", UNEQUAL, alike()),
    "accuracy, very unequal clusters": ("accuracy", HEAVY, alike()),
    "accuracy, one question a cluster": ("accuracy", SINGLE, alike()),
    "accuracy of 0.95, unequal clusters": ("accuracy", UNEQUAL, alike(0.95)),
    "BLEU, unequal clusters": ("bleu", UNEQUAL, alike()),
    "BLEU, very unequal clusters": ("bleu", HEAVY, alike()),
    "chrF, unequal clusters": ("chrf", UNEQUAL, alike()),
    "accuracy, equal on average, lead in few clusters": ("accuracy", UNEQUAL, skewed),
    "accuracy, equal on average, lead in large clusters": ("accuracy", UNEQUAL, by_size),
    "BLEU, equal on average, lead in large clusters": ("bleu", UNEQUAL, by_size),
}
DIFFERENT: dict[str, tuple[str, str, Rates]] = {
    "accuracy, 0.75 against 0.5": ("accuracy", UNEQUAL, apart(0.75, 0.5)),
    "BLEU, 0.75 against 0.5": ("bleu", UNEQUAL, apart(0.75, 0.5)),
    "chrF, 0.75 against 0.5": ("chrf", UNEQUAL, apart(0.75, 0.5)),
}


def share(held: list[bool]) -> str:
    return f"{np.mean(held):.3f}"


def percentile_covers(study: Study, metric: str) -> bool:
    """Whether the percentile interval of the resampled difference holds 0."""
    score, width = get_metric(metric).score, get_metric(metric).width

    def difference(sums: Array) -> Array:
        return score(sums[..., :width]) - score(sums[..., width:])

    low, high = np.quantile(joint_resamples([(study.sums, difference)])[0], TAILS)
    return bool(low <= 0 <= high)


def by_t(study: Study) -> bool:
    return beyond(study, float(stdtrit(study.found.clusters - 1, 0.975)))


def by_normal(study: Study) -> bool:
    return beyond(study, 1.959964)


def beyond(study: Study, errors: float) -> bool:
    """Whether the difference is so many standard errors from 0."""
    error = study.found.standard_error
    return error is not None and abs(study.found.difference) > errors * error


def approximation(seed: int) -> None:
    """The saddlepoint approximation beside the exact test, with as many clusters as that can
    take.
    """
    draw = np.random.default_rng(seed)
    print(
        "| approximate / exact p-value of 26 clusters, p < 0.2 | 5 % | median | 95 % "
        "|\n|---|---:|---:|---:|"
    )
    for name, tail in (
        ("differences of normal distribution", 0.0),
        ("a few clusters outweigh the others", 1.2),
    ):
        ratios = []
        for _ in range(500):
            scaled = draw.normal(0.4, 1, 26) * draw.lognormal(0, tail, 26)
            sizes, times = np.unique(np.abs(scaled), return_counts=True)
            exact = exact_share(sizes, times, abs(scaled.sum()))
            assert exact is not None
            if exact < 0.2:
                ratios.append(saddlepoint_share(sizes, times, abs(scaled.sum())) / exact)
        low, median, high = np.quantile(ratios, [0.05, 0.5, 0.95])
        print(f"| {name} | {low:.3f} | {median:.3f} | {high:.3f} |")


def equal_models(count: int, clusters: list[int], seed: int) -> None:
    """How often each test rejects that equal models are equal, and each interval holds 0."""
    covers = "sign flips cover | t cover | percentiles cover"
    print(f"| equal models | clusters | sign flips | t | normal | {covers} |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for name, (metric, sizes, rates) in EQUAL.items():
        for number in clusters:
            simulated = list(
                studies(count, number, metric=metric, sizes=sizes, rates=rates, seed=seed)
            )
            has_intervals = simulated[0].found.low is not None
            covered = "none"
            if has_intervals:
                covered = share([study.covers(0.0) for study in simulated])
            resampled = simulated[: max(1, count // 4)]
            cells = [
                share([study.rejected for study in simulated]),
                share([by_t(study) for study in simulated]),
                share([by_normal(study) for study in simulated]),
                covered,
                share([not by_t(study) for study in simulated]),
                share([percentile_covers(study, metric) for study in resampled]),
            ]
            print(f"| {name} | {number} | {' | '.join(cells)} |", flush=True)


def different_models(count: int, clusters: list[int], seed: int) -> None:
    """How often each test detects that different models are different."""
    print("\n| different models | clusters | sign flips | t |\n|---|---:|---:|---:|")
    for name, (metric, sizes, rates) in DIFFERENT.items():
        for number in clusters:
            simulated = list(
                studies(count, number, metric=metric, sizes=sizes, rates=rates, seed=seed)
            )
            by_flips = share([study.rejected for study in simulated])
            by_student = share([by_t(study) for study in simulated])
            print(f"| {name} | {number} | {by_flips} | {by_student} |")


def main() -> None:
    """Simulate, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--studies", type=int, default=4000)
    parser.add_argument("--clusters", type=int, nargs="+", default=[4, 6, 8, 15, 20, 30, 200])
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    begin = time.perf_counter()
    print(f"{options.studies:,} studies each, seed {options.seed}\n")
    equal_models(options.studies, options.clusters, options.seed)
    different_models(options.studies // 2, options.clusters, options.seed + 1)
    print()
    approximation(options.seed)
    print(f"\n{time.perf_counter() - begin:,.0f} s")


if __name__ == "__main__":
    main()
