"""Untrusted numbers: what no score can be is refused while a directory is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import numpy as np

from medtasks.errors import DataError
from medtasks.metrics import get_metric
from medtasks.metrics.base import Array
from medtasks.results.samples import JudgedScore, Limits, Sample
from medtasks.results.scoring import MetricScore, Scores

from .board import Timeline

LARGEST = 1e12
"""Far above all our statistics, scores and times; pages, figures and exports can print everything below."""
_FIX = "restore the directory, or score it again: medtasks score FOLDER --out NEW_FOLDER"


def require_samples(place: str, samples: Sequence[Sample]) -> None:
    """Refuse samples with a number beyond `LARGEST`; ``place`` is their file.

    Raises:
        DataError: names the sample and the field.
    """
    for sample in samples:
        for field, number in _of_sample(sample):
            _require(f"{place}: sample {sample.sample_id}: field `{field}`", number)


def require_statistics(metric: str, rows: Array) -> None:
    """Refuse statistics ``(items, width)`` that score an item beyond `LARGEST` or count it negatively: a resample might
    do so even if the whole sample does not.

    Raises:
        DataError: names the metric.
    """
    known = rows[~np.isnan(rows).any(axis=1)]
    if known.shape[1] == 2 and (known[:, 1] < 0).any():
        raise DataError(
            f"statistics of {metric}: an item counts {known[:, 1].min():g} times, expected 0 or more; {_FIX}."
        )
    with np.errstate(all="ignore"):  # an item alone may have no score
        scores = np.abs(get_metric(metric).score(known))
    if (scores > LARGEST).any():
        _require(f"statistics of {metric}: an item's score", float(scores.max(where=scores > LARGEST, initial=LARGEST)))


def require_scores(name: str, scores: Scores) -> None:
    """Refuse scores and intervals that are not a number or beyond `LARGEST`, including breakdowns.

    Raises:
        DataError: names the task or group, and the metric.
    """
    for metric, score in scores.metrics.items():
        for number in _of_score(score):
            _require(f"{name}: {metric}", number)
    for breakdown, groups in scores.breakdowns.items():
        for group, inner in groups.items():
            require_scores(f"{name} by {breakdown}: {group}", inner)


def require_timelines(shown: Sequence[Timeline]) -> None:
    """Refuse streaming items with a time beyond `LARGEST`.

    Raises:
        DataError: names the item.
    """
    for one in shown:
        for number in (one.query_time, one.expected_time, one.tolerance, *(turn.time for turn in one.rounds)):
            _require(f"{one.task}: a time of {one.item}", number)


def _require(what: str, number: float | None) -> None:
    if number is not None and not abs(number) <= LARGEST:
        raise DataError(f"{what} is {number:g}, expected {LARGEST:g} or less; {_FIX}.")


def _of_sample(sample: Sample) -> Iterator[tuple[str, float | None]]:
    yield from ((f"scores.{name}", number) for name, number in sample.scores.items())
    yield from _of_rows("statistics", sample.statistics)
    for number, repeat in enumerate(sample.repeats):
        yield from _of_rows(f"repeats.{number}.statistics", repeat.statistics)
    for name, one in sample.judged.items():
        yield from ((f"judged.{name}", number) for number in _of_judged(one))


def _of_rows(field: str, rows: Mapping[str, Sequence[float]]) -> Iterator[tuple[str, float]]:
    for name, row in rows.items():
        if not sum(map(abs, row)) <= LARGEST:  # else no number of it is beyond that
            yield from ((f"{field}.{name}", number) for number in row)


def _of_judged(score: JudgedScore) -> Iterator[float]:
    every: list[Limits] = [score.limits, *score.repeats, *score.parts.values()]
    return (number for low, high in every for number in (*low, *high))


def _of_score(score: MetricScore) -> Iterator[float | None]:
    ends = chain(score.interval or (), score.bounds or ())
    repeats = score.repeats
    spread = () if repeats is None else (*repeats.values, repeats.mean, repeats.deviation, *repeats.interval)
    return chain((score.value,), ends, spread)
