"""Limits for untrusted numbers: impossible values are refused when a directory is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from pydantic import BaseModel

from medtasks.errors import DataError
from medtasks.metrics import get_metric
from medtasks.metrics.base import Array
from medtasks.results.samples import Sample
from medtasks.results.scoring import Scores

from .board import Timeline

LARGEST = 1e12
"""Far above all real statistics, scores and times, and small enough for pages, figures and exports to print."""
_FIX = "restore the directory, or score it again: medtasks score DIR --out NEW_DIR"


def require_samples(place: str, samples: Sequence[Sample]) -> None:
    """Refuse samples with a number beyond `LARGEST`; ``place`` is their file.

    Raises:
        DataError: names the sample and the field.
    """
    for sample in samples:
        if all(map(LARGEST.__ge__, map(abs, _numbers(sample)))):
            continue
        fields = sample.model_dump(include={"scores", "statistics", "repeats", "judged"})
        for field, number in _beyond(fields):
            raise DataError(_message(f"{place}: sample {sample.sample_id}: field `{field}`", number))


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
    with np.errstate(all="ignore"):  # a single item may have no score
        scores = np.abs(get_metric(metric).score(known))
    if (scores > LARGEST).any():
        largest = float(scores.max(where=scores > LARGEST, initial=LARGEST))
        raise DataError(
            f"statistics of {metric}: an item's score is {largest:g}, expected {LARGEST:g} or less; {_FIX}."
        )


def require_scores(name: str, scores: Scores) -> None:
    """Refuse scores and intervals that are not a number or beyond `LARGEST`, including breakdowns.

    Raises:
        DataError: names the task or group, and the place in its scores.
    """
    for field, number in _beyond(scores):
        raise DataError(_message(f"{name}: {field}", number))


def require_timelines(shown: Sequence[Timeline]) -> None:
    """Refuse streaming items with a time beyond `LARGEST`.

    Raises:
        DataError: names the item.
    """
    for one in shown:
        for field, number in _beyond(one):
            raise DataError(_message(f"{one.task}: {field} of {one.item}", number))


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
