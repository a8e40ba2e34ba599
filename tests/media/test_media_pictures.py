"""How a picture becomes RGB of 8 bits: what its file states is followed, what needs a decision is
refused.
"""

from __future__ import annotations

import io

import numpy as np
import pytest
from encoded_pictures import (
    COLOUR,
    COLOUR_ALPHA,
    GREY_ALPHA,
    RAMP,
    jpeg2000,
    png,
    ramp,
    saved,
    tiff_12_bit,
)
from packaging.version import Version
from PIL import Image, __version__

from medtasks.core.errors import MediaError
from medtasks.data.media import pictures
from medtasks.data.media.pictures import decode_image, is_uniform
from medtasks.data.media.pixel_values import as_rgb

FULL, TWELVE = 65535, 4095
EIGHT = np.floor(RAMP * 255).astype(np.uint8)


def needs_pillow(version: str, what_older_ones_do: str) -> pytest.MarkDecorator:
    """Skips a test if the installed Pillow is older."""
    is_older = Version(__version__) < Version(version)
    return pytest.mark.skipif(is_older, reason=f"Pillow before {version} {what_older_ones_do}")


def decoded(data: bytes) -> np.ndarray:
    return np.asarray(decode_image(data, "x.png")).astype(int)


def shows_ramp(data: bytes) -> bool:
    """Whether the picture is a grey ramp from black to white."""
    found = decoded(data)
    grey = found[..., 0]
    levels = np.abs(grey - EIGHT).max() <= 1
    return bool(
        levels and grey.min() == 0 and grey.max() == 255 and (found == grey[..., None]).all()
    )


STATED = {
    "PNG, 16 bits in full": png(ramp(FULL)),
    "PNG, 12 bits by sBIT": png(ramp(TWELVE), sBIT=b"\x0c"),
    "PNG, 12 bits by sBIT, scaled as PNG asks": png(
        ramp(TWELVE) * 16 + ramp(TWELVE) // 256, sBIT=b"\x0c"
    ),
    "PNG, 10 bits by sBIT": png(ramp(1023), sBIT=b"\x0a"),
    "TIFF, 16 bits in full": saved(ramp(FULL), "TIFF"),
    "TIFF, 12 bits": tiff_12_bit(ramp(TWELVE)),
    "TIFF, 16 bits, 0 is white": saved(FULL - ramp(FULL), "TIFF", tiffinfo={262: 0}),
    "TIFF, 8 bits, 0 is white": saved(EIGHT, "TIFF", tiffinfo={262: 0}),
    "JPEG 2000, 16 bits in full": jpeg2000(ramp(FULL), 16),
    "JPEG 2000, 12 bits": jpeg2000(ramp(TWELVE), 12),
    "PGM, 12 bits": b"P5\n64 16\n4095\n" + ramp(TWELVE).astype(">u2").tobytes(),
    "PGM, 16 bits in full": b"P5\n# made by hand\n64 16\n65535\n"
    + ramp(FULL).astype(">u2").tobytes(),
    "PNG, colours of 16 bits": png(np.dstack([ramp(FULL)] * 3), COLOUR),
    "PNG, grey of 16 bits, opaque": png(np.dstack([ramp(FULL), ramp(FULL) * 0 + FULL]), GREY_ALPHA),
}


@pytest.mark.parametrize("kind", STATED)
def test_values_whose_range_is_stated_or_filled_are_scaled_to_it(kind: str) -> None:
    assert shows_ramp(STATED[kind])


