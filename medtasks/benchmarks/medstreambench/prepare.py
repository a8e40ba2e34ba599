"""MedStreamBench: record files and the media of 22 datasets, of which a user may have some, as prepared data with
frames."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from fractions import Fraction
from pathlib import Path, PurePosixPath
from typing import Annotated, TypeAlias

import typer
from typing_extensions import Unpack

from medtasks.benchmarks.medstreambench.records import MedStreamRecord, parse_medstream_row
from medtasks.catalog.records import distinct, tallies
from medtasks.core.errors import DataError, MediaError, UsageError
from medtasks.data.media.images import MediaEntry, decoding_threads, index_media
from medtasks.data.media.video import Crashed, KnownVideo, call_in_child, read_index, scan_video
from medtasks.data.media.windows import beyond_end, exact, frame_numbers, frames_shown
from medtasks.data.prepared import Prepared
from medtasks.data.release import located
from medtasks.data.sources import read_jsonl
from medtasks.data.store import Options, Out, Preparation

HUB = "Venn2024/MedStreamBench"

_PREFIX = "Stream_Bench"
_PICTURES = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".tif", ".tiff", ".webp"})

_Chosen: TypeAlias = "MedStreamRecord | str"
"""A record with the frames that its rounds show, or why it is excluded."""
_Examined: TypeAlias = "tuple[dict[str, _Chosen], Iterable[MediaEntry], KnownVideo | None]"
"""What is chosen by record id, entries of the media, and a video's entry in the progress log."""


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

    Records whose media are missing, damaged where they look, or end before their window are excluded and counted; so
    are degenerate records (no question, or a placeholder for an answer) unless ``keep_degenerate``.

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
    folder, origin = located(source, HUB, "*.jsonl")
    if not folder.is_dir():
        raise UsageError(f"--source {source}: not a directory; give hub, or the directory of the .jsonl files.")
    files = sorted(folder.glob("*.jsonl"))
    if not files:
        raise UsageError(f"--source {source}: has no .jsonl file; give the directory that does.")
    records = [parse_medstream_row(item.row, item.where) for path in files for item in read_jsonl(path)]
    # multi-select is known of a task as a whole: a record of it has several answers, or its name says so
    several = {(record.dataset, record.source_task) for record in records if record.multi_select}
    for row, record in enumerate(records):
        listed = (record.dataset, record.source_task) in several or "multi" in record.source_task.casefold()
        if record.choices and listed:
            records[row] = record.model_copy(update={"multi_select": True})
    records = distinct(records)
    details, root = _details(records), Path("media")
    left_out: dict[str, str] = {}
    entries: list[MediaEntry] = []
    with Preparation("medstreambench", out, **options) as place:
        if not references_only and media is not None:
            root = media.resolve()
            chosen, entries = _frames(records, root, place)
            left_out = {name: one for name, one in chosen.items() if isinstance(one, str)}
            shown = {name: one for name, one in chosen.items() if not isinstance(one, str)}
            records = [shown.get(record.sample_id, record) for record in records]
        for record in records:
            if record.degenerate and not keep_degenerate:
                left_out[record.sample_id] = "degenerate"
        if len(left_out) == len(records):
            fix = "keep them with --keep-degenerate" if references_only else f"check --media {media}"
            counts = sorted(Counter(left_out.values()).items())
            reasons = ", ".join(f"{number:,} {reason}" for reason, number in counts)
            raise DataError(f"{origin.name}: no record is left: {reasons}; {fix}.")
        return place.complete(origin, records, root, entries, details, left_out=left_out)


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


def _frames(
    records: Sequence[MedStreamRecord], media: Path, place: Preparation
) -> tuple[dict[str, _Chosen], list[MediaEntry]]:
    by_path: dict[str, list[MedStreamRecord]] = {}
    for record in records:
        by_path.setdefault(record.media_path, []).append(record)
    chosen: dict[str, _Chosen] = {}
    entries: dict[str, MediaEntry] = {}
    crashed: dict[str, str] = {}

    def examine(path: str) -> _Examined:
        name = _find_medium(media, path)
        if name is None:
            return _all(by_path[path], "missing_media"), (), None
        if by_path[path][0].medium == "images":
            return _choose_in_images(by_path[path], media, name)
        try:
            return call_in_child(_choose_in_video, by_path[path], media, name, known.get(name))
        except Crashed as error:
            crashed[name] = str(error)
            return _all(by_path[path], "unreadable_media"), (), None

    with decoding_threads(place.workers) as pool, place.progress_log("videos", KnownVideo) as (earlier, log):
        known = {video.entry.path: video for video in earlier}
        for number, (frames, found, video) in enumerate(pool.map(examine, sorted(by_path)), start=1):
            chosen.update(frames)
            entries |= {entry.path: entry for entry in found}
            if video is not None and known.get(video.entry.path) != video:
                log(video)
            if place.progress is not None:
                place.progress(number, len(by_path))
    for name, ended in sorted(crashed.items()):
        print(
            f"medtasks: {media / name}: crashes the video decoder ({ended}); its records are left out.", file=sys.stderr
        )
    return chosen, list(entries.values())


