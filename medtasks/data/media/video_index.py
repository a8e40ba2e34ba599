"""The index of a video: its stream and the times of its frames, read without decoding."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

from medtasks.core.errors import MediaError, MissingExtraError
from medtasks.core.extras import needs
from medtasks.core.files import MAX_PIXELS, check_regular
from medtasks.core.text import one_line
from medtasks.data.media.formats import HEAD, foreign_video
from medtasks.data.media.images import VideoFacts

_END = 2
"""Seconds without pictures at the end of a video up to which it does not count as cut."""

_FORMATS = "asf,avi,flv,ivf,matroska,mov,mpeg,mpegts,mxf,nut,ogg,webm,wtv"
"""Containers with timestamps. No raw streams or animated pictures, and no playlists or scripts,
which FFmpeg would follow to other files or URLs.
"""

_ANY_ORDER = frozenset(("h264", "hevc", "vvc"))
"""Codecs whose frames may be stored in any order: their order in the file does not give times."""

_MOST_BITS = 14
"""Bits per value up to which a pixel format states which value is white.

Values of 16 bits may have fewer significant bits.
"""


@dataclass(frozen=True)
class VideoIndex:
    """Facts about a video that need no decoding.

    ``pts`` are the timestamps of all frames, increasing, and ``keyframes`` those of the frames at
    which decoding can begin, in units of ``time_base`` (seconds). ``zero`` is the time in the
    container, in seconds, that counts as 0. ``cut`` is whether the file ends before the video does.
    ``stream`` is the number of the stream, None for the first video stream.
    """

    time_base: Fraction
    pts: tuple[int, ...]
    keyframes: tuple[int, ...]
    zero: Fraction
    cut: bool
    stream: int | None = None

    @property
    def times(self) -> list[Fraction]:
        """The time of each frame in seconds, from where the container's streams begin (`_zero`)."""
        return [pts * self.time_base - self.zero for pts in self.pts]

    @property
    def facts(self) -> VideoFacts:
        """The part of the index that prepared data keep."""
        return VideoFacts(
            time_base=str(self.time_base),
            first=self.pts[0],
            frames=len(self.pts),
            keyframes=self.keyframes,
            stream=self.stream,
        )


def open_container(path: Path) -> Any:
    """The file as PyAV's container; metadata may be in any encoding.

    Raises:
        MissingExtraError: PyAV is not installed.
    """
    with needs("video", "reading videos"):
        import av

    check_regular(path)
    # torchvision may have PyAV pass on FFmpeg's messages: a decoding thread then waits for Python's
    # lock, which whoever closes the video holds while it waits for that thread
    av.logging.set_level(None)
    # as `options`, PyAV crashes on containers that show their streams late, such as MPEG-PS and FLV
    options = {"protocol_whitelist": "file", "format_whitelist": _FORMATS}
    return av.open(str(path.absolute()), metadata_errors="replace", container_options=options)


def video_stream(container: Any, number: int | None) -> Any:
    """The stream of this number, or the first video stream."""
    return container.streams.video[0] if number is None else container.streams[number]


def read_index(path: Path) -> VideoIndex:
    """The index of the video in ``path``: of several video streams the one that players show.

    Raises:
        MediaError: the file is not a video that can be read, or its frames have no distinct
            timestamps of their own: their order would be a guess.
        MissingExtraError: PyAV is not installed.
    """
    try:
        with open_container(path) as container:
            return _index_of_container(path, container)
    except (MediaError, MissingExtraError):
        raise
    except Exception as error:  # PyAV raises errors of many kinds on damaged bytes
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> MediaError:
    """The error of a file that is not a video, with its format if that is recognised."""
    foreign = foreign_video(_head(path))
    if foreign is not None:
        return MediaError(
            f"{path}: is {foreign.name}, which is not supported as a video; {foreign.fix}."
        )
    return MediaError(
        f"{path}: not a complete video ({reason_of(error)}); fetch or copy the file again."
    )


def reason_of(error: Exception) -> str:
    """FFmpeg's message, without its number and the path."""
    return one_line(getattr(error, "strerror", None) or str(error)) or type(error).__name__


def _head(path: Path) -> bytes:
    """The first bytes of a file; empty if it cannot be read."""
    with suppress(OSError):
        check_regular(path)  # a named pipe would block
        with path.open("rb") as stream:
            return stream.read(HEAD)
    return b""


@dataclass
class _Track:
    """A video stream with the facts that its packets state.

    ``undated`` is the number of the first frame without a timestamp, 0 if there is none.
    """

    stream: Any
    pts: list[int] = field(default_factory=list)
    keyframes: list[int] = field(default_factory=list)
    packets: int = 0
    undated: int = 0

    def add(self, packet: Any) -> None:
        """Note the timestamp of a packet, which holds one frame."""
        self.packets += 1
        if packet.pts is None:
            if not self.undated:
                self.undated = self.packets
        elif not packet.is_discard:  # before the edit list's start: never shown
            self.pts.append(packet.pts)
            if packet.is_keyframe:
                self.keyframes.append(packet.pts)

    @property
    def priority(self) -> tuple[bool, bool, int, int]:
        """A sort key that is highest for the stream that players show.

        Several frames count first, then being the default, a large picture, and many frames.
        """
        from av.stream import Disposition

        default = bool(self.stream.disposition & Disposition.default)
        return self.packets > 1, default, self.stream.width * self.stream.height, self.packets


