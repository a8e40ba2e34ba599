"""The picture of a Kvasir row in every form that releases have."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from data_sources import interrupted_at, kvasir_row, write_kvasir
from PIL import Image

from medtasks.benchmarks.kvasir_vqa_x1 import records as kvasir
from medtasks.benchmarks.kvasir_vqa_x1.records import prepare_kvasir
from medtasks.core.errors import DataError, MediaError, UsageError
from medtasks.data.prepared import Prepared

ROWS = [kvasir_row(img_id=f"img{number}") for number in range(3)]
ROWS.append(kvasir_row(img_id="img0", question="How many polyps can be counted?"))


def drawn(number: int, kind: str = "JPEG") -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (16, 12), (number * 60, 3, 3)).save(stream, kind)
    return stream.getvalue()


PICTURES = {f"img{number}.jpg": drawn(number) for number in range(3)}


def image_dataset(folder: Path, rows: list[dict[str, Any]]) -> str:
    """A dataset of pictures, as the hub has one beside the rows."""
    (folder / "data").mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows), folder / "data" / "raw-0.parquet")
    return str(folder)


def image_rows(numbers: Sequence[int]) -> list[dict[str, Any]]:
    return [{"img_id": f"img{number}", "image": {"bytes": drawn(number), "path": None}} for number in numbers]


@pytest.fixture(autouse=True)
def no_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whoever asks the hub finds an empty folder."""
    (tmp_path / "no hub").mkdir()
    monkeypatch.setattr(kvasir, "HUB_PICTURES", str(tmp_path / "no hub"))


def released(folder: Path, cell: Callable[[str], Any], rows: list[dict[str, Any]] = ROWS) -> str:
    """A folder with ``data/test-00000-of-00001.parquet`` as the hub has it; ``cell`` gives a row's image."""
    (folder / "data").mkdir(parents=True)
    table = pa.Table.from_pylist(rows)
    table = table.append_column("image", pa.array([cell(row["img_id"]) for row in rows]))
    pq.write_table(table, folder / "data" / "test-00000-of-00001.parquet")
    return str(folder)


def address(img_id: str) -> dict[str, Any]:
    """An `Image` feature without bytes."""
    return {"bytes": None, "path": f"https://localhost/{img_id}.jpg"}


def with_bytes(img_id: str) -> dict[str, Any]:
    return {**address(img_id), "bytes": PICTURES[f"{img_id}.jpg"]}


def pictures_of(prepared: Prepared) -> dict[str, bytes]:
    return {entry.path: prepared.media_path(entry.path).read_bytes() for entry in prepared.media}


def test_bytes_of_the_rows_and_pictures_of_the_second_dataset_have_one_fingerprint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[int, int]] = []
    monkeypatch.setattr(kvasir, "HUB_PICTURES", image_dataset(tmp_path / "all", image_rows(range(3))))
    found = set()
    for number, cell in enumerate((with_bytes, lambda one: with_bytes(one)["bytes"], address, lambda _: "img.jpg")):
        monkeypatch.setattr(kvasir, "HUB", released(tmp_path / f"x{number}", cell))
        prepared = prepare_kvasir("hub", tmp_path / f"out{number}", progress=lambda *done: told.append(done))
        assert pictures_of(prepared) == PICTURES
        assert prepared.manifest.counts.rows == 4
        assert bool(prepared.manifest.source.images) is (number > 1)  # bytes go before the dataset
        found.add(prepared.manifest.fingerprint)
    assert told[:3] == [(1, 3), (2, 3), (3, 3)]
    assert len(found) == 1


