"""Preparing MedStreamBench: what is excluded and why, coverage by dataset, and the same bytes
however it is done.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data_sources import interrupted_at
from PIL import Image
from release_rows import single_turn_row, streaming_row
from time_coded import write_video
from typer.testing import CliRunner

from medtasks.benchmarks.medstreambench.prepare import prepare_medstream
from medtasks.benchmarks.medstreambench.records import MedStreamRecord
from medtasks.cli.app import app
from medtasks.core.errors import DataError, UsageError
from medtasks.data.prepared import Prepared, coverage_lines

TIMES = list(range(0, 20_000, 100))


@pytest.fixture(scope="module")
def media(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("upstream")
    base = folder / "Stream_Bench" / "cholec80"
    whole = write_video(base / "v (1) [a].mp4", TIMES)
    (folder / "PitVis").mkdir()
    shutil.copy(whole, folder / "PitVis" / "without the prefix.mp4")
    (base / "cut.mp4").write_bytes(whole.read_bytes()[:9000])
    cut = write_video(base / "cut.mkv", TIMES)
    cut.write_bytes(cut.read_bytes()[: cut.stat().st_size // 2])
    damaged = bytearray(whole.read_bytes())
    first, last = (
        len(damaged) // 2,
        len(damaged) * 3 // 4,
    )  # the tables at the file's end stay whole
    damaged[first:last] = bytes(last - first)
    (base / "damaged.mp4").write_bytes(bytes(damaged))
    for number in (3, 4, 5, 6, 9, 10):
        path = base / "sequence" / f"frame_{number:04}.png"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(np.full((20, 30, 3), number * 20, dtype=np.uint8)).save(path)
    (base / "sequence" / "notes.txt").write_text("not a picture")
    (base / "broken.png").write_bytes(b"\x89PNG nothing")
    return folder


def at(name: str, sample_id: str, **changes: Any) -> dict[str, Any]:
    return single_turn_row(
        sample_id=sample_id, media_path=f"Stream_Bench/cholec80/{name}", **changes
    )


def prepare(
    folder: Path, media: Path, rows: dict[str, list[dict[str, Any]]], **options: Any
) -> Prepared:
    records = folder / "records"
    records.mkdir(parents=True, exist_ok=True)
    for dataset, members in rows.items():
        (records / f"{dataset}.jsonl").write_text(
            "\n".join(json.dumps(row, indent=2) for row in members)
        )
    return prepare_medstream(str(records), media, folder / "out", **options)


def records_of(prepared: Prepared) -> dict[str, MedStreamRecord]:
    return {
        record.sample_id: record
        for record in prepared.records()
        if isinstance(record, MedStreamRecord)
    }


GOOD = at("v (1) [a].mp4", "good")
ROWS = {
    "cholec80": [
        GOOD,
        at("gone.mp4", "gone"),
        at("cut.mp4", "cut off"),
        at("cut.mkv", "before the cut"),
        at("cut.mkv", "after the cut", query_time=15.0, input_range=[11.0, 15.0]),
        at("damaged.mp4", "before the damage"),
        at("damaged.mp4", "in the damage", query_time=16.0, input_range=[12.0, 16.0]),
        at("v (1) [a].mp4", "after the end", query_time=30.0, input_range=[26.0, 30.0]),
        at("v (1) [a].mp4", "just after the end", query_time=21.0, input_range=[17.0, 21.0]),
        at("v (1) [a].mp4", "empty", question="\n\nResponse protocol: Answer."),
        streaming_row(sample_id="stream", media_path="Stream_Bench/cholec80/v (1) [a].mp4"),
    ],
    "PitVis": [
        {
            **at("x", "elsewhere"),
            "dataset": "PitVis",
            "media_path": "Stream_Bench/PitVis/without the prefix.mp4",
        },
        {**at("x", "nowhere"), "dataset": "PitVis", "media_path": "Stream_Bench/PitVis/none.mp4"},
    ],
}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory, media: Path) -> Prepared:
    return prepare(tmp_path_factory.mktemp("prepared"), media, ROWS)


def test_what_cannot_be_shown_is_excluded_with_its_reason_and_nothing_else_is(
    prepared: Prepared,
) -> None:
    assert prepared.manifest.excluded == {
        "degenerate": 1,
        "missing_media": 2,
        "unreadable_media": 3,
        "window_outside_media": 1,
    }
    excluded = {
        "after the cut",
        "after the end",
        "cut off",
        "empty",
        "gone",
        "in the damage",
        "nowhere",
    }
    assert set(prepared.manifest.excluded_samples) == excluded
    every = {row["sample_id"] for rows in ROWS.values() for row in rows}
    assert set(records_of(prepared)) == every - excluded


def test_coverage_is_told_by_dataset_and_leaves_degenerate_records_out(prepared: Prepared) -> None:
    assert coverage_lines(prepared.manifest.coverage) == [
        "coverage cholec80: 5 of 10 records (50%)",
        "coverage PitVis: 1 of 2 records (50%)",
    ]
    counts = {
        (one.task.partition("_")[2], one.prepared, one.records)
        for one in prepared.manifest.coverage
    }
    assert counts == {("retrospective", 4, 9), ("future_streaming", 1, 1), ("retrospective", 1, 2)}


def test_frames_are_chosen_when_prepared(prepared: Prepared) -> None:
    records = records_of(prepared)

    assert records["good"].rounds[0].times == (2.0, 4.0, 6.0)
    assert [turn.times[-1] for turn in records["stream"].rounds] == [4.0, 6.0, 8.0, 10.0]
    assert records["just after the end"].rounds[0].times == (17.0, 19.0, 19.9)
    assert records["elsewhere"].media == ("PitVis/without the prefix.mp4",)
    video = prepared.videos["PitVis/without the prefix.mp4"]
    assert (video.frames, video.first) == (200, 0)


def test_degenerate_records_are_kept_on_request_and_the_number_of_workers_changes_nothing(
    tmp_path: Path, media: Path, prepared: Prepared
) -> None:
    again = prepare(tmp_path / "again", media, ROWS, workers=1)
    for name in ("records.jsonl", "media.jsonl"):
        assert (again.directory / name).read_bytes() == (prepared.directory / name).read_bytes()
    kept = prepare(tmp_path, media, ROWS, keep_degenerate=True)
    assert "empty" in records_of(kept)
    assert "degenerate" not in kept.manifest.excluded
    assert kept.manifest.details["oddities"]["degenerate: empty question"] == 1


def test_an_interrupted_preparation_goes_on_where_it_stopped(
    tmp_path: Path, media: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(KeyboardInterrupt):
        prepare(tmp_path, media, ROWS, progress=interrupted_at(7))  # of 7 videos
    assert not (tmp_path / "out").exists()
    with monkeypatch.context() as patch:
        prepares = "medtasks.benchmarks.medstreambench.frames"
        # else the next line has no effect
        patch.setattr(f"{prepares}.call_in_child", lambda call, *given: call(*given))
        patch.setattr(
            "medtasks.data.media.video_check.VideoReader",
            lambda *_: pytest.fail("a video was decoded again"),
        )
        again = prepare(tmp_path, media, ROWS)
    assert again.manifest.counts.rows == 6


def test_image_sequences_count_frame_numbers(tmp_path: Path, media: Path) -> None:
    rows = [
        at("sequence", "interval", input_range=[3, 9], query_time=1.0),
        at("sequence/frame_0005.png", "its folder", input_range=[4, 6], query_time=1.0),
        at("sequence/frame_0005.png", "one picture", input_range=[0, 0], query_time=0.0),
        at("sequence", "too early", input_range=[0, 1], query_time=1.0),
        at("broken.png", "broken", input_range=[0, 0], query_time=0.0),
    ]
    prepared = prepare(tmp_path, media, {"cholec80": rows})
    records = records_of(prepared)

    assert [Path(name).stem[-1] for name in records["interval"].media] == ["3", "5", "6", "9"]
    assert records["interval"].rounds[0].times == (
        3.0,
        5.0,
        6.0,
        9.0,
    )  # at index 7 frame 6 is still the last
    assert records["its folder"].rounds[0].times == (4.0, 6.0)
    assert [Path(name).name for name in records["one picture"].media] == ["frame_0005.png"]
    assert prepared.manifest.excluded == {"unreadable_media": 1, "window_outside_media": 1}


def test_multi_select_is_said_of_a_task_as_a_whole_and_repeated_ids_are_told_apart(
    tmp_path: Path, media: Path
) -> None:
    rows = [
        at("v (1) [a].mp4", "several", task="tools", answer=["dissection", "closure"]),
        at("v (1) [a].mp4", "one", task="tools"),
        at("v (1) [a].mp4", "by name", task="instrument_multiselect"),
        at("v (1) [a].mp4", "single", task="phase"),
        *[at("v (1) [a].mp4", "odd", task="phase", answer="something else")] * 2,
    ]
    prepared = prepare(tmp_path, media, {"cholec80": rows})
    found = {name: record.multi_select for name, record in records_of(prepared).items()}

    assert found == {
        "several": True,
        "one": True,
        "by name": True,
        "single": False,
        "odd": False,
        "odd#2": False,
    }
    oddities = prepared.manifest.details["oddities"]
    assert oddities["records with an answer that is none of the choices"] == 2
    assert oddities["records that share their id with an earlier one"] == 1


def test_what_is_not_there_is_wrong_usage(tmp_path: Path, media: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"--media .*: not a directory"):
        prepare_medstream(str(tmp_path), tmp_path / "none", tmp_path / "out")
    with pytest.raises(UsageError, match=r"has no \.jsonl file"):
        prepare_medstream(str(tmp_path / "empty"), media, tmp_path / "out")
    with pytest.raises(UsageError, match="not a directory; give hub"):
        prepare_medstream(str(tmp_path / "none"), media, tmp_path / "out")
    with pytest.raises(
        DataError,
        match=r"no record is left: 1 missing_media \(.*gone\.mp4: is missing; .*\); check --media",
    ):
        prepare(tmp_path, media, {"cholec80": [at("gone.mp4", "gone")]})
    assert not (tmp_path / "out").exists()


def test_every_file_that_is_left_out_is_named_with_reason_and_fix(
    prepared: Prepared, media: Path
) -> None:
    named = prepared.manifest.excluded_media
    prefix = "Stream_Bench/cholec80"
    missing = "is missing; put it there, or give the directory that has it with --media."
    again = "fetch or copy the file again."
    assert set(named) == {
        "Stream_Bench/PitVis/none.mp4",
        *(
            f"{prefix}/{name}"
            for name in ("cut.mkv", "cut.mp4", "damaged.mp4", "gone.mp4", "v (1) [a].mp4")
        ),
    }
    assert named["Stream_Bench/PitVis/none.mp4"] == named[f"{prefix}/gone.mp4"] == missing
    assert named[f"{prefix}/cut.mp4"].startswith("not a complete video (")
    assert re.fullmatch(rf"is cut off after \d+\.\d s; {again}", named[f"{prefix}/cut.mkv"])
    bad = rf"\d+ frames? that records show cannot be decoded \(the first at 1\d\.\d s\); {again}"
    assert re.fullmatch(bad, named[f"{prefix}/damaged.mp4"])
    outside = "runs from 0.0 to 19.9 s, outside the windows of some records; check that it is the release's file."
    assert named[f"{prefix}/v (1) [a].mp4"] == outside
    assert str(media) not in json.dumps(named)


def test_pictures_of_a_sequence_that_are_left_out_are_named(tmp_path: Path, media: Path) -> None:
    rows = [
        at("sequence", "too early", input_range=[0, 1], query_time=1.0),
        at("sequence", "good", input_range=[3, 9], query_time=1.0),
        at("broken.png", "broken", input_range=[0, 0], query_time=0.0),
    ]
    named = prepare(tmp_path, media, {"cholec80": rows}).manifest.excluded_media
    sequence, broken = "Stream_Bench/cholec80/sequence", "Stream_Bench/cholec80/broken.png"
    assert named[sequence].startswith(
        "runs from 3.0 to 10.0 as frame numbers, outside the windows of some records"
    )
    assert named[broken].startswith("not a complete image (PNG whose header is damaged")
    assert set(named) == {sequence, broken}


def test_the_command_prints_the_reasons_folded(tmp_path: Path, media: Path) -> None:
    missing = [at(f"none{number:02}.mp4", f"missing {number}") for number in range(30)]
    odd = [at(f"odd{number:02}.mp4", f"odd {number}") for number in range(12)]
    upstream = tmp_path / "media"
    shutil.copytree(media, upstream)
    for number in range(12):  # each is wrong in a way of its own
        path = upstream / "Stream_Bench" / "cholec80" / f"odd{number:02}.mp4"
        write_video(path, list(range(0, 1000 * (number + 1), 500)))
    rows = [
        GOOD,
        *missing,
        *[{**row, "query_time": 30.0, "input_range": [26.0, 30.0]} for row in odd],
    ]
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / "cholec80.jsonl").write_text("\n".join(map(json.dumps, rows)))
    options = [
        "--source",
        str(tmp_path / "records"),
        "--media",
        str(upstream),
        "--out",
        str(tmp_path / "out"),
    ]
    done = CliRunner().invoke(app, ["prepare", "medstreambench", *options])
    assert done.exit_code == 0, done.output
    (folded,) = [line for line in done.output.splitlines() if "is missing; put it there" in line]
    assert folded.endswith("none03.mp4 and 26 more)")
    named = [line for line in done.output.splitlines() if "outside the windows" in line]
    assert len(named) == 9
    assert (
        "and 3 other reasons: field `excluded_media` of manifest.json has all files" in done.output
    )
