"""The miniature MedStreamBench: every oddity of the card, and frames that show their own time."""

from __future__ import annotations

import io
import json
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from time_coded import read_time_code

from medtasks.benchmarks.medstreambench.records import MedStreamRecord, parse_medstream_row
from medtasks.core.errors import UsageError
from medtasks.data.media.images import load_image
from medtasks.data.media.video import VideoReader, read_index
from medtasks.data.sources import SourceRow, read_json_stream
from medtasks.data.store import open_prepared
from training.drawings.clips import draw_time_code, encode_clip
from training.drawings.medstream import FOOTAGE, RECORDS

DEGENERATE = ("mini_bypass_summary_None", "mini_bypass_workflow_None")
"""Ids of records without a question, whose answer is a placeholder."""
MISSING, CORRUPT = "mini_endovis10_tool", "mini_web_WL09"
"""Ids of the records whose video is not on disk, or is cut off."""


def release_rows() -> list[SourceRow]:
    return [row for path in sorted(RECORDS.iterdir()) for row in read_json_stream(path.read_bytes(), path.name)]


@pytest.fixture(scope="module")
def records() -> list[MedStreamRecord]:
    return [record for record in open_prepared("medstreambench").records() if isinstance(record, MedStreamRecord)]


def test_record_files_are_concatenated_objects_with_an_order_of_keys_each() -> None:
    firsts = set()
    for path in RECORDS.glob("*.jsonl"):
        text = path.read_text()
        with pytest.raises(json.JSONDecodeError):
            json.loads(text.splitlines()[0])
        row, _ = json.JSONDecoder().raw_decode(text)
        firsts.add(next(iter(row)))
    assert len(firsts) > 4


def test_every_object_parses() -> None:
    parsed = [parse_medstream_row(item.row, item.where) for item in release_rows()]
    modes = Counter(record.subtask for record in parsed)

    assert modes == {"retrospective": 37, "present": 10, "future": 6, "future_streaming": 3, "proactive": 4}
    assert [record.sample_id for record in parsed if record.degenerate] == list(DEGENERATE)
    assert {(record.temporal_mode, record.question_type) for record in parsed} == {
        (mode, kind) for mode in ("retrospective", "present", "future", "proactive") for kind in ("closed", "open")
    }
    assert {len(record.rounds) for record in parsed if record.task_mode == "streaming"} >= {3, 4, 5, 6}


def test_the_oddities_of_the_card_are_there(records: list[MedStreamRecord]) -> None:
    rows = [item.row for item in release_rows()]
    keys = {key for row in rows for key in row} | {
        key for row in rows for turn in row.get("rounds", row.get("stream_rounds", [])) for key in turn
    }
    assert {"rounds", "stream_rounds", "current_time", "t_c", "time", "expected_output", "expected", "answer"} <= keys
    assert {"answerable", "is_answerable", "expected_time", "t_star", "tolerance", "delta"} <= keys
    by_id = {record.sample_id: record for record in records}
    assert by_id["mini_suturing06_tools"].multi_select
    assert by_id["mini_suturing07_early"].multi_select  # of the same task, with one answer
    assert by_id["mini_chole01_tools_gemini_open"].family == by_id["mini_chole01_tools_gemini_closed"].family
    assert "[" in by_id["mini_web_NBI54"].media_path
    assert by_id["mini_web_NBI54"].rounds[0].window == (0.001, 8.5)  # the last frame is at 7.75 s
    assert len(by_id["mini_lower04_now"].rounds[0].frames) == 1
    assert by_id["mini_612_polyp"].medium == by_id["mini_seq07_polyp"].medium == "images"
    assert not any(turn.answerable for turn in by_id["mini_suturing09_calm"].rounds)


def test_what_cannot_be_shown_is_excluded(records: list[MedStreamRecord]) -> None:
    manifest = open_prepared("medstreambench").manifest
    assert set(manifest.excluded_samples) == {*DEGENERATE, MISSING, CORRUPT}
    assert manifest.excluded == {"degenerate": 2, "missing_media": 1, "unreadable_media": 1}
    assert len(records) == 56


VIDEOS = [
    name
    for name, clip in FOOTAGE.items()
    if "." in clip.path[-4:] and not clip.path.endswith("png") and clip.on_disk == "whole"
]


@pytest.mark.parametrize("name", VIDEOS)
def test_every_frame_shows_its_own_time(name: str) -> None:
    path = RECORDS.parent / "media" / FOOTAGE[name].media_path
    index = read_index(path)
    with VideoReader(path, index.keyframes) as reader:
        seen = [read_time_code(np.asarray(picture)) for _, picture in reader.read(index.pts)]
    assert seen == [int(time * 1000) for time in FOOTAGE[name].times]
    assert seen == [int(time * 1000) for time in index.times]


def test_pictures_show_their_index() -> None:
    folder = RECORDS.parent / "media" / FOOTAGE["mini-seq07"].media_path
    codes = [read_time_code(np.asarray(load_image(path))) for path in sorted(folder.iterdir())]
    assert codes == [number * 1000 for number in range(12)]


@settings(deadline=None, derandomize=True)
@given(milliseconds=st.integers(0, 2**24 - 1), grey=st.integers(0, 255), quality=st.integers(40, 95))
def test_a_time_code_survives_compression(milliseconds: int, grey: int, quality: int) -> None:
    picture = draw_time_code(np.full((72, 96, 3), grey, dtype=np.uint8), milliseconds)
    stream = io.BytesIO()
    Image.fromarray(picture).save(stream, format="JPEG", quality=quality)
    assert read_time_code(picture) == milliseconds
    assert read_time_code(np.asarray(Image.open(stream))) == milliseconds


@given(st.integers(0, 255))
def test_a_picture_without_a_code_has_no_time(grey: int) -> None:
    assert read_time_code(np.full((72, 96, 3), grey, dtype=np.uint8)) is None


@pytest.mark.parametrize("times", [[], [0, 0], [1, 0], [-1]])
def test_times_that_do_not_increase_are_refused(tmp_path: Path, times: list[int]) -> None:
    black = np.zeros((48, 64, 3), dtype=np.uint8)
    with pytest.raises(UsageError):
        encode_clip(tmp_path / "x.mp4", [Fraction(time) for time in times], lambda *_: black)
