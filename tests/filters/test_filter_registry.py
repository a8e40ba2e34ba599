"""Filters are found by the names that task files use: ours, those a module imports, and never a wrong one."""

from __future__ import annotations

import pytest

from medtasks import filters
from medtasks.errors import MedtasksError
from medtasks.filters import FILTER_VERSIONS, filter_class, status_of, version_of
from medtasks.filters.base import ResponseFilter


@pytest.mark.parametrize("name", FILTER_VERSIONS)
def test_a_filter_of_ours_is_found_by_its_name_and_by_where_it_is_imported(name: str) -> None:
    kind = getattr(filters, name)
    for path in (name, f"medtasks.filters.{name}"):
        assert filter_class(path) is kind
        assert version_of(path) == kind.version == FILTER_VERSIONS[name]
        assert status_of(path, "  ") == "empty"


@pytest.mark.parametrize(
    ("name", "filtered", "status"),
    [
        ("OptionLetterFilter", "B", "ok"),
        ("OptionLetterFilter", "[multiple]", "multiple"),
        ("LastStageOptionFilter", "[none]", "none"),
        ("AnswerabilityFilter", "unanswerable", "unanswerable"),
        ("AlertStateFilter", "[invalid]", "invalid"),
        ("ReasonedAnswerFilter", "It enhances.", "no_final_answer"),
        ("AnswerTextFilter", "polyp", "ok"),
    ],
)
def test_each_filter_tells_the_status_of_what_it_returned(name: str, filtered: str, status: str) -> None:
    assert status_of(name, filtered) == status


@pytest.mark.parametrize(
    "name", ["Nothing", "nowhere.at.all", "medtasks.filters.Nothing", "medtasks.errors.UsageError"]
)
def test_an_unknown_filter_is_refused_with_the_known_ones(name: str) -> None:
    for ask in (filter_class, version_of, lambda kind: status_of(kind, "B")):
        with pytest.raises(MedtasksError, match=rf"^filter '{name}' is unknown; choose from AlertStateFilter, "):
            ask(name)


def test_a_filter_reads_each_response_on_its_own() -> None:
    class Upper(ResponseFilter):
        version = "1"
        read = staticmethod(str.upper)

    assert Upper().apply([["a"], ["b", "c"], []], None) == ["A", ["B", "C"], []]
