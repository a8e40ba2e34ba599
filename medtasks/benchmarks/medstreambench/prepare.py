"""MedStreamBench: record files and the upstream media as prepared data, frames chosen.

Media come from 22 datasets, and a user may have only some: records without media are counted by dataset, and never
scored.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer
from typing_extensions import Unpack

from medtasks.benchmarks.medstreambench.frames import ChosenFrames, choose_in_images, choose_in_video, find_medium
from medtasks.benchmarks.medstreambench.records import MedStreamRecord, parse_medstream_row
from medtasks.catalog.records import distinct, tallies
from medtasks.core.errors import DataError, UsageError
from medtasks.data.fetch import hub_tree
from medtasks.data.media.child import Crashed, call_in_child
from medtasks.data.media.images import MediaEntry, decoding_threads
from medtasks.data.media.video import KnownVideo
from medtasks.data.preparation import Options, Out, Preparation
from medtasks.data.prepared import Prepared, Source
from medtasks.data.sources import read_jsonl

HUB = "Venn2024/MedStreamBench"


def prepare_medstream(
    source: Annotated[str, typer.Option("--source", help="hub, or the directory of the .jsonl files.")],
    media: Annotated[
        Path | None,
        typer.Option(
            "--media", help="Directory of the upstream media, which contains Stream_Bench/.", show_default=False
        ),
    ] = None,
    out: Out = None,
    *,
    keep_degenerate: Annotated[
        bool, typer.Option("--keep-degenerate", help="Keep records without a question, or with a placeholder answer.")
    ] = False,
    **options: Unpack[Options],
) -> Prepared:
    """Prepare MedStreamBench from ``hub`` or a directory of record files, and the directory of upstream media.

    ``media`` has ``Stream_Bench/`` (or its contents), as in the records' ``media_path``. Records whose media
    are missing, damaged where they look, or end before their window are excluded and counted; so are degenerate
    records (no question, or a placeholder for an answer) unless ``keep_degenerate``. With ``references_only`` there are
    no media, no record is excluded because of them, and no model can be run.

    Raises:
        UsageError: there is no such source or media directory, or the source has no record file.
        DataError: a record breaks the format or the temporal contract (file, line, record and field are named), or
            no record is left.
    """
    references_only = options.get("references_only")
    if not references_only and (media is None or not media.is_dir()):
        found = "is missing" if media is None else f"{media}: not a directory"
        raise UsageError(
            f"--media {found}; give the directory of Stream_Bench/ (or --references-only, which is enough for scoring)."
        )
    files, origin = _files(source)
    records = distinct(_multi_select(record for path in files for record in _parsed(path)))
    details, root = _details(records), Path("media")
    left_out: dict[str, str] = {}
    entries: list[MediaEntry] = []
    with Preparation("medstreambench", out, **options) as place:
        if not references_only and media is not None:
            root = media.resolve()
            chosen, entries = _frames(records, root, place)
            records = [chosen[record.sample_id].of(record) for record in records]
            left_out = {name: one.excluded for name, one in chosen.items() if one.excluded}
        for record in records:
            if record.degenerate and not keep_degenerate:
                left_out[record.sample_id] = "degenerate"
        if len(left_out) == len(records):
            fix = "keep them with --keep-degenerate" if references_only else f"check --media {media}"
            counts = sorted(Counter(left_out.values()).items())
            reasons = ", ".join(f"{number:,} {reason}" for reason, number in counts)
            raise DataError(f"{origin.name}: no record is left: {reasons}; {fix}.")
        return place.complete(origin, records, root, entries, details, left_out=left_out)


def _files(source: str) -> tuple[list[Path], Source]:
    if source == "hub":
        folder, revision = hub_tree(HUB, "*.jsonl")
        origin = Source(kind="hub", name=HUB, revision=revision)
    else:
        folder = Path(source)
        origin = Source(kind="directory", name=folder.resolve().name)
    if not folder.is_dir():
        raise UsageError(f"--source {source}: not a directory; give hub, or the directory of the .jsonl files.")
    files = sorted(folder.glob("*.jsonl"))
    if not files:
        raise UsageError(f"--source {source}: has no .jsonl file; give the directory that does.")
    return files, origin


def _parsed(path: Path) -> Iterable[MedStreamRecord]:
    return (parse_medstream_row(item.row, item.where) for item in read_jsonl(path))


def _multi_select(records: Iterable[MedStreamRecord]) -> list[MedStreamRecord]:
    """The records, marked as multi-select if a record of the same task has several answers."""
    listed = list(records)
    several = {(record.dataset, record.source_task) for record in listed if record.multi_select}
    return [
        record.model_copy(update={"multi_select": True})
        if record.choices
        and ((record.dataset, record.source_task) in several or "multi" in record.source_task.casefold())
        else record
        for record in listed
    ]


def _frames(
    records: Sequence[MedStreamRecord], media: Path, place: Preparation
) -> tuple[dict[str, ChosenFrames], list[MediaEntry]]:
    """The frames of every record by its id, and the entries of their media; the same for any number of workers."""
    by_path: dict[str, list[MedStreamRecord]] = {}
    for record in records:
        by_path.setdefault(record.media_path, []).append(record)
    chosen: dict[str, ChosenFrames] = {}
    entries: list[MediaEntry] = []
    crashed: dict[str, str] = {}

    def examine(path: str) -> tuple[dict[str, ChosenFrames], list[MediaEntry], KnownVideo | None]:
        name = find_medium(media, path)
        if name is None:
            return {record.sample_id: ChosenFrames("missing_media") for record in by_path[path]}, [], None
        if by_path[path][0].medium == "images":
            return choose_in_images(by_path[path], media, name)
        try:
            return call_in_child(choose_in_video, by_path[path], media, name, known.get(name))
        except Crashed as error:
            crashed[name] = str(error)
            return {record.sample_id: ChosenFrames("unreadable_media") for record in by_path[path]}, [], None

    with decoding_threads(place.workers) as pool, place.progress_log("videos", KnownVideo) as (earlier, log):
        known = {video.entry.path: video for video in earlier}
        for number, (frames, found, video) in enumerate(pool.map(examine, sorted(by_path)), start=1):
            chosen.update(frames)
            entries += found
            if video is not None and known.get(video.entry.path) != video:
                log(video)
            if place.progress is not None:
                place.progress(number, len(by_path))
    for name, ended in sorted(crashed.items()):
        print(
            f"medtasks: {media / name}: crashes the video decoder ({ended}); its records are left out.", file=sys.stderr
        )
    return chosen, list({entry.path: entry for entry in entries}.values())


def _details(records: Sequence[MedStreamRecord]) -> dict[str, dict[str, int]]:
    oddities: Counter[str] = Counter(note for record in records for note in record.notes)
    oddities.update(f"degenerate: {record.degenerate}" for record in records if record.degenerate)
    oddities["records that share their id with an earlier one"] = sum("#" in record.sample_id for record in records)
    oddities["records with an answer that is none of the choices"] = sum(
        bool(record.choices)
        and any(turn.answerable and set(turn.expected) - set(record.choices) for turn in record.rounds)
        for record in records
        if record.temporal_mode != "proactive"
    )
    oddities["open questions whose reference is unanswerable"] = sum(
        record.question_type == "open" and record.task_mode == "single_turn" and not record.rounds[0].answerable
        for record in records
    )
    topics = tallies(records, "dataset", "source_task", "label_source", "question_type")
    topics["task"] = topics.pop("source_task")
    return {**topics, "oddities": dict(oddities)}
