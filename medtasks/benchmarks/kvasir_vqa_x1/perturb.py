"""The Kvasir transformed track: the prepared questions over slightly cropped, turned, shifted and
relit pictures.

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
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from PIL import Image, ImageEnhance
from typing_extensions import Unpack

from medtasks.catalog.records import Record
from medtasks.core.errors import UsageError
from medtasks.core.schema import Frozen
from medtasks.data.media.images import MediaIndex, decoding_threads, read_picture
from medtasks.data.media.pictures import decode_image
from medtasks.data.preparation import Preparation
from medtasks.data.prepare_commands import Options, Out
from medtasks.data.prepared import Prepared, Source
from medtasks.data.store import open_prepared

VERSION = "1"  # goes up with every change that moves a pixel
SEED = 42  # the published one
VARIANTS = 10  # of each image, as published; variant 0 is the evaluation track

_AREA, _ASPECT = (0.9, 1.0), (0.95, 1.05)
_ROTATION, _TRANSLATION, _LIGHT = (-10.0, 10.0), (-0.1, 0.1), (0.8, 1.2)
_FINE, _COARSE, _MATRIX = (
    2**20,
    2**13,
    2**38,
)  # steps a unit: of what is drawn, of factors of light, of the rotation
_TRIES = 10  # crops that do not fit inside the image are drawn again, at most so often
_BLACK = (0, 0, 0)


@dataclass(frozen=True)
class Perturbation:
    """What is done to one image, in this order."""

    crop: tuple[int, int, int, int]  # left, top, right, bottom; resized to the size of the image
    rotation: float  # degrees, clockwise
    translation: tuple[float, float]  # to the right and down, in fractions of width and height
    brightness: float
    contrast: float


def draw_perturbation(
    seed: int, img_id: str, variant: int, width: int, height: int
) -> Perturbation:
    """Draw the perturbation of one variant of an image of ``width`` by ``height`` pixels. Only the
    crop, drawn as torchvision's ``RandomResizedCrop`` does it, depends on the image's size.
    """
    key = json.dumps([seed, img_id, variant], separators=(",", ":")).encode("ascii")
    generator = np.random.PCG64(int.from_bytes(hashlib.sha256(key).digest(), "big"))
    rotation, right, down, brightness, contrast, *crop = (
        int(word) for word in generator.random_raw(7 + 2 * _TRIES)
    )
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
        kept, tall = (
            round(width * math.sqrt(area * aspect)),
            round(height * math.sqrt(area / aspect)),
        )
        if 0 < kept <= width and 0 < tall <= height:
            left, top = across * (width - kept + 1) >> 64, along * (height - tall + 1) >> 64
            return left, top, left + kept, top + tall
    return 0, 0, width, height


def _between(word: int, limits: tuple[float, float], grid: int) -> float:
    """A multiple of 1/``grid`` within ``limits``, from 64 random bits."""
    first, last = math.ceil(limits[0] * grid), math.floor(limits[1] * grid)
    return (first + (word * (last - first + 1) >> 64)) / grid


def perturb(image: Image.Image, how: Perturbation) -> Image.Image:
    """Crop and resize, rotate and translate (one bicubic pass, black outside), change brightness,
    then contrast. Pixels equal those of torchvision's functions on Pillow images, but for one level
    where rounding moves a value across a tie.
    """
    width, height = image.size
    angle = math.radians(how.rotation)
    cosine, sine = (
        round(math.cos(angle) * _MATRIX) / _MATRIX,
        round(math.sin(angle) * _MATRIX) / _MATRIX,
    )
    center_x, center_y = width / 2, height / 2
    from_x = center_x + round(how.translation[0] * width)
    from_y = center_y + round(how.translation[1] * height)
    matrix = (  # where an output position (x, y) is taken from: (a x + b y + c, d x + e y + f), in pixels
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
    """The PNG file of one variant of the image file ``data``; equal arguments give equal pixels
    everywhere.
    """
    image = decode_image(data, name)
    stream = io.BytesIO()
    picture = perturb(image, draw_perturbation(seed, img_id, variant, *image.size))
    picture.save(stream, format="PNG", compress_level=6)
    return stream.getvalue()


def original_name(img_id: str) -> str:
    """The name of the copy of an original picture."""
    return f"original/{img_id}"


def _name(img_id: str, variant: int) -> str:
    return f"variant{variant}/{img_id}.png"


class _Variant(Frozen):
    img_id: str
    variant: int
    original: str
    seed: int = SEED
    version: str = VERSION


def prepare_transformed(
    out: Out = None,
    *,
    variants: Annotated[
        int,
        typer.Option(
            "--variants",
            help="Perturbed copies of each image, 1 to 10; only the first is evaluated.",
        ),
    ] = 1,
    original: Prepared | None = None,
    **options: Unpack[Options],
) -> Prepared:
    """Perturb every picture of the prepared Kvasir-VQA-x1.

    Questions are asked about variant 0, or in the mixed track about the original, which is copied.
    If the original data have no media, or with ``references_only``, these have none either.

    Raises:
        UsageError: ``variants`` is not 1 to 10.
        NotPreparedError: the original data are not prepared.
        MediaError: an original picture is gone or not whole.
    """
    if not 1 <= variants <= VARIANTS:
        raise UsageError(f"--variants is {variants}, expected 1 to {VARIANTS}.")
    source = original or open_prepared("kvasir_vqa_x1")
    records = source.records()
    if source.manifest.references_only:
        options["references_only"] = True
    with Preparation("kvasir_vqa_x1_transformed", out, **options) as place:
        return place.complete(
            Source(kind="prepared", name="kvasir_vqa_x1", revision=source.manifest.fingerprint),
            [
                record.model_copy(update={"media": (_name(record.cluster, 0),)})
                for record in records
            ],
            Path("media"),
            MediaIndex() if place.references_only else _variants(place, source, records, variants),
            {"perturbation": {"seed": SEED, "variants": variants, "version": int(VERSION)}},
            original=source.manifest,
        )


def _variants(
    place: Preparation, source: Prepared, records: Sequence[Record], variants: int
) -> MediaIndex:
    media = place.directory / "media"
    originals = {record.cluster: source.media_path(record.media[0]) for record in records}
    checksums = {source.media_path(entry.path): entry.sha256 for entry in source.media}
    requested = [
        _Variant(img_id=img_id, variant=number, original=checksums[path])
        for img_id, path in sorted(originals.items())
        for number in range(variants)
    ]
    names = {one: _name(one.img_id, one.variant) for one in requested}

    def make(one: _Variant) -> _Variant:
        path, original = media / names[one], originals[one.img_id]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(
            perturbed_png(read_picture(original), str(original), one.seed, one.img_id, one.variant)
        )
        return one

    with (
        decoding_threads(place.workers) as pool,
        place.progress_log("perturbed", _Variant) as (known, log),
    ):
        done = set(known)
        missing = [
            one for one in requested if one not in done or not (media / names[one]).is_file()
        ]
        for number, one in enumerate(pool.map(make, missing), start=1):
            log(one)
            if place.progress is not None:
                place.progress(number, len(missing))
    copies = {original_name(img_id): path for img_id, path in originals.items()}
    for name, path in copies.items():
        (media / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, media / name)
    index = place.index(media, {*copies, *names.values()})
    if index.errors:
        raise next(iter(index.errors.values()))
    return index
