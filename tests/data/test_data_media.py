"""Pictures: strict decoding, a bounded cache, an index that does not depend on the number of workers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from data_sources import picture
from PIL import Image

from medtasks.core.errors import MediaError
from medtasks.core.files import file_state
from medtasks.data.media.images import ImageCache, KnownMedia, MediaEntry, index_media, load_image


def test_a_missing_file_and_a_text_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text.jpg").write_text("not a picture")
    with pytest.raises(MediaError, match=r"gone\.jpg: cannot be read"):
        load_image(tmp_path / "gone.jpg")
    with pytest.raises(MediaError, match=r"text\.jpg: not a complete image"):
        load_image(tmp_path / "text.jpg")


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "1", "RGB"])
def test_every_mode_becomes_rgb(tmp_path: Path, mode: str) -> None:
    Image.new("RGB", (8, 6), (250, 250, 250)).convert(mode).save(tmp_path / "x.png")
    image = load_image(tmp_path / "x.png")
    assert (image.mode, image.size) == ("RGB", (8, 6))
    assert min(image.getpixel((4, 3))) >= 240  # type: ignore[type-var,arg-type]


def test_sixteen_bit_grey_is_scaled_not_clipped(tmp_path: Path) -> None:
    Image.fromarray(np.array([[0, 32768, 65535]], dtype=np.uint16)).save(tmp_path / "x.png")
    assert [load_image(tmp_path / "x.png").getpixel((x, 0))[0] for x in range(3)] == [0, 127, 255]  # type: ignore[index]


def test_exif_orientation_is_applied(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (20, 10)).save(tmp_path / "x.jpg", exif=exif)
    assert load_image(tmp_path / "x.jpg").size == (10, 20)


def test_the_cache_lets_the_oldest_go(tmp_path: Path) -> None:
    cache = ImageCache(max_bytes=2 * 32 * 24 * 4)
    for name in ("a", "b", "c", "c", "b", "a"):
        if not (tmp_path / name).exists():
            picture(tmp_path / f"{name}.jpg")
        cache.load(tmp_path / f"{name}.jpg")
    assert (cache.misses, cache.hits) == (4, 2)


def test_images_of_one_document_stay_together_even_if_they_exceed_the_limit(tmp_path: Path) -> None:
    cache = ImageCache(max_bytes=1)
    paths = [tmp_path / f"{name}.jpg" for name in "abc"]
    for path in paths:
        picture(path)
    for path in paths * 2:  # two questions about them
        cache.load(path, paths)
    assert (cache.misses, cache.hits) == (3, 3)
    picture(tmp_path / "other.jpg")
    cache.load(tmp_path / "other.jpg")
    cache.load(paths[0])
    assert cache.misses == 5  # another document's image took their place


def test_the_index_does_not_depend_on_workers(tmp_path: Path) -> None:
    names = [f"{number}.jpg" for number in range(9)]
    for number, name in enumerate(names):
        picture(tmp_path / name, 20 * number)
    assert index_media(tmp_path, names, workers=1) == index_media(tmp_path, reversed(names), workers=4)


def test_what_is_known_is_not_read_again(tmp_path: Path) -> None:
    picture(tmp_path / "a.jpg")
    status = (tmp_path / "a.jpg").stat()
    entry = MediaEntry(path="a.jpg", bytes=status.st_size, sha256="as before", width=1, height=1)
    known = {"a.jpg": KnownMedia(entry=entry, state=file_state(status))}
    entries, _ = index_media(tmp_path, ["a.jpg"], known=known)
    assert entries == [entry]
