"""MI-CXR: changes that a model invents, misses, or puts into another interval."""

from __future__ import annotations

import re
from collections.abc import Iterator

from medtasks.benchmarks.base import Item, SampleView
from medtasks.benchmarks.errors import Case, Errors
from medtasks.benchmarks.mi_cxr.documents import NULL_OPTION
from medtasks.metrics.error_rate import NO_OPTION, ErrorRate

_INTERVAL = re.compile(r"\s*T(?P<first>[1-5])\s*(?:→|->|-|–|to|,)\s*T(?P<last>[1-5])\s*\.?\s*", re.IGNORECASE)


def interval_of(option: str) -> tuple[int, int] | None:
    """The visits of an option that is nothing but an interval (T1 → T2) or a pair of visits (T2, T4).

    >>> interval_of("T2 → T3"), interval_of("None of these intervals")
    ((2, 3), None)
    """
    found = _INTERVAL.fullmatch(option)
    return None if found is None else (int(found["first"]), int(found["last"]))


def cases(item: Item) -> Iterator[Case]:
    """The cases of a question: of an invented change if the null option is right, else of the others."""
    for view in item.samples:
        if view.document.get("choices"):  # free-text summaries have none
            yield from _of_view(view)


def _of_view(view: SampleView) -> Iterator[Case]:
    target, choices = view.document["target"], view.document["choices"]
    chosen = view.filtered if view.status == "ok" and view.filtered in choices else None
    yield Case(NO_OPTION.name, chosen is None)
    if target == NULL_OPTION:
        yield Case("invented_change_rate", chosen is not None and chosen != NULL_OPTION)
        return
    yield Case("missed_change_rate", chosen == NULL_OPTION)
    intervals = {letter: interval_of(text) for letter, text in choices.items() if letter != NULL_OPTION}
    right, given = intervals.get(target), intervals.get(chosen)
    if right is None or None in intervals.values():
        yield Case("wrong_change_rate", chosen not in (None, target, NULL_OPTION))
        return
    off = 0 if given is None else max(abs(one - other) for one, other in zip(given, right, strict=True))
    yield Case("interval_off_by_one_rate", off == 1)
    yield Case("interval_off_by_more_rate", off > 1)


_CHANGE = "another-option-right"
_LOCATED = "another-option-right-and-options-are-intervals"

ERRORS = Errors(
    (
        ErrorRate("missed_change_rate", "Missed change", cases=_CHANGE, harms=True),
        ErrorRate("invented_change_rate", "Invented change", cases="null-option-right", harms=True),
        ErrorRate("interval_off_by_one_rate", "Interval off by one", cases=_LOCATED, harms=True),
        ErrorRate("interval_off_by_more_rate", "Interval off by two or more", cases=_LOCATED, harms=True),
        ErrorRate(
            "wrong_change_rate", "Another change", cases="another-option-right-and-options-are-texts", harms=True
        ),
        NO_OPTION,
    ),
    cases,
)
