"""The picture of a Kvasir row in every form that releases have, fetched from a server of this
machine where by URL.
"""

from __future__ import annotations

import contextlib
import io
import re
import socket
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from data_sources import interrupted_at, kvasir_row, write_kvasir
from local_server import Answer, LocalServer
from PIL import Image

from medtasks.benchmarks.kvasir_vqa_x1 import prepare as kvasir
from medtasks.benchmarks.kvasir_vqa_x1.prepare import prepare_kvasir
from medtasks.core.errors import DataError, MediaError, UsageError
from medtasks.data import downloads as fetch
from medtasks.data.prepared import Prepared

ROWS = [kvasir_row(img_id=f"img{number}") for number in range(3)]
ROWS.append(kvasir_row(img_id="img0", question="How many polyps can be counted?"))


class PictureServer(LocalServer):
    """Answers with what ``answer`` makes of a name and of how often it was asked for before."""

    def __init__(self, answer: Callable[[str, int], Answer]) -> None:
        self.asked: Counter[str] = Counter()
        lock = threading.Lock()

        def respond(path: str, _: bytes) -> Answer:
            name = path.removeprefix("/")
            with lock:
                self.asked[name] += 1
                before = self.asked[name] - 1
            return answer(name, before)

        super().__init__(respond)


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
    return [
        {"img_id": f"img{number}", "image": {"bytes": drawn(number), "path": None}}
        for number in numbers
    ]


def served(name: str, _: int = 0) -> Answer:
    return (200, {}, PICTURES[name]) if name in PICTURES else (404, {}, b"no such picture")


@pytest.fixture(autouse=True)
def no_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whoever asks the hub finds an empty folder; nobody waits long for a server."""
    (tmp_path / "no hub").mkdir()
    monkeypatch.setattr(kvasir, "HUB_PICTURES", str(tmp_path / "no hub"))
    for name, value in {"PAUSE": 0.001, "SILENCE": 5.0, "LONGEST": 5.0, "GIVE_UP": 4}.items():
        monkeypatch.setattr(fetch, name, value)


def as_text(cell: Any) -> Any:
    return cell


def as_feature(cell: Any) -> dict[str, Any]:
    return {"bytes": None, "path": cell}


def as_both(cell: Any) -> dict[str, Any]:
    """Bytes, and a URL that nobody has to fetch."""
    return {"bytes": PICTURES[cell.rpartition("/")[2]], "path": cell}


def released(
    folder: Path,
    cell: Callable[[str], Any],
    form: Callable[[Any], Any] = as_text,
    rows: list[dict[str, Any]] = ROWS,
) -> str:
    """A folder with ``data/test-00000-of-00001.parquet`` as the hub has it; ``cell`` gives a row's
    image.
    """
    (folder / "data").mkdir(parents=True)
    table = pa.Table.from_pylist(rows)
    kind = (
        pa.string() if form is as_text else pa.struct({"bytes": pa.binary(), "path": pa.string()})
    )
    table = table.append_column(
        "image", pa.array([form(cell(row["img_id"])) for row in rows], kind)
    )
    pq.write_table(table, folder / "data" / "test-00000-of-00001.parquet")
    return str(folder)


def pictures_of(prepared: Prepared) -> dict[str, bytes]:
    return {entry.path: prepared.media_path(entry.path).read_bytes() for entry in prepared.media}


def test_pictures_are_fetched_by_url_and_every_form_of_them_has_one_fingerprint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[int, int]] = []
    found = set()
    with PictureServer(served) as server:
        for number, form in enumerate((as_text, as_feature, as_both)):
            source = released(
                tmp_path / f"x{number}", lambda img_id: f"{server.url}/{img_id}.jpg", form
            )
            monkeypatch.setattr(kvasir, "HUB", source)
            given = "hub" if form is as_text else source
            prepared = prepare_kvasir(
                given, tmp_path / f"out{number}", progress=lambda *done: told.append(done)
            )
            assert pictures_of(prepared) == PICTURES
            assert prepared.manifest.counts.rows == 4
            found.add(prepared.manifest.fingerprint)
    assert told[:3] == [(1, 3), (2, 3), (3, 3)]
    assert server.asked == dict.fromkeys(PICTURES, 2)  # bytes go before the URL
    assert len(found) == 1


def test_pictures_lie_beside_the_rows_or_in_a_folder_that_is_named(tmp_path: Path) -> None:
    source = released(tmp_path / "x1", lambda _: None, as_feature)
    rows = tmp_path / "x1" / "data" / "test-00000-of-00001.parquet"
    with pytest.raises(
        UsageError, match=r"its rows have no pictures, .* give the directory .* with --images DIR"
    ):
        prepare_kvasir(source, tmp_path / "out")
    images = Path(image_dataset(tmp_path / "images", image_rows(range(3))))  # the image dataset
    assert pictures_of(prepare_kvasir(source, tmp_path / "out", images=images)) == PICTURES
    write_kvasir(tmp_path / "x1", ROWS)  # images/ lies beside data/
    prepared = prepare_kvasir(str(rows), tmp_path / "beside")
    assert (prepared.manifest.counts.rows, prepared.manifest.counts.media) == (4, 3)
    with pytest.raises(UsageError, match="no such file or directory"):
        prepare_kvasir(str(rows.with_name("train.parquet")), tmp_path / "other")
    rows.write_bytes(b"PAR1 and then nothing")
    with pytest.raises(DataError, match=r"00001\.parquet: not a readable parquet file"):
        prepare_kvasir(str(rows), tmp_path / "other")


def test_pictures_of_the_second_dataset_are_joined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first of each id counts; one that it lacks is missing, and without pictures it is
    refused.
    """
    rows = [*image_rows([2, 1]), {**image_rows([0])[0], "img_id": "img1"}, *image_rows([0])]
    monkeypatch.setattr(kvasir, "HUB", released(tmp_path / "x1", lambda _: None, as_feature))
    monkeypatch.setattr(kvasir, "HUB_PICTURES", image_dataset(tmp_path / "all", rows))
    assert pictures_of(prepare_kvasir("hub", tmp_path / "out")) == PICTURES
    monkeypatch.setattr(
        kvasir, "HUB_PICTURES", image_dataset(tmp_path / "some", image_rows([0, 1]))
    )
    with pytest.raises(MediaError, match=r"img2\.jpg"):
        prepare_kvasir("hub", tmp_path / "other")
    manifest = prepare_kvasir("hub", tmp_path / "other", allow_missing_media=True).manifest
    assert (manifest.counts.rows, manifest.excluded) == (3, {"missing_image": 1})
    monkeypatch.setattr(
        kvasir, "HUB_PICTURES", image_dataset(tmp_path / "none", [{"img_id": "img0"}])
    )
    with pytest.raises(
        DataError, match="found the columns 'img_id', expected `img_id` and `image`"
    ):
        prepare_kvasir("hub", tmp_path / "third")