def _index_of_container(path: Path, container: Any) -> VideoIndex:
    """The index of the stream that players show, from the packets of an open container."""
    tracks = {stream.index: _Track(stream) for stream in _moving_streams(path, container)}
    streams = [track.stream for track in tracks.values()]
    for packet in container.demux(streams):
        if packet.size:
            tracks[packet.stream.index].add(packet)
    track = max(tracks.values(), key=lambda track: track.priority)
    _check_stream(path, container, track)
    pts = sorted(track.pts)
    time_base = Fraction(track.stream.time_base)
    is_first = track.stream.index == container.streams.video[0].index
    lacks_frames = track.packets < int(track.stream.frames or 0)
    return VideoIndex(
        time_base=time_base,
        pts=tuple(pts),
        keyframes=tuple(sorted(track.keyframes)),
        zero=_zero(container, pts[0] * time_base),
        cut=lacks_frames or _ends_early(container, pts, time_base),
        stream=None if is_first else track.stream.index,
    )


def _moving_streams(path: Path, container: Any) -> list[Any]:
    """The video streams that can be decoded and are not covers or thumbnails.

    Raises:
        MediaError: there is none.
    """
    from av.stream import Disposition

    pictures = Disposition.attached_pic | Disposition.timed_thumbnails
    videos = container.streams.video
    moving = [stream for stream in videos if not stream.disposition & pictures]
    if not moving:
        contents = "sound" if container.streams.audio else "no sound"
        if videos:
            contents += " and a cover picture"
        raise MediaError(
            f"{path}: has {contents}, but no video stream; fetch or copy the video itself."
        )
    decodable = [stream for stream in moving if stream.codec_context is not None]
    if not decodable:
        raise MediaError(
            f"{path}: its frames are in a format that FFmpeg cannot decode; convert it to MP4."
        )
    return decodable


def _check_stream(path: Path, container: Any, track: _Track) -> None:
    """Refuse a stream whose pixels or times would be a guess, or that is too large."""
    stream = track.stream
    if stream.width * stream.height > MAX_PIXELS:
        raise MediaError(
            f"{path}: frames of {stream.width:,} × {stream.height:,} pixels exceed the limit of "
            f"{MAX_PIXELS:,}; make them smaller."
        )
    codec = stream.codec_context
    bits = _bits_per_value(codec)
    if bits > _MOST_BITS:
        raise MediaError(
            f"{path}: its values have {bits} bits, and nothing says which of them are black and "
            "white; scale the values that should be to 0 and 255, and convert it to MP4 with "
            "8 bits per channel."
        )
    if container.format.name == "avi" and codec.name in _ANY_ORDER and codec.has_b_frames:
        raise MediaError(
            f"{path}: its frames have no timestamps of their own ({codec.name} with B-frames in "
            "AVI), so they would be shown at wrong times; convert it to MP4 "
            "(ffmpeg -i IN.avi OUT.mp4)."
        )
    _check_timestamps(path, track)


def _bits_per_value(codec: Any) -> int:
    """The bits of the largest component of a pixel; 0 if the codec does not state its format."""
    if not codec.format:
        return 0
    return max((component.bits for component in codec.format.components), default=0)


def _check_timestamps(path: Path, track: _Track) -> None:
    """Refuse a stream whose frames do not all have timestamps of their own."""
    if track.undated:
        raise MediaError(f"{path}: frame {track.undated} has no timestamp; convert it to MP4.")
    if not track.pts:
        raise MediaError(
            f"{path}: not a complete video (it has no frames); fetch or copy the file again."
        )
    if len(set(track.pts)) < len(track.pts):
        raise MediaError(f"{path}: several frames have the same timestamp; convert it to MP4.")


def _zero(container: Any, first: Fraction) -> Fraction:
    """The time in the container that counts as 0: where its first stream begins, as in players.

    ``first`` is the time of the first frame. Sound counts as well, but not before the container's
    own 0: it is never played there (it primes the decoder). AVI has no times, so there all streams
    begin together.
    """
    if container.format.name == "avi":
        return first
    starts_of_sound: list[Fraction] = []
    for stream in container.streams.audio:
        if stream.start_time is not None:
            starts_of_sound.append(stream.start_time * Fraction(stream.time_base))
    if not starts_of_sound:
        return first
    return min(first, max(Fraction(0), min(starts_of_sound)))


def _ends_early(container: Any, pts: Sequence[int], time_base: Fraction) -> bool:
    """Whether the pictures end before the duration that the container states.

    It is False for a container with sound, which may outlast them.
    """
    if len(container.streams) > 1 or container.duration is None:
        return False
    duration = Fraction(container.duration, 1_000_000)
    last = pts[-1] * time_base - Fraction(container.start_time or 0, 1_000_000)
    longest_gap = max((after - before for before, after in pairwise(pts)), default=0)
    return duration > last + _END + longest_gap * time_base