def test_pictures_lie_beside_the_rows_or_in_a_folder_that_is_named(tmp_path: Path) -> None:
    source = released(tmp_path / "x1", address)
    rows = tmp_path / "x1" / "data" / "test-00000-of-00001.parquet"
    with pytest.raises(UsageError, match=r"its rows have no pictures, .* give the directory .* with --images DIR"):
        prepare_kvasir(source, tmp_path / "out")
    images = Path(image_dataset(tmp_path / "images", image_rows(range(3))))  # the image dataset
    assert pictures_of(prepare_kvasir(source, tmp_path / "out", images=images)) == PICTURES
    (images / "img1.jpg").write_bytes(PICTURES["img1.jpg"])  # files go before the dataset
    (images / "data" / "raw-0.parquet").unlink()
    pq.write_table(pa.Table.from_pylist(image_rows([0, 2])), images / "data" / "raw-1.parquet")
    assert pictures_of(prepare_kvasir(source, tmp_path / "mixed", images=images)) == PICTURES
    write_kvasir(tmp_path / "x1", ROWS)  # images/ lies beside data/
    prepared = prepare_kvasir(str(rows), tmp_path / "beside")
    assert (prepared.manifest.counts.rows, prepared.manifest.counts.media) == (4, 3)
    with pytest.raises(UsageError, match="no such file or directory"):
        prepare_kvasir(str(rows.with_name("train.parquet")), tmp_path / "other")
    rows.write_bytes(b"PAR1 and then nothing")
    with pytest.raises(DataError, match=r"00001\.parquet: not a readable parquet file"):
        prepare_kvasir(str(rows), tmp_path / "other")


def test_pictures_of_the_second_dataset_are_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of each id counts; one that it lacks is missing, and without pictures it is refused."""
    rows = [*image_rows([2, 1]), {**image_rows([0])[0], "img_id": "img1"}, *image_rows([0])]
    monkeypatch.setattr(kvasir, "HUB", released(tmp_path / "x1", address))
    monkeypatch.setattr(kvasir, "HUB_PICTURES", image_dataset(tmp_path / "all", rows))
    assert pictures_of(prepare_kvasir("hub", tmp_path / "out")) == PICTURES
    monkeypatch.setattr(kvasir, "HUB_PICTURES", image_dataset(tmp_path / "some", image_rows([0, 1])))
    with pytest.raises(MediaError, match=r"img2\.jpg"):
        prepare_kvasir("hub", tmp_path / "other")
    manifest = prepare_kvasir("hub", tmp_path / "other", allow_missing_media=True).manifest
    assert (manifest.counts.rows, manifest.excluded) == (3, {"missing_image": 1})
    monkeypatch.setattr(kvasir, "HUB_PICTURES", image_dataset(tmp_path / "none", [{"img_id": "img0"}]))
    with pytest.raises(DataError, match="found the columns 'img_id', expected `img_id` and `image`"):
        prepare_kvasir("hub", tmp_path / "third")


def test_a_picture_has_the_suffix_of_its_format_and_one_picture_an_id(tmp_path: Path) -> None:
    forms = iter([drawn(0, "PNG"), drawn(1), drawn(2), drawn(0, "PNG")])
    source = released(tmp_path / "x1", lambda _: next(forms))
    prepared = prepare_kvasir(source, tmp_path / "out")
    assert [entry.path for entry in prepared.media] == ["img0.png", "img1.jpg", "img2.jpg"]
    numbers = iter(range(4))
    other = released(tmp_path / "x2", lambda _: drawn(next(numbers)))
    with pytest.raises(DataError, match=r"row 4: field `image` differs from that of an earlier row of img0"):
        prepare_kvasir(other, tmp_path / "out")


def test_what_an_abandoned_source_left_behind_is_not_prepared(tmp_path: Path) -> None:
    first = released(tmp_path / "first", with_bytes)
    second = released(tmp_path / "second", with_bytes, ROWS[:1])
    with pytest.raises(KeyboardInterrupt):
        prepare_kvasir(first, tmp_path / "out", progress=interrupted_at(1))
    prepared = prepare_kvasir(second, tmp_path / "out")
    assert [path.name for path in (prepared.directory / "media").iterdir()] == ["img0.jpg"]


def test_references_alone_need_no_picture_and_serve_scoring_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from medtasks.benchmarks.documents import task_documents
    from medtasks.core.errors import NotPreparedError

    monkeypatch.setenv("MEDTASKS_DATA", str(tmp_path))
    source = released(tmp_path / "x1", address)
    prepared = prepare_kvasir(source, references_only=True)
    assert (prepared.manifest.counts.rows, prepared.manifest.counts.media) == (4, 0)
    assert len(task_documents("kvasir_vqa_x1_level1", media=False)) == 4
    with pytest.raises(NotPreparedError, match="is prepared without media, which is enough for scoring"):
        task_documents("kvasir_vqa_x1_level1")