def test_a_picture_has_the_suffix_of_its_format_and_one_picture_an_id(tmp_path: Path) -> None:
    forms = iter([drawn(0, "PNG"), drawn(1), drawn(2), drawn(0, "PNG")])
    source = released(
        tmp_path / "x1", lambda _: next(forms), lambda data: {"bytes": data, "path": None}
    )
    prepared = prepare_kvasir(source, tmp_path / "out")
    assert [entry.path for entry in prepared.media] == ["img0.png", "img1.jpg", "img2.jpg"]
    numbers = iter(range(4))
    other = released(
        tmp_path / "x2", lambda _: drawn(next(numbers)), lambda data: {"bytes": data, "path": None}
    )
    with pytest.raises(
        DataError, match=r"row 4: field `image` differs from that of an earlier row of img0"
    ):
        prepare_kvasir(other, tmp_path / "out")


def test_what_an_abandoned_source_left_behind_is_not_prepared(tmp_path: Path) -> None:
    first = released(tmp_path / "first", lambda img_id: f"{img_id}.jpg", as_both)
    second = released(tmp_path / "second", lambda img_id: f"{img_id}.jpg", as_both, ROWS[:1])
    with pytest.raises(KeyboardInterrupt):
        prepare_kvasir(first, tmp_path / "out", progress=interrupted_at(1))
    prepared = prepare_kvasir(second, tmp_path / "out")
    assert [path.name for path in (prepared.directory / "media").iterdir()] == ["img0.jpg"]


def test_a_busy_server_is_asked_again(tmp_path: Path) -> None:
    def busy(name: str, before: int) -> Answer:
        return served(name) if before == 2 else (503 if before else 429, {"Retry-After": "0"}, b"")

    with PictureServer(busy) as server:
        source = released(tmp_path / "x1", lambda img_id: f"{server.url}/{img_id}.jpg")
        assert pictures_of(prepare_kvasir(source, tmp_path / "out")) == PICTURES
    assert server.asked == dict.fromkeys(PICTURES, 3)


