"""The Kvasir transformed track: slightly cropped, turned, shifted and relit pictures, each one made on its own.

Source: Kvasir-VQA-x1 (arXiv 2506.09958), "Weak Image Augmentation for Enhanced Robustness". The published script draws
from one global generator, so its pixels depend on the order of the images. Here every (seed, ``img_id``, variant) has
a generator of its own, so any picture can be made alone, in any order and in any process, with the same result.

What is drawn lies on binary grids, so that an ordinary picture's arithmetic rounds nowhere a platform could differ:
 - the generator's raw 64-bit words become integers (NumPy promises these words, not what its distributions make of
   them);
 - sines and cosines are rounded to 38 binary places, so that up to 8192 pixels a side every sampling position is exact
   in double precision, with or without fused multiply-add;
 - brightness and contrast are multiples of 1/8192, so that Pillow's single-precision blending is exact too.
Cropping resizes with Pillow's fixed-point bicubic filter. What remains is the bicubic sum of the rotation, whose last
bit (in double precision) a compiler may change: a level of 255 depends on it only at an exact tie.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageEnhance

from medtasks.data.media.images import decode_image

VERSION = "1"  # goes up with every change that moves a pixel
SEED = 42  # the published one
VARIANTS = 10  # of each image, as published; variant 0 is the evaluation track

_AREA, _ASPECT = (0.9, 1.0), (0.95, 1.05)
_ROTATION, _TRANSLATION, _LIGHT = (-10.0, 10.0), (-0.1, 0.1), (0.8, 1.2)
_FINE, _COARSE, _MATRIX = 2**20, 2**13, 2**38  # steps a unit: of what is drawn, of factors of light, of the rotation
_TRIES = 10  # crops that do not fit inside the image are drawn again, at most so often
_BLACK = (0, 0, 0)


@dataclass(frozen=True)
class Perturbation:
    """What is done to one image, in this order; :func:`draw_perturbation` draws it.

    ``crop`` is the part kept, (left, top, right, bottom) in pixels, and is resized to the image's own size.
    ``rotation`` is in degrees, clockwise, about the centre. ``translation`` is (to the right, down) in fractions of
    width and height, rounded to whole pixels. ``brightness`` and ``contrast`` are factors; 1 changes nothing.
    """

    crop: tuple[int, int, int, int]
    rotation: float
    translation: tuple[float, float]
    brightness: float
    contrast: float


def draw_perturbation(seed: int, img_id: str, variant: int, width: int, height: int) -> Perturbation:
    """Draw the perturbation of one variant of an image of ``width`` by ``height`` pixels.

    The crop has 0.9 to 1.0 of the area and an aspect ratio within 5 % of the image's own, and is drawn as
    torchvision's ``RandomResizedCrop`` does it: sides rounded to pixels, drawn again while they exceed the image (at
    most ten times, then the whole image). Rotation is uniform within 10 degrees either way, translation within 0.1
    of each axis, brightness and contrast within 0.8 to 1.2; these five do not depend on the image's size.
    """
    key = json.dumps([seed, img_id, variant], separators=(",", ":")).encode("ascii")
    generator = np.random.PCG64(int.from_bytes(hashlib.sha256(key).digest(), "big"))
    rotation, right, down, brightness, contrast, *crop = (int(word) for word in generator.random_raw(7 + 2 * _TRIES))
    return Perturbation(
        crop=_crop(crop, width, height),
        rotation=_between(rotation, _ROTATION, _FINE),
        translation=(_between(right, _TRANSLATION, _FINE), _between(down, _TRANSLATION, _FINE)),
        brightness=_between(brightness, _LIGHT, _COARSE),
        contrast=_between(contrast, _LIGHT, _COARSE),
    )


def _crop(words: list[int], width: int, height: int) -> tuple[int, int, int, int]:
    across, along, *candidates = words
    for word, other in zip(candidates[::2], candidates[1::2], strict=True):
        area, aspect = _between(word, _AREA, _FINE), _between(other, _ASPECT, _FINE)
        kept, tall = round(width * math.sqrt(area * aspect)), round(height * math.sqrt(area / aspect))
        if 0 < kept <= width and 0 < tall <= height:
            left, top = _below(across, width - kept + 1), _below(along, height - tall + 1)
            return left, top, left + kept, top + tall
    return 0, 0, width, height


def _below(word: int, count: int) -> int:
    """One of 0 to ``count`` - 1, from 64 random bits."""
    return word * count >> 64


def _between(word: int, limits: tuple[float, float], grid: int) -> float:
    """A multiple of 1/``grid`` within ``limits``, ends included, from 64 random bits."""
    first, last = math.ceil(limits[0] * grid), math.floor(limits[1] * grid)
    return (first + _below(word, last - first + 1)) / grid


def perturb(image: Image.Image, how: Perturbation) -> Image.Image:
    """Crop and resize, rotate and translate (one bicubic pass, black outside), change brightness, then contrast.

    Returns a new RGB picture of the image's own size, without metadata. Grey, palette and RGBA pictures are converted
    to RGB first (transparency is dropped). Pixels equal those of torchvision's ``resized_crop``, ``affine``,
    ``adjust_brightness`` and ``adjust_contrast`` on Pillow images, but for one level where rounding the rotation
    to 38 binary places moves a value across a tie.
    """
    picture = image.convert("RGB").crop(how.crop).resize(image.size, Image.Resampling.BICUBIC)
    matrix = _output_to_input(how, *image.size)
    picture = picture.transform(image.size, Image.Transform.AFFINE, matrix, Image.Resampling.BICUBIC, fillcolor=_BLACK)
    picture = ImageEnhance.Brightness(picture).enhance(how.brightness)
    picture = ImageEnhance.Contrast(picture).enhance(how.contrast)
    return Image.frombytes("RGB", picture.size, picture.tobytes())


def _output_to_input(how: Perturbation, width: int, height: int) -> tuple[float, float, float, float, float, float]:
    """Where an output position (x, y) is taken from: (a x + b y + c, d x + e y + f), in pixels."""
    angle = math.radians(how.rotation)
    cosine, sine = round(math.cos(angle) * _MATRIX) / _MATRIX, round(math.sin(angle) * _MATRIX) / _MATRIX
    center_x, center_y = width / 2, height / 2
    from_x = center_x + round(how.translation[0] * width)
    from_y = center_y + round(how.translation[1] * height)
    return (
        *(cosine, sine, center_x - cosine * from_x - sine * from_y),
        *(-sine, cosine, center_y + sine * from_x - cosine * from_y),
    )


def perturbed_png(data: bytes, name: str, seed: int, img_id: str, variant: int) -> bytes:
    """The PNG file of one variant of the image file ``data``: RGB, 8 bits per channel, no metadata.

    The same arguments give the same pixels everywhere, and the same bytes with the same zlib.

    Raises:
        MediaError: ``data`` are not a whole image; names the file ``name``.
    """
    image = decode_image(data, name)
    stream = io.BytesIO()
    picture = perturb(image, draw_perturbation(seed, img_id, variant, *image.size))
    picture.save(stream, format="PNG", compress_level=6)
    return stream.getvalue()
