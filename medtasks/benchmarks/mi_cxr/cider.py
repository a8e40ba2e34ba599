"""CIDEr of generated reports, a metric of MI-CXR alone.

"CIDEr" is CIDEr-D of Vedantam, Zitnick and Parikh (CVPR 2015), as the reference package's class
``Cider`` computes it (``pycocoevalcap`` 1.2, whose numbers papers print as "CIDEr"): clipped
weights, a length penalty and a factor of 10.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from medtasks.metrics.base import MeanMetric, package_version, sign
from medtasks.metrics.facts import NOT_IN_SUMMARY, MetricFacts
from medtasks.metrics.nltk_library import import_nltk

MAX_ORDER = 4
SIGMA = 6.0
SCALE = 10.0

PUNCTUATION = frozenset(("''", "'", "``", "`", ".", "?", "!", ",", ":", "-", "--", "...", ";"))
"""Tokens left out, as COCO's ``PTBTokenizer`` does. Its list also has brackets (``-LRB-``), but it
compares with lower-cased tokens (``-lrb-``), so brackets stay in its texts, and here.
"""

# What the Stanford tokenizer behind COCO's rewrites to ASCII before the list above applies; chat
# models write these.
_TO_ASCII = str.maketrans(
    dict.fromkeys("‘’", "'")
    | dict.fromkeys("“”«»", '"')
    | dict.fromkeys("‒–—―", "--")
    | {"…": "..."}
)

_Gram: TypeAlias = tuple[str, ...]
_Weights: TypeAlias = dict[_Gram, float]


class CiderCorpus:
    """Document frequencies of a corpus, and the CIDEr-D (0..10) of single pairs under them.

    The corpus has one text per sample of the whole set that is reported, repeats included.

    For n-grams of each order n = 1..4, g(text) is the vector of counts times ``ln(N / max(1,
    df))``: N references in all, df of them with the n-gram. With l(text) the number of tokens, the
    score of a pair is ::

        10 * exp(-(l(p) - l(r))**2 / (2 * 6**2)) * mean over n of  sum(min(g(p), g(r)) * g(r)) /
        (|g(p)| |g(r)|)

    An order in which either vector is zero contributes 0 and still counts in the mean. As in the
    reference implementation, weights are raw counts and words are not stemmed. Sums are exact
    before one rounding (``math.fsum``).
    """

    def __init__(self, references: Sequence[str]) -> None:
        self.documents = len(references)
        self._frequency: Counter[_Gram] = Counter()
        for text in references:
            self._frequency.update(set(_grams(cider_tokens(text))))

    def score(self, prediction: str, reference: str) -> float:
        """CIDEr-D, 0..10, of one pair; the reference is meant to be one of the corpus."""
        predicted = cider_tokens(prediction)
        expected = cider_tokens(reference)
        weights_by_order = zip(self._weights(predicted), self._weights(expected), strict=True)
        cosines = [_clipped_cosine(*weights) for weights in weights_by_order]
        penalty = math.exp(-((len(predicted) - len(expected)) ** 2) / (2 * SIGMA**2))
        return SCALE * penalty * (math.fsum(cosines) / MAX_ORDER)

    def _weights(self, tokens: Sequence[str]) -> list[_Weights]:
        """The weights of the n-grams in a text, by order."""
        by_order: list[_Weights] = [{} for _ in range(MAX_ORDER)]
        for gram, count in Counter(_grams(tokens)).items():
            rarity = math.log(self.documents / max(1, self._frequency[gram]))
            by_order[len(gram) - 1][gram] = count * rarity
        return by_order


def _clipped_cosine(predicted: _Weights, expected: _Weights) -> float:
    """The cosine of two vectors, the first clipped to the second; 0 if either is zero."""
    predicted_square = math.fsum(weight * weight for weight in predicted.values())
    expected_square = math.fsum(weight * weight for weight in expected.values())
    if predicted_square == 0 or expected_square == 0:
        return 0.0
    dot = math.fsum(
        min(predicted[gram], weight) * weight
        for gram, weight in expected.items()
        if gram in predicted
    )
    # a single root, so that equal vectors have a cosine of exactly 1
    return dot / math.sqrt(predicted_square * expected_square)


def cider_tokens(text: str) -> list[str]:
    """The tokens that CIDEr counts (``tok:treebank-nopunct``).

    These are NLTK's Penn Treebank word rules on the lower-cased text as one line, without final
    periods and :data:`PUNCTUATION`.

    On plain clinical prose these are the tokens of COCO's Java program, save for brackets
    (``-lrb-``) and abbreviations (``vs.``), which matter only where a corpus holds both spellings.
    They differ on markup (``**``, ``<b>``).

    >>> cider_tokens("No effusion. The patient’s heart (T1–T2) isn't enlarged!")
    ['no', 'effusion', 'the', 'patient', "'s", 'heart', '(', 't1', 't2', ')', 'is', "n't",
    'enlarged']
    """
    line = " ".join(text.lower().translate(_TO_ASCII).split())
    words = (token.rstrip(".") for token in import_nltk().NLTKWordTokenizer().tokenize(line))
    return [word for word in words if word and word not in PUNCTUATION]


def _grams(tokens: Sequence[str]) -> Iterator[_Gram]:
    for order in range(1, MAX_ORDER + 1):
        for start in range(len(tokens) - order + 1):
            yield tuple(tokens[start : start + order])


class Cider(MeanMetric):
    """Mean CIDEr-D over samples (0..10).

    Document frequencies come from all references of the task.
    """

    name = "cider"
    facts = MetricFacts(
        unit="score",
        headline=NOT_IN_SUMMARY,
        item_bounds=(0.0, SCALE),
        cited=("vedantam2015cider",),
    )

    @property
    def signature(self) -> str:
        """Formula, orders, penalty, source of the document frequencies, and tokenizer."""
        return sign(
            self.name,
            formula="cider-d",
            n=MAX_ORDER,
            sigma=f"{SIGMA:g}",
            clip="yes",
            scale=f"{SCALE:g}",
            df="corpus",
            refs=1,
            stem="no",
            case="lower",
            tok="treebank-nopunct",
            nltk=package_version("nltk"),
        )
