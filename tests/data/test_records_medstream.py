"""MedStreamBench objects as records: aliases, the temporal contract, and one sentence for whatever breaks it."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from release_rows import single_turn_row, streaming_row

from medtasks.benchmarks.medstreambench.records import ALIASES, MedStreamRecord, bare_question, parse_medstream_row
from medtasks.data.records import Where
from medtasks.errors import DataError

HERE = Where("cholec80.jsonl", 41)


def parsed(row: dict[str, Any]) -> MedStreamRecord:
    return parse_medstream_row(row, HERE)


def test_a_single_turn_object_is_one_round() -> None:
    record = parsed(single_turn_row())

    assert (record.cluster, record.subtask, record.medium) == ("cholec80/v1", "retrospective", "video")
    (turn,) = record.rounds
    assert (turn.window, turn.time, turn.expected, turn.answerable) == ((2.0, 6.0), 6.0, ("dissection",), True)


def test_a_streaming_object_has_its_rounds_in_order() -> None:
    record = parsed(streaming_row())

    assert record.subtask == "future_streaming"
    assert [turn.window for turn in record.rounds] == [(2.0, time) for time in (4.0, 6.0, 8.0, 10.0)]
    assert [turn.answerable for turn in record.rounds] == [False, False, True, True]
    assert [turn.expected for turn in record.rounds] == [("unanswerable",)] * 2 + [("closure",)] * 2


@pytest.mark.parametrize(
    ("field", "alias"),
    [
        (field, alias)
        for field, aliases in ALIASES.items()
        for alias in aliases
        if field not in ("expected_time", "tolerance")
    ],
)
def test_a_rounds_field_is_found_under_any_of_its_names(field: str, alias: str) -> None:
    row = streaming_row()
    if field == "rounds":
        row[alias] = row.pop("rounds")
    else:
        for turn in row["rounds"]:
            turn[alias] = turn.pop(field)
    assert parsed(row) == parsed(streaming_row())


@pytest.mark.parametrize("alias", ALIASES["expected_time"])
def test_the_expected_time_is_found_under_any_of_its_names(alias: str) -> None:
    assert parsed(streaming_row(**{alias: 7.5})).expected_time == 7.5


@pytest.mark.parametrize("alias", ALIASES["tolerance"])
def test_the_tolerance_is_found_under_any_of_its_names(alias: str) -> None:
    assert parsed(streaming_row(**{alias: 1})).tolerance == 1.0


@pytest.mark.parametrize("lost", ["expected_output", "answerable"])
def test_the_expected_output_and_the_flag_can_stand_in_for_each_other(lost: str) -> None:
    row = streaming_row()
    for turn in row["rounds"]:
        del turn[lost]
    assert parsed(row) == parsed(streaming_row())


def test_a_flag_that_contradicts_the_expected_output_is_noted() -> None:
    row = streaming_row()
    row["rounds"][2]["answerable"] = False
    record = parsed(row)
    assert record.notes == ("answerable flag contradicts expected output",)
    assert record.rounds[2].answerable is False
    assert record.rounds[2].expected == ("unanswerable",)


@pytest.mark.parametrize("said", ["no_alert", "No alert.", "NO-ALERT", "uncertain"])
def test_the_silent_states_are_read_however_they_are_written(said: str) -> None:
    row = streaming_row("proactive")
    row["rounds"][0]["expected_output"] = said
    assert parsed(row).rounds[0].expected in (("no_alert",), ("uncertain",))


def test_several_answers_are_a_multi_select() -> None:
    record = parsed(single_turn_row(answer=["dissection", "closure", "dissection"]))
    assert record.multi_select
    assert record.rounds[0].expected == ("dissection", "closure")


@pytest.mark.parametrize(
    ("question", "reference", "why"),
    [
        ("\n\nResponse protocol: Answer.", "A real answer.", "empty question"),
        ("What?\n\nResponse protocol: Answer.", "No additional evidence text provided.", "placeholder answer"),
        ("What?\n\nResponse protocol: Answer.", "A real answer.", ""),
    ],
)
def test_degenerate_records_are_recognised(question: str, reference: str, why: str) -> None:
    row = single_turn_row(
        question_type="open", question=question, reference_answer=reference, answer=None, choices=None
    )
    assert parsed(row).degenerate == why


def test_the_question_is_kept_as_it_was_released() -> None:
    assert parsed(single_turn_row()).question == single_turn_row()["question"]
    assert bare_question(single_turn_row()["question"]) == "Which phase is shown?"


def test_variants_of_one_item_share_a_family() -> None:
    names = ("a_1_gemini_closed", "a_1_gemini_open", "a_1")
    assert {parsed(single_turn_row(sample_id=name)).family for name in names} == {"a_1"}


def test_a_window_may_begin_at_a_thousandth() -> None:
    row = single_turn_row(query_time=5.0, context_window_sec=4.999, input_range=[0.001, 5.0])
    assert parsed(row).rounds[0].window == (0.001, 5.0)


def test_image_sequences_count_frames() -> None:
    row = single_turn_row(media_path="Stream_Bench/x/x/frames", input_range=[0, 11], query_time=0.4)
    record = parsed(row)
    assert (record.medium, record.rounds[0].window) == ("images", (0.0, 11.0))


BROKEN: list[tuple[dict[str, Any], str]] = [
    (single_turn_row(sample_id=None), "field `sample_id` is missing"),
    (single_turn_row(temporal_mode="past"), "field `temporal_mode` is 'past', expected 'retrospective'"),
    (single_turn_row(task_mode="batch"), "field `task_mode` is 'batch'"),
    (single_turn_row(task_mode="streaming"), "field `task_mode` is 'streaming', expected single_turn"),
    (single_turn_row(temporal_mode="proactive"), "field `task_mode` is 'single_turn', expected streaming"),
    (single_turn_row(question_type="yes/no"), "field `question_type`"),
    (single_turn_row(query_time="soon"), "field `query_time` is 'soon', expected a number"),
    (single_turn_row(query_time=-1.0), "field `query_time` is -1.0"),
    (single_turn_row(query_time=math.nan), "field `query_time`"),
    (single_turn_row(query_time=True), "field `query_time` is True"),
    (single_turn_row(input_range=[6.0, 2.0]), "field `input_range`"),
    (single_turn_row(input_range=[2.0]), "field `input_range[1]` is missing"),
    (single_turn_row(input_range=[2.0, 7.0]), "field `input_range` is [2.0, 7.0], expected a window that ends at"),
    (single_turn_row(input_range=[1.0, 6.0]), "field `input_range` is [1.0, 6.0], expected a window that begins at 2"),
    (single_turn_row(answer=None), "field `answer`"),
    (single_turn_row(answer=[]), "field `answer`"),
    (single_turn_row(choices="a or b"), "field `choices`"),
    (single_turn_row(media_path="../x.mp4"), "field `media_path`"),
    (single_turn_row(media_path="/x.mp4"), "field `media_path`"),
    (single_turn_row(judge_rubric="0-2"), "field `judge_rubric`"),
    (single_turn_row(question=None), "field `question` is missing"),
    (streaming_row(rounds=None), "none of the fields rounds, stream_rounds is present, found answer, choices"),
    (streaming_row(rounds=[]), "field `rounds`"),
    (streaming_row(rounds=["no round"]), "field `rounds[0]` is 'no round', expected a mapping"),
]


@pytest.mark.parametrize(("row", "said"), BROKEN)
def test_a_wrong_field_is_named_with_its_record(row: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError) as caught:
        parsed(row)
    place = "cholec80.jsonl, line 41: " if "sample_id" not in row else "cholec80.jsonl, line 41, record s1: "
    assert str(caught.value).startswith(place + said)


ROUNDS: list[tuple[int, dict[str, Any], str]] = [
    (1, {"current_time": 4.0}, "field `rounds[1].current_time` is 4.0, expected a time after the previous round (4)"),
    (1, {"current_time": 3.0}, "field `rounds[1].current_time` is 3.0"),
    (0, {"current_time": 1.0}, "field `rounds[0].current_time` is 1.0, expected a time at or after query_time (2)"),
    (
        0,
        {"input_range": [2.0, 5.0]},
        "field `rounds[0].input_range` is [2.0, 5.0], expected [query_time, current_time]",
    ),
    (0, {"input_range": [0.0, 4.0]}, "field `rounds[0].input_range`"),
    (2, {"answerable": "yes"}, "field `rounds[2].answerable` is 'yes', expected true or false"),
    (
        2,
        {"current_time": None},
        "field `rounds[2]`: none of the fields current_time, t_c, time is present, found answerable",
    ),
    (
        2,
        {"expected_output": None, "answerable": None},
        "field `rounds[2].expected_output` is missing, expected the answer of the round (as expected_output",
    ),
]


@pytest.mark.parametrize(("number", "changes", "said"), ROUNDS)
def test_a_round_that_breaks_the_temporal_contract_is_named(number: int, changes: dict[str, Any], said: str) -> None:
    row = streaming_row()
    row["rounds"][number].update(changes)
    with pytest.raises(DataError) as caught:
        parsed(row)
    assert str(caught.value).startswith(f"cholec80.jsonl, line 41, record s1: {said}")


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(streaming=st.booleans(), data=st.data(), value=anything)
def test_any_value_is_a_record_or_one_sentence(streaming: bool, data: st.DataObject, value: Any) -> None:
    row = json.loads(json.dumps(streaming_row("proactive") if streaming else single_turn_row()))
    inside = streaming and data.draw(st.booleans())
    target = row["rounds"][1] if inside else row
    target[data.draw(st.sampled_from(sorted(target)))] = value
    said, record = None, None
    try:
        record = parsed(row)
    except DataError as error:
        said = str(error)
    if record is None:
        assert said is not None
        assert said.startswith("cholec80.jsonl, line 41")
    else:
        assert MedStreamRecord.model_validate_json(record.model_dump_json()) == record


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=6)
    | st.sampled_from(["", ".", "a/b.mp4", "\ud800", "\0", 10**400, "open", "streaming", "proactive", [0, 1], 1e308]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=300, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(
    row=st.sampled_from([single_turn_row(), streaming_row(), streaming_row("proactive")]),
    data=st.data(),
)
def test_a_damaged_record_is_a_record_or_a_refusal(row: dict[str, Any], data: st.DataObject) -> None:
    changes = data.draw(st.dictionaries(st.sampled_from(sorted({*row, "judge_rubric", "reference_answer"})), JUNK))
    changed = {**row, **changes}
    if isinstance(changed.get("rounds"), list) and changed["rounds"] and data.draw(st.booleans()):
        first = changed["rounds"][0]
        if isinstance(first, dict) and first:
            field = data.draw(st.sampled_from(sorted(first)))
            changed["rounds"] = [{**first, field: data.draw(JUNK)}, *changed["rounds"][1:]]
    said = str(HERE)
    try:
        parsed(changed).model_dump_json()
    except DataError as error:
        said = str(error)
    assert said.startswith(str(HERE))
