"""From a conversation to the model's inputs: chat template, pixels, tokens. Runs beside the device."""

from __future__ import annotations

import copy
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from jinja2 import TemplateError

from medtasks.errors import DataError

from ._messages import Conversation, video_inputs
from ._pictures import OncePerPicture, digest

__all__ = ["Prompt", "Reader", "Unit"]


@dataclass(frozen=True)
class Unit:
    """Media that the vision tower sees at once: one picture, or all media of a prompt.

    ``inputs`` are its pixels as the model takes them, ``identity`` stands for what it shows, ``count`` is how many
    pictures and videos that are.
    """

    identity: bytes
    inputs: Mapping[str, Any]
    count: int


@dataclass(frozen=True)
class Prompt:
    """One request as the model's inputs, a batch of one row on the CPU, and its media in the order of their places."""

    inputs: Mapping[str, Any]
    units: tuple[Unit, ...]

    @property
    def tokens(self) -> int:
        """Length in tokens."""
        return int(self.inputs["input_ids"].shape[1])

    @property
    def media(self) -> int:
        """How many pictures and videos it shows."""
        return sum(unit.count for unit in self.units)

    def without_pixels(self) -> Prompt:
        """The prompt with its pixels in ``units`` alone, where prompts that show the same ones share them."""
        return replace(self, inputs={name: one for name, one in self.inputs.items() if not name.startswith("pixel")})


class Reader:
    """Encodes conversations one by one; any thread may ask it.

    It has a processor of its own: a tokenizer must not be told how to pad while another thread decodes with it.

    Args:
        processor: the checkpoint's.
        longest: how many tokens the model can read; None where that is not known.
    """

    def __init__(self, processor: Any, longest: int | None) -> None:
        self._processor = copy.deepcopy(processor)
        self._pictures = OncePerPicture(self._processor.image_processor)
        self._processor.image_processor = self._pictures
        self._longest = longest
        self._lock = threading.Lock()

    def prompt(self, conversation: Conversation) -> Prompt:
        """The conversation as the processor encodes it.

        Raises
        ------
        DataError
            For an input that the processor refuses, or that is longer than the model can read.
        """
        try:
            with self._lock:
                inputs = self._encode(conversation)
                latest = self._pictures.latest
        except (ValueError, TemplateError) as error:  # how processors and templates refuse an input
            raise DataError(str(error)) from error
        tokens = int(inputs["input_ids"].shape[1])
        if self._longest is not None and tokens >= self._longest:
            raise DataError(
                f"the prompt has {tokens:,} tokens, but the model reads at most {self._longest:,}, "
                "its answer included; set max_pixels lower"
            )
        if conversation.videos:
            return Prompt(inputs, (_whole(conversation, inputs),))
        together = len(conversation.images) if len(latest) == 1 else 1
        return Prompt(inputs, tuple(Unit(identity, pixels, together) for identity, pixels in latest))

    def _encode(self, conversation: Conversation) -> Mapping[str, Any]:
        self._pictures.latest = []
        text = self._processor.apply_chat_template(conversation.messages, tokenize=False, add_generation_prompt=True)
        # A template that writes the start token itself must not get a second one.
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


def _whole(conversation: Conversation, inputs: Mapping[str, Any]) -> Unit:
    videos = conversation.videos
    shown = digest([*conversation.images, *(frame for video in videos for frame in video.frames)])
    times = repr([video.times for video in videos]).encode()
    return Unit(shown + times, inputs, len(conversation.images) + len(videos))
