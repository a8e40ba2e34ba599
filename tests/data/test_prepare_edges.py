"""What `prepare` meets on real disks: pipes and devices in place of files, bombs, two at work on
one target.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import av
import pytest
from data_sources import kvasir_row, mi_cxr_row, write_kvasir, write_mi_cxr
from PIL import Image
from release_rows import single_turn_row
from time_coded import write_video

from medtasks.benchmarks.kvasir_vqa_x1.prepare import prepare_kvasir
from medtasks.benchmarks.med_cmr.records import FILES, prepare_med_cmr
from medtasks.benchmarks.medstreambench.prepare import prepare_medstream
from medtasks.benchmarks.mi_cxr.records import prepare_mi_cxr
from medtasks.core.errors import DataError, MediaError, MedtasksError, UsageError
from medtasks.data.media import pictures
from medtasks.data.media.images import ImageCache

ROWS = [kvasir_row(img_id=f"img{number}") for number in range(2)]


def pipe(path: Path) -> Path:
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)
    return path


def picture_of_kvasir(folder: Path) -> None:
    source = write_kvasir(folder / "source", ROWS)
    pipe(source / "images" / "img1.jpg")
    prepare_kvasir(str(source), folder / "out")


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "prepare",
    [
        lambda folder: prepare_kvasir(str(pipe(folder / "test.jsonl")), folder / "out"),
        lambda folder: prepare_kvasir(str(pipe(folder / "test.parquet")), folder / "out"),
        picture_of_kvasir,
        lambda folder: prepare_med_cmr(
            str(pipe(folder / "dataset.zip")), folder / "out", allow_other_archive=True
        ),
    ],
)
def test_a_named_pipe_in_place_of_a_file_is_named_and_never_opened(
    prepare: Callable[[Path], object], tmp_path: Path
) -> None:
    with pytest.raises(
        MedtasksError, match="a named pipe, socket or device, expected a regular file"
    ):
        prepare(tmp_path)


@pytest.mark.timeout(300)
def test_a_named_pipe_in_place_of_a_video_is_one_record_less(tmp_path: Path) -> None:
    media = tmp_path / "media"
    write_video(media / "good.mp4", list(range(0, 20_000, 500)))
    pipe(media / "pipe.mp4")
    rows = [single_turn_row(sample_id=name, media_path=f"{name}.mp4") for name in ("good", "pipe")]
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / "cholec80.jsonl").write_text("\n".join(map(json.dumps, rows)))
    manifest = prepare_medstream(str(tmp_path / "records"), media, tmp_path / "out").manifest
    assert (manifest.counts.rows, manifest.excluded_samples) == (1, ("pipe",))


def titled(path: Path, title: bytes) -> Path:
    """The video with a title tag of these bytes, which need not be valid UTF-8."""
    placeholder = "T" * len(title)
    plain = path.rename(path.with_name(f"plain{path.suffix}"))
    with (
        av.open(str(plain)) as source,
        av.open(str(path), "w", options={"movflags": "use_metadata_tags"}) as out,
    ):
        out.metadata["title"] = placeholder
        stream = out.add_stream_from_template(source.streams.video[0])
        for packet in source.demux(source.streams.video[0]):
            if packet.dts is not None:
                packet.stream = stream
                out.mux(packet)
    data = path.read_bytes()
    assert placeholder.encode() in data
    path.write_bytes(data.replace(placeholder.encode(), title))
    return path


@pytest.mark.parametrize("suffix", ["mp4", "mkv", "flv"])
def test_a_latin_1_title_costs_no_record(suffix: str, tmp_path: Path) -> None:
    media = tmp_path / "media"
    titled(
        write_video(media / f"titled.{suffix}", list(range(0, 20_000, 500))),
        "Caf\xe9 \xfcber".encode("latin-1"),
    )
    write_video(media / "good.mp4", list(range(0, 20_000, 500)))
    rows = [
        single_turn_row(sample_id=path[:4], media_path=path)
        for path in ("good.mp4", f"titled.{suffix}")
    ]
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / "cholec80.jsonl").write_text("\n".join(map(json.dumps, rows)))
    manifest = prepare_medstream(str(tmp_path / "records"), media, tmp_path / "out").manifest
    assert (manifest.counts.rows, manifest.excluded) == (2, {})


def test_a_picture_that_is_a_program_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pillow passes PostScript to the program `gs`, whatever the file is called."""
    marker = tmp_path / "run"
    interpreter = tmp_path / "bin" / "gs"
    interpreter.parent.mkdir()
    interpreter.write_text(f"#!/bin/sh\ntouch {marker}\n")
    interpreter.chmod(0o755)
    monkeypatch.setenv("PATH", f"{interpreter.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr("PIL.EpsImagePlugin.gs_binary", None)  # found by an earlier test
    text = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n%%EOF\n"
    path = tmp_path / "x.png"
    path.write_bytes(text)
    with contextlib.suppress(OSError):
        Image.open(path).load()
    assert marker.exists()  # what would happen
    marker.unlink()
    with pytest.raises(MediaError, match=r"x\.png: is a PostScript file, not a picture"):
        ImageCache().load(path)
    assert not marker.exists()


def test_rows_larger_than_they_may_be_are_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("medtasks.data.archives.MAX_JSON_BYTES", 10_000)
    with zipfile.ZipFile(tmp_path / "dataset.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name in FILES.values():
            archive.writestr(name, b"[" + b" " * 1_000_000 + b"]")
    assert (tmp_path / "dataset.zip").stat().st_size < 5_000
    with pytest.raises(DataError, match=r"json has 1,000,002 bytes, more than the limit of 10,000"):
        prepare_med_cmr(str(tmp_path / "dataset.zip"), tmp_path / "out", allow_other_archive=True)


def test_a_picture_beyond_the_limit_is_refused_before_it_is_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Image.new("L", (200, 200)).save(tmp_path / "bomb.png")
    assert ImageCache().load(tmp_path / "bomb.png").size == (200, 200)
    monkeypatch.setattr(pictures, "MAX_PIXELS", 39_999)
    with pytest.raises(MediaError, match=r"bomb\.png: 200 × 200 pixels exceed the limit of 39,999"):
        ImageCache().load(tmp_path / "bomb.png")


HOLDER = """
import sys, time
from pathlib import Path
from medtasks.core.locks import held
with held(Path(sys.argv[1]), "prepared", ", or give another directory with --out"):
    print("held", flush=True)
    time.sleep(600)
"""


def test_two_preparations_of_one_target_name_the_holder_and_a_killed_one_frees_it(
    tmp_path: Path,
) -> None:
    row_file = write_mi_cxr(tmp_path / "source", [mi_cxr_row()])
    target = tmp_path / "out"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(target)], stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(
            UsageError, match=rf"out: is being prepared by process {other.pid} on .* since \d{{4}}-"
        ):
            prepare_mi_cxr([row_file], tmp_path / "source", target)
        other.kill()
    for _ in range(100):  # the system frees the lock as it ends the process
        try:
            prepare_mi_cxr([row_file], tmp_path / "source", target)
            break
        except UsageError:
            time.sleep(0.1)
    assert (target / "manifest.json").is_file()
    assert not list(tmp_path.glob(".out*"))
