"""MI-CXR: kinds of error (changes invented, missed, or in another interval; the paper's reasoning failures), and CIDEr.

Appendix G (Figures 25 to 27) sorts wrong answers into four failures, without saying how. Gold answers allow this
reading, in which every wrong option is exactly one of them:

- *abstention under uncertainty*: the null option, though another is right;
- *forced choice under insufficient evidence*: another option, though the null option is right; in ICR any wrong
  statement;
- *failure of temporal exclusivity*: in TEL, another interval than the right one;
- *failure of global integration*: in GTS, another course than the right one.

"CIDEr" is CIDEr-D of Vedantam, Zitnick and Parikh (CVPR 2015), as the reference package's class ``Cider`` computes it
(``pycocoevalcap`` 1.2, whose numbers papers print as "CIDEr"): clipped weights, a length penalty and a factor of 10.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from medtasks.benchmarks.errors import Case, Errors
from medtasks.benchmarks.mi_cxr.records import NULL_OPTION, OPTIONS
from medtasks.catalog.benchmark import Item
from medtasks.metrics.base import MeanMetric, package_version, sign
from medtasks.metrics.item_metrics import NO_OPTION, UNANSWERED, ErrorRate
from medtasks.metrics.meteor import import_nltk


def cases(item: Item) -> Iterator[Case]:
    """The cases of a question: of an invented change if the null option is right, else of the others."""
    for view in item.samples:
        if view.document.get("intervals") is None:  # free-text summaries, and runs made before, have none
            continue
        target, chosen = view.document["target"], view.filtered if view.filtered in OPTIONS else None
        yield Case(NO_OPTION.name, chosen is None)
        if chosen in (None, target):
            failure = None
        elif chosen == NULL_OPTION:
            failure = "abstention_failure_rate"
        elif target == NULL_OPTION or view.document["group_type"] == "ICR":
            failure = "forced_choice_failure_rate"
        else:
            in_tel = view.document["group_type"] == "TEL"
            failure = "exclusivity_failure_rate" if in_tel else "integration_failure_rate"
        for name in FAILURES:
            yield Case(name, name == failure)

        intervals = dict(zip(OPTIONS, view.document["intervals"], strict=False))  # empty if options are texts
        if target == NULL_OPTION:
            kinds = {"invented_change_rate": chosen != NULL_OPTION}
        elif target not in intervals:
            kinds = {
                "missed_change_rate": chosen == NULL_OPTION,
                "wrong_change_rate": chosen not in (target, NULL_OPTION),
            }
        else:
            given = intervals.get(chosen or "", intervals[target])
            off = max(abs(one - other) for one, other in zip(given, intervals[target], strict=True))
            kinds = {
                "missed_change_rate": chosen == NULL_OPTION,
                "interval_off_by_one_rate": off == 1,
                "interval_off_by_more_rate": off > 1,
            }
        for name, occurred in kinds.items():
            yield Case(name, None if chosen is None else occurred)


FAILURES = {
    "abstention_failure_rate": "Abstention under uncertainty",
    "forced_choice_failure_rate": "Forced choice",
    "exclusivity_failure_rate": "Temporal exclusivity",
    "integration_failure_rate": "Global integration",
}
"""By rate, of all questions."""

_CHANGE = "another-option-right"
_LOCATED = "another-option-right-and-options-are-intervals"

ERRORS = Errors(
    (
        *(
            ErrorRate(name, label, cases=cases_, choices=UNANSWERED, harms=True)
            for name, label, cases_ in (
                ("missed_change_rate", "Missed change", _CHANGE),
                ("invented_change_rate", "Invented change", "null-option-right"),
                ("interval_off_by_one_rate", "Interval off by one", _LOCATED),
                ("interval_off_by_more_rate", "Interval off by more", _LOCATED),
                ("wrong_change_rate", "Another change", "another-option-right-and-options-are-texts"),
            )
        ),
        NO_OPTION,
        *(ErrorRate(name, label, cases="questions") for name, label in FAILURES.items()),
    ),
    cases,
)


MAX_ORDER = 4
SIGMA = 6.0
SCALE = 10.0

PUNCTUATION = frozenset(("''", "'", "``", "`", ".", "?", "!", ",", ":", "-", "--", "...", ";"))
"""Tokens left out, as COCO's ``PTBTokenizer`` does. Its list also has brackets (``-LRB-``), but it compares with
lower-cased tokens (``-lrb-``), so brackets stay in its texts, and here."""

# What the Stanford tokenizer behind COCO's rewrites to ASCII before the list above applies; chat models write these.
_TO_ASCII = str.maketrans(
    dict.fromkeys("‘’", "'") | dict.fromkeys("“”«»", '"') | dict.fromkeys("‒–—―", "--") | {"…": "..."}
)

_Gram: TypeAlias = tuple[str, ...]
_Counts: TypeAlias = "Counter[_Gram]"


class CiderCorpus:
    """Document frequencies of a corpus (one text per sample of the whole set that is reported, repeats included), and
    the CIDEr-D (0..10) of single pairs under them.

    For n-grams of each order n = 1..4, g(text) is the vector of counts times ``ln(N / max(1, df))``: N references in
    all, df of them with the n-gram. With l(text) the number of tokens, the score of a pair is ::

        10 * exp(-(l(p) - l(r))**2 / (2 * 6**2)) * mean over n of  sum(min(g(p), g(r)) * g(r)) / (|g(p)| |g(r)|)

    An order in which either vector is zero contributes 0 and still counts in the mean. As in the reference
    implementation, weights are raw counts and words are not stemmed. Sums are exact before one rounding
    (``math.fsum``).
    """

    def __init__(self, references: Sequence[str]) -> None:
        self.documents = len(references)
        self._frequency: _Counts = Counter(gram for text in references for gram in set(_grams(cider_tokens(text))))

    def score(self, prediction: str, reference: str) -> float:
        """CIDEr-D, 0..10, of one pair; the reference is meant to be one of the corpus."""
        predicted, expected = cider_tokens(prediction), cider_tokens(reference)
        cosines = []
        for ours, theirs in zip(self._weights(predicted), self._weights(expected), strict=True):
            squares = [math.fsum(weight * weight for weight in side.values()) for side in (ours, theirs)]
            dot = math.fsum(min(ours[gram], weight) * weight for gram, weight in theirs.items() if gram in ours)
            cosines.append(dot / math.sqrt(squares[0] * squares[1]) if all(squares) else 0.0)  # one root: 1 if equal
        penalty = math.exp(-((len(predicted) - len(expected)) ** 2) / (2 * SIGMA**2))
        return SCALE * penalty * (math.fsum(cosines) / MAX_ORDER)

    def _weights(self, tokens: Sequence[str]) -> list[dict[_Gram, float]]:
        weights: list[dict[_Gram, float]] = [{} for _ in range(MAX_ORDER)]
        for gram, count in Counter(_grams(tokens)).items():
            weights[len(gram) - 1][gram] = count * math.log(self.documents / max(1, self._frequency[gram]))
        return weights


def cider_tokens(text: str) -> list[str]:
    """The tokens that CIDEr counts (``tok:treebank-nopunct``): NLTK's Penn Treebank word rules on the lower-cased text
    as one line, without final periods and :data:`PUNCTUATION`.

    On plain clinical prose these are the tokens of COCO's Java program, save for brackets (``-lrb-``) and abbreviations
    (``vs.``), which matter only where a corpus holds both spellings. They differ on markup (``**``, ``<b>``).

    >>> cider_tokens("No effusion. The patient’s heart (T1–T2) isn't enlarged!")
    ['no', 'effusion', 'the', 'patient', "'s", 'heart', '(', 't1', 't2', ')', 'is', "n't", 'enlarged']
    """
    line = " ".join(text.lower().translate(_TO_ASCII).split())
    words = (token.rstrip(".") for token in import_nltk().NLTKWordTokenizer().tokenize(line))
    return [word for word in words if word and word not in PUNCTUATION]


def _grams(tokens: Sequence[str]) -> Iterable[_Gram]:
    return (
        tuple(tokens[start : start + order])
        for order in range(1, MAX_ORDER + 1)
        for start in range(len(tokens) - order + 1)
    )


class Cider(MeanMetric):
    """Mean CIDEr-D over samples (0..10), whose document frequencies come from all references of the task."""

    name = "cider"

    @property
    def signature(self) -> str:
        """Formula, orders, penalty, source of the document frequencies, tokenizer and its library."""
        choices = {"formula": "cider-d", "n": MAX_ORDER, "sigma": f"{SIGMA:g}", "clip": "yes", "scale": f"{SCALE:g}"}
        texts = {"df": "corpus", "refs": 1, "stem": "no", "case": "lower", "tok": "treebank-nopunct"}
        return sign(self.name, **choices, **texts, nltk=package_version("nltk"))
