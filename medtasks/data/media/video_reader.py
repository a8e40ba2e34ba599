"""Decoding exactly the requested frames of a video, by PyAV.

Frames are named by presentation timestamps (pts) in the stream's time base, so constant and
variable frame rates are treated alike and nothing is rounded.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtasks.core.errors import MediaError, MissingExtraError
from medtasks.core.files import MAX_PIXELS
from medtasks.data.media.frame_geometry import frame_as_rgb, turn_of, with_square_pixels
from medtasks.data.media.video_index import open_container, reason_of, video_stream

if TYPE_CHECKING:
    from PIL.Image import Image


_LARGEST = {"max_pixels": str(MAX_PIXELS)}
"""FFmpeg's option that refuses larger frames."""


@dataclass
class VideoReader:
    """An open video that decodes forward, and jumps to a keyframe only if that saves decoding.

    It is for one thread at a time. ``decoded`` counts frames that came out of the decoder.
    """

    path: Path
    keyframes: tuple[int, ...]
    stream: int | None = None  # as `VideoFacts.stream`
    decoded: int = 0
    _container: Any = field(default=None, repr=False)
    _frames: Iterator[Any] = field(default=iter(()), repr=False)
    # timestamp of the newest frame that came out of the decoder
    _position: int | None = None

    def close(self) -> None:
        """Close the file; the next frame opens it again."""
        if self._container is not None:
            self._container.close()
        self._container = None
        self._frames = iter(())
        self._position = None

    def read(self, timestamps: Sequence[int]) -> Iterator[tuple[int, Image]]:
        """Yield timestamp and RGB picture of each frame in ``timestamps`` (increasing).

        Pictures are as players show them: with square pixels, turned and mirrored as the container
        prescribes.

        Raises:
            MediaError: a frame cannot be decoded whole, or is not where the index says.
        """
        for pts in timestamps:
            try:
                frame = self._frame_at(pts, "AUTO")
            except MediaError:
                # several threads report an error some frames early, depending on the machine
                frame = self._frame_at(pts, "NONE")
            try:
                yield pts, self._as_players_show(frame)
            except MediaError:
                raise
            except Exception as error:  # the scaler's errors have no common base class
                raise MediaError(
                    f"{self.path}: the frame with timestamp {pts} cannot be converted ({error})."
                ) from error

    def _as_players_show(self, frame: Any) -> Image:
        """The frame in RGB, with square pixels, turned and mirrored as the container prescribes."""
        name = str(self.path)
        picture = frame_as_rgb(frame, name)
        picture = with_square_pixels(picture, self._stream.sample_aspect_ratio, name)
        turn = turn_of(frame, name)
        return picture if turn is None else picture.transpose(turn)

    def _frame_at(self, pts: int, threads: str) -> Any:
        """The decoded frame with timestamp ``pts``; closes the video if that fails."""
        try:
            keyframe = self._keyframe_before(pts)
            is_behind = self._position is None or self._position >= pts
            if is_behind or (keyframe is not None and keyframe > (self._position or 0)):
                self._jump(pts, keyframe, threads)
            return self._decode_until(pts)
        except (MediaError, MissingExtraError):
            self.close()
            raise
        except Exception as error:  # as in `read_index`
            self.close()
            raise MediaError(
                f"{self.path}: the frame with timestamp {pts} cannot be decoded "
                f"({reason_of(error)})."
            ) from error

    def _keyframe_before(self, pts: int) -> int | None:
        """The timestamp of the last keyframe that is not later than ``pts``."""
        number = bisect_right(self.keyframes, pts)
        return self.keyframes[number - 1] if number else None

    def _decode_until(self, pts: int) -> Any:
        """Decode forward up to the frame with timestamp ``pts``, and return it."""
        for frame in self._frames:
            self.decoded += 1
            if frame.pts is None or (self._position is not None and frame.pts <= self._position):
                raise MediaError(
                    f"{self.path}: decoded frames are not in order of time; convert it to MP4."
                )
            self._position = frame.pts
            if frame.pts == pts and frame.is_corrupt:
                raise MediaError(f"{self.path}: the frame with timestamp {pts} is damaged.")
            if frame.pts == pts:
                return frame
            if frame.pts > pts:
                break
        raise MediaError(
            f"{self.path}: the frame with timestamp {pts} cannot be decoded (it is missing)."
        )

    def _jump(self, pts: int, keyframe: int | None, threads: str) -> None:
        """Go to ``keyframe``, or to the start if the container cannot seek exactly."""
        at_start = keyframe is None or keyframe == self.keyframes[0]
        if self._container is None or at_start:
            self._open(threads)
        if at_start:
            return
        self._container.seek(keyframe, stream=self._stream, backward=True)
        self._frames = self._container.decode(self._stream)
        self._position = None
        first = next(self._frames, None)
        if first is not None and first.pts is not None and first.pts <= pts and first.key_frame:
            self._frames = chain([first], self._frames)
            return
        if first is not None:
            self.decoded += 1
        self._open(threads)

    def _open(self, threads: str) -> None:
        """Open the file at its start; ``threads`` is FFmpeg's threading mode."""
        self.close()
        self._container = open_container(self.path)
        self._stream.codec_context.options = _LARGEST
        self._stream.thread_type = threads
        self._frames = self._container.decode(self._stream)

    @property
    def _stream(self) -> Any:
        """The video stream of the open file."""
        return video_stream(self._container, self.stream)
