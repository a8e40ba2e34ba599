"""Rows that no writer of JSON should make, but some do: a record or a refusal, never another exception."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from data_sources import POLYP, image_paths, kvasir_row, mi_cxr_row
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from release_rows import med_cmr_row, single_turn_row

from medtasks.benchmarks.kvasir_vqa_x1.prepare import prepare_kvasir
from medtasks.benchmarks.kvasir_vqa_x1.records import parse_kvasir_row
from medtasks.benchmarks.med_cmr.prepare import _records
from medtasks.benchmarks.medstreambench.records import parse_medstream_row
from medtasks.benchmarks.mi_cxr.records import parse_mi_cxr_row
from medtasks.data.records import Where
from medtasks.data.sources import SourceRow, read_json_list, read_json_stream, read_jsonl
from medtasks.errors import DataError

WHERE = Where("rows.jsonl", 7)


def test_classes_are_derived_from_the_pairs_where_the_release_lacks_them() -> None:
    pairs = [POLYP, {"q": "How many instrumnets are in the image?", "a": "0"}, POLYP]
    row = kvasir_row(complexity=3, original=json.dumps(pairs), question_class=None)
    assert parse_kvasir_row(row, WHERE).question_class == ("polyp_count", "instrument_count", "polyp_count")


def test_a_release_that_mends_the_spelling_is_read_too() -> None:
    original = json.dumps([{"q": "How many instruments are in the image?", "a": "0"}])
    row = kvasir_row(original=original, question_class=None)
    assert parse_kvasir_row(row, WHERE).question_class == ("instrument_count",)


BAD_KVASIR: dict[str, tuple[dict[str, Any], str]] = {
    "unknown question beside a known class": ({"original": json.dumps([{"q": "Why?", "a": ""}])}, "`original[0].q`"),
    "half a surrogate pair": ({"question": "\ud800"}, "`question`"),
    "half a surrogate pair in a pair": ({"original": '[{"q": "Is there text?", "a": "\\ud800"}]'}, "`original` is "),
    "pairs too deep to read": ({"original": "[" * 100_000}, "`original`"),
    "class in a list": ({"question_class": [["polyp_count"]]}, "`question_class[0]`"),
    "pairs not in a text": ({"original": [POLYP]}, "`original`"),
    "level as text": ({"complexity": "1"}, "`complexity` is '1'"),
    "id is the parent folder": ({"img_id": ".."}, "`img_id`"),
    "id is absolute": ({"img_id": "/etc/passwd"}, "`img_id`"),
    "id too long for a file": ({"img_id": "x" * 300}, "`img_id`"),
}


@pytest.mark.parametrize(("change", "said"), BAD_KVASIR.values(), ids=BAD_KVASIR)
def test_an_odd_kvasir_row_is_named(change: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match=r"^rows\.jsonl, line 7: ") as caught:
        parse_kvasir_row(kvasir_row(**change), WHERE)
    assert said in str(caught.value)


FOUR = {key: path for key, path in image_paths().items() if key != "T5"}
BAD_MI_CXR: dict[str, tuple[dict[str, Any], str]] = {
    "four images": ({"images": FOUR}, "`images`"),
    "digits of another script": (
        {"images": {**image_paths(), "T3": image_paths("p0000000\u0661")["T3"]}},
        "`images.T3`",
    ),
    "image as number": ({"images": {**image_paths(), "T3": 3}}, "`images.T3`"),
    "four options": ({"choices": dict.fromkeys("ABCD", "x")}, "`choices`"),
    "options as list": ({"choices": ["x"] * 5}, "`choices`"),
    "small letter": ({"answer": "b"}, "`answer` is 'b'"),
    "id as text": ({"q_id": "4"}, "`q_id` is '4'"),
    "id as truth": ({"q_id": True}, "`q_id` is True"),
}


@pytest.mark.parametrize(("change", "said"), BAD_MI_CXR.values(), ids=BAD_MI_CXR)
def test_an_odd_mi_cxr_row_is_named(change: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match=r"^rows\.jsonl, line 7: ") as caught:
        parse_mi_cxr_row(mi_cxr_row(**change), WHERE)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "line",
    [
        b"[" * 100_000,
        b'{"a": ' * 100_000,
        b'{"a": ' + b"1" * 6000 + b"}",
        b'{"a": "\xed\xa0\x80"}',
        b"\0",
        b"{} {}",
        b"3",
    ],
    ids=["deep list", "deep object", "long number", "surrogate bytes", "null byte", "two objects", "number"],
)
def test_a_line_that_cannot_be_read_is_named(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"{}\n" + line)
    with pytest.raises(DataError, match=r"^rows\.jsonl, line 2"):
        list(read_jsonl(path))


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["A", "TEL", "../x", "[]"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=5),
    max_leaves=8,
)


def mutated(row: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """``row`` with several fields dropped, replaced, or changed one level deeper."""
    deeper = {
        key: st.dictionaries(st.sampled_from(sorted(value)), JUNK).map(lambda new, old=value: {**old, **new})
        for key, value in row.items()
        if isinstance(value, dict)
    }
    changes = st.fixed_dictionaries({}, optional={key: deeper.get(key, JUNK) | JUNK for key in row})
    dropped = st.sets(st.sampled_from(sorted(row)), max_size=2)
    return st.builds(
        lambda new, gone: {key: value for key, value in {**row, **new}.items() if key not in gone}, changes, dropped
    )


@settings(max_examples=400, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(mutated(kvasir_row()) | mutated(mi_cxr_row()), st.sampled_from([parse_kvasir_row, parse_mi_cxr_row]))
def test_a_mutated_row_is_a_record_or_a_refusal(row: dict[str, Any], parse: Any) -> None:
    try:
        record = parse(row, WHERE)
    except DataError as error:
        assert str(error).startswith("rows.jsonl, line 7: ")  # noqa: PT017 - a refusal is as right as a record
    else:
        assert type(record).model_validate_json(record.model_dump_json()) == record


def test_rows_that_only_repeat_an_earlier_one_are_counted(tmp_path: Path) -> None:
    row = kvasir_row()
    source = tmp_path / "test.jsonl"
    source.write_text("".join(json.dumps(one) + "\n" for one in (row, row, kvasir_row(answer="Two."), row)))
    manifest = prepare_kvasir(str(source), tmp_path / "out", references_only=True).manifest
    assert manifest.counts.rows == 4
    assert manifest.details["oddities"] == {"records that only repeat an earlier one": 2}


REPEATED = '{"answer": "B", "answer": "C"}'


@pytest.mark.parametrize(
    "read",
    [
        lambda path: read_jsonl(path),
        lambda path: read_json_stream(path.read_bytes(), path.name),
        lambda path: read_json_list(b"[" + path.read_bytes() + b"]", path.name),
    ],
)
def test_a_repeated_key_is_named(tmp_path: Path, read: Callable[[Path], Iterator[SourceRow]]) -> None:
    (tmp_path / "rows").write_text(REPEATED)
    with pytest.raises(DataError, match=r"rows, (line|row) 1: not readable JSON .the key 'answer' is repeated"):
        list(read(tmp_path / "rows"))


def test_rows_of_a_list_are_parsed_one_at_a_time() -> None:
    rows = read_json_list(b'[{"a": 1}, {"a": 2}, {"a": oops', "rows.json")
    assert [next(rows).row["a"], next(rows).row["a"]] == [1, 2]
    with pytest.raises(DataError, match=r"rows\.json, line 1, column 28: not valid JSON"):
        next(rows)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (single_turn_row(answer=float("nan")), "field `answer` is nan, expected a non-empty string"),
        (single_turn_row(answer=[float("inf")]), "field `answer` is .inf., expected a non-empty string"),
        (
            single_turn_row(question="half \ud800"),
            "field `question` is 'half .ud800', expected a string of valid Unicode",
        ),
        (
            single_turn_row(evidence="half \ud800"),
            "field `evidence` is 'half .ud800', expected a string of valid Unicode",
        ),
    ],
)
def test_an_odd_medstream_row_is_named(row: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match=said):
        parse_medstream_row(row, Where("x.jsonl", 1))


def test_an_id_beyond_64_bits_is_refused_when_it_is_read() -> None:  # tables of documents cannot store it
    with pytest.raises(DataError, match=r"field `q_id` is 1000.*0000, expected a number below"):
        parse_mi_cxr_row(mi_cxr_row(q_id=10**400), Where("rows.jsonl", 1))


def test_messages_do_not_contain_whole_fields() -> None:
    long = "x" * 1_000_000
    with pytest.raises(DataError) as raised:
        parse_medstream_row(single_turn_row(sample_id=long, task_mode=long), Where("x.jsonl", 1))
    assert len(str(raised.value)) < 400
    with pytest.raises(DataError, match="name no dimension") as raised:
        _records(lambda name: json.dumps([med_cmr_row(task=long)]).encode())  # noqa: ARG005
    assert len(str(raised.value)) < 600
