"""From messages to the model's inputs: chat template, pixels, tokens, and prompts padded to one batch.

Each picture is preprocessed once, however many prompts show it.
"""

from __future__ import annotations

import copy
import hashlib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jinja2 import TemplateError
from PIL import Image
from transformers.video_utils import VideoMetadata

from medtasks.core.cache import RecentlyUsed
from medtasks.core.errors import DataError

from ._generating import Messages, media_in

KEPT_BYTES = 128 * 2**20  # of prepared pixels, and of features on the device, beyond those of the current prompts

Join = Callable[[list[Any]], Any]
"""Joins the values of single pictures into the value of one prompt."""
_JOINS: tuple[Join, ...] = (
    torch.cat,
    lambda values: torch.cat(values, dim=1),
    lambda values: [one for value in values for one in value],
    lambda values: [[one for value in values for one in value[0]]],
)
_DIGEST = "_medtasks_digest"  # attribute of a picture: cached ones are shown in many prompts, and nobody changes them


def digest(images: Sequence[Image.Image]) -> bytes:
    """A digest of the pictures' modes, sizes and pixels."""
    total = hashlib.blake2b(digest_size=16)
    for image in images:
        if not hasattr(image, _DIGEST):
            content = f"{image.mode} {image.size}\0".encode() + image.tobytes()
            setattr(image, _DIGEST, hashlib.blake2b(content, digest_size=16).digest())
        total.update(getattr(image, _DIGEST))
    return total.digest()


def size_of(values: Mapping[str, Any]) -> int:
    """Bytes of the tensors among ``values``."""
    return sum(value.nbytes for value in values.values() if isinstance(value, torch.Tensor))


@dataclass(frozen=True)
class Media:
    """What the vision tower encodes together: one picture, or all pictures and videos of a prompt. ``inputs`` are its
    pixels as model inputs, ``content_hash`` is one of its content, ``count`` the number of pictures and videos."""

    content_hash: bytes
    inputs: Mapping[str, Any]
    count: int


