"""From messages to the model's inputs: chat template, pixels, tokens, and padded batches."""

from __future__ import annotations

import copy
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jinja2 import TemplateError
from PIL import Image
from transformers.video_utils import VideoMetadata

from medtasks.core.errors import DataError

from ._messages import Messages, media_in
from ._pixels import Media, OncePerPicture, content_hash


@dataclass(frozen=True)
class Prompt:
    """Messages as model inputs, a batch of one row on the CPU, and their media.

    ``vision_tokens`` is the number of tokens that represent pictures and frames, None if their ids
    are unknown; ``seconds`` were spent on the media.
    """

    messages: Messages
    options: tuple[str, ...]
    inputs: Mapping[str, Any]
    media: tuple[Media, ...]
    vision_tokens: int | None
    seconds: float = 0.0

    @property
    def kinds(self) -> set[str]:
        """The kinds of parts that its messages have."""
        kinds: set[str] = set()
        for message in self.messages:
            kinds.update(part["type"] for part in message["content"])
        return kinds

    @property
    def tokens(self) -> int:
        """The number of tokens."""
        return int(self.inputs["input_ids"].shape[1])

    @property
    def has_pixels(self) -> bool:
        """Whether its inputs contain the pixels of its media."""
        return any(is_of_pixels(name) for name in self.inputs)


def is_of_pixels(name: str) -> bool:
    """Whether the model input ``name`` holds pixels."""
    return name.startswith("pixel")


class Reader:
    """Encodes messages, one prompt at a time; thread-safe.

    The processor is copied: encoding changes the padding of a tokenizer that another thread may be
    using.
    """

    def __init__(self, processor: Any, config: Any) -> None:
        """Encode with a copy of ``processor`` for the model that ``config`` describes."""
        self._processor = copy.deepcopy(processor)
        self._pictures = OncePerPicture(self._processor.image_processor)
        self._processor.image_processor = self._pictures
        text_config = config.get_text_config(decoder=True)
        self._longest = getattr(text_config, "max_position_embeddings", None)
        self._placeholders: list[int] = []
        for modality in ("image", "video"):
            token = getattr(config, f"{modality}_token_id", None)
            if token is not None:
                self._placeholders.append(token)
        self._lock = threading.Lock()

    def prompt(self, messages: Messages, options: tuple[str, ...] = (), *, whole: bool) -> Prompt:
        """Encode messages.

        Unless the prompt is ``whole``, its pixels are in its media only, which prompts share.

        Raises:
            DataError: processor or template refuse the messages, or the prompt is too long.
        """
        images = [part["image"] for part in media_in(messages, "image")]
        videos = media_in(messages, "video")
        inputs, media = self._encode(messages, images, videos)
        self._refuse_too_long(inputs)
        if videos:
            media = (_media_with_videos(images, videos, inputs),)
        vision_tokens = self._count_vision_tokens(inputs, media)
        if not whole:
            inputs = {name: value for name, value in inputs.items() if not is_of_pixels(name)}
        return Prompt(messages, options, inputs, media, vision_tokens)

    def _encode(
        self, messages: Messages, images: list[Image.Image], videos: list[dict[str, Any]]
    ) -> tuple[dict[str, Any], tuple[Media, ...]]:
        """The inputs that the processor makes of messages, and their pictures."""
        start = self._processor.tokenizer.bos_token
        try:
            with self._lock:
                self._pictures.latest = []
                text = self._processor.apply_chat_template(
                    messages, tokenize=False, add_generation_prompt=True
                )
                encoded = self._processor(
                    text=[text],
                    images=[images] if images else None,
                    **video_inputs(videos),
                    return_tensors="pt",
                    # the template may already write the start token
                    add_special_tokens=start is None or not text.startswith(start),
                )
                return dict(encoded), tuple(self._pictures.latest)
        # raised by processors and templates on invalid input
        except (ValueError, TemplateError) as error:
            raise DataError(str(error)) from error

    def _refuse_too_long(self, inputs: Mapping[str, Any]) -> None:
        """Refuse a prompt that leaves no room for an answer in the model's context."""
        tokens = int(inputs["input_ids"].shape[1])
        if self._longest is not None and tokens >= self._longest:
            raise DataError(
                f"the prompt has {tokens:,} tokens, but the model reads at most {self._longest:,}, "
                "its answer included; lower max_pixels"
            )

    def _count_vision_tokens(
        self, inputs: Mapping[str, Any], media: tuple[Media, ...]
    ) -> int | None:
        """The number of tokens that represent media; None if their ids are unknown."""
        if self._placeholders:
            placeholders = torch.tensor(self._placeholders)
            return int(torch.isin(inputs["input_ids"], placeholders).sum())
        return None if media else 0


