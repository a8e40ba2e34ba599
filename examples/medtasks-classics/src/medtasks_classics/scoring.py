"""How answers are scored: two metrics that LLaVA-Med introduced for open answers.

The metrics follow ``llava/eval/eval_metrics`` of github.com/microsoft/LLaVA-Med, whose numbers
papers compare with.
"""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import numpy.typing as npt
from medtasks.api import MeanMetric, scored_by, sign

choice = scored_by()
closed = scored_by()
open_answer = scored_by()
open_zh = scored_by()


_MARKS = ';/[]"{}()=+\\_-><@`,?!'
_NUMBERS = {
    word: str(number) for number, word in enumerate("zero one two three four five six seven eight nine ten".split())
}
_NUMBERS["none"] = "0"


def words_of(text: str) -> Counter[str]:
    """The words of an answer as LLaVA-Med counts them: lower case, numbers as digits, no articles
    and punctuation.

    A mark is deleted where the text has it beside a blank, and becomes a blank otherwise. The
    restored apostrophes of LLaVA-Med (``dont``) are left out.

    >>> sorted(words_of("The left-sided mass, two nodules."))
    ['2', 'left', 'mass', 'nodules', 'sided']
    """
    kept = text
    for mark in _MARKS:
        beside = f"{mark} " in text or f" {mark}" in text or re.search(r"\d,\d", text)
        kept = kept.replace(mark, "" if beside else " ")
    words = re.sub(r"\.(?!\d)", "", kept).lower().split()
    return Counter(word for word in (_NUMBERS.get(word, word) for word in words) if word not in ("a", "an", "the"))


class Recall(MeanMetric):
    """Mean share of the reference's words that the answer contains (0..1); LLaVA-Med's score of
    open answers.

    A word of the answer counts as often as the answer repeats it, as there.
    """

    name = "medtasks_classics_recall"
    signature = sign(name, words="llava-med", mean="samples")

    def statistics(self, prediction: str, reference: str) -> npt.NDArray[np.float64]:
        """``(recall of one answer, 1)``."""
        said, expected = words_of(prediction), words_of(reference)
        hits = sum(count for word, count in said.items() if word in expected)
        missed = sum(count for word, count in expected.items() if word not in said)
        return np.array([hits / (hits + missed) if hits else 0.0, 1.0])


class Exact(MeanMetric):
    """LLaVA-Med's *exact match*: mean of the reference's distinct words in the answer over the
    answer's words (0..1).

    It falls with every word that the reference lacks, and is 1 for a proper part of the reference,
    too.
    """

    name = "medtasks_classics_exact"
    signature = sign(name, words="llava-med", mean="samples")

    def statistics(self, prediction: str, reference: str) -> npt.NDArray[np.float64]:
        """``(score of one answer, 1)``."""
        said, expected = words_of(prediction), words_of(reference)
        return np.array([len(said.keys() & expected.keys()) / max(1, said.total()), 1.0])
