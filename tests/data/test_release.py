"""Releases in the forms in which they are published: folders, archives, tables with pictures."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from zipfile import ZipFile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from medtasks.api import (
    Benchmark,
    DataError,
    DataSource,
    MediaError,
    Publication,
    Record,
    Release,
    UsageError,
    build,
    text_field,
)
from medtasks.data import preparation
from medtasks.data.package_release import prepare_package

ROWS = [
    {"id": "1", "image": "a/1.png", "answer": "yes"},
    {"id": "2", "image": "b/1.png", "answer": "no"},
]


class Question(Record):
    answer: str


def read(release: Release) -> Iterator[Question]:
    for line in release.rows("rows.*", "data/test-*.parquet"):
        name = release.picture(line.row["image"], "image", line.where)
        answer = text_field(line.row, "answer", line.where, ("yes", "no"))
        yield build(
            Question,
            line.where,
            sample_id=line.row["id"],
            cluster=name,
            media=(name,),
            answer=answer,
        )


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> Benchmark:
    made = Benchmark(
        name="lab_release",
        title="Lab",
        publication=Publication(
            paper="none",
            source="drawn",
            licence="CC0-1.0",
        ),
        data=DataSource(
            prepare="medtasks prepare package lab_release --source DIR",
            record=Question,
            read=read,
        ),
        cluster="image",
        visible_fields=frozenset(),
        breakdowns={},
    )
    monkeypatch.setattr(preparation, "get_benchmark", lambda _: made)
    monkeypatch.setattr("medtasks.data.prepared.get_benchmark", lambda _: made)
    return made


def picture(shade: int) -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (8, 8), (shade, 0, 0)).save(stream, "PNG")
    return stream.getvalue()


def pictures(folder: Path) -> None:
    for number, name in enumerate(("a", "b")):
        (folder / name).mkdir(parents=True)
        (folder / name / "1.png").write_bytes(picture(number))


def packed(archive: Path, prefix: str = "") -> None:
    with ZipFile(archive, "w") as opened:
        for number, name in enumerate(("a", "b")):
            opened.writestr(f"{prefix}{name}/1.png", picture(number))


def contents(benchmark: Benchmark, source: Path, out: Path) -> list[bytes]:
    """The pictures of the prepared records, in order."""
    prepared = prepare_package(benchmark, source, out)
    assert [(one.sample_id, one.answer) for one in prepared.records()] == [
        ("1", "yes"),
        ("2", "no"),
    ]
    return [prepared.media_path(one.media[0]).read_bytes() for one in prepared.records()]


@pytest.mark.parametrize(
    "form", ["folder", "nested folder", "archive", "nested archive", "csv", "all in one archive"]
)
def test_rows_and_pictures_are_found_however_they_are_packed(
    benchmark: Benchmark, tmp_path: Path, form: str
) -> None:
    source = tmp_path / "release"
    source.mkdir()
    if form == "csv":
        lines = ["id,image,answer", *(",".join(row.values()) for row in ROWS)]
        (source / "rows.csv").write_text("\n".join(lines) + "\n")
    elif form != "all in one archive":
        (source / "rows.json").write_text(json.dumps(ROWS))
    if form in ("folder", "csv"):
        pictures(source)
    elif form == "nested folder":
        pictures(source / "images" / "images")
    elif form == "all in one archive":
        packed(source / "all.zip", "Lab/")
        with ZipFile(source / "all.zip", "a") as archive:
            archive.writestr("Lab/rows.json", json.dumps(ROWS))
    else:
        packed(source / "images.zip", "images/" if form == "nested archive" else "")
    out = tmp_path / "out"
    assert contents(benchmark, source, out) == [picture(0), picture(1)]
    if form == "all in one archive":
        assert contents(benchmark, source / "all.zip", tmp_path / "again") == [
            picture(0),
            picture(1),
        ]


def test_pictures_in_rows_are_kept_by_content(benchmark: Benchmark, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    cells = [{"bytes": picture(0), "path": None}, {"bytes": picture(0), "path": "other.png"}]
    rows = [{**row, "image": cell} for row, cell in zip(ROWS, cells, strict=True)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "data" / "test-00000-of-00001.parquet")
    prepared = prepare_package(benchmark, tmp_path, tmp_path / "out")
    first, second = (record.media[0] for record in prepared.records())
    assert first == second
    assert prepared.media_path(first).read_bytes() == picture(0)
    assert prepared.manifest.counts.clusters == 1


def test_references_only_leaves_pictures_where_they_are(
    benchmark: Benchmark, tmp_path: Path
) -> None:
    (tmp_path / "rows.json").write_text(json.dumps(ROWS))
    packed(tmp_path / "images.zip")
    prepared = prepare_package(benchmark, tmp_path, tmp_path / "out", references_only=True)
    assert len(prepared.records()) == 2
    assert not (tmp_path / "out" / "media").exists()


def test_the_hub_is_fetched_from_the_dataset_that_the_benchmark_names(
    benchmark: Benchmark, tmp_path: Path
) -> None:
    hub = tmp_path / "hub"
    hub.mkdir()
    (hub / "rows.json").write_text(json.dumps(ROWS))
    packed(hub / "images.zip")
    with pytest.raises(UsageError, match="is not on the hub"):
        prepare_package(benchmark, Path("hub"), tmp_path / "out")
    # a local directory is used as it is
    data = replace(benchmark.data, hub=(str(hub), "rows.json"))
    benchmark = replace(benchmark, data=data)
    assert prepare_package(benchmark, Path("hub"), tmp_path / "out").manifest.source.kind == "hub"


@pytest.mark.parametrize(
    ("image", "error", "said"),
    [
        (
            "../1.png",
            DataError,
            "rows.json, row 1: field `image` is '../1.png', expected a picture, or a path",
        ),
        (3, DataError, "field `image` is 3"),
        ({"bytes": b"".decode(), "path": None}, DataError, "field `image` is missing"),
        ("1.png", DataError, "fits several files"),
        ("c/1.png", MediaError, "1 of the pictures cannot be used"),
    ],
)
def test_a_picture_that_cannot_be_found_is_named(
    benchmark: Benchmark, tmp_path: Path, image: object, error: type[Exception], said: str
) -> None:
    (tmp_path / "rows.json").write_text(json.dumps([{**ROWS[0], "image": image}]))
    pictures(tmp_path)
    with pytest.raises(error, match=said):
        prepare_package(benchmark, tmp_path, tmp_path / "out")


def test_only_the_archive_that_is_named_is_opened(benchmark: Benchmark, tmp_path: Path) -> None:
    packed(tmp_path / "release.zip")
    with ZipFile(tmp_path / "release.zip", "a") as archive:
        archive.writestr("rows.json", json.dumps(ROWS))
    (tmp_path / "foreign.zip").write_bytes(b"no archive")
    packed(tmp_path / "other.zip")
    assert contents(benchmark, tmp_path / "release.zip", tmp_path / "out") == [
        picture(0),
        picture(1),
    ]


def test_pictures_are_not_looked_for_beside_an_archive(
    benchmark: Benchmark, tmp_path: Path
) -> None:
    pictures(tmp_path)
    with ZipFile(tmp_path / "release.zip", "w") as archive:
        archive.writestr("rows.json", json.dumps(ROWS))
    with pytest.raises(MediaError, match="2 of the pictures cannot be used"):
        prepare_package(benchmark, tmp_path / "release.zip", tmp_path / "out")
    prepared = prepare_package(
        benchmark, tmp_path / "release.zip", tmp_path / "out", media=tmp_path
    )
    assert [prepared.media_path(one.media[0]).read_bytes() for one in prepared.records()] == [
        picture(0),
        picture(1),
    ]


def test_archives_beside_a_file_of_rows_are_opened_if_their_directory_is_named(
    benchmark: Benchmark, tmp_path: Path
) -> None:
    (tmp_path / "rows.json").write_text(json.dumps(ROWS))
    packed(tmp_path / "images.zip")
    with pytest.raises(MediaError, match="2 of the pictures cannot be used"):
        prepare_package(benchmark, tmp_path / "rows.json", tmp_path / "out")
    prepared = prepare_package(benchmark, tmp_path / "rows.json", tmp_path / "out", media=tmp_path)
    assert [prepared.media_path(one.media[0]).read_bytes() for one in prepared.records()] == [
        picture(0),
        picture(1),
    ]
    (tmp_path / "images.zip").write_bytes(b"no archive")
    pictures(tmp_path)
    assert contents(benchmark, tmp_path / "rows.json", tmp_path / "again") == [
        picture(0),
        picture(1),
    ]
