"""The miniature data that the package ships: the drawings of their tables, and the oddities of the releases' cards."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image
from time_coded import read_time_code

from medtasks.benchmarks.med_cmr.records import DIMENSIONS
from medtasks.benchmarks.medstreambench.records import parse_medstream_row
from medtasks.data.media.images import load_image
from medtasks.data.media.video import VideoReader, read_index
from medtasks.data.sources import SourceRow, read_json
from medtasks.data.store import open_prepared
from training.drawings import BENCHMARKS, kvasir, med_cmr, medstream, mi_cxr
from training.drawings.medstream import FOOTAGE, RECORDS


def records(benchmark: str) -> list[Any]:
    return list(open_prepared(benchmark).records())


@pytest.mark.parametrize(
    ("name", "drawings", "files"),
    [
        ("kvasir_vqa_x1", kvasir, 24),
        ("med_cmr", med_cmr, 30),
        ("medstreambench", medstream, 43 + 24),  # videos and the single image, pictures of the sequences
        ("mi_cxr", mi_cxr, 165),
    ],
)
def test_the_shipped_pictures_are_what_is_drawn(name: str, drawings: ModuleType, files: int, tmp_path: Path) -> None:
    drawings.draw_all(tmp_path)
    shipped, drawn = BENCHMARKS / name / "mini", [path for path in tmp_path.rglob("*") if path.is_file()]
    names = {path.relative_to(tmp_path) for path in drawn}
    assert len(names) == files
    assert names == {path.relative_to(shipped) for path in shipped.rglob("*") if "json" not in path.suffix} - {
        path.relative_to(shipped) for path in shipped.rglob("*") if path.is_dir()
    }
    for path in names:
        if path.suffix in (".png", ".jpg"):  # encoders differ; clips show their own times (below)
            one, other = (np.asarray(Image.open(root / path), dtype=int) for root in (tmp_path, shipped))
            assert np.abs(one - other).mean() < 1
    assert sum((shipped / path).stat().st_size for path in names) < 4 * 2**20


def test_rows_and_the_tables_that_their_answers_were_derived_from_are_unchanged() -> None:
    """Git has what was tested of them before they were pinned (`true_letters`, `oddities`): run it on changed ones."""
    digest = hashlib.sha256()
    rows = sorted(path for path in BENCHMARKS.glob("*/mini/**/*.json*") if path.is_file())
    for path in (*rows, *sorted(Path(mi_cxr.__file__).parent.glob("*.json"))):
        digest.update(path.read_bytes())
    assert digest.hexdigest()[:16] == "563cc30636ff2acd"


def test_counts_do_not_divide_by_two_or_three() -> None:
    levels = Counter(record.complexity for record in records("kvasir_vqa_x1"))
    main, variant = (len(file.read_text().splitlines()) for file in mi_cxr.ROW_FILES)
    assert all(count % 2 and count % 3 for count in (levels.total(), *levels.values(), main, variant))


# --- Med-CMR ---


def test_the_oddities_of_med_cmr_are_there() -> None:
    rows, details = records("med_cmr"), open_prepared("med_cmr").manifest.details
    mcq = [record for record in rows if record.format == "mcq"]
    dimensions, gold = (Counter(getattr(record, name) for record in mcq) for name in ("dimension", "answer"))

    assert (len(mcq), len(rows)) == (43, 43 + 28)
    assert all(dimensions[name] >= 3 for name in DIMENSIONS)
    assert dimensions.most_common(1)[0][0] == "ltg"
    assert {record.dimension for record in rows if record.format == "open"} == set(DIMENSIONS)
    assert set(gold) == set("ABCDE")
    assert max(gold.values()) - min(gold.values()) <= 2
    assert details["oddities"]["rows whose options carry their own letter"] == 2
    assert details["oddities"]["rows that share their index with an earlier one"] == 1
    assert details["subtype"]["(none)"] == 2
    assert {record.index.isdecimal() for record in rows} == {True, False}
    assert any(record.task == "Small object detection" for record in rows)
    assert any("“" in text or "(" in text for record in rows for text in record.choices.values())
    assert all(not text.startswith(("A)", "A.", "B)")) for record in rows for text in record.choices.values())


# --- MedStreamBench ---

DEGENERATE = ("mini_bypass_summary_None", "mini_bypass_workflow_None")
"""Ids of records without a question, whose answer is a placeholder."""
MISSING, CORRUPT = "mini_endovis10_tool", "mini_web_WL09"
"""Ids of the records whose video is not on disk, or is cut off."""


def release_rows() -> list[SourceRow]:
    return [row for path in sorted(RECORDS.iterdir()) for row in read_json(path.read_bytes(), path.name)]


def test_every_object_parses() -> None:
    parsed = [parse_medstream_row(item.row, item.where) for item in release_rows()]
    modes = Counter(record.subtask for record in parsed)

    assert modes == {"retrospective": 37, "present": 10, "future": 6, "future_streaming": 3, "proactive": 4}
    assert [record.sample_id for record in parsed if record.degenerate] == list(DEGENERATE)
    assert {(record.temporal_mode, record.question_type) for record in parsed} == {
        (mode, kind) for mode in ("retrospective", "present", "future", "proactive") for kind in ("closed", "open")
    }
    assert {len(record.rounds) for record in parsed if record.task_mode == "streaming"} >= {3, 4, 5, 6}


def test_the_oddities_of_medstream_are_there() -> None:
    rows = [item.row for item in release_rows()]
    keys = {key for row in rows for key in row} | {
        key for row in rows for turn in row.get("rounds", row.get("stream_rounds", [])) for key in turn
    }
    assert {"rounds", "stream_rounds", "current_time", "t_c", "time", "expected_output", "expected", "answer"} <= keys
    assert {"answerable", "is_answerable", "expected_time", "t_star", "tolerance", "delta"} <= keys
    by_id = {record.sample_id: record for record in records("medstreambench")}
    assert by_id["mini_suturing06_tools"].multi_select
    assert by_id["mini_suturing07_early"].multi_select  # of the same task, with one answer
    assert by_id["mini_chole01_tools_gemini_open"].family == by_id["mini_chole01_tools_gemini_closed"].family
    assert "[" in by_id["mini_web_NBI54"].media_path
    assert by_id["mini_web_NBI54"].rounds[0].window == (0.001, 8.5)  # the last frame is at 7.75 s
    assert len(by_id["mini_lower04_now"].rounds[0].frames) == 1
    assert by_id["mini_612_polyp"].medium == by_id["mini_seq07_polyp"].medium == "images"
    assert not any(turn.answerable for turn in by_id["mini_suturing09_calm"].rounds)


def test_what_cannot_be_shown_is_excluded() -> None:
    manifest = open_prepared("medstreambench").manifest
    assert set(manifest.excluded_samples) == {*DEGENERATE, MISSING, CORRUPT}
    assert manifest.excluded == {"degenerate": 2, "missing_media": 1, "unreadable_media": 1}
    assert len(records("medstreambench")) == 56


def test_every_frame_shows_its_own_time() -> None:
    videos = [one for one in FOOTAGE.values() if one.on_disk == "whole" and Path(one.path).suffix not in ("", ".png")]
    assert len(videos) > 20
    for clip in videos:
        path = RECORDS.parent / "media" / clip.media_path
        index = read_index(path)
        with VideoReader(path, index.keyframes) as reader:
            seen = [read_time_code(np.asarray(picture)) for _, picture in reader.read(index.pts)]
        assert seen == [int(time * 1000) for time in clip.times] == [int(time * 1000) for time in index.times], path


def test_pictures_show_their_index() -> None:
    folder = RECORDS.parent / "media" / FOOTAGE["mini-seq07"].media_path
    codes = [read_time_code(np.asarray(load_image(path))) for path in sorted(folder.iterdir())]
    assert codes == [number * 1000 for number in range(12)]
