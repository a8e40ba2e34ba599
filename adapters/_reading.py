"""From conversations to the model's inputs: chat template, pixels, tokens, and prompts padded to one batch."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import torch
from jinja2 import TemplateError

from medtasks.core.errors import DataError

from ._messages import Conversation, video_inputs
from ._pictures import OncePerPicture, Unit, digest


@dataclass(frozen=True)
class Prompt:
    """A conversation as model inputs, a batch of one row on the CPU, and its media in order; ``seconds`` were spent on
    them."""

    chat: Conversation
    inputs: Mapping[str, Any]
    units: tuple[Unit, ...]
    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        """Length in tokens."""
        return int(self.inputs["input_ids"].shape[1])

    @property
    def media(self) -> int:
        """Number of pictures and videos."""
        return sum(unit.count for unit in self.units)

    def count(self, placeholders: Sequence[int]) -> int | None:
        """Number of tokens that stand for pictures and frames; None if their ids are unknown."""
        if not placeholders:
            return None if self.units else 0
        return int(torch.isin(self.inputs["input_ids"], torch.tensor(placeholders)).sum())

    def without_pixels(self) -> Prompt:
        """The prompt with its pixels in ``units`` only, shared by prompts with the same pictures."""
        return replace(self, inputs={name: one for name, one in self.inputs.items() if not name.startswith("pixel")})


class Reader:
    """Encodes conversations one by one; thread-safe.

    The processor is copied: encoding changes the padding of a tokenizer that another thread may be using.
    ``longest`` is the model's context length in tokens; None if unknown.
    """

    def __init__(self, processor: Any, longest: int | None) -> None:
        self._processor = copy.deepcopy(processor)
        self._pictures = OncePerPicture(self._processor.image_processor)
        self._processor.image_processor = self._pictures
        self._longest = longest
        self._lock = threading.Lock()

    def prompt(self, conversation: Conversation) -> Prompt:
        """Encode a conversation.

        Raises:
            DataError: the processor rejects the input, or it exceeds the model's context length.
        """
        try:
            with self._lock:
                inputs = self._encode(conversation)
                latest = self._pictures.latest
        except (ValueError, TemplateError) as error:  # raised by processors and templates on invalid input
            raise DataError(str(error)) from error
        tokens = int(inputs["input_ids"].shape[1])
        if self._longest is not None and tokens >= self._longest:
            raise DataError(
                f"the prompt has {tokens:,} tokens, but the model reads at most {self._longest:,}, "
                "its answer included; lower max_pixels"
            )
        if videos := conversation.videos:
            shown = digest([*conversation.images, *(frame for video in videos for frame in video.frames)])
            times = repr([video.times for video in videos]).encode()
            count = len(conversation.images) + len(videos)
            return Prompt(conversation, inputs, (Unit(shown + times, inputs, count),))
        together = len(conversation.images) if len(latest) == 1 else 1
        units = tuple(Unit(content_hash, pixels, together) for content_hash, pixels in latest)
        return Prompt(conversation, inputs, units)

    def _encode(self, conversation: Conversation) -> Mapping[str, Any]:
        self._pictures.latest = []
        text = self._processor.apply_chat_template(conversation.messages, tokenize=False, add_generation_prompt=True)
        # The template may already write the start token.
        start = self._processor.tokenizer.bos_token
        return dict(
            self._processor(
                text=[text],
                images=[conversation.images] if conversation.images else None,
                **video_inputs(conversation.videos),
                return_tensors="pt",
                add_special_tokens=start is None or not text.startswith(start),
            )
        )


def same_inputs(prompts: Sequence[Prompt]) -> Iterator[list[int]]:
    """Positions of prompts that can share a batch: not all models accept batches that mix kinds of media."""

    def kind(number: int) -> list[str]:
        return sorted(prompts[number].inputs)

    for _, numbers in groupby(sorted(range(len(prompts)), key=kind), key=kind):
        yield list(numbers)


def padded(prompts: Sequence[Prompt], padding: int, model: Any) -> dict[str, Any]:
    """One batch of ``prompts`` on the model's device: tokens padded left, media one after the other.

    If prompts have different numbers of tiles, the missing ones are zeros, as in processors.
    """
    length = max(prompt.tokens for prompt in prompts)
    batch: dict[str, Any] = {}
    for name in prompts[0].inputs:
        values = [prompt.inputs[name] for prompt in prompts]
        if not isinstance(values[0], torch.Tensor):
            batch[name] = [one for value in values for one in value]
        elif name in ("input_ids", "attention_mask") or name.endswith("token_type_ids"):
            batch[name] = stacked(values, length, padding if name == "input_ids" else 0, left=True)
        else:
            batch[name] = torch.cat(_same_size(values))
    return {
        name: value.to(model.device, model.dtype if value.is_floating_point() else None)
        if isinstance(value, torch.Tensor)
        else value
        for name, value in batch.items()
    }


def stacked(tensors: Sequence[torch.Tensor], length: int, padding: int = 0, *, left: bool = False) -> torch.Tensor:
    """Rows of (…, 1, tokens) as (…, rows, length)."""
    missing = [length - tensor.shape[-1] for tensor in tensors]
    sides = [(count, 0) if left else (0, count) for count in missing]
    padded = [torch.nn.functional.pad(one, side, value=padding) for one, side in zip(tensors, sides, strict=True)]
    return torch.cat(padded, dim=-2)


def _same_size(values: list[torch.Tensor]) -> list[torch.Tensor]:
    """``values`` zero-padded to the same size in every dimension but the first."""
    sizes = [max(size) for size in zip(*(value.shape[1:] for value in values), strict=True)]
    filled = []
    for value in values:
        sides = [side for have, want in zip(value.shape[:0:-1], sizes[::-1], strict=True) for side in (0, want - have)]
        filled.append(torch.nn.functional.pad(value, sides) if any(sides) else value)
    return filled
