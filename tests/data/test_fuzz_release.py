"""Thousands of damaged pictures, videos, tables and rows: each is prepared or refused in one
sentence, none is lost.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from damage import changed, damaged
from data_sources import kvasir_row, mi_cxr_row
from encoded_pictures import COLOUR, GREY_ALPHA, RAMP, jpeg2000, png, ramp, saved, tiff_12_bit
from encoded_videos import FOUR, Clip, Film, write_film
from PIL import Image
from release_rows import med_cmr_row, single_turn_row, streaming_row

from medtasks.benchmarks.kvasir_vqa_x1.prepare import prepare_kvasir
from medtasks.benchmarks.med_cmr.records import FILES, prepare_med_cmr
from medtasks.benchmarks.medstreambench.prepare import prepare_medstream
from medtasks.benchmarks.mi_cxr.records import prepare_mi_cxr
from medtasks.catalog.rubric_files import read_rubric, rubric_files
from medtasks.core.errors import MediaError, MedtasksError
from medtasks.data.media.images import index_media
from medtasks.data.media.pictures import decode_image
from medtasks.data.prepared import Prepared

pytestmark = pytest.mark.slow

SEED = 47


def one_sentence(error: MedtasksError, begins: str = "") -> None:
    text = str(error)
    assert text.startswith(begins)
    assert text.endswith("."), text
    assert text.isprintable(), text
    assert "Traceback" not in text


# --- pictures ---

COLOURS = np.dstack([(RAMP * 255).astype(np.uint8)] * 3)
NOISE = np.random.default_rng(0).integers(0, 256, (40, 40, 4), dtype=np.uint8)
FRAMES = [Image.new("RGB", (8, 8), (shade, 0, 0)) for shade in (0, 120, 240)]
EXIF = Image.Exif()
EXIF[0x0112] = 6

PICTURES = {
    "rgb.jpg": saved(COLOURS, "JPEG", exif=EXIF),
    "noise.jpg": saved(NOISE[..., :3], "JPEG"),
    "cmyk.jpg": saved(Image.fromarray(COLOURS).convert("CMYK"), "JPEG"),
    "progressive.jpg": saved(COLOURS, "JPEG", progressive=True),
    "rgb.png": saved(NOISE[..., :3], "PNG"),
    "alpha.png": saved(NOISE, "PNG"),
    "palette.png": saved(Image.fromarray(COLOURS).convert("P"), "PNG", transparency=0),
    "grey16.png": png(ramp(65535), sBIT=b"\x10"),
    "grey12.png": png(ramp(4095), sBIT=b"\x0c"),
    "colours16.png": png(np.dstack([ramp(65535)] * 3), COLOUR, tRNS=b"\0\0" * 3),
    "grey_alpha16.png": png(np.dstack([ramp(65535)] * 2), GREY_ALPHA),
    "animated.png": saved(FRAMES[0], "PNG", save_all=True, append_images=FRAMES[1:]),
    "animated.gif": saved(FRAMES[0], "GIF", save_all=True, append_images=FRAMES[1:]),
    "one.gif": saved(Image.fromarray(COLOURS), "GIF"),
    "rgb.tiff": saved(COLOURS, "TIFF"),
    "deflate.tiff": saved(COLOURS, "TIFF", compression="tiff_deflate"),
    "lzw.tiff": saved(COLOURS, "TIFF", compression="tiff_lzw"),
    "grey12.tiff": tiff_12_bit(ramp(4095)),
    "grey16.tiff": saved(ramp(65535), "TIFF", tiffinfo={262: 0}),
    "float.tiff": saved(RAMP.astype(np.float32), "TIFF"),
    "pages.tiff": saved(FRAMES[0], "TIFF", save_all=True, append_images=FRAMES[1:]),
    "alpha.webp": saved(NOISE, "WEBP"),
    "grey12.jp2": jpeg2000(ramp(4095), 12),
    "rgb.jp2": saved(COLOURS, "JPEG2000"),
    "rgb.bmp": saved(COLOURS, "BMP"),
    "grey.pgm": b"P5 64 16 4095\n" + ramp(4095).astype(">u2").tobytes(),
}


@pytest.mark.parametrize("name", PICTURES)
def test_damaged_pictures_become_rgb_or_are_refused(name: str) -> None:
    draw = random.Random(f"{SEED} {name}")
    for number in range(60):
        try:
            picture = decode_image(damaged(PICTURES[name], draw), f"{number}.png")
        except MediaError as error:
            one_sentence(error, begins=f"{number}.png: ")
        else:
            assert picture.mode == "RGB"
            picture.tobytes()


def test_no_damaged_picture_is_lost_by_the_index(tmp_path: Path) -> None:
    draw = random.Random(SEED)
    for number in range(200):
        name = draw.choice(list(PICTURES))
        (tmp_path / f"{number}-{name}").write_bytes(damaged(PICTURES[name], draw))
    names = {path.name for path in tmp_path.iterdir()}
    index = index_media(tmp_path, names)
    assert {entry.path for entry in index.entries} | index.errors.keys() == names
    assert not {entry.path for entry in index.entries} & index.errors.keys()


# --- videos ---

TIMES = list(range(0, 3000, 100))
FILMS = {
    "plain.mp4": Film([Clip(TIMES)]),
    "b.mp4": Film([Clip(TIMES, b_frames=2)]),
    "sound.mp4": Film([Clip(TIMES)], cover=True, sound=1),
    "plain.mkv": Film([Clip(TIMES)]),
    "two.mkv": Film([Clip(TIMES[:1], "mjpeg", "yuvj420p"), Clip(TIMES)]),
    "mpeg4.avi": Film([Clip(TIMES, "mpeg4")]),
    "h264.avi": Film([Clip(TIMES)]),
    "stream.ts": Film([Clip(TIMES)]),
    "oblong.mov": Film([Clip(TIMES, picture=FOUR)]),
    "flash.flv": Film([Clip(TIMES)]),
}


def test_damaged_videos_keep_or_name_every_record(tmp_path: Path) -> None:
    draw = random.Random(SEED)
    originals = [write_film(tmp_path / "whole" / name, film) for name, film in FILMS.items()]
    media = tmp_path / "media"
    media.mkdir()
    rows = []
    for number in range(300):
        whole = draw.choice(originals)
        path = f"{number}{whole.suffix if whole.suffix != '.ts' else '.mpg'}"
        (media / path).write_bytes(damaged(whole.read_bytes(), draw))
        window = {"query_time": 2.5, "input_range": [0.5, 2.5], "context_window_sec": 2.0}
        rows.append(single_turn_row(sample_id=f"s{number}", media_path=path, **window))
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / "x.jsonl").write_text("\n".join(map(json.dumps, rows)))
    prepared = prepare_medstream(str(tmp_path / "records"), media, tmp_path / "out")
    manifest = prepared.manifest
    kept = {record.sample_id for record in prepared.records()}
    left_out = set(manifest.excluded_samples)
    assert kept | left_out == {row["sample_id"] for row in rows}
    assert not kept & left_out
    assert kept
    assert left_out
    paths = {row["sample_id"]: row["media_path"] for row in rows}
    assert {paths[name] for name in left_out} <= manifest.excluded_media.keys()
    for reason in manifest.excluded_media.values():
        one_sentence(MediaError(reason))


# --- tables and rows ---


def outcome(prepare: Callable[[], Prepared], rows: int | None = None) -> bool:
    """Whether a release is prepared; if so, with all of its rows, if their number is known."""
    try:
        manifest = prepare().manifest
    except MedtasksError as error:
        one_sentence(error)
        return False
    if rows is not None:
        assert manifest.counts.rows + sum(manifest.excluded.values()) == rows
    return True


KVASIR = [
    kvasir_row(img_id=f"img{number}", question=f"How many in {number}?") for number in range(6)
]


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd", "gzip"])
def test_damaged_parquet_files_are_prepared_or_refused(compression: str, tmp_path: Path) -> None:
    draw = random.Random(f"{SEED} {compression}")
    picture = PICTURES["rgb.jpg"]
    rows = [
        {**row, "image": {"bytes": picture + bytes([number]), "path": None}}
        for number, row in enumerate(KVASIR)
    ]
    path = tmp_path / "test.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path, compression=compression)
    whole = path.read_bytes()
    assert outcome(lambda: prepare_kvasir(str(path), tmp_path / "out"), len(rows))
    for _ in range(80):
        path.write_bytes(damaged(whole, draw))
        outcome(lambda: prepare_kvasir(str(path), tmp_path / "out"))


def kvasir(folder: Path, rows: list[Any]) -> Prepared:
    (folder / "test.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return prepare_kvasir(str(folder / "test.jsonl"), folder / "out", references_only=True)


def mi_cxr(folder: Path, rows: list[Any]) -> Prepared:
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return prepare_mi_cxr([folder / "rows.jsonl"], None, folder / "out", references_only=True)


def med_cmr(folder: Path, rows: list[Any]) -> Prepared:
    for kind, name in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        opened = [med_cmr_row(index=9, answer="A nodule.", **dict.fromkeys("ABCDE"))]
        (folder / name).write_text(json.dumps(rows if kind == "mcq" else opened))
    return prepare_med_cmr(str(folder), folder / "out", references_only=True)


def medstream(folder: Path, rows: list[Any]) -> Prepared:
    (folder / "records").mkdir(exist_ok=True)
    (folder / "records" / "x.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return prepare_medstream(str(folder / "records"), None, folder / "out", references_only=True)


RELEASES: dict[str, tuple[Callable[[Path, list[Any]], Prepared], list[dict[str, Any]], int]] = {
    "kvasir_vqa_x1": (kvasir, KVASIR, 0),
    "mi_cxr": (mi_cxr, [mi_cxr_row(q_id=number) for number in range(4)], 0),
    "med_cmr": (med_cmr, [med_cmr_row(index=number) for number in range(4)], 1),
    "medstreambench": (
        medstream,
        [
            single_turn_row(),
            streaming_row(sample_id="s2"),
            streaming_row("proactive", sample_id="s3"),
        ],
        0,
    ),
}


@pytest.mark.parametrize("name", RELEASES)
def test_changed_rows_are_prepared_whole_or_refused(name: str, tmp_path: Path) -> None:
    prepare, rows, more = RELEASES[name]
    draw = random.Random(f"{SEED} {name}")
    prepared = 0
    for _ in range(150):
        place = draw.randrange(len(rows))
        given = [changed(row, draw) if number == place else row for number, row in enumerate(rows)]
        prepared += outcome(lambda given=given: prepare(tmp_path, given), len(rows) + more)  # type: ignore[misc]
    assert 0 < prepared < 150


def damaged_lines(rows: list[dict[str, Any]], draw: random.Random) -> Iterator[bytes]:
    whole = "\n".join(json.dumps(row) for row in rows).encode()
    for _ in range(60):
        yield damaged(whole, draw)


def test_damaged_row_files_are_prepared_or_refused(tmp_path: Path) -> None:
    draw = random.Random(SEED)
    path = tmp_path / "test.jsonl"
    for content in damaged_lines(KVASIR, draw):
        path.write_bytes(content)
        outcome(lambda: prepare_kvasir(str(path), tmp_path / "out", references_only=True))


def test_damaged_rubrics_are_read_or_refused_in_one_sentence(tmp_path: Path) -> None:
    draw = random.Random(SEED)
    for name, (_, path) in rubric_files().items():
        copy = tmp_path / f"{name}.yaml"
        for _ in range(60):
            copy.write_bytes(damaged(path.read_bytes(), draw))
            try:
                read_rubric(copy)
            except MedtasksError as error:
                one_sentence(error, begins=str(copy))