UNDECIDED = {
    "PNG, 12 bits in 16": (png(ramp(TWELVE)), "16-bit values run from 0 to 4,095"),
    "PNG, 15 bits in 16": (png(ramp(32767)), "16-bit values run from 0 to 32,767"),
    "PNG, Hounsfield units with an offset": (
        png(ramp(3000) + 31768),
        "16-bit values run from 31,768 to 34,768",
    ),
    "PNG, one grey of 12 bits": (png(ramp(0) + 4095), "16-bit values run from 4,095 to 4,095"),
    "PNG, colours of 12 bits in 16": (
        png(np.dstack([ramp(TWELVE)] * 3), COLOUR),
        "16-bit values run from 0 to",
    ),
    "PNG, 12 bits in 16 with alpha": (
        png(np.dstack([ramp(TWELVE)] * 4), COLOUR_ALPHA),
        "16-bit values run from 0",
    ),
    "TIFF, 12 bits in 16": (saved(ramp(TWELVE), "TIFF"), "16-bit values run from 0 to 4,095"),
    "JPEG 2000, 12 bits in 16": (jpeg2000(ramp(TWELVE), 16), "16-bit values run from 0 to 4,095"),
    "PGM, 12 bits in 16": (
        b"P5 64 16 65535\n" + ramp(TWELVE).astype(">u2").tobytes(),
        "values run from 0 to 4,095",
    ),
    "PPM, colours of 12 bits in 16": (
        b"P6 64 16 65535\n" + np.dstack([ramp(TWELVE)] * 3).astype(">u2").tobytes(),
        "16-bit values run from 0 to",
    ),
    "TIFF, floats from 0 to 1": (
        saved(RAMP.astype(np.float32), "TIFF"),
        "floating-point values run from 0.0 to 1.0",
    ),
    "PFM, floats from 0 to 1": (
        b"Pf 64 16 -1.0\n" + RAMP.astype("<f4").tobytes(),
        "floating-point values run from",
    ),
    "TIFF, Hounsfield units": (
        saved(ramp(2000).astype(np.int32) - 1000, "TIFF"),
        "values run from -1,000 to 1,000",
    ),
    "TIFF, 0 to 255 in 32 bits": (
        saved(EIGHT.astype(np.int32), "TIFF"),
        "values run from 0 to 255",
    ),
}


@pytest.mark.parametrize("kind", UNDECIDED)
def test_values_that_need_a_decision_are_refused_with_the_way_to_convert_them(kind: str) -> None:
    data, found = UNDECIDED[kind]
    with pytest.raises(MediaError, match=found) as refusal:
        decode_image(data, "x.png")
    assert str(refusal.value).startswith("x.png: its ")
    assert (
        "scale the values that should be to 0 and 255, and save it with 8 bits per channel."
        in str(refusal.value)
    )


def test_a_black_picture_of_16_bits_is_black_however_its_values_are_read() -> None:
    assert decoded(png(ramp(0))).max() == 0


@pytest.mark.parametrize(
    ("picture", "refused"),
    [
        (Image.fromarray(ramp(FULL)), False),
        (Image.fromarray(ramp(TWELVE)), True),
        (Image.fromarray(ramp(255).astype(np.int32)), True),
        (Image.fromarray(RAMP.astype(np.float32)), True),
    ],
)
def test_pictures_that_are_no_files_follow_the_same_rule(
    picture: Image.Image, refused: bool
) -> None:
    if refused:
        with pytest.raises(MediaError, match="and nothing says which of them are black and white"):
            as_rgb(picture, "a picture")
    else:
        assert np.asarray(as_rgb(picture, "a picture")).max() == 255


RED = (200, 0, 0)


def half_clear(mode: str) -> Image.Image:
    """A red or black picture whose left half is transparent."""
    picture = Image.new("RGBA", (8, 4), (*RED, 255))
    picture.paste((10, 20, 30, 0), (0, 0, 4, 4))
    if mode == "LA":
        grey = Image.new("LA", (8, 4), (0, 255))
        grey.paste((0, 0), (0, 0, 4, 4))
        return grey
    return picture


def palette_file(kind: str) -> bytes:
    picture = Image.new("P", (8, 4), 1)
    picture.putpalette([*(10, 20, 30), *RED])
    picture.paste(0, (0, 0, 4, 4))
    return saved(picture, kind, transparency=0)


GREY_LEVELS = np.array([[0x07, 0xFF]] * 4)
"""Four pixels of 4 bits a row: 0, 7, 15 and 15."""

