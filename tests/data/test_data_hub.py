"""The hub path of ``prepare``, on local folders of the hub's layout, and parquet files in general."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from data_sources import kvasir_row, write_kvasir
from PIL import Image

from medtasks.benchmarks.kvasir_vqa_x1 import pictures
from medtasks.benchmarks.kvasir_vqa_x1 import source as source_of_rows
from medtasks.benchmarks.kvasir_vqa_x1.prepare import prepare_kvasir
from medtasks.core.errors import DataError, MediaError

ROWS = [kvasir_row(img_id=f"img{number}") for number in range(3)]


def drawn(number: int, kind: str = "JPEG") -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (16, 12), (number * 60, 3, 3)).save(stream, kind)
    return stream.getvalue()


def write_parquet(folder: Path, rows: list[dict[str, Any]], split: str = "test") -> Path:
    """``folder/data/<split>-00000-of-00001.parquet``, with the image feature where rows have an image."""
    from datasets import Dataset
    from datasets import Image as ImageFeature

    (folder / "data").mkdir(parents=True)
    table = Dataset.from_list(rows)
    if "image" in table.features:
        table = table.cast_column("image", ImageFeature())
    table.to_parquet(str(folder / "data" / f"{split}-00000-of-00001.parquet"))
    return folder


def with_image(row: dict[str, Any], data: bytes) -> dict[str, Any]:
    return {**row, "image": {"bytes": data, "path": None}}


def image_rows(numbers: list[int]) -> list[dict[str, Any]]:
    return [with_image({"img_id": f"img{number}"}, drawn(number)) for number in numbers]


def test_hub_and_folder_of_one_layout_give_one_fingerprint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [with_image(ROWS[0], drawn(0)), with_image(ROWS[1], drawn(1, "PNG"))]
    folder = str(write_parquet(tmp_path / "x1", rows))
    monkeypatch.setattr(source_of_rows, "HUB", folder)
    from_hub = prepare_kvasir("hub", tmp_path / "hub")
    assert from_hub.manifest.fingerprint == prepare_kvasir(folder, tmp_path / "folder").manifest.fingerprint
    assert [entry.path for entry in from_hub.media()] == ["img0.jpg", "img1.png"]
    assert from_hub.media_path("img1.png").read_bytes() == drawn(1, "PNG")


def test_pictures_of_the_second_dataset_are_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_of_rows, "HUB", str(write_parquet(tmp_path / "x1", ROWS)))
    images = write_parquet(tmp_path / "images", image_rows([2, 1, 0, 1]), "raw")
    monkeypatch.setattr(pictures, "HUB", str(images))
    prepared = prepare_kvasir("hub", tmp_path / "out")
    assert [entry.path for entry in prepared.media()] == ["img0.jpg", "img1.jpg", "img2.jpg"]
    assert prepared.media_path("img1.jpg").read_bytes() == drawn(1)


def test_a_picture_that_the_second_dataset_lacks_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_of_rows, "HUB", str(write_parquet(tmp_path / "x1", ROWS)))
    images = write_parquet(tmp_path / "images", image_rows([0, 1]), "raw")
    monkeypatch.setattr(pictures, "HUB", str(images))
    with pytest.raises(MediaError, match=r"img2\.jpg"):
        prepare_kvasir("hub", tmp_path / "out")
    manifest = prepare_kvasir("hub", tmp_path / "out", allow_missing_media=True).manifest
    assert (manifest.counts.rows, manifest.excluded) == (2, {"missing_image": 1})


def test_a_second_dataset_without_pictures_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_of_rows, "HUB", str(write_parquet(tmp_path / "x1", ROWS)))
    monkeypatch.setattr(pictures, "HUB", str(write_parquet(tmp_path / "images", [{"img_id": "img0"}], "raw")))
    with pytest.raises(DataError, match="found the columns 'img_id', expected `img_id` and `image`"):
        prepare_kvasir("hub", tmp_path / "out")


def test_one_id_with_two_pictures_is_refused(tmp_path: Path) -> None:
    rows = [with_image(ROWS[0], drawn(0)), with_image({**ROWS[0], "question": "Else?"}, drawn(1))]
    with pytest.raises(DataError, match=r"row 2: field `image` differs from that of an earlier row of img0"):
        prepare_kvasir(str(write_parquet(tmp_path / "x1", rows)), tmp_path / "out")


def test_an_embedded_picture_cannot_leave_its_folder(tmp_path: Path) -> None:
    rows = [with_image({**ROWS[0], "img_id": "../../escape"}, drawn(0))]
    with pytest.raises(DataError, match="`img_id`"):
        prepare_kvasir(str(write_parquet(tmp_path / "x1", rows)), tmp_path / "out")
    assert not list(tmp_path.rglob("escape*"))


def test_pictures_beside_a_parquet_file_are_found_by_id(tmp_path: Path) -> None:
    source = write_kvasir(tmp_path / "source", ROWS)
    (source / "test.jsonl").unlink()
    pq.write_table(pa.Table.from_pylist(ROWS), source / "test.parquet")
    assert prepare_kvasir(str(source), tmp_path / "out").manifest.counts.media == 3


def test_a_broken_parquet_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "test.parquet").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(DataError, match=r"test\.parquet: not a readable parquet file"):
        prepare_kvasir(str(tmp_path), tmp_path / "out")


def test_what_an_abandoned_source_left_behind_is_not_prepared(tmp_path: Path) -> None:
    first = write_parquet(tmp_path / "first", [with_image(row, drawn(7)) for row in ROWS])
    second = write_parquet(tmp_path / "second", [with_image(ROWS[0], drawn(0))])

    def killed(*_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare_kvasir(str(first), tmp_path / "out", progress=killed)
    prepared = prepare_kvasir(str(second), tmp_path / "out")
    assert [path.name for path in (prepared.directory / "media").iterdir()] == ["img0.jpg"]
    assert prepared.media_path("img0.jpg").read_bytes() == drawn(0)
