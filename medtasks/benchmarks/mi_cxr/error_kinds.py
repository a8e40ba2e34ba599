"""MI-CXR's kinds of error: changes invented, missed, or in another interval.

Reasoning failures, too: the paper's appendix G (Figures 25 to 27) sorts wrong answers into four,
without saying how. Gold answers allow this reading, in which every wrong option is exactly one of
them:

- *abstention under uncertainty*: the null option, though another is right;
- *forced choice under insufficient evidence*: another option, though the null option is right; in
  ICR any wrong statement;
- *failure of temporal exclusivity*: in TEL, another interval than the right one;
- *failure of global integration*: in GTS, another course than the right one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from medtasks.benchmarks.error_kinds import Case, Errors
from medtasks.benchmarks.mi_cxr.records import NULL_OPTION, OPTIONS
from medtasks.catalog.items import Item
from medtasks.metrics.item_metrics import NO_OPTION, UNANSWERED, ErrorRate

FAILURES = {
    "abstention_failure_rate": "Abstention under uncertainty",
    "forced_choice_failure_rate": "Forced choice",
    "exclusivity_failure_rate": "Temporal exclusivity",
    "integration_failure_rate": "Global integration",
}
"""By rate, of all questions."""


def cases(item: Item) -> Iterator[Case]:
    """The cases of a question: of an invented change if the null option is right, else of a missed.

    Free-text summaries have none, nor have runs made before documents had ``intervals``.
    """
    for sample in item.samples:
        if sample.document.get("intervals") is None:
            continue
        target = sample.document["target"]
        selected = sample.filtered if sample.filtered in OPTIONS else None
        yield Case(NO_OPTION.name, selected is None)
        failure = _failure(sample.document["group_type"], target, selected)
        for name in FAILURES:
            yield Case(name, name == failure)
        for name, occurred in _change_errors(sample.document, target, selected).items():
            yield Case(name, None if selected is None else occurred)


def _failure(family: str, target: str, selected: str | None) -> str | None:
    """The reasoning failure of an answer; None if it is right or selects no option."""
    if selected is None or selected == target:
        return None
    if selected == NULL_OPTION:
        return "abstention_failure_rate"
    if target == NULL_OPTION or family == "ICR":
        return "forced_choice_failure_rate"
    if family == "TEL":
        return "exclusivity_failure_rate"
    return "integration_failure_rate"


def _change_errors(
    document: Mapping[str, Any], target: str, selected: str | None
) -> dict[str, bool]:
    """The errors about changes that are possible in a question, and whether each occurred."""
    if target == NULL_OPTION:
        return {"invented_change_rate": selected != NULL_OPTION}
    missed = selected == NULL_OPTION
    # empty if options are texts
    intervals = dict(zip(OPTIONS, document["intervals"], strict=False))
    if target not in intervals:
        wrong = selected not in (target, NULL_OPTION)
        return {"missed_change_rate": missed, "wrong_change_rate": wrong}
    first, last = intervals[target]
    # without an interval, the selected option is not off by any number of visits
    selected_first, selected_last = intervals.get(selected or "", intervals[target])
    visits_off = max(abs(selected_first - first), abs(selected_last - last))
    return {
        "missed_change_rate": missed,
        "interval_off_by_one_rate": visits_off == 1,
        "interval_off_by_more_rate": visits_off > 1,
    }


_CHANGE = "another-option-right"
_LOCATED = "another-option-right-and-options-are-intervals"


def _change_rate(name: str, label: str, cases: str) -> ErrorRate:
    return ErrorRate(name, label, cases=cases, choices=UNANSWERED, harms=True)


ERRORS = Errors(
    (
        _change_rate("missed_change_rate", "Missed change", _CHANGE),
        _change_rate("invented_change_rate", "Invented change", "null-option-right"),
        _change_rate("interval_off_by_one_rate", "Interval off by one", _LOCATED),
        _change_rate("interval_off_by_more_rate", "Interval off by more", _LOCATED),
        _change_rate(
            "wrong_change_rate", "Another change", "another-option-right-and-options-are-texts"
        ),
        NO_OPTION,
        *(ErrorRate(name, label, cases="questions") for name, label in FAILURES.items()),
    ),
    cases,
)
