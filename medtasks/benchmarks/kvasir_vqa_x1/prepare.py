"""Kvasir-VQA-x1: rows of the release, with or without their pictures, as prepared data."""

from __future__ import annotations

from pathlib import Path

from medtasks.benchmarks.kvasir_vqa_x1.pictures import Given, find_pictures
from medtasks.benchmarks.kvasir_vqa_x1.records import KvasirRecord, parse_kvasir_row
from medtasks.benchmarks.kvasir_vqa_x1.source import open_kvasir
from medtasks.data.fetch import FetchSettings
from medtasks.data.preparation import Preparation
from medtasks.data.prepare.job import PrepareJob, Progress, distinct
from medtasks.data.prepared import Prepared
from medtasks.data.sources import SourceRow


def prepare_kvasir(
    source: str,
    out: Path | None = None,
    *,
    images: Path | None = None,
    allow_missing_media: bool = False,
    references_only: bool = False,
    workers: int = 0,
    settings: FetchSettings | None = None,
    progress: Progress | None = None,
    fetching: Progress | None = None,
    mini: bool = False,
) -> Prepared:
    """Prepare Kvasir-VQA-x1 from ``hub``, a directory, a file or a pattern of files, into ``out`` (default: below the
    data root).

    Pictures come with the rows, from a directory, by URL, or from the hub's image dataset (`find_pictures`);
    ``fetching`` reports those fetched by URL.

    Raises:
        UsageError: there is no such source, or no source of pictures.
        DataError: a row breaks the format (file, line and field are named), or a server cannot be reached.
        MediaError: pictures are missing or not whole, and ``allow_missing_media`` is not set.
    """
    opened = open_kvasir(source)
    with Preparation("kvasir_vqa_x1", out, references_only=references_only, mini=mini) as place:
        given = Given(place)
        records = distinct(_record(item, None if references_only else given) for item in opened.rows)
        job = PrepareJob(place, opened.source, Path("media"), allow_missing_media, workers, progress)
        if references_only or not records:
            return job.finish(records)
        names = {record.img_id: record.media[0] for record in records}
        found = find_pictures(list(names), given, opened, images, settings=settings, progress=fetching)
        names |= found.names
        job.root = found.root
        job.unavailable = {names[img_id]: error for img_id, error in found.failed.items()}
        job.source = opened.source.model_copy(update={"images": found.origin})
        return job.finish([record.model_copy(update={"media": (names[record.img_id],)}) for record in records])


def _record(item: SourceRow, given: Given | None) -> KvasirRecord:
    """The record of a row, whose picture is added to ``given``."""
    record = parse_kvasir_row(item.row, item.where)
    if given is not None:
        given.add(record.img_id, item.row.get("image"), item.where)
    return record
