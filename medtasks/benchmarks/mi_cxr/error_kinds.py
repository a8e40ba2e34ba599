"""MI-CXR's kinds of error: changes invented, missed, or in another interval; the paper's reasoning
failures.

Appendix G (Figures 25 to 27) sorts wrong answers into four failures, without saying how. Gold
answers allow this reading, in which every wrong option is exactly one of them:

- *abstention under uncertainty*: the null option, though another is right;
- *forced choice under insufficient evidence*: another option, though the null option is right; in
  ICR any wrong statement;
- *failure of temporal exclusivity*: in TEL, another interval than the right one;
- *failure of global integration*: in GTS, another course than the right one.
"""

from __future__ import annotations

from collections.abc import Iterator

from medtasks.benchmarks.error_kinds import Case, Errors
from medtasks.benchmarks.mi_cxr.records import NULL_OPTION, OPTIONS
from medtasks.catalog.benchmark import Item
from medtasks.metrics.item_metrics import NO_OPTION, UNANSWERED, ErrorRate


def cases(item: Item) -> Iterator[Case]:
    """The cases of a question: of an invented change if the null option is right, else of the
    others.
    """
    for view in item.samples:
        if (
            view.document.get("intervals") is None
        ):  # free-text summaries, and runs made before, have none
            continue
        target, chosen = (
            view.document["target"],
            view.filtered if view.filtered in OPTIONS else None,
        )
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

        intervals = dict(
            zip(OPTIONS, view.document["intervals"], strict=False)
        )  # empty if options are texts
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
                (
                    "wrong_change_rate",
                    "Another change",
                    "another-option-right-and-options-are-texts",
                ),
            )
        ),
        NO_OPTION,
        *(ErrorRate(name, label, cases="questions") for name, label in FAILURES.items()),
    ),
    cases,
)
