"""The Kvasir transformed track: the prepared questions, asked about perturbed pictures."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from typing_extensions import Unpack

from medtasks.benchmarks.kvasir_vqa_x1.perturb import SEED, VARIANTS, VERSION, perturbed_png
from medtasks.catalog.records import Record
from medtasks.core.errors import UsageError
from medtasks.core.schema import Frozen
from medtasks.data.media.images import MediaIndex, decoding_threads, read_picture
from medtasks.data.preparation import Preparation
from medtasks.data.prepare_commands import Options, Out
from medtasks.data.prepared import Prepared, Source
from medtasks.data.store import open_prepared


def original_name(img_id: str) -> str:
    """The name of the copy of an original picture."""
    return f"original/{img_id}"


def _variant_name(img_id: str, variant: int) -> str:
    return f"variant{variant}/{img_id}.png"


class _Variant(Frozen):
    """Identifies a perturbed picture, in the progress log; ``original`` is a checksum."""

    img_id: str
    variant: int
    original: str
    seed: int = SEED
    version: str = VERSION

    @property
    def name(self) -> str:
        return _variant_name(self.img_id, self.variant)


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
    prepared = original or open_prepared("kvasir_vqa_x1")
    if prepared.manifest.references_only:
        options["references_only"] = True
    fingerprint = prepared.manifest.fingerprint
    source = Source(kind="prepared", name="kvasir_vqa_x1", revision=fingerprint)
    records = prepared.records()
    transformed = []
    for record in records:
        media = (_variant_name(record.cluster, 0),)
        transformed.append(record.model_copy(update={"media": media}))
    with Preparation("kvasir_vqa_x1_transformed", out, **options) as place:
        index = MediaIndex()
        if not place.references_only:
            index = _write_pictures(place, prepared, records, variants)
        details = {"perturbation": {"seed": SEED, "variants": variants, "version": int(VERSION)}}
        return place.complete(
            source, transformed, Path("media"), index, details, original=prepared.manifest
        )


def _write_pictures(
    place: Preparation, prepared: Prepared, records: Sequence[Record], variants: int
) -> MediaIndex:
    """Write the variants and a copy of every picture, and verify them."""
    media = place.directory / "media"
    originals: dict[str, Path] = {}
    for record in records:
        originals[record.cluster] = prepared.media_path(record.media[0])
    checksums = {prepared.media_path(entry.path): entry.sha256 for entry in prepared.media}
    requested = []
    for img_id, path in sorted(originals.items()):
        for number in range(variants):
            variant = _Variant(img_id=img_id, variant=number, original=checksums[path])
            requested.append(variant)
    _write_variants(place, media, requested, originals)
    names = {variant.name for variant in requested} | _copy_originals(media, originals)
    index = place.index(media, names)
    if index.errors:
        raise next(iter(index.errors.values()))
    return index


def _copy_originals(media: Path, originals: Mapping[str, Path]) -> set[str]:
    """Copy the original pictures below ``media``; returns the names of the copies."""
    names: set[str] = set()
    for img_id, path in originals.items():
        name = original_name(img_id)
        names.add(name)
        (media / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, media / name)
    return names


def _write_variants(
    place: Preparation, media: Path, requested: Sequence[_Variant], originals: Mapping[str, Path]
) -> None:
    """Write the perturbed pictures that no interrupted preparation has written."""
    write = partial(_write_variant, media, originals)
    with (
        decoding_threads(place.workers) as pool,
        place.progress_log("perturbed", _Variant) as (earlier, log),
    ):
        written = {variant for variant in earlier if (media / variant.name).is_file()}
        missing = [variant for variant in requested if variant not in written]
        for number, variant in enumerate(pool.map(write, missing), start=1):
            log(variant)
            if place.progress is not None:
                place.progress(number, len(missing))


def _write_variant(media: Path, originals: Mapping[str, Path], variant: _Variant) -> _Variant:
    """Write one perturbed picture below ``media``; returns the variant."""
    path = media / variant.name
    original = originals[variant.img_id]
    path.parent.mkdir(parents=True, exist_ok=True)
    data = read_picture(original)
    path.write_bytes(
        perturbed_png(data, str(original), variant.seed, variant.img_id, variant.variant)
    )
    return variant
