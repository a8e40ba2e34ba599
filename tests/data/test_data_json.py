"""JSON as the four releases have it: lines, concatenated objects, lists."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from release_rows import single_turn_row, streaming_row

from medtasks.benchmarks.medstreambench.parse import parse_medstream_row
from medtasks.core.errors import DataError
from medtasks.data.sources import read_json, read_jsonl

ROWS: list[dict[str, Any]] = [
    single_turn_row(),
    streaming_row("proactive"),
    single_turn_row(sample_id="s2"),
]


def flat(text: str) -> str:
    """As a page that stores no line breaks shows it: all white space is one blank."""
    return " ".join(text.split())


def without_indent(text: str) -> str:
    return "\n".join(line.strip() for line in text.splitlines())


LAYOUTS = {
    "a list": lambda rows: json.dumps(rows, indent=1),
    "pretty-printed": lambda rows: "\n".join(json.dumps(row, indent=4) for row in rows) + "\n",
    "without indentation": lambda rows: without_indent(
        "\n".join(json.dumps(row, indent=4) for row in rows)
    ),
    "on one line": lambda rows: flat(" ".join(json.dumps(row, indent=2) for row in rows)),
    "one per line": lambda rows: "\n".join(json.dumps(row) for row in rows),
    "without anything between": lambda rows: "".join(json.dumps(row) for row in rows),
    "with blank lines": lambda rows: (
        "\n\n\n" + "\n\n".join(json.dumps(row, indent=1) for row in rows) + "\n \n"
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_of_concatenated_objects_gives_the_same_rows(layout: str) -> None:
    items = list(read_json(LAYOUTS[layout](ROWS).encode(), "x.jsonl"))

    assert [item.row for item in items] == ROWS
    assert [parse_medstream_row(item.row, item.where).sample_id for item in items] == [
        "s1",
        "s1",
        "s2",
    ]


def test_a_row_is_placed_at_its_opening_brace() -> None:
    text = (
        "\n"
        + json.dumps({"a": 1, "b": [1, 2]}, indent=1)
        + "\n\n"
        + json.dumps({"c": 1}, indent=1)
        + json.dumps({})
    )
    assert [str(item.where) for item in read_json(text.encode(), "x.jsonl")] == [
        "x.jsonl, line 2",
        "x.jsonl, line 10",
        "x.jsonl, line 12",
    ]


@given(cut=st.integers(0, 3000), layout=st.sampled_from(sorted(LAYOUTS)))
def test_any_cut_is_one_clear_error_after_the_whole_rows(cut: int, layout: str) -> None:
    text = LAYOUTS[layout](ROWS)
    found, said = [], None
    try:
        for item in read_json(text[:cut].encode(), "x.jsonl"):
            found.append(item.row)
    except DataError as error:
        said = str(error)
    assert found == ROWS[: len(found)]
    assert said is None or said.startswith("x.jsonl")
    assert said is not None or len(found) == 3 or text[:cut].rstrip().endswith("}")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "x: the file is empty"),
        (b" [ ] ", "x: the file is empty"),
        (b"null", "x, line 1: found NoneType, expected a JSON object"),
        (b"{}\n[1]", "x, line 2: found list, expected a JSON object"),
        (b"[{}, 3]", "x, row 2: found int"),
        (b'{"a": 1}\n{"b": }', "x, line 2, column 7: not valid JSON"),
        (b"{}\n\0", "x, line 2, column 1: not valid JSON"),
        (b"[{},]", "x, line 1, column 5: not valid JSON"),
        (b"[{} {}]", "x, line 1, column 5: not valid JSON"),
        (b"[{}]]", "x, line 1, column 4: not valid JSON"),
        (b'{}\n{"a": "\xff"}', "x, line 2: byte 0xff is not UTF-8"),
        (b"{}\n" + b'{"a": ' * 100_000, "x, line 2: not readable JSON"),
        (b"[" * 100_000, "x, row 1: not readable JSON"),
        (b'{}\n{"a": ' + b"9" * 6000 + b"}", "x, line 2: not readable JSON"),
        (
            b'{"answer": "B", "answer": "C"}',
            "x, line 1: not readable JSON .the key 'answer' is repeated",
        ),
        (
            b'[{"answer": "B", "answer": "C"}]',
            "x, row 1: not readable JSON .the key 'answer' is repeated",
        ),
    ],
)
def test_what_is_not_a_list_or_series_of_objects_is_refused(
    data: bytes, said: str, tmp_path: Path
) -> None:
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(DataError, match=f"^[^ ]*{said}"):
        list(read_jsonl(tmp_path / "x"))


def test_a_byte_order_mark_is_no_part_of_the_first_row() -> None:
    assert [item.row for item in read_json(b"\xef\xbb\xbf{}", "x.jsonl")] == [{}]


def test_rows_of_a_list_are_parsed_one_at_a_time() -> None:
    rows = read_json(b'[{"a": 1}, {"a": 2}, {"a": oops', "rows.json")
    assert [next(rows).row["a"], next(rows).row["a"]] == [1, 2]
    with pytest.raises(DataError, match=r"rows\.json, line 1, column 28: not valid JSON"):
        next(rows)
