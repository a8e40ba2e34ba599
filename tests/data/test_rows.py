"""Release rows become typed records, or one sentence that names file, line, field, what was found
and expected.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from data_sources import POLYP, image_paths, kvasir_row, mi_cxr_row
from hypothesis import given, settings
from hypothesis import strategies as st
from release_rows import med_cmr_row, single_turn_row, streaming_row

from medtasks.benchmarks.kvasir_vqa_x1.records import ATOMIC_QUESTIONS, parse_kvasir_row
from medtasks.benchmarks.med_cmr.records import (
    DIMENSIONS,
    FILES,
    dimension_of,
    parse_med_cmr_row,
    prepare_med_cmr,
)
from medtasks.benchmarks.medstreambench.parse import parse_medstream_row
from medtasks.benchmarks.medstreambench.release_rows import ALIASES
from medtasks.benchmarks.mi_cxr.records import parse_mi_cxr_row
from medtasks.catalog.records import Record, Where
from medtasks.core.errors import DataError

Row = dict[str, Any]
WHERE = Where("rows.jsonl", 7)


kvasir, mi_cxr, med_cmr, medstream = (
    partial(parse_kvasir_row, where=WHERE),
    partial(parse_mi_cxr_row, where=WHERE),
    partial(parse_med_cmr_row, kind="mcq", where=WHERE),
    partial(parse_medstream_row, where=WHERE),
)


# --- what is wrong with a row ---

BAD_KVASIR: list[tuple[Row, str]] = [
    ({"answer": None}, "field `answer` is missing"),
    ({"question": 3}, "field `question` is 3"),
    ({"question": "\ud800"}, "field `question`"),
    ({"complexity": 4}, "field `complexity` is 4, expected 1, 2 or 3"),
    ({"complexity": True}, "field `complexity` is True"),
    ({"complexity": 2}, "field `original`: found 1 atomic pairs, expected 2"),
    ({"img_id": "../secret"}, "field `img_id`"),
    ({"img_id": "x" * 300}, "field `img_id`"),
    ({"original": "[]"}, "field `original`"),
    ({"original": [POLYP]}, "field `original`"),
    ({"original": "[" * 100_000}, "field `original`"),
    ({"original": '[{"q": "Is there text?", "a": "\\ud800"}]'}, "field `original` is "),
    ({"original": json.dumps([{"q": "Why?", "a": ""}])}, "field `original[0].q` is 'Why?'"),
    ({"question_class": ["polyp_mood"]}, "field `question_class[0]` is 'polyp_mood'"),
    ({"question_class": "polyp_count"}, "field `question_class`"),
]
BAD_MI_CXR: list[tuple[Row, str]] = [
    ({"answer": None}, "field `answer` is missing"),
    ({"answer": "F"}, "field `answer` is 'F'"),
    ({"qtype": "guess"}, "field `qtype` is 'guess'"),
    ({"group_type": "GTS"}, "field `group_type` is 'GTS', expected TEL"),
    ({"choices": dict.fromkeys("ABCDEF", "x")}, "field `choices`"),
    ({"choices": ["x"] * 5}, "field `choices`"),
    ({"choices": {**dict.fromkeys("ABCD", "x"), "E": ""}}, "field `choices.E`"),
    ({"q_id": None}, "none of the fields q_id, qid is present"),
    ({"q_id": -1}, "field `q_id` is -1"),
    ({"q_id": 10**400}, "field `q_id` is 1000"),  # tables of documents cannot store it
    ({"images": {**image_paths(), "T6": "x"}}, "field `images.T6`"),
    (
        {"images": {key: path for key, path in image_paths().items() if key != "T5"}},
        "field `images`",
    ),
    ({"images": {**image_paths(), "T3": image_paths("p0000000\u0661")["T3"]}}, "field `images.T3`"),
    (
        {"images": {**image_paths(), "T5": image_paths("p00000002")["T5"]}},
        "field `images` is ['p00000001', 'p00000002'], expected five images of one patient",
    ),
]
BAD_MED_CMR: list[tuple[Row, str]] = [
    ({"index": None}, "field `index` is missing"),
    ({"index": True}, "field `index` is True"),
    (
        {"task": "Counting"},
        "field `task` is 'Counting', expected one of the dimensions Small-object Detection",
    ),
    ({"answer": "F"}, "field `answer` is 'F', expected one letter from A to E"),
    ({"C": None}, "field `C` is missing"),
    ({"C": "  "}, "field `C`"),
    ({"F": "one more"}, "field `F` is 'one more', expected no such field"),
    ({"image_path": "/etc/passwd"}, "field `image_path`"),
    ({"image_path": "dataset/../../x.png"}, "field `image_path`"),
    ({"image_path": ["a", "b"]}, "field `image_path`"),
    ({"modality": 3}, "field `modality` is 3"),
    ({"question": "half \ud83d"}, "field `question`"),
]
BAD_MEDSTREAM: list[tuple[Row, str]] = [
    (single_turn_row(sample_id=None), "field `sample_id` is missing"),
    (
        single_turn_row(temporal_mode="past"),
        "field `temporal_mode` is 'past', expected 'retrospective'",
    ),
    (
        single_turn_row(task_mode="streaming"),
        "field `task_mode` is 'streaming', expected single_turn",
    ),
    (
        single_turn_row(temporal_mode="proactive"),
        "field `task_mode` is 'single_turn', expected streaming",
    ),
    (single_turn_row(query_time="soon"), "field `query_time` is 'soon', expected a number"),
    (single_turn_row(query_time=math.nan), "field `query_time`"),
    (single_turn_row(query_time=True), "field `query_time` is True"),
    (single_turn_row(input_range=[6.0, 2.0]), "field `input_range`"),
    (single_turn_row(input_range=[2.0]), "field `input_range[1]` is missing"),
    (
        single_turn_row(input_range=[2.0, 7.0]),
        "field `input_range` is [2.0, 7.0], expected a window that ends at",
    ),
    (
        single_turn_row(input_range=[1.0, 6.0]),
        "field `input_range` is [1.0, 6.0], expected a window that begins at 2",
    ),
    (single_turn_row(answer=None), "field `answer`"),
    (single_turn_row(answer=[]), "field `answer`"),
    (single_turn_row(choices="a or b"), "field `choices`"),
    (single_turn_row(media_path="../x.mp4"), "field `media_path`"),
    (single_turn_row(judge_rubric="0-2"), "field `judge_rubric`"),
    (
        streaming_row(rounds=None),
        "none of the fields rounds, stream_rounds is present, found answer, choices",
    ),
    (streaming_row(rounds=[]), "field `rounds`"),
    (streaming_row(rounds=["no round"]), "field `rounds[0]` is 'no round', expected a mapping"),
    (single_turn_row(answer=math.nan), "field `answer` is nan, expected a non-empty string"),
    (
        single_turn_row(question="half \ud800"),
        "field `question` is 'half \\ud800', expected a string of valid Unicode",
    ),
]
ROUNDS: list[tuple[int, Row, str]] = [
    (
        1,
        {"current_time": 4.0},
        "field `rounds[1].current_time` is 4.0, expected a time after the previous round (4)",
    ),
    (
        0,
        {"current_time": 1.0},
        "field `rounds[0].current_time` is 1.0, expected a time at or after query_time (2)",
    ),
    (
        0,
        {"input_range": [2.0, 5.0]},
        "field `rounds[0].input_range` is [2.0, 5.0], expected [query_time, current_time]",
    ),
    (2, {"answerable": "yes"}, "field `rounds[2].answerable` is 'yes', expected true or false"),
    (
        2,
        {"current_time": None},
        "field `rounds[2].current_time` is null, expected a number",
    ),
    (
        2,
        {"expected_output": None, "answerable": None},
        "field `rounds[2].expected_output` is missing, expected the answer of the round (as expected_output",
    ),
]


def with_round(number: int, changes: Row) -> Row:
    row = streaming_row()
    row["rounds"][number].update(changes)
    return row


BAD = [
    *((kvasir, kvasir_row(**change), said) for change, said in BAD_KVASIR),
    *((mi_cxr, mi_cxr_row(**change), said) for change, said in BAD_MI_CXR),
    *((med_cmr, med_cmr_row(**change), said) for change, said in BAD_MED_CMR),
    *((medstream, row, said) for row, said in BAD_MEDSTREAM),
    *((medstream, with_round(number, changes), said) for number, changes, said in ROUNDS),
]


@pytest.mark.parametrize(("parse", "row", "said"), BAD)
def test_a_wrong_field_is_named(parse: Callable[[Row], Record], row: Row, said: str) -> None:
    with pytest.raises(DataError) as caught:
        parse(row)
    place = (
        "rows.jsonl, line 7, record s1: "
        if parse is medstream and "sample_id" in row
        else "rows.jsonl, line 7: "
    )
    assert str(caught.value).startswith(place + said)


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=6)
    | st.sampled_from(
        ["", "A", "TEL", "../x", "[]", "\ud800", "\0", 10**400, "open", "streaming", [0, 1], 1e308]
    ),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=6,
)


def mutated(row: Row) -> st.SearchStrategy[Row]:
    """``row`` with several fields dropped, replaced, or changed one level deeper."""
    deeper = {
        key: st.dictionaries(st.sampled_from(sorted(value)), JUNK).map(
            lambda new, old=value: {**old, **new}
        )
        for key, value in row.items()
        if isinstance(value, dict)
    }
    if "rounds" in row:
        deeper["rounds"] = mutated(row["rounds"][1]).map(
            lambda turn: [row["rounds"][0], turn, *row["rounds"][2:]]
        )
    changes = st.fixed_dictionaries({}, optional={key: deeper.get(key, JUNK) | JUNK for key in row})
    dropped = st.sets(st.sampled_from(sorted(row)), max_size=2)
    return st.builds(
        lambda new, gone: {key: value for key, value in {**row, **new}.items() if key not in gone},
        changes,
        dropped,
    )


@pytest.mark.parametrize(
    ("parse", "row"),
    [
        (kvasir, kvasir_row()),
        (mi_cxr, mi_cxr_row()),
        (med_cmr, med_cmr_row()),
        (medstream, single_turn_row()),
        (medstream, streaming_row()),
        (medstream, streaming_row("proactive")),
    ],
)
@settings(max_examples=50)
@given(data=st.data())
def test_a_damaged_row_is_a_record_or_a_refusal(
    parse: Callable[[Row], Record], row: Row, data: st.DataObject
) -> None:
    try:
        record = parse(data.draw(mutated(row)))
    except DataError as error:
        assert str(error).startswith("rows.jsonl, line 7")  # noqa: PT017 - a refusal is as right as a record
    else:
        assert type(record).model_validate_json(record.model_dump_json()) == record


@pytest.mark.parametrize(
    ("parse", "row", "field"),
    [
        (kvasir, kvasir_row(), "answer"),
        (mi_cxr, mi_cxr_row(), "answer"),
        (mi_cxr, mi_cxr_row(), "q_id"),
        (med_cmr, med_cmr_row(), "index"),
        (medstream, single_turn_row(), "sample_id"),
        (medstream, single_turn_row(), "answer"),
        (medstream, streaming_row("proactive"), "rounds"),
    ],
)
def test_a_null_is_not_called_missing(parse: Callable[[Row], Record], row: Row, field: str) -> None:
    with pytest.raises(
        DataError, match=rf"rows\.jsonl, line 7.*field `{field}` is null, expected "
    ):
        parse({**row, field: None})


def test_messages_do_not_contain_whole_fields(tmp_path: Path) -> None:
    long = "x" * 1_000_000
    with pytest.raises(DataError) as raised:
        parse_medstream_row(single_turn_row(sample_id=long, task_mode=long), WHERE)
    assert len(str(raised.value)) < 400
    for name in FILES.values():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(json.dumps([med_cmr_row(task=long)]))
    with pytest.raises(DataError, match="name no dimension") as raised:
        prepare_med_cmr(str(tmp_path), tmp_path / "out")
    assert len(str(raised.value)) < 600


# --- Kvasir-VQA-x1 ---


def test_a_kvasir_row_keeps_its_fields_and_its_id_wherever_it_stands() -> None:
    record = kvasir(kvasir_row())
    assert (record.cluster, record.media, record.original[0].a) == ("img1", ("img1.jpg",), "1")
    assert parse_kvasir_row(kvasir_row(), Where("x", 99)) == record
    assert kvasir(kvasir_row(question="Other?")).sample_id != record.sample_id


def test_every_atomic_question_gives_its_class() -> None:
    assert len(set(ATOMIC_QUESTIONS.values())) == 18
    for question, name in ATOMIC_QUESTIONS.items():
        original = json.dumps([{"q": f" {question.upper()} ", "a": "x"}])
        assert kvasir(kvasir_row(original=original, question_class=None)).question_class == (name,)


@pytest.mark.parametrize("spelling", ["instrumnets", "instruments"])
def test_a_class_named_twice_is_kept_and_classes_are_derived_where_the_release_lacks_them(
    spelling: str,
) -> None:
    pairs = [POLYP, {"q": f"How many {spelling} are in the image?", "a": "0"}, POLYP]
    row = kvasir_row(complexity=3, original=json.dumps(pairs), question_class=None)
    assert kvasir(row).question_class == ("polyp_count", "instrument_count", "polyp_count")
    assert (
        kvasir({**row, "question_class": ["polyp_count"] * 2}).question_class
        == ("polyp_count",) * 2
    )


# --- MI-CXR ---


def test_an_mi_cxr_row_is_ordered_oldest_first_and_the_variant_has_ids_of_its_own() -> None:
    record = mi_cxr(mi_cxr_row(images=dict(reversed(image_paths().items()))))
    assert record.media == tuple(image_paths().values())
    assert (record.sample_id, record.cluster) == ("tel-0", "p00000001")
    variant = mi_cxr_row(q_id=None, qid=4, group_type="ICR", qtype="icr_variant_single")
    assert mi_cxr(variant).sample_id == "icr_variant-4"


# --- Med-CMR ---


def test_a_med_cmr_row_becomes_a_record() -> None:
    record, image = med_cmr(med_cmr_row()), "dataset/imgs/one.png"
    assert (record.sample_id, record.cluster, record.media) == ("mcq-7", image, (image,))
    assert (record.dimension, record.question_type, record.organ_system) == (
        "sod",
        "location",
        "Respiratory",
    )
    assert record.choices == {letter: f"option {letter}" for letter in "ABCDE"}
    assert record.prefixed == 0
    assert med_cmr(med_cmr_row(subtype=None, modality=None)).subtype == ""
    record = parse_med_cmr_row(med_cmr_row(answer="A nodule, upper left."), "open", WHERE)
    assert (record.sample_id, record.choices, record.answer) == (
        "open-7",
        {},
        "A nodule, upper left.",
    )


@pytest.mark.parametrize(
    ("released", "option", "prefixed"),
    [
        ("C) Normal study", "Normal study", 1),
        ("(C) C) lymphocytes", "C) lymphocytes", 1),  # one letter
        ("C: fluid", "fluid", 1),
        ("C. ", "C.", 0),
        ("A) not mine", "A) not mine", 0),
        ("C small nodules", "C small nodules", 0),
        ("C-cell hyperplasia", "C-cell hyperplasia", 0),
        ("C.difficile", "C.difficile", 0),
        *(
            (name, name, 0)
            for name in ("C. difficile colitis", "C. Difficile Colitis", "C. albicans", "C. auris")
        ),
        ("C. C. albicans abscess", "C. albicans abscess", 1),
    ],
)
def test_the_own_letter_of_an_option_is_taken_off(
    released: str, option: str, prefixed: int
) -> None:
    record = med_cmr(med_cmr_row(C=released))
    assert (record.choices["C"], record.choices["A"], record.prefixed) == (
        option,
        "option A",
        prefixed,
    )


@pytest.mark.parametrize("name", [*DIMENSIONS.values(), *DIMENSIONS, "Subtle Object Detection"])
def test_dimensions_are_known_by_release_name_paper_name_and_abbreviation(name: str) -> None:
    assert dimension_of(name) in DIMENSIONS
    assert dimension_of(name.upper().replace(" ", "_")) == dimension_of(name)


# --- MedStreamBench ---


def test_a_single_turn_object_is_one_round() -> None:
    record = medstream(single_turn_row())
    assert (record.cluster, record.subtask, record.medium) == (
        "cholec80/v1",
        "retrospective",
        "video",
    )
    assert record.question == single_turn_row()["question"]
    (turn,) = record.rounds
    assert (turn.window, turn.time, turn.expected, turn.answerable) == (
        (2.0, 6.0),
        6.0,
        ("dissection",),
        True,
    )
    row = single_turn_row(query_time=5.0, context_window_sec=4.999, input_range=[0.001, 5.0])
    assert medstream(row).rounds[0].window == (0.001, 5.0)
    record = medstream(
        single_turn_row(media_path="Stream_Bench/x/frames", input_range=[0, 11], query_time=0.4)
    )
    assert (record.medium, record.rounds[0].window) == ("images", (0.0, 11.0))
    record = medstream(single_turn_row(answer=["dissection", "closure", "dissection"]))
    assert (record.multi_select, record.rounds[0].expected) == (True, ("dissection", "closure"))
    names = ("a_1_gemini_closed", "a_1_gemini_open", "a_1")
    assert {medstream(single_turn_row(sample_id=name)).family for name in names} == {"a_1"}


def test_a_streaming_object_has_its_rounds_in_order() -> None:
    record = medstream(streaming_row())
    assert record.subtask == "future_streaming"
    assert [turn.window for turn in record.rounds] == [
        (2.0, time) for time in (4.0, 6.0, 8.0, 10.0)
    ]
    assert [turn.answerable for turn in record.rounds] == [False, False, True, True]
    assert [turn.expected for turn in record.rounds] == [("unanswerable",)] * 2 + [("closure",)] * 2


def test_fields_are_found_under_any_of_their_names() -> None:
    for field, alias in ((field, alias) for field, aliases in ALIASES.items() for alias in aliases):
        row, expected = streaming_row(), streaming_row()
        if field in ("expected_time", "tolerance"):
            row[alias] = expected[field] = 7.5
        elif field == "rounds":
            row[alias] = row.pop("rounds")
        else:
            for turn in row["rounds"]:
                turn[alias] = turn.pop(field)
        assert medstream(row) == medstream(expected), alias
    assert medstream(expected).tolerance == 7.5


@pytest.mark.parametrize("lost", ["expected_output", "answerable"])
def test_the_expected_output_and_the_flag_can_stand_in_for_each_other(lost: str) -> None:
    row = streaming_row()
    for turn in row["rounds"]:
        del turn[lost]
    assert medstream(row) == medstream(streaming_row())


def test_a_flag_that_contradicts_the_expected_output_is_noted() -> None:
    record = medstream(with_round(2, {"answerable": False}))
    assert record.notes == ("answerable flag contradicts expected output",)
    assert (record.rounds[2].answerable, record.rounds[2].expected) == (False, ("unanswerable",))


@pytest.mark.parametrize("said", ["no_alert", "No alert.", "NO-ALERT", "uncertain"])
def test_the_silent_states_are_read_however_they_are_written(said: str) -> None:
    row = streaming_row("proactive")
    row["rounds"][0]["expected_output"] = said
    assert medstream(row).rounds[0].expected in (("no_alert",), ("uncertain",))


def test_degenerate_records_are_recognised() -> None:
    asked, placeholder = (
        "What?\n\nResponse protocol: Answer.",
        "No additional evidence text provided.",
    )
    for question, reference, why in (
        (asked.removeprefix("What?"), "A real answer.", "empty question"),
        (asked, placeholder, "placeholder answer"),
        (asked, "A real answer.", ""),
    ):
        row = single_turn_row(
            question_type="open", question=question, reference_answer=reference, choices=None
        )
        assert medstream(row).degenerate == why
