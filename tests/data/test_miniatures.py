"""The miniature data that the package ships: the drawings of their tables, the oddities of the
releases' cards, and rows whose answers their pictures show.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image
from time_coded import read_time_code

from medtasks.benchmarks.kvasir_vqa_x1.records import ATOMIC_QUESTIONS, QUESTION_CLASSES
from medtasks.benchmarks.med_cmr.records import DIMENSIONS
from medtasks.benchmarks.medstreambench.parse import parse_medstream_row
from medtasks.benchmarks.mi_cxr.records import QTYPES, MiCxrRecord
from medtasks.data.media.video_index import read_index
from medtasks.data.media.video_reader import VideoReader
from medtasks.data.miniatures import _was_whole
from medtasks.data.sources import SourceRow, read_json
from medtasks.data.store import open_prepared
from training.drawings import BENCHMARKS, kvasir, med_cmr, medstream, mi_cxr
from training.drawings.kvasir import Scene
from training.drawings.medstream import FOOTAGE, RECORDS
from training.drawings.mi_cxr import FINDINGS, TIMELINES, image_path


def records(benchmark: str) -> list[Any]:
    return list(open_prepared(benchmark).records())


@pytest.mark.parametrize(
    ("name", "drawings", "files"),
    [
        ("kvasir_vqa_x1", kvasir, 24),
        ("med_cmr", med_cmr, 30),
        (
            "medstreambench",
            medstream,
            43 + 24,
        ),  # videos and the single image, pictures of the sequences
        ("mi_cxr", mi_cxr, 165),
    ],
)
def test_the_shipped_pictures_are_what_is_drawn(
    name: str, drawings: ModuleType, files: int, tmp_path: Path
) -> None:
    drawings.draw_all(tmp_path)
    shipped, drawn = (
        BENCHMARKS / name / "mini",
        [path for path in tmp_path.rglob("*") if path.is_file()],
    )
    names = {path.relative_to(tmp_path) for path in drawn}
    assert len(names) == files
    assert names == {
        path.relative_to(shipped) for path in shipped.rglob("*") if "json" not in path.suffix
    } - {path.relative_to(shipped) for path in shipped.rglob("*") if path.is_dir()}
    for path in names:
        if path.suffix in (".png", ".jpg"):  # encoders differ; clips show their own times (below)
            one, other = (
                np.asarray(Image.open(root / path), dtype=int) for root in (tmp_path, shipped)
            )
            assert np.abs(one - other).mean() < 1
    assert sum((shipped / path).stat().st_size for path in names) < 4 * 2**20


def test_counts_do_not_divide_by_two_or_three() -> None:
    levels = Counter(record.complexity for record in records("kvasir_vqa_x1"))
    main, variant = (len(file.read_text().splitlines()) for file in mi_cxr.ROW_FILES)
    assert all(
        count % 2 and count % 3 for count in (levels.total(), *levels.values(), main, variant)
    )


# --- data that were damaged later ---


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-30])


def flip_a_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("damage", [truncate, flip_a_bit, Path.unlink])
@pytest.mark.parametrize(
    "place", ["prepared/manifest.json", "prepared/records.jsonl", "prepared/media.jsonl", "*.png"]
)
def test_damaged_miniature_data_are_made_again(
    damage: Callable[[Path], object], place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = open_prepared("med_cmr").records()
    monkeypatch.setenv("MEDTASKS_CACHE", str(tmp_path))
    folder = open_prepared("med_cmr").directory.parent
    damage(next(path for path in sorted(folder.rglob("*")) if path.match(place)))
    _was_whole.cache_clear()  # as in another process
    healed = open_prepared("med_cmr")
    assert healed.is_whole()
    assert healed.records() == expected
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


# --- Kvasir-VQA-x1 ---


def test_every_class_occurs_and_finding_presence_at_level_one_only() -> None:
    asked: dict[bool, set[str]] = {True: set(), False: set()}
    for record in records("kvasir_vqa_x1"):
        asked[record.complexity == 1] |= {*record.question_class}
    assert asked[True] == QUESTION_CLASSES
    assert "finding_presence" not in asked[False]


def test_the_oddities_of_kvasir_are_there() -> None:
    rows = kvasir.ROW_FILE.read_text().splitlines()
    assert any("question_class" not in row for row in rows)
    assert any("instrumnets" in row for row in rows)
    twice = [
        one
        for one in records("kvasir_vqa_x1")
        if len(set(one.question_class)) < len(one.question_class)
    ]
    assert {record.complexity for record in twice} == {2, 3}


def listed(values: list[str]) -> str:
    return "; ".join(dict.fromkeys(values)) or "none"


def expected(scene: Scene) -> dict[str, str]:
    """What the scene says to the questions whose answers can be read from it."""
    polyps = [lesion for lesion in scene.lesions if lesion.kind == "polyp"]
    return {
        "polyp_count": str(len(polyps)),
        "polyp_size": listed([lesion.size for lesion in polyps]),
        "finding_count": str(len(scene.lesions)),
        "abnormality_presence": listed([lesion.kind for lesion in scene.lesions]),
        "abnormality_color": listed([lesion.color for lesion in scene.lesions]),
        "abnormality_location": listed([lesion.cell for lesion in scene.lesions]),
        "finding_presence": "yes" if scene.lesions or scene.landmark else "no",
        "instrument_presence": scene.instrument or "none",
        "instrument_count": str(int(bool(scene.instrument))),
        "instrument_location": "lower-right" if scene.instrument else "none",
        "landmark_presence": scene.landmark or "none",
        "landmark_location": scene.landmark_cell if scene.landmark else "none",
        "box_artifact_presence": "yes" if scene.box else "no",
        "text_presence": "yes" if scene.text else "no",
        "procedure_type": scene.procedure,
    }


def test_every_short_answer_is_what_the_scene_shows() -> None:
    scenes = {scene.img_id: scene for scene in kvasir.SCENES}
    checked = set()
    for row in map(json.loads, kvasir.ROW_FILE.read_text().splitlines()):
        for pair in json.loads(row["original"]):
            name = ATOMIC_QUESTIONS[pair["q"]]
            assert pair["a"] == expected(scenes[row["img_id"]]).get(name, pair["a"]), row
            checked.add(name)
    assert checked == QUESTION_CLASSES


# --- Med-CMR ---


def test_the_oddities_of_med_cmr_are_there() -> None:
    rows, details = records("med_cmr"), open_prepared("med_cmr").manifest.details
    mcq = [record for record in rows if record.format == "mcq"]
    dimensions, gold = (
        Counter(getattr(record, name) for record in mcq) for name in ("dimension", "answer")
    )

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
    assert all(
        not text.startswith(("A)", "A.", "B)"))
        for record in rows
        for text in record.choices.values()
    )


def test_the_right_option_stands_at_the_gold_letter() -> None:
    right = {
        record.question: record.choices[record.answer]
        for record in records("med_cmr")
        if record.format == "mcq"
    }
    assert right["Where is the small round opacity in the picture?"] == "upper left"
    assert right["How many polyps can be seen?"] == "two"
    assert right["What does the large pale cell hold?"] == "a star with thin rays"


# --- MedStreamBench ---

DEGENERATE = ("mini_bypass_summary_None", "mini_bypass_workflow_None")
"""Ids of records without a question, whose answer is a placeholder."""
MISSING, CORRUPT = "mini_endovis10_tool", "mini_web_WL09"
"""Ids of the records whose video is not on disk, or is cut off."""


def release_rows() -> list[SourceRow]:
    return [
        row for path in sorted(RECORDS.iterdir()) for row in read_json(path.read_bytes(), path.name)
    ]


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

    assert modes == {
        "retrospective": 37,
        "present": 10,
        "future": 6,
        "future_streaming": 3,
        "proactive": 4,
    }
    assert [record.sample_id for record in parsed if record.degenerate] == list(DEGENERATE)
    assert {(record.temporal_mode, record.question_type) for record in parsed} == {
        (mode, kind)
        for mode in ("retrospective", "present", "future", "proactive")
        for kind in ("closed", "open")
    }
    assert {len(record.rounds) for record in parsed if record.task_mode == "streaming"} >= {
        3,
        4,
        5,
        6,
    }


def test_the_oddities_of_medstream_are_there() -> None:
    rows = [item.row for item in release_rows()]
    keys = {key for row in rows for key in row} | {
        key
        for row in rows
        for turn in row.get("rounds", row.get("stream_rounds", []))
        for key in turn
    }
    assert {
        "rounds",
        "stream_rounds",
        "current_time",
        "t_c",
        "time",
        "expected_output",
        "expected",
        "answer",
    } <= keys
    assert {"answerable", "is_answerable", "expected_time", "t_star", "tolerance", "delta"} <= keys
    by_id = {record.sample_id: record for record in records("medstreambench")}
    assert by_id["mini_suturing06_tools"].multi_select
    assert by_id["mini_suturing07_early"].multi_select  # of the same task, with one answer
    assert (
        by_id["mini_chole01_tools_gemini_open"].family
        == by_id["mini_chole01_tools_gemini_closed"].family
    )
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
    videos = [
        one
        for one in FOOTAGE.values()
        if one.on_disk == "whole" and Path(one.path).suffix not in ("", ".png")
    ]
    assert len(videos) > 20
    for clip in videos:
        path = RECORDS.parent / "media" / clip.media_path
        index = read_index(path)
        with closing(VideoReader(path, index.keyframes)) as reader:
            seen = [read_time_code(np.asarray(picture)) for _, picture in reader.read(index.pts)]
        assert (
            seen
            == [int(time * 1000) for time in clip.times]
            == [int(time * 1000) for time in index.times]
        ), path


# --- MI-CXR ---


def happened(before: int, after: int) -> str:
    if before == after:
        return "is unchanged" if before else "remains absent"
    if before == 0:
        return "newly appears"
    return "resolves" if after == 0 else ("worsens" if after > before else "improves")


def changes(record: MiCxrRecord, text: str) -> list[str]:
    """What happens to the finding that ``text`` names, between each two visits, whose paths are
    looked up.
    """
    (finding,) = {finding for finding in FINDINGS if finding in text}
    levels = TIMELINES[record.cluster].get(finding, [0] * 7)
    visits = [
        next(visit for visit in range(7) if image_path(record.cluster, visit) == path)
        for path in record.media
    ]
    return [happened(levels[visit], levels[after]) for visit, after in pairwise(visits)]


CHANGE = "(newly appears|resolves|worsens|improves|is unchanged|remains absent)"


def statement_is_true(record: MiCxrRecord, text: str) -> bool:
    """Whether every change that ``text`` claims of its finding holds."""
    if match := re.fullmatch(rf"Between T(\d) and T\d, the .*? {CHANGE}\.", text):
        claims = [(match[2], match[1])]
    else:
        claims = re.findall(rf"{CHANGE} from T(\d)", text)
        assert len(claims) == 4
    found = changes(record, text)
    return all(found[int(start) - 1] == change for change, start in claims)


def true_letters(record: MiCxrRecord) -> set[str]:
    """Letters of all options but E that are true of the timeline."""
    options = {letter: text for letter, text in record.choices.items() if letter != "E"}
    if record.qtype == "icr_multi_abn" or record.qtype.endswith("summary"):
        return {letter for letter, text in options.items() if statement_is_true(record, text)}
    found = changes(record, record.question)
    if record.qtype.startswith("icr_variant"):
        start = int(re.findall(r"T(\d)", record.question)[0])
        return {letter for letter, text in options.items() if found[start - 1] in text}
    starts = {
        kind: [place for place, change in enumerate(found, start=1) if change == said]
        for kind, said in (("emergence", "newly appears"), ("resolution", "resolves"))
    }
    if "_to_" in record.qtype:
        first, second = (starts[kind] for kind in record.qtype.split("_to_"))
        later = [place for place in second if first and place > first[0]]
        right = f"T{first[0] + 1}, T{later[0] + 1}" if later else None
    else:
        _, kind, *number = record.qtype.split("_")
        assert number or len(starts[kind]) <= 1
        place = starts[kind][int(number[0]) - 1 if number else 0 :][:1]
        right = f"T{place[0]} → T{place[0] + 1}" if place else None
    return {letter for letter, text in options.items() if text == right}


def test_the_gold_option_is_the_only_true_one() -> None:
    for record in records("mi_cxr"):
        assert true_letters(record) == ({record.answer} - {"E"}), record


def test_the_oddities_of_mi_cxr_are_there() -> None:
    rows = records("mi_cxr")
    qtypes = {record.qtype for record in rows}
    windows: dict[str, set[Any]] = {}
    for record in rows:
        windows.setdefault(record.cluster, set()).add(record.media)

    assert (
        {qtype for qtype in qtypes if not qtype.startswith("icr_variant")} == set(QTYPES) != qtypes
    )
    assert {record.group_type for record in rows if record.answer == "E"} == {"TEL", "ICR", "GTS"}
    assert {"None", "There"} <= {record.choices["E"].split()[0] for record in rows}
    assert '"qid"' in mi_cxr.ROW_FILES[0].read_text()
    # windows of one patient overlap
    assert 4 in {
        len({*one} & {*other}) for found in windows.values() for one in found for other in found
    }
