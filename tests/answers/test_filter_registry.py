"""Filters are found by the names that task files use: ours, those a module imports, and never a
wrong one.
"""

from __future__ import annotations

import pytest

from medtasks import answers
from medtasks.answers import FILTER_VERSIONS
from medtasks.catalog.registry import get_filter
from medtasks.core.errors import MedtasksError


@pytest.mark.parametrize("name", FILTER_VERSIONS)
def test_a_filter_of_ours_is_found_by_its_name_and_by_where_it_is_imported(name: str) -> None:
    kind = getattr(answers, name)
    for path in (name, f"medtasks.answers.{name}"):
        assert get_filter(path).kind is kind
        assert get_filter(path).version == kind.version == FILTER_VERSIONS[name]
        assert get_filter(path).status is kind.status
        assert get_filter(path).status("  ") == "empty"


@pytest.mark.parametrize(
    "name",
    ["Nothing", "nowhere.at.all", "medtasks.answers.Nothing", "medtasks.core.errors.UsageError"],
)
def test_an_unknown_filter_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(
        MedtasksError, match=rf"^filter '{name}' is unknown.*, expected one of AlertStateFilter, "
    ):
        get_filter(name)


@pytest.mark.parametrize(
    ("name", "responses", "filtered"),
    [
        (
            "AlertStateFilter",
            [["No alert."], ["ALERT - blood", "who knows"]],
            ["no_alert", ["alert: blood", "[invalid]"]],
        ),
        ("AnswerTextFilter", [["a"], ["a", "Answer: b"]], ["a", ["a", "b"]]),
        (
            "AnswerabilityFilter",
            [["Unanswerable."], ["Answer: B", "<think>"]],
            ["unanswerable", ["B", "[empty]"]],
        ),
        (
            "LastStageOptionFilter",
            [["B"], ['{"stage1": "A", "stage2": "C"}', "no idea"]],
            ["B", ["C", "[none]"]],
        ),
        ("OptionLetterFilter", [["B"], ["A", "no idea"]], ["B", ["A", "[none]"]]),
        (
            "ReasonedAnswerFilter",
            [[" a\nFinal answer: b "], ["<think>x</think>c", ""]],
            ["a\nFinal answer: b", ["c", "[empty]"]],
        ),
    ],
)
def test_the_responses_to_a_question_that_was_asked_repeatedly_are_read_one_by_one(
    name: str, responses: list[list[str]], filtered: list[str | list[str]]
) -> None:
    assert get_filter(name).kind().apply(responses, None) == filtered
