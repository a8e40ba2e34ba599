"""Damaged pictures: refused in every format and thread, all of them named, changed ones read again."""

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
from medtasks.data.media.images import ImageCache, KnownMedia, decode_image, index_media

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


def test_threads_stay_strict_together_and_give_the_switch_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    whole = encoded("JPEG")
    names = [f"{number:02d}.jpg" for number in range(60)]
    for number, name in enumerate(names):
        (tmp_path / name).write_bytes(whole if number % 2 else whole[:-300])
    entries, errors = index_media(tmp_path, names, workers=8)
    assert [entry.path for entry in entries] == names[1::2]
    assert sorted(errors) == names[::2]
    assert ImageFile.LOAD_TRUNCATED_IMAGES is True


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(["JPEG", "PNG", "GIF", "BMP"]), st.dictionaries(st.integers(0, 2000), st.integers(0, 255)))
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
    known: dict[str, KnownMedia] = {}
    index_media(tmp_path, NAMES, done=lambda media: known.update({media.entry.path: media}))
    path = tmp_path / "sub/3.jpg"
    status = path.stat()
    change(path, b"x" * status.st_size)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + later))
    _, errors = index_media(tmp_path, NAMES, known=known)
    assert sorted(errors) == ["sub/3.jpg"]


def test_a_name_that_no_file_can_have_is_one_more_refusal(tmp_path: Path) -> None:
    _, errors = index_media(tmp_path, ["null\0byte.jpg", "x" * 400])
    assert len(errors) == 2


def test_threads_that_want_one_image_decode_it_once(tmp_path: Path) -> None:
    picture(tmp_path / "a.jpg")
    cache = ImageCache()
    threads = [threading.Thread(target=cache.load, args=(tmp_path / "a.jpg",)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (cache.hits, cache.misses) == (7, 1)
