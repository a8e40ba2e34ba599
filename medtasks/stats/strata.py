"""Strata of a sample of labels, merged until each has enough labels."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from medtasks.core.errors import UsageError
from medtasks.stats.bootstrap import Rows

LEAST_LABELS = 2
"""A stratum with fewer labelled answers is merged with a neighbour: its variance is unknown."""


def merged_strata(strata: Rows, tasks: Rows, labelled: npt.NDArray[np.bool_]) -> Rows:
    """The numbers ``(n,)`` of the answers' strata, from 0, each with `LEAST_LABELS` labels.

    Strata are merged with the next ones of the same task, the last ones with those before (Cochran
    1977, section 5A.12), so neighbours should be alike.

    Args:
        strata: number of each answer's stratum ``(n,)`` within its task.
        tasks: number of each answer's task ``(n,)``.
        labelled: which answers have a label ``(n,)``.

    Raises:
        UsageError: a task has fewer labels.

    >>> strata = np.array([0, 0, 1, 2, 2])
    >>> labelled = np.array([True, True, True, False, False])
    >>> merged_strata(strata, np.zeros(5, dtype=np.int64), labelled)
    array([0, 0, 0, 0, 0])
    """
    keys = tasks * (int(strata.max()) + 1) + strata
    _, first_rows, numbers = np.unique(keys, return_index=True, return_inverse=True)
    labels = np.bincount(numbers[labelled], minlength=len(first_rows))
    task_of = tasks[first_rows]
    merged = np.zeros(len(first_rows), dtype=np.int64)
    begin = 0
    for task in np.unique(task_of):
        members = np.flatnonzero(task_of == task)
        places = _merged_places(labels[members])
        merged[members] = begin + places
        begin += int(places.max()) + 1
    return merged[numbers]


def _merged_places(labels: Rows) -> Rows:
    """For neighbouring strata with so many labels, the number of the merged stratum, from 0."""
    if labels.sum() < LEAST_LABELS:
        raise UsageError(
            f"a task has {labels.sum()} labelled answers, expected at least {LEAST_LABELS}; "
            "label more of its answers."
        )
    places = np.zeros(len(labels), dtype=np.int64)
    place = labels_in_place = 0
    for number, count in enumerate(labels.tolist()):
        if labels_in_place >= LEAST_LABELS:
            place += 1
            labels_in_place = 0
        places[number] = place
        labels_in_place += count
    if labels_in_place < LEAST_LABELS:
        places[places == place] = place - 1
    return places