def _media_with_videos(
    images: list[Image.Image], videos: list[dict[str, Any]], inputs: Mapping[str, Any]
) -> Media:
    """All pictures and videos of a prompt as one: they are not encoded one by one."""
    frames = list(images)
    for video in videos:
        frames.extend(video["video"])
    times = repr([video["times"] for video in videos]).encode()
    return Media(content_hash(frames) + times, inputs, len(images) + len(videos))


def video_inputs(videos: list[dict[str, Any]]) -> dict[str, Any]:
    """Processor arguments for videos whose frames are already chosen; times are in milliseconds."""
    if not videos:
        return {}
    metadata: list[VideoMetadata] = []
    for video in videos:
        times = [round(time * 1000) for time in video["times"]]
        length = times[-1] - times[0]
        metadata.append(
            VideoMetadata(
                total_num_frames=length + 1,
                fps=1000.0,
                duration=length / 1000,
                frames_indices=times,
            )
        )
    return {
        "videos": [video["video"] for video in videos],
        "video_metadata": metadata,
        "do_sample_frames": False,
    }


def padded(prompts: Sequence[Prompt], padding: int, model: Any) -> dict[str, Any]:
    """One batch of ``prompts`` on the model's device: tokens padded left, media concatenated."""
    length = max(prompt.tokens for prompt in prompts)
    batch: dict[str, Any] = {}
    for name in prompts[0].inputs:
        values = [prompt.inputs[name] for prompt in prompts]
        if not isinstance(values[0], torch.Tensor):
            batch[name] = []
            for value in values:
                batch[name].extend(value)
        elif name in ("input_ids", "attention_mask") or name.endswith("token_type_ids"):
            fill = padding if name == "input_ids" else 0
            batch[name] = stacked(values, length, fill, left=True)
        else:
            batch[name] = _concatenated(values)
    return {**batch, **on_device(batch, model)}


def _concatenated(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """The rows of all tensors.

    If pictures have different numbers of tiles, the missing ones are zeros, as in processors.
    """
    sizes = [
        max(tensor.shape[dimension] for tensor in tensors)
        for dimension in range(1, tensors[0].dim())
    ]
    return torch.cat([_filled_up(tensor, sizes) for tensor in tensors])


def _filled_up(tensor: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor:
    """The tensor with zeros at the end of every dimension but the first, up to ``sizes``."""
    sides: list[int] = []
    # torch takes both sides of each dimension, the last one first
    for size, current in zip(reversed(sizes), reversed(tensor.shape[1:]), strict=True):
        sides += [0, size - current]
    if not any(sides):
        return tensor
    return torch.nn.functional.pad(tensor, sides)


def on_device(inputs: Mapping[str, Any], model: Any) -> dict[str, Any]:
    """The tensors among ``inputs`` on the model's device, floating-point ones in its precision."""
    moved: dict[str, Any] = {}
    for name, value in inputs.items():
        if isinstance(value, torch.Tensor):
            precision = model.dtype if value.is_floating_point() else None
            moved[name] = value.to(model.device, precision)
    return moved


def stacked(
    tensors: Sequence[torch.Tensor], length: int, padding: int = 0, *, left: bool = False
) -> torch.Tensor:
    """Rows of (…, 1, tokens) as (…, rows, length)."""
    rows: list[torch.Tensor] = []
    for tensor in tensors:
        missing = length - tensor.shape[-1]
        sides = (missing, 0) if left else (0, missing)
        rows.append(torch.nn.functional.pad(tensor, sides, value=padding))
    return torch.cat(rows, dim=-2)
