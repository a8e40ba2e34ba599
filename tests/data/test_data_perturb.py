"""The transformed track: each picture alone decides its pixels, within the published ranges, as torchvision would."""

from __future__ import annotations

import hashlib
import io
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw, features
from torchvision.transforms import InterpolationMode
from torchvision.transforms import functional as F

from medtasks.benchmarks.kvasir_vqa_x1.perturb import (
    SEED,
    VARIANTS,
    Perturbation,
    draw_perturbation,
    perturb,
    perturbed_png,
)
from medtasks.core.errors import MediaError

WIDE, HIGH = 10_000, 8_000  # so large that rounding to pixels hides nothing of the crop

seeds, variants = st.integers(-(2**63), 2**63), st.integers(0, VARIANTS - 1)
sizes = st.tuples(st.integers(8, 600), st.integers(8, 400))


def drawn(width: int = 120, height: int = 90) -> Image.Image:
    """A picture made of integers alone: a colour gradient, a bright box, a dark one."""
    y, x = np.mgrid[:height, :width]
    pixels = np.stack([60 + x % 160, 40 + y * 2 % 180, 30 + (x * y // 16) % 200], axis=-1).astype(np.uint8)
    picture = Image.fromarray(pixels)
    draw = ImageDraw.Draw(picture)
    draw.rectangle((20, 15, 50, 40), fill=(240, 150, 120))
    draw.rectangle((70, 50, 95, 80), fill=(10, 25, 5))
    return picture


def png(picture: Image.Image) -> bytes:
    stream = io.BytesIO()
    picture.save(stream, format="PNG")
    return stream.getvalue()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def opened(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data))


def by_torchvision(image: Image.Image, how: Perturbation) -> Image.Image:
    """What the released transforms make of ``image`` with these parameters."""
    left, top, right, bottom = how.crop
    bicubic, size = InterpolationMode.BICUBIC, [image.height, image.width]
    result = F.resized_crop(image, top, left, bottom - top, right - left, size, bicubic)
    shift = [round(how.translation[0] * image.width), round(how.translation[1] * image.height)]
    result = F.affine(result, how.rotation, shift, 1.0, [0.0, 0.0], bicubic, fill=[0.0, 0.0, 0.0])
    return F.adjust_contrast(F.adjust_brightness(result, how.brightness), how.contrast)


@given(seeds, st.text(), variants, sizes)
@settings(max_examples=100)
def test_what_is_drawn_keeps_within_the_published_ranges(
    seed: int, img_id: str, variant: int, size: tuple[int, int]
) -> None:
    width, height = size
    how = draw_perturbation(seed, img_id, variant, width, height)
    left, top, right, bottom = how.crop
    across, along = right - left, bottom - top
    assert 0 <= left < right <= width
    assert 0 <= top < bottom <= height
    # each side was rounded to a whole pixel, so half a pixel either way is allowed
    assert (across + 0.5) * (along + 0.5) >= 0.9 * width * height
    own = width / height
    assert (across + 0.5) / (along - 0.5) >= 0.95 * own
    assert (across - 0.5) / (along + 0.5) <= 1.05 * own
    assert -10 <= how.rotation <= 10
    assert max(map(abs, how.translation)) <= 0.1
    assert 0.8 <= how.brightness <= 1.2
    assert 0.8 <= how.contrast <= 1.2


def test_only_the_crop_depends_on_the_size() -> None:
    small, large = (draw_perturbation(SEED, "img1", 0, *size) for size in [(64, 48), (600, 400)])
    assert replace(small, crop=large.crop) == large


def test_the_published_variant_is_pinned() -> None:
    assert draw_perturbation(42, "mini0001", 0, 120, 90) == Perturbation(
        crop=(0, 3, 118, 89),
        rotation=-9380386 / 2**20,
        translation=(-19662 / 2**20, 100984 / 2**20),
        brightness=9500 / 2**13,
        contrast=7158 / 2**13,
    )
    made = perturbed_png(png(drawn()), "mini0001.png", 42, "mini0001", 0)
    assert sha256(opened(made).tobytes()) == "164ab72d011a07e382466b3b7f0586bc96877e039cdfca87260176a1f1554d4d"
    # the packed bytes are zlib's: other builds of Pillow bring another one
    if features.version_feature("zlib_ng") == "2.3.3":
        assert sha256(made) == "ff55dbe6ae016a99b6d9eabdf0da90cac5740494bc6c1b4f0151918c379427cd"


def test_seed_image_and_variant_each_change_the_pixels() -> None:
    source = png(drawn())
    keys = [(SEED, "a", variant) for variant in range(VARIANTS)] + [(SEED + 1, "a", 0), (SEED, "b", 0), (-SEED, "a", 0)]
    made = [opened(perturbed_png(source, "a.png", *key)).tobytes() for key in keys]
    assert len(set(made)) == len(keys)


@pytest.mark.parametrize("size", [(8, 8), (33, 47), (320, 256)])
def test_pixels_are_those_of_torchvision_but_for_a_level_at_a_tie(size: tuple[int, int]) -> None:
    noise = np.random.default_rng(3).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    for picture in (Image.fromarray(noise), drawn(*size)):
        for variant in range(VARIANTS):
            how = draw_perturbation(SEED, "img1", variant, *size)
            ours, theirs = (
                np.asarray(made, dtype=int) for made in (perturb(picture, how), by_torchvision(picture, how))
            )
            difference = np.abs(ours - theirs)
            assert difference.max() <= 1
            assert np.count_nonzero(difference) <= 2  # among up to 720,000 values


@given(sizes, st.sampled_from(["L", "LA", "P", "RGB", "RGBA"]), seeds, variants)
@settings(max_examples=25)
def test_every_size_and_mode_becomes_a_clean_rgb_picture(
    size: tuple[int, int], mode: str, seed: int, variant: int
) -> None:
    picture = drawn(*size).convert(mode)
    how = draw_perturbation(seed, "img1", variant, *size)
    made = perturb(picture, how)
    assert (made.mode, made.size, made.info) == ("RGB", size, {})
    assert made.tobytes() == perturb(picture.convert("RGB"), how).tobytes()


def test_the_file_holds_no_metadata() -> None:
    stream = io.BytesIO()
    drawn().save(stream, format="JPEG", dpi=(300, 300), icc_profile=b"profile", comment=b"patient name")
    made = perturbed_png(stream.getvalue(), "x.jpg", SEED, "img1", 0)
    kinds, at = set(), 8
    while at < len(made):
        kinds.add(made[at + 4 : at + 8])
        at += 12 + int.from_bytes(made[at : at + 4], "big")
    assert kinds == {b"IHDR", b"IDAT", b"IEND"}
    assert (opened(made).mode, opened(made).size) == ("RGB", (120, 90))


def test_what_cannot_be_perturbed_is_refused() -> None:
    with pytest.raises(MediaError, match=r"cut\.png: not a complete image"):
        perturbed_png(png(drawn())[:-200], "cut.png", SEED, "img1", 0)
