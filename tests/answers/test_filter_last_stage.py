"""Stage-wise responses: what both stages said survives the log, and the last stage's letter is
scored.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtasks.answers import LastStageOptionFilter
from medtasks.answers.stages import join_stages, read_stages


@given(first=st.text(), second=st.text())
def test_what_stages_said_survives_the_log_and_the_harness_representations(
    first: str, second: str
) -> None:
    record = join_stages([first, second])
    readers: list[Callable[[str], str]] = [
        str,
        lambda text: str((text,)),
        lambda text: str([text]),
        lambda text: f" {text}\n",
    ]
    for wrapped in readers:
        assert read_stages(wrapped(record)) == (first, second)


@given(st.text())
def test_any_other_response_is_the_last_stage(text: str) -> None:
    assert read_stages(text) in (("", text), read_stages(text.strip()))


def test_the_letter_is_that_of_the_last_stage() -> None:
    said = join_stages(["Answer: B. T1 to T2: nothing.", "I choose C."])
    assert LastStageOptionFilter().apply(
        [[said], ["(D)"], [join_stages(["A", "no idea"])]], []
    ) == ["C", "D", "[none]"]


@pytest.mark.parametrize(
    "text",
    [
        '{"stage1": "A", "stage2": 2}',
        '{"stage2": "B"}',
        '["A", "B"]',
        "('one', 'two')",
        "(1,)",
        "(B) is right",
        "[" * 100_000,
    ],
    ids=lambda text: text[:30],
)
def test_what_is_no_record_of_two_texts_is_the_last_stage_as_it_is(text: str) -> None:
    assert read_stages(text) == ("", text)


def test_a_record_is_one_line_in_the_letters_of_the_text() -> None:
    assert join_stages(["grö\nßer", "B"]) == '{"stage1": "grö\\nßer", "stage2": "B"}'
