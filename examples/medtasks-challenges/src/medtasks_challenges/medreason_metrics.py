"""What can be scored of MedReason replies on this machine, without the organisers' judges."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import numpy.typing as npt
from medtasks.api import MeanMetric, sign

from medtasks_challenges.explained import read_reply

UNKNOWN = "[unknown]"
"""The reference of a case without one: open cases, and hidden correct options."""


class OptionAccuracy(MeanMetric):
    """Share of multiple-choice cases with the correct option (0..1), of those whose correct option
    is known.
    """

    name = "medtasks_challenges_mcq_accuracy"
    signature = sign(name, match="label", unknown="left-out")

    def statistics(self, prediction: str, reference: str) -> npt.NDArray[np.float64]:
        """``(correct, 1)``; zeros if the correct option is unknown."""
        if reference == UNKNOWN:
            return np.zeros(2)
        return np.array([float(prediction == reference), 1.0])


class OpenWordF1(MeanMetric):
    """Mean F1 of the words in the answer and in the reference of open cases (0..1), of those whose
    reference is known.

    It is no metric of the challenge, whose open cases are scored by the organisers' judges; it
    shows whether a model answers at all. Words are runs of letters and digits, in lower case.
    """

    name = "medtasks_challenges_open_f1"
    signature = sign(name, words="letters-digits", unknown="left-out")

    def statistics(self, prediction: str, reference: str) -> npt.NDArray[np.float64]:
        """``(F1, 1)`` of a reply that `ExplainedReplyFilter` has filtered; zeros if the reference
        is unknown.
        """
        if reference == UNKNOWN:
            return np.zeros(2)
        said = _words(read_reply(prediction).answer)
        expected = _words(reference)
        shared = (said & expected).total()
        total = said.total() + expected.total()
        return np.array([2 * shared / total if total else 0.0, 1.0])


def _words(text: str) -> Counter[str]:
    """The words of a text with their numbers."""
    return Counter(re.findall(r"\w+", text.lower()))


METRICS = (OptionAccuracy(), OpenWordF1())
