"""Limits for untrusted numbers: impossible values are refused when a directory is read."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from pydantic import BaseModel

from medtasks.core.errors import DataError
from medtasks.metrics.base import Array, MeanMetric
from medtasks.metrics.learned import LEARNED
from medtasks.metrics.registry import get_metric, is_ours
from medtasks.runs.samples import Sample
from medtasks.runs.scores import Scores

from ..board.board import Timeline
from ..board.columns import unit_of

LARGEST = 1e12
"""Far above all real statistics, scores and times, and small enough for pages, figures and exports to print."""
ROUNDING = 1e-9
_SCALE = re.compile(r"\|scale:(?:0-)?(\d+(?:\.\d+)?)(?:\||$)")
_FIX = "restore the directory, or score it again: medtasks score DIR --out NEW_DIR"


def require_samples(place: str, samples: Sequence[Sample]) -> None:
    """Refuse samples with a number beyond `LARGEST`, or that count more than once in a mean; ``place`` is their file.

    Raises:
        DataError: names the sample and the field.
    """
    for sample in samples:
        _require_weights(place, sample)
        if all(map(LARGEST.__ge__, map(abs, _numbers(sample)))):
            continue
        fields = sample.model_dump(include={"scores", "statistics", "repeats", "judged"})
        for field, number in _beyond(fields):
            raise DataError(_message(f"{place}: sample {sample.sample_id}: field `{field}`", number))


def _require_weights(place: str, sample: Sample) -> None:
    """A sample counts once in a mean of ours, or once per repeat. Judged ones count by aspects, which their rubric
    gives, and a package's mean may count anything, such as words."""
    most = max(1, len(sample.repeats)) + ROUNDING
    for name, row in sample.statistics.items():
        if len(row) == 2 and row[1] > most and name not in sample.judged and _counts_samples(name):
            raise DataError(
                f"{place}: sample {sample.sample_id}: field `statistics.{name}.1` is {row[1]:g}, expected {most:.0f} "
                f"or less; {_FIX}."
            )


@functools.cache
def _counts_samples(metric: str) -> bool:
    return is_ours(metric) and isinstance(get_metric(metric), MeanMetric)


@functools.cache
def bounds_of(metric: str) -> tuple[float, float]:
    """The smallest and the largest score of an item: by the scale in the metric's signature, or 0 to 1 for our
    fractions. Only the upper end is known of learned metrics, and none of others."""
    scale = _SCALE.search(get_metric(metric).signature)
    unit = unit_of(metric)
    if scale is None and not (is_ours(metric) and unit in ("fraction", "points")):
        return -LARGEST, LARGEST
    top = float(scale[1]) if scale is not None else {"fraction": 1.0, "points": 100.0}[unit]
    return -LARGEST if metric in LEARNED else 0.0, top


def _numbers(sample: Sample) -> list[float]:
    """All scores and statistics of a sample."""
    rows = [*sample.statistics.values()]
    for repeat in sample.repeats:
        rows += repeat.statistics.values()
    for judged in sample.judged.values():
        for limits in (judged.limits, *judged.repeats, *judged.parts.values()):
            rows += limits
    return [*chain.from_iterable(rows), *(score for score in sample.scores.values() if score is not None)]


def require_statistics(metric: str, rows: Array) -> None:
    """Refuse statistics ``(items, width)`` that score an item beyond :func:`bounds_of` the metric or count it
    negatively: a resample might do so even if the whole sample does not.

    Raises:
        DataError: names the metric.
    """
    known = rows[~np.isnan(rows).any(axis=1)]
    if known.shape[1] == 2 and (known[:, 1] < 0).any():
        raise DataError(
            f"statistics of {metric}: an item counts {known[:, 1].min():g} times, expected 0 or more; {_FIX}."
        )
    low, high = bounds_of(metric)
    with np.errstate(all="ignore"):  # a single item may have no score
        scores = get_metric(metric).score(known)
    beyond = scores[(scores < low - ROUNDING) | (scores > high * (1 + ROUNDING))]
    if beyond.size:
        raise DataError(
            f"statistics of {metric}: an item's score is {beyond[0]:g}, expected {low:g} to {high:g}; {_FIX}."
        )


def require_numbers(name: str, value: Scores | Timeline, of: str = "") -> None:
    """Refuse scores, intervals and times that are not a number or beyond `LARGEST`, including breakdowns.

    Raises:
        DataError: names the task or group, and the field ``of`` an item.
    """
    for field, number in _beyond(value):
        raise DataError(_message(f"{name}: {field}{of}", number))


def _beyond(value: Any, field: str = "") -> Iterator[tuple[str, float]]:
    """The numbers beyond `LARGEST` in a value, and where they are."""
    if isinstance(value, float | int):
        if not abs(value) <= LARGEST:
            yield field, value
        return
    inner: Any = ()
    if isinstance(value, Mapping):
        inner = value.items()
    elif isinstance(value, BaseModel):
        inner = value
    elif isinstance(value, list | tuple):
        inner = enumerate(value)
    for key, one in inner:
        yield from _beyond(one, f"{field}.{key}" if field else str(key))


def _message(place: str, number: float) -> str:
    return f"{place} is {number:g}, expected {LARGEST:g} or less; {_FIX}."
