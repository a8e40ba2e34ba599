"""How the pictures of the Kvasir transformed track are perturbed.

They are cropped, rotated, shifted and re-lit, each by a little.

Source: Kvasir-VQA-x1 (arXiv 2506.09958), "Weak Image Augmentation for Enhanced Robustness". The
published script draws from one global generator, so its pixels depend on the order of the images.
Here every (seed, ``img_id``, variant) has a generator of its own.

What is drawn lies on binary grids, so that an ordinary picture's arithmetic rounds nowhere a
platform could differ:
 - the generator's raw 64-bit words become integers: NumPy promises these, not what its
   distributions make of them;
 - sines and cosines are rounded to 38 binary places, so that up to 8192 pixels a side every
   sampling position is exact;
 - brightness and contrast are multiples of 1/8192, so that Pillow's single-precision blending is
   exact too.

What remains is the bicubic sum of the rotation, whose last bit a compiler may change.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageEnhance

from medtasks.data.media.pictures import decode_image

VERSION = "1"
"""Goes up with every change that moves a pixel."""

SEED = 42
"""The published one."""

VARIANTS = 10
"""Variants of each image, as published; variant 0 is the evaluation track."""

# ranges that are drawn from
_AREA = (0.9, 1.0)
_ASPECT = (0.95, 1.05)
_ROTATION = (-10.0, 10.0)
_TRANSLATION = (-0.1, 0.1)
_LIGHT = (0.8, 1.2)

# steps per unit
_GRID = 2**20
_LIGHT_GRID = 2**13
_SINE_GRID = 2**38

_CROP_TRIES = 10
"""How often a crop is drawn until one fits inside the image."""

_BLACK = (0, 0, 0)


@dataclass(frozen=True)
class Perturbation:
    """What is done to one image, in this order.

    ``crop`` is left, top, right and bottom in pixels, and is resized to the size of the image;
    ``rotation`` is in degrees, clockwise; ``translation`` is to the right and down, in fractions of
    width and height; ``brightness`` and ``contrast`` are factors.
    """

    crop: tuple[int, int, int, int]
    rotation: float
    translation: tuple[float, float]
    brightness: float
    contrast: float


def draw_perturbation(
    seed: int, img_id: str, variant: int, width: int, height: int
) -> Perturbation:
    """Draw the perturbation of one variant of an image of ``width`` by ``height`` pixels.

    Only the crop, drawn as torchvision's ``RandomResizedCrop`` does it, depends on the image's
    size.
    """
    key = json.dumps([seed, img_id, variant], separators=(",", ":")).encode("ascii")
    generator = np.random.PCG64(int.from_bytes(hashlib.sha256(key).digest(), "big"))
    words = [int(word) for word in generator.random_raw(7 + 2 * _CROP_TRIES)]
    rotation, right, down, brightness, contrast, *crop = words
    return Perturbation(
        crop=_crop(crop, width, height),
        rotation=_between(rotation, _ROTATION, _GRID),
        translation=(_between(right, _TRANSLATION, _GRID), _between(down, _TRANSLATION, _GRID)),
        brightness=_between(brightness, _LIGHT, _LIGHT_GRID),
        contrast=_between(contrast, _LIGHT, _LIGHT_GRID),
    )


def _crop(words: list[int], width: int, height: int) -> tuple[int, int, int, int]:
    """The first crop that fits inside the image; the whole image if none does."""
    left_word, top_word, *sizes = words
    for area_word, aspect_word in zip(sizes[::2], sizes[1::2], strict=True):
        area = _between(area_word, _AREA, _GRID)
        aspect = _between(aspect_word, _ASPECT, _GRID)
        crop_width = round(width * math.sqrt(area * aspect))
        crop_height = round(height * math.sqrt(area / aspect))
        if 0 < crop_width <= width and 0 < crop_height <= height:
            left = left_word * (width - crop_width + 1) >> 64
            top = top_word * (height - crop_height + 1) >> 64
            return left, top, left + crop_width, top + crop_height
    return 0, 0, width, height


def _between(word: int, limits: tuple[float, float], grid: int) -> float:
    """A multiple of 1/``grid`` within ``limits``, from 64 random bits."""
    first, last = math.ceil(limits[0] * grid), math.floor(limits[1] * grid)
    return (first + (word * (last - first + 1) >> 64)) / grid


def perturb(image: Image.Image, how: Perturbation) -> Image.Image:
    """Crop and resize, rotate and translate, change brightness, then contrast.

    Rotation and translation are one bicubic pass, black outside. Pixels equal those of
    torchvision's functions on Pillow images, but for one level where rounding moves a value across
    a tie.
    """
    width, height = image.size
    angle = math.radians(how.rotation)
    cosine = round(math.cos(angle) * _SINE_GRID) / _SINE_GRID
    sine = round(math.sin(angle) * _SINE_GRID) / _SINE_GRID
    center_x, center_y = width / 2, height / 2
    from_x = center_x + round(how.translation[0] * width)
    from_y = center_y + round(how.translation[1] * height)
    # An output position (x, y) is taken from (a x + b y + c, d x + e y + f), in pixels.
    matrix = (
        *(cosine, sine, center_x - cosine * from_x - sine * from_y),
        *(-sine, cosine, center_y + sine * from_x - cosine * from_y),
    )
    picture = image.convert("RGB").crop(how.crop).resize(image.size, Image.Resampling.BICUBIC)
    picture = picture.transform(
        image.size, Image.Transform.AFFINE, matrix, Image.Resampling.BICUBIC, fillcolor=_BLACK
    )
    picture = ImageEnhance.Brightness(picture).enhance(how.brightness)
    picture = ImageEnhance.Contrast(picture).enhance(how.contrast)
    return Image.frombytes("RGB", picture.size, picture.tobytes())


def perturbed_png(data: bytes, name: str, seed: int, img_id: str, variant: int) -> bytes:
    """The PNG file of one variant of the image file ``data``.

    Equal arguments give equal pixels on every platform.
    """
    image = decode_image(data, name)
    stream = io.BytesIO()
    picture = perturb(image, draw_perturbation(seed, img_id, variant, *image.size))
    picture.save(stream, format="PNG", compress_level=6)
    return stream.getvalue()