BAD: dict[str, tuple[Answer, str]] = {
    "img3.jpg": ((404, {}, b""), r"status 404"),
    "img4.jpg": ((200, {}, b"<html>Please log in</html>"), r"is a web page"),
    "img5.jpg": ((200, {}, drawn(1)[:200]), r"not a complete image"),
    "img6.jpg": ((200, {"Content-Length": ""}, b"x" * 9000), r"has more than 5,000 bytes"),
}


def test_pictures_that_cannot_be_had_are_named_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "MAX_PICTURE_BYTES", 5000)
    rows = [*ROWS, *(kvasir_row(img_id=name.removesuffix(".jpg")) for name in BAD)]
    with PictureServer(lambda name, _: BAD[name][0] if name in BAD else served(name)) as server:
        source = released(tmp_path / "x1", lambda img_id: f"{server.url}/{img_id}.jpg", rows=rows)
        said = ".*".join(rf"/{name}: .*{why}" for name, (_, why) in BAD.items())
        with pytest.raises(MediaError, match=said):
            prepare_kvasir(source, tmp_path / "out")
        manifest = prepare_kvasir(source, tmp_path / "out", allow_missing_media=True).manifest
    assert (manifest.counts.rows, sum(manifest.excluded.values())) == (4, 4)
    assert all(re.search(why, manifest.excluded_media[name]) for name, (_, why) in BAD.items())
    assert {name: server.asked[name] for name in PICTURES} == dict.fromkeys(PICTURES, 1)


def test_what_was_fetched_before_an_interruption_is_not_fetched_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "WORKERS", 1)
    with PictureServer(served) as server:
        source = released(tmp_path / "x1", lambda img_id: f"{server.url}/{img_id}.jpg")
        with pytest.raises(KeyboardInterrupt):
            prepare_kvasir(source, tmp_path / "out", progress=interrupted_at(2))
        first = server.asked.total()
        assert pictures_of(prepare_kvasir(source, tmp_path / "out")) == PICTURES
    assert first in (2, 3)
    assert server.asked == dict.fromkeys(PICTURES, 1)


def test_a_server_that_gives_no_picture_and_two_addresses_of_one_image_are_one_sentence(
    tmp_path: Path,
) -> None:
    with PictureServer(lambda *_: (401, {}, b"")) as server:
        source = released(tmp_path / "x1", lambda img_id: f"{server.url}/{img_id}.jpg")
        with pytest.raises(DataError, match=r"status 401.*hf auth login.*--images"):
            prepare_kvasir(source, tmp_path / "out")
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
    rows = [kvasir_row(img_id=f"img{number}") for number in range(9)]
    source = released(
        tmp_path / "x2", lambda img_id: f"http://127.0.0.1:{port}/{img_id}.jpg", rows=rows
    )
    with pytest.raises(
        DataError, match=rf"127\.0\.0\.1:{port}: 4 pictures in a row .* run the same command again"
    ):
        prepare_kvasir(source, tmp_path / "out")
    addresses = iter("abcd")
    source = released(tmp_path / "x3", lambda _: f"http://127.0.0.1:9/{next(addresses)}.jpg")
    with pytest.raises(
        DataError, match=r"row 4: field `image` is .*d\.jpg', and .*a\.jpg' in an earlier row"
    ):
        prepare_kvasir(source, tmp_path / "out")


def test_references_alone_need_no_picture_and_serve_scoring_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from medtasks.benchmarks.documents import task_documents
    from medtasks.core.errors import NotPreparedError

    monkeypatch.setenv("MEDTASKS_DATA", str(tmp_path))
    source = released(tmp_path / "x1", lambda img_id: f"http://127.0.0.1:9/{img_id}.jpg")
    prepared = prepare_kvasir(source, references_only=True)
    assert (prepared.manifest.counts.rows, prepared.manifest.counts.media) == (4, 0)
    assert len(task_documents("kvasir_vqa_x1_level1", media=False)) == 4
    with pytest.raises(
        NotPreparedError, match="is prepared without media, which is enough for scoring"
    ):
        task_documents("kvasir_vqa_x1_level1")
