"""From a task's chat messages to the input of a chat template and an image processor."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from PIL import Image, UnidentifiedImageError

from medtasks.core.errors import DataError, MediaError, UsageError

_DEEP_MODES = ("I", "F")  # 16- or 32-bit grey values: converting them to RGB would clip, not scale


@dataclass(frozen=True)
class PixelLimits:
    """Least and most pixels per image (width times height); None sets no limit."""

    least: int | None = None
    most: int | None = None

    def __post_init__(self) -> None:
        if self.least is not None and self.most is not None and self.least > self.most:
            raise UsageError(f"min_pixels is {self.least}, which is more than max_pixels ({self.most}).")


@dataclass(frozen=True)
class Video:
    """At least two frames of a video and their times in seconds."""

    frames: list[Image.Image]
    times: list[float]


@dataclass(frozen=True)
class Conversation:
    """Messages with image and video placeholders for the template, and their media in the same order; ``options`` are
    the letters of the question's options."""

    messages: list[dict[str, Any]]
    images: list[Image.Image]
    videos: list[Video] = field(default_factory=list)
    options: tuple[str, ...] = ()


def fit_pixels(image: Image.Image, limits: PixelLimits) -> Image.Image:
    """Scale ``image`` into ``limits`` (bicubic; the aspect ratio is kept as far as whole pixels allow)."""
    width, height = image.size
    pixels = width * height
    if limits.most is not None and pixels > limits.most:
        scale = math.sqrt(limits.most / pixels)
        # A side is at least one pixel; the other must then be shorter.
        short = max(1, math.floor(min(width, height) * scale))
        long = max(1, min(math.floor(max(width, height) * scale), limits.most // short))
        size = (long, short) if width >= height else (short, long)
    elif limits.least is not None and pixels < limits.least:
        scale = math.sqrt(limits.least / pixels)
        size = (math.ceil(width * scale), math.ceil(height * scale))
    else:
        return image
    return image.resize(size, Image.Resampling.BICUBIC)


def read_messages(
    given: Iterable[dict[str, Any]],
    limits: PixelLimits,
    system_prompt: str | None = None,
    *,
    native_video: bool = False,
    blind: bool = False,
) -> Conversation:
    """Read messages whose content is text or a list of ``{"type": "text"|"image", …}`` parts.

    An image part has a PIL image or a file path under ``url`` (or ``image``). ``system_prompt`` replaces the task's own
    system message. With ``native_video``, neighbouring image parts with a ``time`` become one video; a lone one stays
    an image. ``blind`` leaves out all but texts.

    Raises:
        DataError: a part has another type; a video must be given as frames.
        MediaError: an image is missing, cannot be decoded, or has more than 8 bits per channel.
    """
    messages: list[dict[str, Any]] = []
    images: list[Image.Image] = []
    videos: list[Video] = []
    if system_prompt:
        messages.append({"role": "system", "content": [{"type": "text", "text": system_prompt}]})
    for message in given:
        if system_prompt and message["role"] == "system":
            continue
        content = message["content"]
        parts: list[Any] = [{"type": "text", "text": content}] if isinstance(content, str) else content
        placed: list[dict[str, Any]] = []
        if blind:
            parts = [part for part in parts if part["type"] == "text"]
        if native_video:
            parts = _with_videos(parts)
        for part in parts:
            if part["type"] == "text":
                placed.append({"type": "text", "text": part["text"]})
            elif part["type"] == "image":
                placed.append({"type": "image"})
                images.append(_opened(part, limits))
            elif part["type"] == _FRAMES:
                placed.append({"type": "video"})
                frames = [_opened(frame, limits) for frame in part["parts"]]
                videos.append(Video(frames, [float(frame["time"]) for frame in part["parts"]]))
            else:
                raise DataError(
                    f"A message has a part of type {part['type']!r}, but only text and images are accepted; "
                    "give a video as its frames."
                )
        messages.append({"role": message["role"], "content": placed})
    return Conversation(messages, images, videos)


def video_inputs(videos: list[Video]) -> dict[str, Any]:
    """Processor arguments for videos whose frames are already chosen, with times in milliseconds."""
    if not videos:
        return {}
    from transformers.video_utils import VideoMetadata

    stamps = [[round(time * 1000) for time in video.times] for video in videos]
    metadata = [
        VideoMetadata(
            total_num_frames=times[-1] - times[0] + 1,
            fps=1000.0,
            duration=(times[-1] - times[0]) / 1000,
            frames_indices=times,
        )
        for times in stamps
    ]
    return {"videos": [video.frames for video in videos], "video_metadata": metadata, "do_sample_frames": False}


_FRAMES = "frames"


def _with_videos(parts: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """``parts`` with each run of two or more timed images as one part."""
    grouped: list[dict[str, Any]] = []
    for timed, group in groupby(parts, key=lambda part: part["type"] == "image" and "time" in part):
        run = list(group)
        grouped += [{"type": _FRAMES, "parts": run}] if timed and len(run) > 1 else run
    return grouped


def _opened(part: dict[str, Any], limits: PixelLimits) -> Image.Image:
    source = part.get("url", part.get("image"))
    if isinstance(source, str):
        try:
            with Image.open(source) as opened:
                opened.load()
                source = opened
        except (OSError, UnidentifiedImageError) as error:
            raise MediaError(f"{source}: the image cannot be read ({error}).") from error
    if not isinstance(source, Image.Image):
        raise MediaError(f"An image part is {type(source).__name__}, expected a PIL image or a file path.")
    if source.mode.startswith(_DEEP_MODES):
        raise MediaError(f"An image of mode {source.mode!r} was given, expected 8 bits per channel.")
    return fit_pixels(source if source.mode == "RGB" else source.convert("RGB"), limits)
