"""``medtasks prepare``: from release files to prepared data.

The work is done in a hidden sibling folder, which takes the place of the old one when it is complete; the media
index is written as it grows, so an interrupted command goes on where it stopped.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from medtasks.data import sources
from medtasks.data.manifest import Source
from medtasks.data.records import Record, parse_kvasir_row, parse_mi_cxr_row
from medtasks.data.sources import RowSource, open_kvasir, read_jsonl
from medtasks.data.store import Prepared, data_root
from medtasks.data.workplace import Workplace
from medtasks.errors import DataError, MediaError, UsageError

__all__ = ["Progress", "prepare_kvasir", "prepare_mi_cxr"]

Progress = Callable[[int, int], None]
"""Called with (files verified, files in all)."""

NAMED = 10


def prepare_kvasir(
    source: str,
    out: Path | None = None,
    *,
    images: Path | None = None,
    allow_missing_media: bool = False,
    workers: int = 0,
    progress: Progress | None = None,
    relative: bool = False,
    mini: bool = False,
) -> Prepared:
    """Prepare Kvasir-VQA-x1 from ``hub``, a folder or a file, into ``out`` (default: under the data root).

    With ``relative`` the manifest names the pictures' folder relative to ``out``, so that both can move together.

    Raises:
        UsageError: there is no such source.
        DataError: a row breaks the format (file, line and field are named), or the hub cannot be reached.
        MediaError: pictures are missing or not whole; the first ten are named. With ``allow_missing_media``
            their rows are excluded, and counted in the manifest, instead.
    """
    opened = open_kvasir(source, images)
    place = Workplace(out or data_root() / "kvasir_vqa_x1")
    records, embedded = _kvasir_records(opened, place)
    origin = opened.source
    if opened.by_image_id and opened.images is None:
        records, commit = _with_hub_images(records, place)
        embedded, origin = True, origin.model_copy(update={"images": f"{sources.KVASIR_IMAGES_HUB}@{commit}"})
    root = Path("media") if embedded else opened.images
    if root is None:
        raise UsageError("the rows hold no pictures; name their folder with --images DIR.")
    job = _Job("kvasir_vqa_x1", place, origin, root, allow_missing_media, workers, progress, relative, mini)
    return job.finish(records)


def prepare_mi_cxr(
    rows: Sequence[Path],
    images: Path,
    out: Path | None = None,
    *,
    allow_missing_media: bool = False,
    workers: int = 0,
    progress: Progress | None = None,
    relative: bool = False,
    mini: bool = False,
) -> Prepared:
    """Prepare MI-CXR from its row files (the ICR variant's may be one of them) and the MIMIC-CXR-JPG root.

    Raises:
        UsageError: there is no row file, or ``images`` is no folder.
        DataError: a row breaks the format, or two rows of a family share their q_id.
        MediaError: as :func:`prepare_kvasir`.
    """
    if not rows:
        raise UsageError("--rows names no file; give micxr_test.jsonl.")
    if not images.is_dir():
        raise UsageError(f"--images {images}: no such folder; give the MIMIC-CXR-JPG root that holds files/.")
    seen: dict[str, str] = {}
    records: list[Record] = []
    for path in rows:
        for item in read_jsonl(path):
            record = parse_mi_cxr_row(item.row, item.where)
            if record.sample_id in seen:
                raise DataError(
                    f"{item.where}: field `q_id` is {record.q_id}, which {seen[record.sample_id]} has already in "
                    "this family; give each question an id of its own."
                )
            seen[record.sample_id] = str(item.where)
            records.append(record)
    place = Workplace(out or data_root() / "mi_cxr")
    names = "+".join(path.name for path in rows)
    source = Source(kind="file", name=names)
    return _Job(
        "mi_cxr", place, source, images.resolve(), allow_missing_media, workers, progress, relative, mini
    ).finish(records)


def _kvasir_records(opened: RowSource, place: Workplace) -> tuple[list[Record], bool]:
    """Records, and whether their pictures came with the rows and now lie in the workplace."""
    repeats: Counter[str] = Counter()
    records: list[Record] = []
    embedded = False
    for item in opened.rows:
        name = None
        if item.image is not None:
            embedded = True
            name = place.keep_image(str(item.row.get("img_id")), item.image, item.where)
        record = parse_kvasir_row(item.row, item.where, name)
        repeats[record.sample_id] += 1
        number = repeats[record.sample_id]
        if number > 1:
            record = record.model_copy(update={"sample_id": f"{record.sample_id}#{number}"})
        records.append(record)
    return records, embedded


def _with_hub_images(records: list[Record], place: Workplace) -> tuple[list[Record], str | None]:
    """Records whose pictures were fetched from the second hub dataset, and that dataset's commit."""
    hub = sources.KVASIR_IMAGES_HUB
    commit = sources.hub_commit(hub)
    images = sources.hub_images({record.cluster for record in records}, hub, commit=commit)
    names = {img_id: place.keep_image(img_id, data, hub) for img_id, data in images}
    found = [record.model_copy(update={"media": (names.get(record.cluster, record.media[0]),)}) for record in records]
    return found, commit


@dataclass
class _Job:
    """The part of preparing that both benchmarks share: verify media, exclude or refuse, write, take place."""

    benchmark: str
    place: Workplace
    source: Source
    root: Path
    allow_missing_media: bool
    workers: int
    progress: Progress | None
    relative: bool
    mini: bool
    excluded: Counter[str] = field(default_factory=Counter)
    excluded_samples: list[str] = field(default_factory=list)

    def finish(self, records: list[Record]) -> Prepared:
        if not records:
            raise DataError(f"{self.source.name}: holds no row, expected at least one; fetch it again.")
        root = self._media_root()
        files = self.place.directory / root
        entries, errors = self.place.index(
            files, {name for record in records for name in record.media}, self.workers, self.progress
        )
        if errors and not self.allow_missing_media:
            raise _refusal(list(errors.values()))
        kept = [record for record in records if self._keep(record, files, errors)]
        if not kept:
            raise DataError(f"{self.source.name}: no row is left, every one lacks a picture; check --images.")
        used = {name for record in kept for name in record.media}
        return self.place.complete(
            benchmark=self.benchmark,
            source=self.source,
            root=root,
            records=kept,
            media=[entry for entry in entries if entry.path in used],
            excluded=dict(sorted(self.excluded.items())),
            excluded_samples=tuple(self.excluded_samples),
            mini=self.mini,
        )

    def _media_root(self) -> Path:
        """What the manifest says: relative to the prepared folder where the pictures move with it."""
        if self.root == Path("media"):
            return self.root
        if self.relative:
            return Path(os.path.relpath(self.root, self.place.directory))
        return self.root.resolve()

    def _keep(self, record: Record, files: Path, errors: dict[str, MediaError]) -> bool:
        bad = [name for name in record.media if name in errors]
        if not bad:
            return True
        there = all((files / name).is_file() for name in bad)
        self.excluded["unreadable_image" if there else "missing_image"] += 1
        self.excluded_samples.append(record.sample_id)
        return False


def _refusal(errors: Sequence[MediaError]) -> MediaError:
    named = " ".join(str(error) for error in errors[:NAMED])
    rest = f" And {len(errors) - NAMED} more." if len(errors) > NAMED else ""
    return MediaError(
        f"{len(errors)} of the pictures cannot be used: {named}{rest} Or leave their rows out, counted in the "
        "manifest, with --allow-missing-media."
    )