def _all(records: Sequence[MedStreamRecord], reason: str) -> dict[str, _Chosen]:
    return {record.sample_id: reason for record in records}


def _find_medium(root: Path, path: str) -> str | None:
    parts = PurePosixPath(path).parts
    names = [path, str(PurePosixPath(*parts[1:]))] if parts[0] == _PREFIX and len(parts) > 1 else [path]
    with suppress(OSError):  # not a valid file name, or a directory that cannot be searched
        return next((name for name in names if (root / name).exists()), None)
    return None


def _choose_in_video(
    records: Sequence[MedStreamRecord], root: Path, name: str, known: KnownVideo | None = None
) -> _Examined:
    """A damaged part excludes only records that show it."""
    try:
        index = read_index(root / name)
        times, files = index.times, [name] * len(index.pts)
        chosen: dict[str, _Chosen] = {}
        for record in records:
            lost = index.cut and any(exact(turn.window[1]) > times[-1] for turn in record.rounds)
            chosen[record.sample_id] = "unreadable_media" if lost else _with_frames(record, times, files, index.pts)
        frames = {
            sample_id: {pts for turn in one.rounds for pts in turn.frames}
            for sample_id, one in chosen.items()
            if not isinstance(one, str)
        }
        timestamps = set[int]().union(*frames.values())
        if not timestamps:
            return chosen, (), None
        video = scan_video(root / name, name, index, timestamps, known)
    except MediaError:
        return _all(records, "unreadable_media"), (), None
    bad = {sample_id: "unreadable_media" for sample_id, pts in frames.items() if not pts.isdisjoint(video.bad)}
    return {**chosen, **bad}, [video.entry], video


def _choose_in_images(records: Sequence[MedStreamRecord], root: Path, name: str) -> _Examined:
    """The path of a picture means that picture, or its sequence if the window is an interval of frame indices."""
    folder = name if (root / name).is_dir() else str(PurePosixPath(name).parent)
    try:
        pictures = [path.name for path in (root / folder).iterdir() if path.suffix.lower() in _PICTURES]
    except OSError:  # a directory that cannot be read
        return _all(records, "unreadable_media"), (), None
    ordered, numbers = frame_numbers(pictures)
    times, paths = [Fraction(number) for number in numbers], [str(PurePosixPath(folder, file)) for file in ordered]
    chosen: dict[str, _Chosen] = {}
    for record in records:
        if folder != name and all(turn.window[0] == turn.window[1] for turn in record.rounds):
            rounds = [turn.model_copy(update={"media": (name,), "times": (turn.window[1],)}) for turn in record.rounds]
            chosen[record.sample_id] = record.model_copy(update={"rounds": tuple(rounds), "media": (name,)})
        else:
            chosen[record.sample_id] = _with_frames(record, times, paths)
    files = {sample_id: one.media for sample_id, one in chosen.items() if not isinstance(one, str)}
    entries, unreadable = index_media(root, {file for several in files.values() for file in several}, workers=1)
    bad = {name: "unreadable_media" for name, several in files.items() if not unreadable.keys().isdisjoint(several)}
    return {**chosen, **bad}, entries, None


def _with_frames(
    record: MedStreamRecord, times: Sequence[Fraction], files: Sequence[str], pts: Sequence[int] = ()
) -> _Chosen:
    """The record with the frames of its windows, each with its time, its file and, in videos, its timestamp."""
    rounds = []
    for turn in record.rounds:
        start, end = (exact(edge) for edge in turn.window)
        positions = [] if beyond_end(times, start) else frames_shown(times, start, end)
        if not positions:
            return "window_outside_media"
        shown = {
            "media": tuple(dict.fromkeys(files[position] for position in positions)),
            "frames": tuple(pts[position] for position in positions if pts),
            "times": tuple(float(times[position]) for position in positions),
        }
        rounds.append(turn.model_copy(update=shown))
    media = tuple(dict.fromkeys(name for turn in rounds for name in turn.media))
    return record.model_copy(update={"rounds": tuple(rounds), "media": media})
