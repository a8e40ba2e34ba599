"""Med-CMR: answers that call a picture more or less abnormal than it is.

Only two kinds of questions count, recognised by their options; ``direction_known_rate`` is their
share:

- *graded*: all options but at most one normal one are the same words around one term of one scale
  (severity, stage or grade, number), each with another rank. An option of a higher rank than the
  right one is over-calling.
- *normal or not*: exactly one option says that nothing is abnormal. To choose it wrongly is
  under-calling, to choose another one if it is right is over-calling; errors among abnormal options
  have no direction.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from medtasks.benchmarks.error_kinds import Case, Errors
from medtasks.catalog.items import Item
from medtasks.data.sources import read_table
from medtasks.metrics.item_metrics import NO_OPTION, UNANSWERED, ErrorRate

VERSION = "1"
"""Changes whenever the rule does."""


class _Scale(NamedTuple):
    """The rank of each term, and a pattern that question or options match if it applies."""

    ranks: Mapping[str, int]
    context: str


_SCALES = [
    _Scale(scale["words"], scale["context"])
    for scale in read_table(__file__, "vocabulary.yaml", dict[str, Any])["scales"]
]

_NORMAL = re.compile(
    r"(?:(?:an?|the|entirely|completely|within)\s+)*"
    r"(?:normal(?!\s+(?:variant|pressure)|-)|unremarkable)(?:\s+[\w-]+){0,4}"
    r"|(?:there\s+(?:is|are)\s+)?no\s+(?:(?:evidence|signs?)\s+of\s+)?"
    r"(?:(?:significant|acute|visible|detectable|obvious|focal|apparent|definite|other)\s+)*"
    r"(?:abnormalit(?:y|ies)|(?:abnormal\s+)?findings?|lesions?|disease|patholog(?:y|ies))",
    re.IGNORECASE,
)
_PARTLY_NORMAL = re.compile(r"\bnormal", re.IGNORECASE)
_NONE = re.compile(rf"none|absent|{_NORMAL.pattern}", re.IGNORECASE)


@lru_cache(maxsize=2**15)  # all runs of a leaderboard have the same questions
def ranks_of(question: str, choices: tuple[tuple[str, str], ...]) -> dict[str, int] | None:
    """How abnormal each option is, from 0 for normal; None if the options do not show it.

    >>> options = ("A", "Mild stenosis"), ("B", "Severe stenosis"), ("C", "Normal")
    >>> ranks_of("How narrow is it?", options)
    {'C': 0, 'A': 2, 'B': 4}
    """
    texts = {letter: text.strip().rstrip(".") for letter, text in choices}
    return _graded(question, texts) or _normal_or_not(texts)


def _normal_or_not(choices: Mapping[str, str]) -> dict[str, int] | None:
    """Rank 0 for the only normal option, and 1 for the others.

    None if several options are normal, or none, or if one of them is normal in part.
    """
    ranks: dict[str, int] = {}
    for letter, text in choices.items():
        if _NORMAL.fullmatch(text):
            ranks[letter] = 0
        elif _PARTLY_NORMAL.search(text):
            return None
        else:
            ranks[letter] = 1
    normal_options = list(ranks.values()).count(0)
    return ranks if normal_options == 1 else None


def _graded(question: str, choices: Mapping[str, str]) -> dict[str, int] | None:
    """The ranks of options that differ in one term of a scale; None for other options.

    At most one option may be normal instead, which is below all terms of the scale.
    """
    normal_letters = []
    words_of: dict[str, list[str]] = {}
    for letter, text in choices.items():
        if _NONE.fullmatch(text):
            normal_letters.append(letter)
        else:
            words_of[letter] = re.findall(r"[\w.]+", text.casefold())
    if len(normal_letters) > 1 or len(words_of) < 2:
        return None
    for scale in _SCALES:
        ranks = _ranks_on(scale, words_of)
        if ranks is None or not _applies(scale, question, words_of.values()):
            continue
        if not normal_letters:
            return ranks
        if 0 not in ranks.values():
            return {normal_letters[0]: 0, **ranks}
    return None


def _applies(scale: _Scale, question: str, options: Collection[Sequence[str]]) -> bool:
    """Whether the options differ in nothing but the term of the scale, and are about its
    subject.
    """
    surroundings = {_without_terms(scale, words) for words in options}
    if len(surroundings) > 1:
        return False
    (shared_words,) = surroundings
    return re.search(scale.context, f"{question} {shared_words}", re.IGNORECASE) is not None


def _ranks_on(scale: _Scale, words_of: Mapping[str, list[str]]) -> dict[str, int] | None:
    """The rank of each option; None unless each has one term, and all have different ranks."""
    ranks: dict[str, int] = {}
    for letter, words in words_of.items():
        terms = [word for word in words if word in scale.ranks]
        if len(terms) != 1:  # the common case: no scale
            return None
        ranks[letter] = scale.ranks[terms[0]]
    if len(set(ranks.values())) < len(ranks):
        return None
    return ranks


def _without_terms(scale: _Scale, words: Sequence[str]) -> str:
    """The words around the term of the scale, in the singular."""
    return " ".join(word.removesuffix("s") for word in words if word not in scale.ranks)


def cases(item: Item) -> Iterator[Case]:
    """The cases of a multiple-choice question."""
    for sample in item.samples:
        choices = sample.document.get("choices")
        if not choices:
            continue
        selected = None
        if sample.status == "ok" and sample.filtered in choices:
            selected = sample.filtered
        ranks = ranks_of(sample.document["question"], tuple(choices.items()))
        yield Case(NO_OPTION.name, selected is None)
        yield Case("direction_known_rate", ranks is not None)
        if ranks is not None and sample.document["target"] in ranks:
            yield from _direction_cases(ranks, sample.document["target"], selected)


def _direction_cases(ranks: Mapping[str, int], target: str, selected: str | None) -> Iterator[Case]:
    """Whether the selected option is more or less abnormal than the right one."""
    overcalled = undercalled = None
    if selected is not None:
        overcalled = ranks[selected] > ranks[target]
        undercalled = ranks[selected] < ranks[target]
    if ranks[target] < max(ranks.values()):
        yield Case("overcall_rate", overcalled)
    if ranks[target] > min(ranks.values()):
        yield Case("undercall_rate", undercalled)


_RULE = {"rule": f"graded-or-normal-v{VERSION}"}
_OPEN = {**_RULE, **UNANSWERED}

ERRORS = Errors(
    (
        ErrorRate(
            "undercall_rate", "Under-call", cases="a-lower-option-exists", choices=_OPEN, harms=True
        ),
        ErrorRate(
            "overcall_rate", "Over-call", cases="a-higher-option-exists", choices=_OPEN, harms=True
        ),
        ErrorRate(
            "direction_known_rate",
            "Questions with a direction",
            cases="questions",
            choices=_RULE,
            higher_is_better=True,
        ),
        NO_OPTION,
    ),
    cases,
)
