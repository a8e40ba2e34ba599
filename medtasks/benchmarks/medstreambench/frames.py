"""MedStreamBench: the frames that the windows of each record show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import partial
from pathlib import Path, PurePosixPath

from medtasks.benchmarks.medstreambench.examined import Examined, MediaProblem
from medtasks.benchmarks.medstreambench.records import MedStreamRecord
from medtasks.core.errors import MediaError
from medtasks.core.text import counted
from medtasks.data.media.child import Crashed, call_in_child
from medtasks.data.media.images import decoding_threads, index_media
from medtasks.data.media.video_check import KnownVideo, scan_video
from medtasks.data.media.video_index import VideoIndex, read_index
from medtasks.data.media.windows import beyond_end, exact, frame_numbers, frames_shown
from medtasks.data.preparation import Preparation

_PREFIX = "Stream_Bench"
_PICTURES = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".tif", ".tiff", ".webp"})


def examine_media(records: Sequence[MedStreamRecord], media: Path, place: Preparation) -> Examined:
    """Choose the frames of all records in the files below ``media``; each is decoded once."""
    by_path: dict[str, list[MedStreamRecord]] = {}
    for record in records:
        by_path.setdefault(record.media_path, []).append(record)
    everything = Examined()
    with (
        decoding_threads(place.workers) as pool,
        place.progress_log("videos", KnownVideo) as (earlier, log),
    ):
        earlier_videos = {video.entry.path: video for video in earlier}
        examine = partial(_examine, by_path, media, earlier_videos)
        for number, examined in enumerate(pool.map(examine, sorted(by_path)), start=1):
            everything.add(examined)
            video = examined.video
            if video is not None and earlier_videos.get(video.entry.path) != video:
                log(video)
            if place.progress is not None:
                place.progress(number, len(by_path))
    return everything


def _examine(
    records_by_path: Mapping[str, Sequence[MedStreamRecord]],
    media: Path,
    verified: Mapping[str, KnownVideo],
    path: str,
) -> Examined:
    """The records of one ``path`` in the release, with the frames that they show.

    A video is read in a child process, because it may crash the decoder. ``verified`` videos were
    decoded by an interrupted preparation.
    """
    records = records_by_path[path]
    name = _find_medium(media, path)
    if name is None:
        fix = "put it there, or give the directory that has it with --media"
        missing = MediaError(f"{media / path}: is missing; {fix}.")
        return Examined.without(records, MediaProblem.MISSING, path, missing)
    if records[0].medium == "images":
        return _in_images(records, media, name)
    try:
        return call_in_child(_in_video, records, media, name, verified.get(name))
    except Crashed as crash:
        error = MediaError(
            f"{media / name}: crashes the video decoder ({crash}); convert it to MP4, or fetch it "
            "again."
        )
        return Examined.without(records, MediaProblem.UNREADABLE, name, error)


def _find_medium(root: Path, path: str) -> str | None:
    """The name of a medium below ``root``, which may be inside of Stream_Bench/ or contain it."""
    names = [path]
    parts = PurePosixPath(path).parts
    if parts[0] == _PREFIX and len(parts) > 1:
        names.append(str(PurePosixPath(*parts[1:])))
    with suppress(OSError):  # not a valid file name, or a directory that cannot be searched
        for name in names:
            if (root / name).exists():
                return name
    return None


def _in_video(
    records: Sequence[MedStreamRecord], root: Path, name: str, verified: KnownVideo | None = None
) -> Examined:
    """The records of a video; a damaged part leaves out only those that show it."""
    file = root / name
    try:
        index = read_index(file)
        examined = _windows_of_video(records, file, name, index)
        timestamps: set[int] = set()
        for record in examined.chosen.values():
            timestamps.update(_timestamps(record))
        if not timestamps:
            return examined
        video = scan_video(file, name, index, timestamps, verified)
    except MediaError as error:
        return Examined.without(records, MediaProblem.UNREADABLE, name, error)
    examined.entries[name] = video.entry
    examined.video = video
    if video.bad:
        examined.errors[name] = _bad_frames(file, index, video.bad)
        for record in [*examined.chosen.values()]:
            if not _timestamps(record).isdisjoint(video.bad):
                examined.leave_out(record.sample_id, MediaProblem.UNREADABLE)
    return examined


def _windows_of_video(
    records: Sequence[MedStreamRecord], file: Path, name: str, index: VideoIndex
) -> Examined:
    """The records with the frames that they show; not decoded yet."""
    times = index.times
    files = [name] * len(index.pts)
    examined = Examined()
    for record in records:
        with_frames = _with_frames(record, times, files, index.pts)
        if index.cut and any(exact(turn.window[1]) > times[-1] for turn in record.rounds):
            examined.left_out[record.sample_id] = MediaProblem.UNREADABLE
            end = f"is cut off after {float(times[-1]):.1f} s"
            examined.errors[name] = MediaError(f"{file}: {end}; fetch or copy the file again.")
        elif with_frames is None:
            examined.left_out[record.sample_id] = MediaProblem.OUTSIDE
            examined.errors.setdefault(name, _outside(file, times, "s"))
        else:
            examined.chosen[record.sample_id] = with_frames
    return examined


def _timestamps(record: MedStreamRecord) -> set[int]:
    """The presentation timestamps of all frames that the record shows."""
    timestamps: set[int] = set()
    for turn in record.rounds:
        timestamps.update(turn.frames)
    return timestamps


def _bad_frames(file: Path, index: VideoIndex, bad: Sequence[int]) -> MediaError:
    """The error of a video with frames, by timestamp, that cannot be decoded."""
    first = float(min(bad) * index.time_base - index.zero)
    number = counted(len(bad), "frame")
    return MediaError(
        f"{file}: {number} that records show cannot be decoded (the first at {first:.1f} s); "
        "fetch or copy the file again."
    )


def _outside(file: Path, times: Sequence[Fraction], unit: str) -> MediaError:
    """The error of a video or sequence that does not cover the windows of some records."""
    if not times:
        return MediaError(f"{file}: has no pictures; fetch or copy them again.")
    span = f"from {float(times[0]):.1f} to {float(times[-1]):.1f} {unit}"
    return MediaError(
        f"{file}: runs {span}, outside the windows of some records; check that it is the release's "
        "file."
    )


def _in_images(records: Sequence[MedStreamRecord], root: Path, name: str) -> Examined:
    """The records of a picture, or of its sequence if windows are intervals of frame indices."""
    folder = name if (root / name).is_dir() else str(PurePosixPath(name).parent)
    try:
        pictures = _picture_names(root / folder)
    except MediaError as unreadable:
        return Examined.without(records, MediaProblem.UNREADABLE, folder, unreadable)
    ordered, numbers = frame_numbers(pictures)
    times = [Fraction(number) for number in numbers]
    files = [str(PurePosixPath(folder, file)) for file in ordered]
    examined = Examined()
    for record in records:
        with_pictures: MedStreamRecord | None
        if folder != name and _is_of_instants(record):
            with_pictures = _with_picture(record, name)
        else:
            with_pictures = _with_frames(record, times, files)
        if with_pictures is None:
            examined.left_out[record.sample_id] = MediaProblem.OUTSIDE
            examined.errors[folder] = _outside(root / folder, times, "as frame numbers")
        else:
            examined.chosen[record.sample_id] = with_pictures
    _verify_pictures(examined, root)
    return examined


def _picture_names(folder: Path) -> list[str]:
    """The names of the pictures in a directory.

    Raises:
        MediaError: the directory cannot be read.
    """
    try:
        return [path.name for path in folder.iterdir() if path.suffix.lower() in _PICTURES]
    except OSError as error:
        raise MediaError(
            f"{folder}: cannot be read ({error.strerror}); correct its permissions."
        ) from error


def _is_of_instants(record: MedStreamRecord) -> bool:
    """Whether every window of the record begins where it ends, so that it shows one picture."""
    return all(turn.window[0] == turn.window[1] for turn in record.rounds)


def _verify_pictures(examined: Examined, root: Path) -> None:
    """Decode the pictures that are shown, and leave out records with unreadable ones."""
    files: set[str] = set()
    for record in examined.chosen.values():
        files.update(record.media)
    index = index_media(root, files, workers=1)
    examined.entries.update((entry.path, entry) for entry in index.entries)
    examined.errors.update(index.errors)
    examined.uniform.update(index.uniform)
    for record in [*examined.chosen.values()]:
        if not index.errors.keys().isdisjoint(record.media):
            examined.leave_out(record.sample_id, MediaProblem.UNREADABLE)


def _with_picture(record: MedStreamRecord, name: str) -> MedStreamRecord:
    """The record with one picture, which all of its rounds show."""
    rounds = [
        turn.model_copy(update={"media": (name,), "times": (turn.window[1],)})
        for turn in record.rounds
    ]
    return record.model_copy(update={"rounds": tuple(rounds), "media": (name,)})


def _with_frames(
    record: MedStreamRecord,
    times: Sequence[Fraction],
    files: Sequence[str],
    pts: Sequence[int] = (),
) -> MedStreamRecord | None:
    """The record with the frames of its windows; None if a window shows nothing.

    Each frame has its time, its file and, in videos, its timestamp.
    """
    rounds = []
    media: dict[str, None] = {}
    for turn in record.rounds:
        start = exact(turn.window[0])
        end = exact(turn.window[1])
        positions = [] if beyond_end(times, start) else frames_shown(times, start, end)
        if not positions:
            return None
        round_media = dict.fromkeys(files[position] for position in positions)
        frames = {
            "media": tuple(round_media),
            "frames": tuple(pts[position] for position in positions if pts),
            "times": tuple(float(times[position]) for position in positions),
        }
        rounds.append(turn.model_copy(update=frames))
        media.update(round_media)
    return record.model_copy(update={"rounds": tuple(rounds), "media": tuple(media)})
