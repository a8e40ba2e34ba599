"""The transformed track: each picture alone decides its pixels, within the published ranges, as
torchvision would; the same pictures whatever the order, the number of workers or the
interruptions.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from data_sources import interrupted_at
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw, features
from scipy import stats
from torchvision.transforms import InterpolationMode, RandomResizedCrop
from torchvision.transforms import functional as F
from typer.testing import CliRunner

from medtasks.benchmarks.documents import task_documents
from medtasks.benchmarks.kvasir_vqa_x1 import mixed
from medtasks.benchmarks.kvasir_vqa_x1.perturb import (
    SEED,
    VARIANTS,
    Perturbation,
    draw_perturbation,
    perturb,
    perturbed_png,
)
from medtasks.benchmarks.kvasir_vqa_x1.transformed import prepare_transformed
from medtasks.cli.app import app
from medtasks.core.errors import MediaError, NotPreparedError, UsageError
from medtasks.data.prepared import Prepared, open_directory
from medtasks.data.store import open_prepared
from medtasks.importers.imported_run import PredictionFile, score_predictions

WIDE, HIGH = 10_000, 8_000  # so large that rounding to pixels hides nothing of the crop

seeds, variants = st.integers(-(2**63), 2**63), st.integers(0, VARIANTS - 1)
sizes = st.tuples(st.integers(8, 600), st.integers(8, 400))


def drawn(width: int = 120, height: int = 90) -> Image.Image:
    """A picture made of integers alone: a colour gradient, a bright box, a dark one."""
    y, x = np.mgrid[:height, :width]
    pixels = np.stack([60 + x % 160, 40 + y * 2 % 180, 30 + (x * y // 16) % 200], axis=-1).astype(
        np.uint8
    )
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


def test_two_thousand_draws_are_uniform_and_crops_spread_as_those_of_torchvision() -> None:
    draws = [
        draw_perturbation(SEED, f"img{number}", number % VARIANTS, WIDE, HIGH)
        for number in range(2000)
    ]
    columns = [
        ([how.rotation for how in draws], -10, 20),
        *(([how.translation[axis] for how in draws], -0.1, 0.2) for axis in (0, 1)),
        *(([getattr(how, name) for how in draws], 0.8, 0.4) for name in ("brightness", "contrast")),
    ]
    assert all(
        stats.kstest(values, "uniform", args=(low, span)).pvalue > 1e-3
        for values, low, span in columns
    )
    assert (
        np.abs(np.corrcoef([values for values, _, _ in columns]) - np.eye(len(columns))).max()
        < 0.08
    )

    torch.manual_seed(0)
    whole = torch.empty(3, HIGH, WIDE, device="meta")
    aspects = [0.95 * WIDE / HIGH, 1.05 * WIDE / HIGH]
    theirs = np.array([RandomResizedCrop.get_params(whole, [0.9, 1.0], aspects) for _ in draws])
    crops = np.array([how.crop for how in draws])
    ours = np.stack(
        [crops[:, 1], crops[:, 0], crops[:, 3] - crops[:, 1], crops[:, 2] - crops[:, 0]], axis=1
    )
    for column in range(4):  # top, left, height, width
        assert stats.ks_2samp(ours[:, column], theirs[:, column]).pvalue > 1e-3, column


def test_seed_image_and_variant_each_change_the_pixels_and_the_size_only_the_crop() -> None:
    small, large = (draw_perturbation(SEED, "img1", 0, *size) for size in [(64, 48), (600, 400)])
    assert replace(small, crop=large.crop) == large
    keys = [(SEED, "a", variant) for variant in range(VARIANTS)] + [
        (SEED + 1, "a", 0),
        (SEED, "b", 0),
        (-SEED, "a", 0),
    ]
    made = [opened(perturbed_png(png(drawn()), "a.png", *key)).tobytes() for key in keys]
    assert len(set(made)) == len(keys)


def test_the_published_variant_is_pinned() -> None:
    assert draw_perturbation(42, "mini0001", 0, 120, 90) == Perturbation(
        crop=(0, 3, 118, 89),
        rotation=-9380386 / 2**20,
        translation=(-19662 / 2**20, 100984 / 2**20),
        brightness=9500 / 2**13,
        contrast=7158 / 2**13,
    )
    made = perturbed_png(png(drawn()), "mini0001.png", 42, "mini0001", 0)
    assert (
        sha256(opened(made).tobytes())
        == "164ab72d011a07e382466b3b7f0586bc96877e039cdfca87260176a1f1554d4d"
    )
    # the packed bytes are zlib's: other builds of Pillow bring another one
    if "zlib_ng" in features.features and features.version_feature("zlib_ng") == "2.3.3":
        assert sha256(made) == "ff55dbe6ae016a99b6d9eabdf0da90cac5740494bc6c1b4f0151918c379427cd"


@pytest.mark.parametrize("size", [(8, 8), (33, 47), (320, 256)])
def test_pixels_are_those_of_torchvision_but_for_a_level_at_a_tie(size: tuple[int, int]) -> None:
    noise = np.random.default_rng(3).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    for picture in (Image.fromarray(noise), drawn(*size)):
        for variant in range(VARIANTS):
            how = draw_perturbation(SEED, "img1", variant, *size)
            ours, theirs = (
                np.asarray(made, dtype=int)
                for made in (perturb(picture, how), by_torchvision(picture, how))
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


def test_the_file_holds_no_metadata_and_what_cannot_be_perturbed_is_refused() -> None:
    stream = io.BytesIO()
    drawn().save(
        stream, format="JPEG", dpi=(300, 300), icc_profile=b"profile", comment=b"patient name"
    )
    made = perturbed_png(stream.getvalue(), "x.jpg", SEED, "img1", 0)
    kinds, at = set(), 8
    while at < len(made):
        kinds.add(made[at + 4 : at + 8])
        at += 12 + int.from_bytes(made[at : at + 4], "big")
    assert kinds == {b"IHDR", b"IDAT", b"IEND"}
    assert (opened(made).mode, opened(made).size) == ("RGB", (120, 90))
    with pytest.raises(MediaError, match=r"cut\.png: not a complete image"):
        perturbed_png(png(drawn())[:-200], "cut.png", SEED, "img1", 0)


# --- prepared data ---


@pytest.fixture(scope="module")
def original() -> Prepared:
    return open_prepared("kvasir_vqa_x1")


def bytes_of(prepared: Prepared) -> dict[str, bytes]:
    files = [
        path
        for path in prepared.directory.rglob("*")
        if path.is_file() and path.name != "manifest.json"
    ]
    return {str(path.relative_to(prepared.directory)): path.read_bytes() for path in files}


@pytest.mark.slow
def test_the_number_of_workers_changes_no_byte(tmp_path: Path, original: Prepared) -> None:
    one = prepare_transformed(tmp_path / "one", original=original, variants=2, workers=1)
    five = prepare_transformed(tmp_path / "five", original=original, variants=2, workers=5)
    assert bytes_of(one) == bytes_of(five)
    assert (
        one.manifest.fingerprint == open_prepared("kvasir_vqa_x1_transformed").manifest.fingerprint
    )


def test_each_picture_can_be_made_alone_and_questions_stay(original: Prepared) -> None:
    made, asked = open_prepared("kvasir_vqa_x1_transformed"), original.records()
    for record in asked[::9]:
        source = original.media_path(record.media[0])
        for variant in (0, 1):
            alone = perturbed_png(source.read_bytes(), source.name, SEED, record.cluster, variant)
            assert made.media_path(f"variant{variant}/{record.cluster}.png").read_bytes() == alone
    assert [(record.sample_id, record.media) for record in made.records()] == [
        (record.sample_id, (f"variant0/{record.cluster}.png",)) for record in asked
    ]
    assert len(made.media) == (2 + 1) * len(original.media)  # two variants and the original
    assert made.manifest.source.revision == original.manifest.fingerprint
    assert made.manifest.details["perturbation"] == {"seed": 42, "variants": 2, "version": 1}


def test_the_mixed_track_shows_the_originals_of_the_published_share_of_questions(
    original: Prepared,
) -> None:
    made = open_prepared("kvasir_vqa_x1_transformed")
    sources = {
        record.cluster: original.media_path(record.media[0]) for record in original.records()
    }
    asked = [
        one for level in (1, 2, 3) for one in task_documents(f"kvasir_vqa_x1_mixed_level{level}")
    ]
    shown = {document["media"][0]: document["img_id"] for document in asked}
    for name, image in shown.items():
        assert name in (f"variant0/{image}.png", f"original/{image}")
        if name.startswith("original/"):
            assert made.media_path(name).read_bytes() == sources[image].read_bytes()
    assert {name.partition("/")[0] for name in shown} == {"variant0", "original"}
    assert len(asked) == len(original.records())
    rows = [
        {"sample_id": f"image-{number:08x}", "img_id": "image", "media": ["other"]}
        for number in range(20_000)
    ]
    shares = [one["media"] == ["original/image"] for one in mixed(rows)]
    assert sum(shares) / len(rows) == pytest.approx(0.23, abs=0.01)  # arXiv 2506.09958, section 2.3
    assert [one["media"] == ["original/image"] for one in mixed(rows[5:9])] == shares[5:9]


def test_an_interrupted_call_goes_on(
    tmp_path: Path, original: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    real = perturbed_png

    def counted(data: bytes, name: str, seed: int, img_id: str, variant: int) -> bytes:
        made.append(img_id)
        return real(data, name, seed, img_id, variant)

    monkeypatch.setattr("medtasks.benchmarks.kvasir_vqa_x1.transformed.perturbed_png", counted)

    with pytest.raises(KeyboardInterrupt):
        prepare_transformed(
            tmp_path / "out", original=original, workers=1, progress=interrupted_at(5)
        )
    assert not (tmp_path / "out").exists()
    before = len(made)
    finished = prepare_transformed(tmp_path / "out", original=original, workers=1)
    assert 5 <= before < 24
    assert len(made) <= 24 + (before - 5)
    whole = prepare_transformed(tmp_path / "whole", original=original)
    assert bytes_of(finished) == bytes_of(whole)


def test_wrong_numbers_of_variants_and_an_original_that_is_gone_are_refused(
    tmp_path: Path, original: Prepared
) -> None:
    for variants in (0, 11):
        with pytest.raises(UsageError, match=f"--variants is {variants}, expected 1 to 10"):
            prepare_transformed(tmp_path, original=original, variants=variants)
    shutil.copytree(original.directory.parent, tmp_path / "copy")
    copy = open_directory(tmp_path / "copy" / "prepared")
    copy.media_path("mini0003.jpg").unlink()
    with pytest.raises(MediaError, match=r"mini0003\.jpg: cannot be read"):
        prepare_transformed(tmp_path / "out", original=copy)


def test_references_alone_of_both_tracks_serve_scoring(
    tmp_path: Path, original: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEDTASKS_DATA", str(tmp_path))
    made = prepare_transformed(original=original, references_only=True)
    assert made.manifest.references_only
    assert not (made.directory / "media").exists()
    assert not made.media
    for track in ("transformed", "mixed"):
        asked = task_documents(f"kvasir_vqa_x1_{track}_level1", media=False)
        with pytest.raises(NotPreparedError, match="is prepared without media"):
            task_documents(f"kvasir_vqa_x1_{track}_level1")
        path = tmp_path / "predictions.jsonl"
        rows = [
            {"sample_id": document["sample_id"], "response": document["target"]}
            for document in asked
        ]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        run = score_predictions(PredictionFile(path, "jsonl", f"kvasir_vqa_x1_{track}_level1"))
        assert run.tasks[f"kvasir_vqa_x1_{track}_level1"].metrics["exact_match"].value == 1.0


def test_the_command_has_the_option(
    tmp_path: Path, original: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEDTASKS_DATA", str(tmp_path))
    shutil.copytree(original.directory, tmp_path / "kvasir_vqa_x1")
    done = CliRunner().invoke(app, ["prepare", "kvasir_vqa_x1_transformed", "--references-only"])
    assert done.exit_code == 0, done.output
    assert "references only: enough to score predictions, not to run models" in done.output