CLEAR = {
    "PNG, RGBA": (saved(half_clear("RGBA"), "PNG"), RED),
    "WebP, RGBA": (saved(half_clear("RGBA"), "WEBP", lossless=True, exact=True), RED),
    "TIFF, RGBA": (saved(half_clear("RGBA"), "TIFF"), RED),
    "PNG, grey with alpha": (saved(half_clear("LA"), "PNG"), (0, 0, 0)),
    "PNG, palette": (palette_file("PNG"), RED),
    "GIF, palette": (palette_file("GIF"), RED),
    "PNG, a transparent colour": (
        saved(half_clear("RGBA").convert("RGB"), "PNG", transparency=(10, 20, 30)),
        RED,
    ),
    "PNG, a transparent grey of 16 bits": (
        png(np.tile([[500] * 4 + [FULL] * 4], (4, 1)), tRNS=b"\x01\xf4"),
        None,
    ),
    "PNG, a transparent colour of 16 bits": (
        png(
            np.dstack([np.tile([[500] * 4 + [FULL] * 4], (4, 1))] * 3), COLOUR, tRNS=b"\x01\xf4" * 3
        ),
        None,
    ),
}


@pytest.mark.parametrize("kind", CLEAR)
def test_transparency_is_white(kind: str) -> None:
    data, right = CLEAR[kind]
    found = decoded(data)
    assert found[2, 1].tolist() == [255, 255, 255]
    assert found[2, 6].tolist() == [*(right or (255, 255, 255))]


def test_a_transparent_grey_of_4_bits_is_white_and_its_neighbours_are_not() -> None:
    found = decoded(png(GREY_LEVELS, bits=4, tRNS=b"\x00\x07"))
    assert found[0, :, 0].tolist() == [0, 255, 255, 255]
    found = decoded(png(GREY_LEVELS, bits=4))
    assert found[0, :, 0].tolist() == [0, 119, 255, 255]


def test_half_transparency_is_half_white() -> None:
    assert decoded(saved(Image.new("RGBA", (4, 4), (0, 0, 0, 128)), "PNG"))[0, 0].tolist() == [
        127,
        127,
        127,
    ]


def test_hidden_colours_do_not_show() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (8, 8, 4), dtype=np.uint8)
    noise[..., 3] = 0
    assert decoded(saved(noise, "PNG")).min() == 255


def grey_ramp(mode: str) -> Image.Image:
    return Image.fromarray(np.dstack([EIGHT] * 3)).convert(mode)


@pytest.mark.parametrize(
    ("mode", "kind"),
    [
        ("CMYK", "JPEG"),
        ("CMYK", "TIFF"),
        ("LAB", "TIFF"),
        pytest.param("YCbCr", "TIFF", marks=needs_pillow("13", "calls the file cut")),
        ("YCbCr", "JPEG"),
    ],
)
def test_other_colour_spaces_become_rgb(mode: str, kind: str) -> None:
    assert np.abs(decoded(saved(grey_ramp(mode), kind)) - EIGHT[..., None]).max() <= 4


def orientation_6(kind: str) -> bytes:
    """A picture to be turned clockwise by 90 degrees: its left end is above then."""
    exif = Image.Exif()
    exif[0x0112] = 6
    return saved(Image.fromarray(np.dstack([EIGHT] * 3)), kind, exif=exif)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "TIFF", "WEBP"])
def test_pictures_are_upright_in_every_format(kind: str) -> None:
    found = decoded(orientation_6(kind))
    assert found.shape[:2] == (64, 16)
    assert found[0, 8, 0] < 10 < 245 < found[-1, 8, 0]


def test_an_unreadable_exif_block_costs_no_picture() -> None:
    assert decoded(saved(grey_ramp("RGB"), "JPEG", exif=b"Exif\0\0no such thing")).shape == (
        16,
        64,
        3,
    )


FRAMES = [Image.new("RGB", (8, 8), (shade, 0, 0)) for shade in (0, 120, 240)]


