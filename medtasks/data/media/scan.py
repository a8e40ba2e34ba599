"""Verifying a video once: its checksum, its size, and whether every frame to be shown can be decoded."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from medtasks.core.errors import MediaError
from medtasks.core.files import file_sha256, file_state
from medtasks.data.media.images import KnownMedia, MediaEntry, VideoFacts, unreadable_as_media_error
from medtasks.data.media.video import VideoIndex, VideoReader


class KnownVideo(KnownMedia):
    """A video's entry, whose size is that of the first good frame, and its bad frames among those tried.

    ``wanted`` is a digest of the timestamps that were tried.
    """

    wanted: str
    bad: tuple[int, ...]


def scan_video(
    file: Path, name: str, index: VideoIndex, timestamps: Iterable[int], known: KnownVideo | None = None
) -> KnownVideo:
    """Decode the frames ``wanted`` of ``file``, whose entry is called ``name``.

    ``known`` is the result of an interrupted pass; it is returned if file and frames are still the same.

    Raises:
        MediaError: the file cannot be read, or none of the frames can be decoded.
    """
    stamps = sorted(set(timestamps))
    digest = hashlib.sha256(repr(stamps).encode()).hexdigest()
    with unreadable_as_media_error(file):
        status = file.stat()
        if known is not None and (known.state, known.wanted) == (file_state(status), digest):
            return known
        checksum = file_sha256(file)
    size, bad = _decode(file, index, stamps)
    entry = MediaEntry(
        path=name,
        bytes=status.st_size,
        sha256=checksum,
        width=size[0],
        height=size[1],
        video=VideoFacts(
            time_base=str(index.time_base), first=index.pts[0], frames=len(index.pts), keyframes=index.keyframes
        ),
    )
    return KnownVideo(entry=entry, state=file_state(status), wanted=digest, bad=tuple(bad))


def _decode(file: Path, index: VideoIndex, stamps: list[int]) -> tuple[tuple[int, int], list[int]]:
    """Width and height of the pictures, and the timestamps of those that cannot be decoded whole."""
    size: tuple[int, int] | None = None
    bad: list[int] = []
    failed: MediaError | None = None
    with VideoReader(file, index.keyframes) as reader:
        for pts in stamps:
            try:
                _, picture = next(reader.read([pts]))
            except MediaError as error:
                failed = failed or error
                bad.append(pts)
                continue
            size = size or picture.size
    if size is None:
        raise failed or MediaError(f"{file}: no frame is requested.")
    return size, bad
