"""The check of a video before it is used: whether the requested frames can be decoded."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from medtasks.core.errors import MediaError
from medtasks.core.files import file_sha256, file_state
from medtasks.data.media.images import KnownMedia, MediaEntry, unreadable_as_media_error
from medtasks.data.media.video_index import VideoIndex
from medtasks.data.media.video_reader import VideoReader


class KnownVideo(KnownMedia):
    """A video's entry, whose size is that of the first frame that can be decoded.

    ``wanted`` is a digest of the timestamps that were requested, and ``bad`` are those of the
    frames that cannot be decoded.
    """

    wanted: str
    bad: tuple[int, ...]


@dataclass(frozen=True)
class _DecodedFrames:
    """The size of the frames of a video, and the timestamps of those that cannot be decoded."""

    size: tuple[int, int]
    damaged: tuple[int, ...]


def scan_video(
    file: Path,
    name: str,
    index: VideoIndex,
    timestamps: Iterable[int],
    verified: KnownVideo | None = None,
) -> KnownVideo:
    """Verify a video by decoding its frames at ``timestamps``; its entry is called ``name``.

    ``verified``, the result of an interrupted pass, is returned if file and frames are the same.

    Raises:
        MediaError: the file cannot be read, or none of the frames can be decoded.
    """
    increasing = sorted(set(timestamps))
    digest = hashlib.sha256(repr(increasing).encode()).hexdigest()
    with unreadable_as_media_error(file):
        status = file.stat()
        state = file_state(status)
        if verified is not None and verified.state == state and verified.wanted == digest:
            return verified
        checksum = file_sha256(file)
    frames = _decode_each(file, index, increasing)
    width, height = frames.size
    entry = MediaEntry(
        path=name,
        bytes=status.st_size,
        sha256=checksum,
        width=width,
        height=height,
        video=index.facts,
    )
    return KnownVideo(entry=entry, state=state, wanted=digest, bad=frames.damaged)


def _decode_each(file: Path, index: VideoIndex, timestamps: Sequence[int]) -> _DecodedFrames:
    """Decode the frames at ``timestamps`` (increasing), one at a time.

    Raises:
        MediaError: none of them can be decoded; the error is that of the first one.
    """
    size: tuple[int, int] | None = None
    damaged: list[int] = []
    first_error: MediaError | None = None
    with closing(VideoReader(file, index.keyframes, index.stream)) as reader:
        for pts in timestamps:
            try:
                _, picture = next(reader.read([pts]))
            except MediaError as error:
                damaged.append(pts)
                if first_error is None:
                    first_error = error
            else:
                if size is None:
                    size = picture.size
    if size is None:
        raise first_error or MediaError(f"{file}: no frame is requested.")
    return _DecodedFrames(size, tuple(damaged))