@pytest.mark.parametrize("kind", ["GIF", "PNG", "WEBP", "TIFF"])
def test_animations_and_pages_are_refused_with_their_number(kind: str) -> None:
    data = saved(FRAMES[0], kind, save_all=True, append_images=FRAMES[1:])
    with pytest.raises(
        MediaError, match=r"x: holds 3 pictures .* not supported; save the one to be shown"
    ):
        decode_image(data, "x")


def test_pages_of_other_sizes_are_pages() -> None:
    stream = io.BytesIO()
    FRAMES[2].save(
        stream,
        "TIFF",
        save_all=True,
        append_images=[picture.resize((2, 2)) for picture in FRAMES[:1]],
    )
    data = stream.getvalue()
    with pytest.raises(MediaError, match="holds 2 pictures"):
        decode_image(data, "x")


@needs_pillow("11.2", "writes a page instead of a preview")
def test_previews_are_not_pages() -> None:
    preview = Image.new("RGB", (2, 2))
    preview.encoderinfo = {"tiffinfo": {254: 1}}
    stream = io.BytesIO()
    FRAMES[2].save(stream, "TIFF", save_all=True, append_images=[preview])
    assert decoded(stream.getvalue())[0, 0].tolist() == [240, 0, 0]
    phone = saved(FRAMES[2], "MPO", save_all=True, append_images=FRAMES[:1])
    assert decoded(phone)[0, 0, 0] > 230


FOREIGN = {
    "a DICOM file": (
        bytes(128) + b"DICM" + bytes(100),
        "export what is to be shown as PNG or JPEG",
    ),
    "a NIfTI file": (bytes(344) + b"n+1\0" + bytes(100), "export the slice"),
    "a pointer of Git LFS": (
        b"version https://git-lfs.github.com/spec/v1\noid sha256:abc\n",
        "git lfs pull",
    ),
    "a web page": (b"\n<!DOCTYPE html><html>Access denied</html>", "logged in"),
    "an SVG drawing": (
        b'<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg"/>',
        "convert it to PNG",
    ),
    "a HEIC picture": (b"\0\0\0\x18ftypheic" + bytes(100), "convert it to PNG"),
    "an AVIF picture": (b"\0\0\0\x1cftypavif" + bytes(100), "convert it to PNG"),
    "a video": (b"\0\0\0\x1cftypisom" + bytes(100), "give a picture"),
    "a gzip file": (b"\x1f\x8b\x08" + bytes(100), "unpack it"),
    "a PDF file": (b"%PDF-1.7\n", "export the picture"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_files_of_another_kind_are_named_with_what_to_do(name: str) -> None:
    data, fix = FOREIGN[name]
    with pytest.raises(MediaError, match=f"x: is {name}, not a picture that can be read; .*{fix}"):
        decode_image(data, "x")


def test_a_rare_kind_of_a_known_format_is_named() -> None:
    data = bytearray(saved(RAMP.astype(np.float32), "TIFF"))
    with pytest.raises(
        MediaError, match=r"not a complete image \(TIFF whose header is damaged or of a rare kind\)"
    ):
        decode_image(bytes(data).replace(b"\x02\x01\x03\x00", b"\x02\x01\x03\x01"), "x")


def test_a_picture_of_far_too_many_pixels_is_refused_by_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(
        MediaError, match="x: has more pixels than the limit of 89,478,485; make it smaller"
    ):
        decode_image(b"P5 20000 20000 255\n", "x")
    monkeypatch.setattr(pictures, "MAX_PIXELS", 10)
    with pytest.raises(MediaError, match="x: 64 × 16 pixels exceed the limit of 10"):
        decode_image(saved(EIGHT, "PNG"), "x")


@pytest.mark.parametrize(
    ("values", "uniform"),
    [(EIGHT * 0, True), (EIGHT * 0 + 77, True), (EIGHT, False), (np.eye(9) * 255, False)],
)
def test_a_picture_of_one_value_is_noticed(values: np.ndarray, uniform: bool) -> None:
    assert is_uniform(Image.fromarray(values.astype(np.uint8)).convert("RGB")) is uniform
