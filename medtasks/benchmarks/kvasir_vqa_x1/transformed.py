"""Kvasir-VQA-x1's transformed track: the prepared questions over perturbed pictures, made here."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from medtasks.benchmarks.kvasir_vqa_x1.perturb import SEED, VARIANTS, VERSION, perturbed_png
from medtasks.benchmarks.kvasir_vqa_x1.records import KvasirRecord
from medtasks.core.errors import UsageError
from medtasks.core.schema import Frozen
from medtasks.data.media.images import MediaEntry, decoding_threads, read_picture
from medtasks.data.preparation import Out, Preparation, Workers
from medtasks.data.prepared import Prepared, Source
from medtasks.data.release import Progress
from medtasks.data.store import open_prepared


class _Variant(Frozen):
    """Identifies a perturbed picture by seed, rule and original."""

    img_id: str
    variant: int
    original: str
    """SHA-256."""
    seed: int = SEED
    version: str = VERSION

    @property
    def name(self) -> str:
        return _name(self.img_id, self.variant)


def prepare_transformed(
    out: Out = None,
    *,
    variants: Annotated[
        int, typer.Option("--variants", help="Perturbed copies of each image, 1 to 10; only the first is evaluated.")
    ] = 1,
    workers: Workers = 0,
    original: Prepared | None = None,
    progress: Progress | None = None,
    mini: bool = False,
) -> Prepared:
    """Perturb every picture of the prepared Kvasir-VQA-x1.

    Questions are asked about variant 0, or in the mixed track about the original, which is copied. If the original data
    have no media, these have none either. The media index has the SHA-256 of every variant.
    Pictures do not depend on order or number of workers, and an interrupted call is continued.

    Raises:
        UsageError: ``variants`` is not 1 to 10.
        NotPreparedError: the original data are not prepared.
        MediaError: an original picture is gone or not whole.
    """
    if not 1 <= variants <= VARIANTS:
        raise UsageError(f"--variants is {variants}, expected 1 to {VARIANTS}.")
    source = original or open_prepared("kvasir_vqa_x1")
    records = [record for record in source.records() if isinstance(record, KvasirRecord)]
    with Preparation(
        "kvasir_vqa_x1_transformed",
        out,
        references_only=source.manifest.references_only,
        workers=workers,
        progress=progress,
        mini=mini,
    ) as place:
        return place.complete(
            Source(kind="prepared", name="kvasir_vqa_x1", revision=source.manifest.fingerprint),
            [record.model_copy(update={"media": (_name(record.img_id, 0),)}) for record in records],
            Path("media"),
            [] if place.references_only else _variants(place, source, records, variants),
            {"perturbation": {"seed": SEED, "variants": variants, "version": int(VERSION)}},
            original=source.manifest,
        )


def _variants(place: Preparation, source: Prepared, records: Sequence[KvasirRecord], variants: int) -> list[MediaEntry]:
    """Make the variants that are missing, copy the originals, and verify all."""
    media = place.directory / "media"
    originals = {record.img_id: source.media_path(record.media[0]) for record in records}
    checksums = {source.media_path(entry.path): entry.sha256 for entry in source.media}
    requested = [
        _Variant(img_id=img_id, variant=number, original=checksums[path])
        for img_id, path in sorted(originals.items())
        for number in range(variants)
    ]

    def make(one: _Variant) -> _Variant:
        path, original = media / one.name, originals[one.img_id]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(perturbed_png(read_picture(original), str(original), one.seed, one.img_id, one.variant))
        return one

    with decoding_threads(place.workers) as pool, place.progress_log("perturbed", _Variant) as (known, log):
        done = set(known)
        missing = [one for one in requested if one not in done or not (media / one.name).is_file()]
        for number, one in enumerate(pool.map(make, missing), start=1):
            log(one)
            if place.progress is not None:
                place.progress(number, len(missing))
    (media / _ORIGINAL).mkdir(parents=True, exist_ok=True)
    for img_id, path in originals.items():
        shutil.copyfile(path, media / original_name(img_id))
    entries, errors = place.index(media, {*map(original_name, originals), *(one.name for one in requested)})
    if errors:
        raise next(iter(errors.values()))
    return entries


_ORIGINAL = "original"


def original_name(img_id: str) -> str:
    """The name of the copy of an original picture."""
    return f"{_ORIGINAL}/{img_id}"


def _name(img_id: str, variant: int) -> str:
    return f"variant{variant}/{img_id}.png"
