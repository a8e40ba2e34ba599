"""The items that two runs share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from medtasks.scoring.columns import Mask, Rows

from ..verify.entries import Entry

Texts = npt.NDArray[np.str_]


@dataclass(frozen=True)
class SharedRows:
    """The rows of the items that two entries share.

    ``differing`` counts items with other questions or gold answers.
    """

    here: Rows
    there: Rows
    differing: int


def shared_rows(first: Entry, second: Entry) -> SharedRows:
    """The items of both that have the same question.

    None if the entries claim the same data and disagree about a question: the items on which they
    agree are a choice of one of them.
    """
    _, here, there = np.intersect1d(
        first.items, second.items, assume_unique=True, return_indices=True
    )
    questions_here = np.array(first.questions)[here]
    questions_there = np.array(second.questions)[there]
    same_question = _asked_the_same(questions_here, questions_there)
    differing = int(np.count_nonzero(~same_question))
    if differing and first.fingerprint == second.fingerprint:
        same_question[:] = False
    return SharedRows(here[same_question], there[same_question], differing)


def _asked_the_same(first: Texts, second: Texts) -> Mask:
    """By item whether both runs have the same question, as far as they have their own documents."""
    same: Mask = (first == second) | (first == "") | (second == "")
    return same
