"""Release rows become typed records, or one sentence that names file, line and field."""

from __future__ import annotations

import json
from typing import Any

import pytest
from data_sources import POLYP, image_paths, kvasir_row, mi_cxr_row
from hypothesis import given, settings
from hypothesis import strategies as st

from medtasks.benchmarks.kvasir_vqa_x1.records import ATOMIC_QUESTIONS, parse_kvasir_row
from medtasks.benchmarks.mi_cxr.records import parse_mi_cxr_row
from medtasks.data.records import Record, Where
from medtasks.errors import DataError

WHERE = Where("rows.jsonl", 7)
TWICE = {"complexity": 2, "original": json.dumps([POLYP, POLYP])}


def test_a_kvasir_row_keeps_its_fields() -> None:
    record = parse_kvasir_row(kvasir_row(), WHERE)
    assert (record.cluster, record.media, record.original[0].a) == ("img1", ("img1.jpg",), "1")


def test_the_sample_id_does_not_depend_on_the_line() -> None:
    first, second = (parse_kvasir_row(kvasir_row(), Where("x", line)) for line in (1, 99))
    assert first.sample_id == second.sample_id
    assert parse_kvasir_row(kvasir_row(question="Other?"), WHERE).sample_id != first.sample_id


@pytest.mark.parametrize(("question", "name"), ATOMIC_QUESTIONS.items())
def test_every_atomic_question_gives_its_class(question: str, name: str) -> None:
    original = json.dumps([{"q": f" {question.upper()} ", "a": "x"}])
    assert parse_kvasir_row(kvasir_row(original=original, question_class=None), WHERE).question_class == (name,)


def test_there_are_eighteen_classes() -> None:
    assert len(set(ATOMIC_QUESTIONS.values())) == 18
    assert "How many instrumnets are in the image?" in ATOMIC_QUESTIONS


def test_a_class_named_twice_is_kept_as_it_stands() -> None:
    record = parse_kvasir_row(kvasir_row(**TWICE, question_class=["polyp_count", "polyp_count"]), WHERE)
    assert record.question_class == ("polyp_count", "polyp_count")


def test_an_mi_cxr_row_is_ordered_oldest_first() -> None:
    shuffled = dict(reversed(image_paths().items()))
    record = parse_mi_cxr_row(mi_cxr_row(images=shuffled), WHERE)
    assert record.media == tuple(image_paths().values())
    assert (record.sample_id, record.cluster) == ("tel-0", "p00000001")


def test_qid_is_read_too_and_the_variant_has_ids_of_its_own() -> None:
    row = mi_cxr_row(q_id=None, qid=4, group_type="ICR", qtype="icr_variant_single")
    assert parse_mi_cxr_row(row, WHERE).sample_id == "icr_variant-4"


BAD_KVASIR: list[tuple[dict[str, Any], str]] = [
    ({"answer": None}, "field `answer` is missing"),
    ({"answer": " "}, "field `answer` is ' '"),
    ({"question": 3}, "field `question` is 3"),
    ({"complexity": 4}, "field `complexity` is 4, expected 1, 2 or 3"),
    ({"complexity": True}, "field `complexity` is True"),
    ({"complexity": 2}, "found 1 atomic pairs, expected 2"),
    ({"img_id": "../secret"}, "field `img_id`"),
    ({"original": "no json"}, "field `original`"),
    ({"original": "[]"}, "field `original`"),
    ({"original": json.dumps([{"q": "x"}])}, "field `original[0].q` is 'x'"),
    ({"question_class": ["polyp_mood"]}, "field `question_class[0]` is 'polyp_mood'"),
    ({"question_class": "polyp_count"}, "field `question_class`"),
    ({"question_class": None, "original": json.dumps([{"q": "Why?", "a": "x"}])}, "field `original[0].q` is 'Why?'"),
]


@pytest.mark.parametrize(("change", "said"), BAD_KVASIR, ids=repr)
def test_a_bad_kvasir_row_is_named(change: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError) as caught:
        parse_kvasir_row(kvasir_row(**change), WHERE)
    assert str(caught.value).startswith("rows.jsonl, line 7: ")
    assert said in str(caught.value)


SIX = {letter: letter for letter in "ABCDEF"}
BAD_MI_CXR: list[tuple[dict[str, Any], str]] = [
    ({"answer": None}, "field `answer` is missing"),
    ({"answer": "F"}, "field `answer` is 'F'"),
    ({"qtype": "guess"}, "field `qtype` is 'guess'"),
    ({"group_type": "GTS"}, "field `group_type` is 'GTS', expected TEL"),
    ({"choices": SIX}, "field `choices`"),
    ({"choices": {**dict.fromkeys("ABCD", "x"), "E": ""}}, "field `choices.E`"),
    ({"q_id": None}, "none of the fields q_id, qid is present"),
    ({"q_id": -1}, "field `q_id` is -1"),
    ({"images": {**image_paths(), "T6": "x"}}, "field `images.T6`"),
    ({"images": {**image_paths(), "T3": "/etc/passwd"}}, "field `images.T3`"),
    ({"images": {**image_paths(), "T3": "files/p00/../../x.jpg"}}, "field `images.T3`"),
    ({"images": {**image_paths(), "T5": image_paths("p00000002")["T5"]}}, "five images of one patient"),
]


@pytest.mark.parametrize(("change", "said"), BAD_MI_CXR, ids=repr)
def test_a_bad_mi_cxr_row_is_named(change: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError) as caught:
        parse_mi_cxr_row(mi_cxr_row(**change), WHERE)
    assert str(caught.value).startswith("rows.jsonl, line 7: ")
    assert said in str(caught.value)


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=300)
@given(st.sampled_from(sorted(kvasir_row())), JUNK, st.sampled_from(sorted(mi_cxr_row())))
def test_any_value_gives_a_record_or_a_data_error(field: str, junk: Any, other: str) -> None:
    for parse, row in (
        (parse_kvasir_row, {**kvasir_row(), field: junk}),
        (parse_mi_cxr_row, {**mi_cxr_row(), other: junk}),
    ):
        try:
            record: Record = parse(row, WHERE)
        except DataError:
            continue
        else:
            assert type(record).model_validate_json(record.model_dump_json()) == record
