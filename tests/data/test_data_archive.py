"""Downloaded archives: only the published one, and nothing leaves its folder."""

from __future__ import annotations

import hashlib
import stat
import zipfile
from pathlib import Path

import pytest

from medtasks.core.errors import DataError
from medtasks.data.archives import check_published, extract, open_archive, read_member


def archive_of(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def test_another_archive_passes_only_when_that_was_said(tmp_path: Path) -> None:
    path = archive_of(tmp_path / "a.zip", {"x": b"1"})
    size = path.stat().st_size
    with pytest.raises(
        DataError, match=r"a\.zip: is not the published archive: .* bytes.*--allow-other-archive"
    ):
        check_published(path, size + 1, "0" * 64, allow_other=False)
    with pytest.raises(DataError, match=r"SHA-256 [0-9a-f]{16}…, expected 0{16}…"):
        check_published(path, size, "0" * 64, allow_other=False)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert check_published(path, 1, "0" * 64, allow_other=True) == digest
    assert check_published(path, size, digest, allow_other=False) == digest


@pytest.mark.parametrize(
    "name",
    [
        "../evil",
        "a/../../evil",
        "/etc/evil",
        "C:/evil",
        "a\\..\\evil",
        "..",
        "dataset/imgs/../../../x.png",
    ],
)
def test_a_member_that_leads_out_is_refused_before_anything_is_written(
    tmp_path: Path, name: str
) -> None:
    path = archive_of(tmp_path / "a.zip", {"good": b"1", name: b"2"})
    with pytest.raises(DataError, match="points outside"), open_archive(path) as archive:
        extract(archive, {"good", name}, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_link_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    link = zipfile.ZipInfo("link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(DataError, match="points outside"), open_archive(path):
        pass


def test_the_named_members_are_unpacked(tmp_path: Path) -> None:
    path = archive_of(tmp_path / "a.zip", {"d/one": b"one", "d/two": b"two", "d/three": b"three"})
    (tmp_path / "out" / "d").mkdir(parents=True)
    (tmp_path / "out" / "d" / "one").write_bytes(b"ONE")  # of an interrupted call
    with open_archive(path) as archive:
        extract(archive, {"d/one", "d/two"}, tmp_path / "out")
    files = {path.name: path.read_bytes() for path in (tmp_path / "out" / "d").iterdir()}
    assert files == {"one": b"one", "two": b"two"}


@pytest.mark.parametrize(
    ("packed", "place"), [(zipfile.ZIP_STORED, 100), (zipfile.ZIP_DEFLATED, 31)]
)
def test_a_damaged_member_is_named(tmp_path: Path, packed: int, place: int) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", packed) as archive:
        archive.writestr("x", b"0123456789" * 50)
    data = bytearray(path.read_bytes())
    data[place] = 0xFF  # of the content
    path.write_bytes(bytes(data))
    with open_archive(path) as archive, pytest.raises(DataError, match="member x is damaged"):
        read_member(archive, "x")


@pytest.mark.parametrize(
    ("place", "value"),
    [(4, 65), (6, 1), (8, 93), (8, 14), (10, 255), (26, 255), (18, 255), (22, 255)],
    ids=["version 6.5", "encrypted", "zstd", "lzma", "time", "name length", "packed size", "size"],
)
@pytest.mark.parametrize("header", [b"PK\x03\x04", b"PK\x01\x02"], ids=["member", "directory"])
def test_a_header_with_a_changed_field_is_one_clear_error_or_none(
    tmp_path: Path, header: bytes, place: int, value: int
) -> None:
    path = archive_of(tmp_path / "damaged.zip", {"a/b.json": b"[1, 2, 3]" * 20})
    data = bytearray(path.read_bytes())
    data[data.index(header) + place + (2 if header == b"PK\x01\x02" else 0)] = value
    path.write_bytes(bytes(data))
    said = "damaged.zip"
    try:
        with open_archive(path) as archive:
            extract(archive, {"a/b.json"}, tmp_path / "out")
    except DataError as error:
        said = str(error)
    assert "damaged.zip" in said


def test_a_member_larger_than_it_may_be_is_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("medtasks.data.archives.MAX_PICTURE_BYTES", 1000)
    path = archive_of(tmp_path / "a.zip", {"x.png": bytes(2000), "y.png": bytes(600)})
    said = r"member x\.png has 2,000 bytes, more than the limit of 1,000"
    with open_archive(path) as archive, pytest.raises(DataError, match=said):
        extract(archive, {"x.png"}, tmp_path / "out")
