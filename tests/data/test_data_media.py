"""Pictures: strict decoding in every format and thread, a bounded cache, an index that names all
damaged files.
"""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from data_sources import picture
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageFile

from medtasks.core.errors import MediaError
from medtasks.data.media.images import ImageCache, KnownMedia, MediaIndex, index_media
from medtasks.data.media.pictures import decode_image


def test_a_missing_file_and_a_text_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text.jpg").write_text("not a picture")
    with pytest.raises(MediaError, match=r"gone\.jpg: cannot be read"):
        ImageCache().load(tmp_path / "gone.jpg")
    with pytest.raises(MediaError, match=r"text\.jpg: not a complete image"):
        ImageCache().load(tmp_path / "text.jpg")


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "1", "RGB"])
def test_every_mode_becomes_rgb(tmp_path: Path, mode: str) -> None:
    Image.new("RGB", (8, 6), (250, 250, 250)).convert(mode).save(tmp_path / "x.png")
    image = ImageCache().load(tmp_path / "x.png")
    assert (image.mode, image.size) == ("RGB", (8, 6))
    assert min(image.getpixel((4, 3))) >= 240  # type: ignore[type-var,arg-type]


def test_sixteen_bit_grey_is_scaled_not_clipped(tmp_path: Path) -> None:
    Image.fromarray(np.array([[0, 32768, 65535]], dtype=np.uint16)).save(tmp_path / "x.png")
    assert [ImageCache().load(tmp_path / "x.png").getpixel((x, 0))[0] for x in range(3)] == [
        0,
        127,
        255,
    ]  # type: ignore[index]


def test_exif_orientation_is_applied(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (20, 10)).save(tmp_path / "x.jpg", exif=exif)
    assert ImageCache().load(tmp_path / "x.jpg").size == (10, 20)


def test_the_cache_lets_the_oldest_go(tmp_path: Path) -> None:
    cache = ImageCache(max_bytes=2 * 32 * 24 * 4)
    for name in ("a", "b", "c", "c", "b", "a"):
        if not (tmp_path / name).exists():
            picture(tmp_path / f"{name}.jpg")
        cache.load(tmp_path / f"{name}.jpg")
    assert cache.misses == 4


def test_images_of_one_document_stay_together_even_if_they_exceed_the_limit(tmp_path: Path) -> None:
    cache = ImageCache(max_bytes=1)
    paths = [tmp_path / f"{name}.jpg" for name in "abc"]
    for path in paths:
        picture(path)
    for path in paths * 2:  # two questions about them
        cache.load(path, paths)
    assert cache.misses == 3
    picture(tmp_path / "other.jpg")
    cache.load(tmp_path / "other.jpg")
    cache.load(paths[0])
    assert cache.misses == 5  # another document's image took their place


NOISE = np.random.default_rng(0).integers(0, 256, (40, 40, 3), dtype=np.uint8)


def encoded(kind: str) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(NOISE).save(stream, kind)
    return stream.getvalue()


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "BMP", "TIFF", "WEBP"])
def test_a_cut_file_is_refused_in_every_format(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    data = encoded(kind)
    assert decode_image(data, "x").size == (40, 40)
    with pytest.raises(MediaError, match="not a complete image"):
        decode_image(data[: len(data) * 2 // 3], "x")


def test_threads_stay_strict_together_and_give_the_switch_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    whole = encoded("JPEG")
    names = [f"{number:02d}.jpg" for number in range(60)]
    for number, name in enumerate(names):
        (tmp_path / name).write_bytes(whole if number % 2 else whole[:-300])
    index = index_media(tmp_path, names, workers=8)
    assert [*index.errors] == names[::2]
    assert ImageFile.LOAD_TRUNCATED_IMAGES is True


@settings(max_examples=60)
@given(
    st.sampled_from(["JPEG", "PNG", "GIF", "BMP"]),
    st.dictionaries(st.integers(0, 2000), st.integers(0, 255)),
)
def test_damaged_bytes_are_an_image_or_a_refusal(kind: str, damage: dict[int, int]) -> None:
    data = bytearray(encoded(kind))
    for position, value in damage.items():
        data[position % len(data)] = value
    try:
        mode = decode_image(bytes(data), "x").mode
    except MediaError:
        return
    assert mode == "RGB"


NAMES = [f"sub/{number}.jpg" for number in range(4)]


def write_over(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def replace_by_another(path: Path, data: bytes) -> None:
    other = path.with_suffix(".other")
    other.write_bytes(data)
    other.replace(path)


@pytest.mark.parametrize("later", [0, 10**9], ids=["same time", "later"])
@pytest.mark.parametrize("change", [write_over, replace_by_another])
def test_a_known_file_is_read_again_when_it_was_modified_or_replaced(
    tmp_path: Path, change: Callable[[Path, bytes], None], later: int
) -> None:
    for name in NAMES:
        picture(tmp_path / name)
    first: list[KnownMedia] = []
    index_media(tmp_path, NAMES, write=first.append)
    known = [
        media.model_copy(update={"entry": media.entry.model_copy(update={"sha256": "as before"})})
        for media in first
    ]
    index = index_media(tmp_path, NAMES, verified=known, write=lambda _: pytest.fail("read again"))
    assert index == MediaIndex([media.entry for media in known], {}, NAMES)
    path = tmp_path / "sub/3.jpg"
    status = path.stat()
    change(path, b"x" * status.st_size)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + later))
    assert [*index_media(tmp_path, NAMES, verified=known).errors] == ["sub/3.jpg"]


def test_a_name_that_no_file_can_have_is_one_more_refusal(tmp_path: Path) -> None:
    assert len(index_media(tmp_path, ["null\0byte.jpg", "x" * 400]).errors) == 2


def test_threads_that_want_one_image_decode_it_once(tmp_path: Path) -> None:
    picture(tmp_path / "a.jpg")
    cache = ImageCache()
    threads = [threading.Thread(target=cache.load, args=(tmp_path / "a.jpg",)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert cache.misses == 1