class OncePerPicture:
    """Replaces a processor's ``image_processor``: same results, each picture prepared once, and kept in ``latest`` for
    the prompt. Where lists are prepared otherwise than single pictures (LLaVA-OneVision cuts only a lone one into
    tiles), which the first call tests, a prompt's pictures are prepared together."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._joins: dict[str, Join] | None = None
        self._tried = False
        self._kept: RecentlyUsed[bytes, Media] = RecentlyUsed(KEPT_BYTES, lambda media: size_of(media.inputs))
        self.latest: list[Media] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __call__(self, images: Any, **settings: Any) -> Any:
        """Prepared pixels as ``image_processor(images)`` returns them."""
        if not self._tried:
            self._joins, self._tried = _independent(self._inner, settings), True
        pictures = _pictures_in(images)
        self.latest = []
        for part in [pictures] if self._joins is None else [[picture] for picture in pictures]:
            key = digest(part)
            media = self._kept.get(key)
            if media is None:
                media = Media(key, self._inner(images=[part], **settings), len(part))
                self._kept.add(key, media)
            self.latest.append(media)
        self._kept.trim([media.content_hash for media in self.latest])
        made: Any = type(self.latest[0].inputs)
        values = dict(self.latest[0].inputs)  # a copy: processors remove entries
        if self._joins is not None and len(self.latest) > 1:
            values = {name: join([media.inputs[name] for media in self.latest]) for name, join in self._joins.items()}
        return made(values)


def _pictures_in(images: Any) -> list[Image.Image]:
    return [one for part in images for one in _pictures_in(part)] if isinstance(images, (list, tuple)) else [images]


def _independent(inner: Any, settings: Mapping[str, Any]) -> dict[str, Join] | None:
    """How values of single pictures are joined, by name; None if lists are prepared differently."""

    def makes(join: Join, values: list[Any], expected: Any) -> bool:
        try:
            torch.testing.assert_close(join(values), expected, rtol=0, atol=0)
        except (AssertionError, IndexError, RuntimeError, TypeError, ValueError):
            return False
        return True

    pictures = [Image.linear_gradient("L").convert("RGB").resize(size) for size in ((160, 120), (90, 210))]
    try:
        both, *alone = (inner(images=[part], **settings) for part in (pictures, pictures[:1], pictures[1:]))
        return {
            name: next(join for join in _JOINS if makes(join, [prepared[name] for prepared in alone], value))
            for name, value in both.items()
        }
    except (KeyError, TypeError, ValueError, StopIteration):
        return None


@dataclass(frozen=True)
class Prompt:
    """Messages as model inputs, a batch of one row on the CPU, and their media. ``vision_tokens`` stand for pictures
    and frames, None if their ids are unknown; ``seconds`` were spent on the media."""

    messages: Messages
    options: tuple[str, ...]
    inputs: Mapping[str, Any]
    media: tuple[Media, ...]
    vision_tokens: int | None
    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        return int(self.inputs["input_ids"].shape[1])


class Reader:
    """Encodes messages, one prompt at a time; thread-safe. The processor is copied: encoding changes the padding of a
    tokenizer that another thread may be using."""

    def __init__(self, processor: Any, config: Any) -> None:
        self._processor = copy.deepcopy(processor)
        self._pictures = OncePerPicture(self._processor.image_processor)
        self._processor.image_processor = self._pictures
        self._longest = getattr(config.get_text_config(decoder=True), "max_position_embeddings", None)
        named = (getattr(config, f"{modality}_token_id", None) for modality in ("image", "video"))
        self._placeholders = [token for token in named if token is not None]
        self._lock = threading.Lock()

    def prompt(self, messages: Messages, options: tuple[str, ...] = (), *, whole: bool) -> Prompt:
        """Encode messages; unless the prompt is ``whole``, its pixels are in its media only, which prompts share."""
        images = [part["image"] for part in media_in(messages, "image")]
        videos = media_in(messages, "video")
        processor, start = self._processor, self._processor.tokenizer.bos_token
        try:
            with self._lock:
                self._pictures.latest = []
                text = processor.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
                encoded = processor(
                    text=[text],
                    images=[images] if images else None,
                    **video_inputs(videos),
                    return_tensors="pt",
                    # the template may already write the start token
                    add_special_tokens=start is None or not text.startswith(start),
                )
                inputs, media = dict(encoded), tuple(self._pictures.latest)
        except (ValueError, TemplateError) as error:  # raised by processors and templates on invalid input
            raise DataError(str(error)) from error
        tokens = int(inputs["input_ids"].shape[1])
        if self._longest is not None and tokens >= self._longest:
            raise DataError(
                f"the prompt has {tokens:,} tokens, but the model reads at most {self._longest:,}, "
                "its answer included; lower max_pixels"
            )
        if videos:
            shown = digest([*images, *(frame for video in videos for frame in video["video"])])
            times = repr([video["times"] for video in videos]).encode()
            media = (Media(shown + times, inputs, len(images) + len(videos)),)
        seen = None if media else 0
        if self._placeholders:
            seen = int(torch.isin(inputs["input_ids"], torch.tensor(self._placeholders)).sum())
        kept = {name: value for name, value in inputs.items() if whole or not name.startswith("pixel")}
        return Prompt(messages, options, kept, media, seen)


def video_inputs(videos: list[dict[str, Any]]) -> dict[str, Any]:
    """Processor arguments for videos whose frames are already chosen, with times in milliseconds."""
    if not videos:
        return {}
    metadata = []
    for video in videos:
        times = [round(time * 1000) for time in video["times"]]
        length = times[-1] - times[0]
        about = VideoMetadata(total_num_frames=length + 1, fps=1000.0, duration=length / 1000, frames_indices=times)
        metadata.append(about)
    return {"videos": [video["video"] for video in videos], "video_metadata": metadata, "do_sample_frames": False}


def padded(prompts: Sequence[Prompt], padding: int, model: Any) -> dict[str, Any]:
    """One batch of ``prompts`` on the model's device: tokens padded left, media one after the other. If prompts have
    different numbers of tiles, the missing ones are zeros, as in processors."""
    length = max(prompt.tokens for prompt in prompts)
    batch: dict[str, Any] = {}
    for name in prompts[0].inputs:
        values = [prompt.inputs[name] for prompt in prompts]
        if not isinstance(values[0], torch.Tensor):
            batch[name] = [one for value in values for one in value]
        elif name in ("input_ids", "attention_mask") or name.endswith("token_type_ids"):
            batch[name] = stacked(values, length, padding if name == "input_ids" else 0, left=True)
        else:
            largest = [max(sizes) for sizes in zip(*(value.shape[1:] for value in values), strict=True)]
            for number, value in enumerate(values):
                missing = [want - have for have, want in zip(value.shape[1:], largest, strict=True)]
                if any(missing):  # torch takes both sides of each dimension, the last one first
                    sides = [side for count in reversed(missing) for side in (0, count)]
                    values[number] = torch.nn.functional.pad(value, sides)
            batch[name] = torch.cat(values)
    return {**batch, **on_device(batch, model)}


def on_device(inputs: Mapping[str, Any], model: Any) -> dict[str, Any]:
    """The tensors among ``inputs`` on the model's device, floating-point ones in its precision."""
    return {
        name: value.to(model.device, model.dtype if value.is_floating_point() else None)
        for name, value in inputs.items()
        if isinstance(value, torch.Tensor)
    }


def stacked(tensors: Sequence[torch.Tensor], length: int, padding: int = 0, *, left: bool = False) -> torch.Tensor:
    """Rows of (…, 1, tokens) as (…, rows, length)."""
    missing = [length - tensor.shape[-1] for tensor in tensors]
    sides = [(count, 0) if left else (0, count) for count in missing]
    padded = [torch.nn.functional.pad(one, side, value=padding) for one, side in zip(tensors, sides, strict=True)]
    return torch.cat(padded, dim=-2)
