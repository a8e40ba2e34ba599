"""Chooses the frames that MedStreamBench's records show, and checks that they can be decoded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path, PurePosixPath

from medtasks.benchmarks.medstreambench.records import MedStreamRecord, MedStreamRound
from medtasks.core.errors import MediaError
from medtasks.data.media.images import MediaEntry, index_media
from medtasks.data.media.video import KnownVideo, VideoIndex, read_index, scan_video
from medtasks.data.media.windows import beyond_end, exact, frame_numbers, frames_shown

_PREFIX = "Stream_Bench"
_PICTURES = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".tif", ".tiff", ".webp"})

Examined = tuple[dict[str, "ChosenFrames"], list[MediaEntry], KnownVideo | None]
"""Frames by record id, entries of the media, and a video's entry in the progress log."""


@dataclass(frozen=True)
class ChosenFrames:
    """The rounds of one record with their frames, or why it is excluded."""

    excluded: str = ""
    rounds: tuple[MedStreamRound, ...] = ()

    @property
    def media(self) -> tuple[str, ...]:
        """Files that the rounds show, in order, each once."""
        return tuple(dict.fromkeys(name for turn in self.rounds for name in turn.media))

    def of(self, record: MedStreamRecord) -> MedStreamRecord:
        """The record with these frames; unchanged if it is excluded."""
        return record if self.excluded else record.model_copy(update={"rounds": self.rounds, "media": self.media})


def find_medium(root: Path, path: str) -> str | None:
    """Name below ``root`` of the file or directory that a record calls ``path``; None if it does not exist."""
    parts = PurePosixPath(path).parts
    names = [path, str(PurePosixPath(*parts[1:]))] if parts[0] == _PREFIX and len(parts) > 1 else [path]
    with suppress(OSError):  # not a valid file name, or a directory that cannot be searched
        return next((name for name in names if (root / name).exists()), None)
    return None


def choose_in_video(
    records: Sequence[MedStreamRecord], root: Path, name: str, known: KnownVideo | None = None
) -> Examined:
    """Frames of the records that show one video; a damaged part excludes only records that show it."""
    file = root / name
    try:
        index = read_index(file)
        times = index.times
        chosen = {record.sample_id: _in_video(record, name, index, times) for record in records}
        timestamps = {pts for one in chosen.values() for turn in one.rounds for pts in turn.frames}
        if not timestamps:
            return chosen, [], None
        video = scan_video(file, name, index, timestamps, known)
    except MediaError:
        return {record.sample_id: ChosenFrames("unreadable_media") for record in records}, [], None
    bad = set(video.bad)
    for sample_id, one in chosen.items():
        if any(bad.intersection(turn.frames) for turn in one.rounds):
            chosen[sample_id] = ChosenFrames("unreadable_media")
    return chosen, [video.entry], video


def _in_video(record: MedStreamRecord, name: str, index: VideoIndex, times: Sequence[Fraction]) -> ChosenFrames:
    if index.cut and any(exact(turn.window[1]) > times[-1] for turn in record.rounds):
        return ChosenFrames("unreadable_media")
    return _with_frames(
        record,
        times,
        lambda positions: {"media": (name,), "frames": tuple(index.pts[position] for position in positions)},
    )


def _with_frames(
    record: MedStreamRecord, times: Sequence[Fraction], at: Callable[[Sequence[int]], dict[str, object]]
) -> ChosenFrames:
    """The rounds with the frames of their windows; ``at`` gives a round's fields for positions in ``times``."""
    rounds = []
    for turn in record.rounds:
        start, end = (exact(edge) for edge in turn.window)
        positions = [] if beyond_end(times, start) else frames_shown(times, start, end)
        if not positions:
            return ChosenFrames("window_outside_media")
        shown = tuple(float(times[position]) for position in positions)
        rounds.append(turn.model_copy(update={**at(positions), "times": shown}))
    return ChosenFrames(rounds=tuple(rounds))


def choose_in_images(records: Sequence[MedStreamRecord], root: Path, name: str) -> Examined:
    """Pictures of the records that show one image sequence, or one image.

    The path of a picture means that picture, unless the window is an interval of frame indices: then it means the
    sequence in its directory.
    """
    folder = name if (root / name).is_dir() else str(PurePosixPath(name).parent)
    try:
        pictures = [path.name for path in (root / folder).iterdir() if path.suffix.lower() in _PICTURES]
    except OSError:  # a directory that cannot be read
        return {record.sample_id: ChosenFrames("unreadable_media") for record in records}, [], None
    ordered, numbers = frame_numbers(pictures)
    names = [str(PurePosixPath(folder, picture)) for picture in ordered]
    times = [Fraction(number) for number in numbers]
    chosen = {
        record.sample_id: _one_image(record, name)
        if folder != name and all(turn.window[0] == turn.window[1] for turn in record.rounds)
        else _with_frames(record, times, lambda positions: {"media": tuple(names[position] for position in positions)})
        for record in records
    }
    shown = {picture for one in chosen.values() for picture in one.media}
    indexed = dict(index_media(root, shown, workers=1))
    for sample_id, one in chosen.items():
        if any(isinstance(indexed[name], MediaError) for name in one.media):
            chosen[sample_id] = ChosenFrames("unreadable_media")
    return chosen, [media.entry for media in indexed.values() if not isinstance(media, MediaError)], None


def _one_image(record: MedStreamRecord, name: str) -> ChosenFrames:
    rounds = (turn.model_copy(update={"media": (name,), "times": (turn.window[1],)}) for turn in record.rounds)
    return ChosenFrames(rounds=tuple(rounds))
