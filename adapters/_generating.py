"""Shared by the back-ends that run a checkpoint: arguments, generation settings, batches, messages with pictures."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from loguru import logger
from PIL import Image

from medtasks.core.errors import DataError, MediaError, UsageError

from ._base import Arguments, ChatRequest, Count, MedtasksAdapter, Natural, NonNegative, Settings, Share


class GenerationSettings(Settings):
    """How one request is decoded; ``temperature`` 0 is greedy (or beam) search, ``top_p`` 1 and ``top_k`` 0 are no
    limits. ``ignored`` lists given settings that have no effect."""

    max_new_tokens: Count = 512
    temperature: NonNegative = 0.0
    top_p: Share = 1.0
    top_k: Natural = 0
    num_beams: Count = 1
    repetition_penalty: NonNegative | None = None
    until: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()

    @property
    def sampling(self) -> bool:
        return self.temperature > 0


def read_settings(given: Mapping[str, Any], max_new_tokens: int | None = None) -> GenerationSettings:
    """Read a task's ``generation_kwargs``; ``max_new_tokens`` of the back-end overrides the task's. ``do_sample:
    false`` means greedy, regardless of temperature. Raises :class:`UsageError` naming the setting."""
    names = GenerationSettings.model_fields.keys() - {"ignored"}
    known = {name: value for name, value in given.items() if name in names}
    ignored = {name for name, value in given.items() if value is not None} - {*known, "do_sample"}
    until, drawn = known.get("until") or (), given.get("do_sample")
    known["until"] = [stop for stop in ([until] if isinstance(until, str) else until) if stop != ""]
    known |= {"max_new_tokens": max_new_tokens or known.get("max_new_tokens"), "top_p": known.get("top_p") or None}
    if drawn and known.get("temperature") is None:
        known["temperature"] = 1.0
    elif drawn is not None and not drawn and known.get("temperature"):
        ignored.add("temperature")
        known["temperature"] = 0.0
    return GenerationSettings.read({**known, "ignored": sorted(ignored)})


def sample_seed(seed: int, sample_id: str, repeat: int) -> int:
    """A 63-bit seed from its arguments alone, so sharding and batching cannot change a draw."""
    key = json.dumps([seed, sample_id, repeat]).encode()
    return int.from_bytes(hashlib.sha256(key).digest()[:8], "big") >> 1


def cut_at_stop(text: str, until: Sequence[str]) -> str:
    """``text`` up to the earliest stop string in it."""
    return text[: min((text.find(stop) for stop in until if stop in text), default=None)]


END_OF_TURN = ("<|im_end|>", "<|eot_id|>", "<end_of_turn>", "<|endoftext|>", "</s>")


def ends_of_turn(tokenizer: Any, own: Any) -> list[int]:
    """The tokens that end an answer: the checkpoint's ``own``, and `END_OF_TURN`. A fine-tuned checkpoint often names
    only its base model's, and would go on with an invented next question. Padding ends an answer only if the checkpoint
    says so."""
    named = [own] if isinstance(own, int) else list(own or ())
    added = getattr(tokenizer, "added_tokens_decoder", {})  # tokenizers of other libraries have none
    known = {token.content: number for number, token in added.items() if token.special}
    more = {known[text] for text in END_OF_TURN if text in known} - {getattr(tokenizer, "pad_token_id", None), *named}
    return [*named, *sorted(more)]


def plan_batches(
    requests: Iterable[ChatRequest], size: int, *, alone_when_sampling: bool = True
) -> Iterator[list[ChatRequest]]:
    """Yield batches of at most ``size`` requests with equal settings; sampled ones alone, so that a draw depends on its
    seed. Shared pictures and rounds of a stream are adjacent, then the longest texts come first: batches need little
    padding, and running out of memory is noticed early."""

    def settings_key(request: ChatRequest) -> str:
        return json.dumps(dict(request.settings), sort_keys=True, default=str)

    def key(request: ChatRequest) -> tuple[Any, ...]:
        item = request.item_id if request.item_id != request.sample_id else ""
        length = -len(request.prompt)
        return settings_key(request), request.media, item, length, request.task, request.sample_id, request.repeat

    for _, same_settings in groupby(sorted(requests, key=key), key=settings_key):
        group = list(same_settings)
        step = 1 if alone_when_sampling and read_settings(group[0].settings).sampling else size
        for start in range(0, len(group), step):
            yield group[start : start + step]


class GeneratingArguments(Arguments):
    """Arguments of every back-end that generates."""

    pretrained: str  # checkpoint directory or hub id
    max_pixels: Count | None = None  # per image (width times height) at most; larger images are scaled down
    min_pixels: Count | None = None  # per image at least; smaller images are scaled up
    max_new_tokens: Count | None = None  # overrides the tasks' own limit
    system_prompt: str | None = None  # overrides the tasks' own system message
    seed: Natural = 0  # seeds each sampled answer, together with sample id and repeat
    blind: bool = False  # send every prompt without images and frames, to measure what the text alone answers


def fit_pixels(image: Image.Image, least: int | None, most: int | None) -> Image.Image:
    """Scale ``image`` to at least and at most so many pixels (bicubic; the aspect ratio is kept as far as whole pixels
    allow); None sets no limit."""
    width, height = image.size
    pixels = width * height
    if most is not None and pixels > most:
        scale = math.sqrt(most / pixels)
        # A side is at least one pixel; the other must then be shorter.
        short = max(1, math.floor(min(width, height) * scale))
        long = max(1, min(math.floor(max(width, height) * scale), most // short))
        size = (long, short) if width >= height else (short, long)
    elif least is not None and pixels < least:
        scale = math.sqrt(least / pixels)
        size = (math.ceil(width * scale), math.ceil(height * scale))
    else:
        return image
    return image.resize(size, Image.Resampling.BICUBIC)


Messages = list[dict[str, Any]]
"""Chat messages as templates take them: lists of parts with a ``text``, an ``image``, or a ``video`` (its frames) with
``times`` in seconds."""


def read_messages(given: Messages, arguments: GeneratingArguments, *, native_video: bool = False) -> Messages:
    """Open the pictures of messages: PIL images or file paths under ``url`` (or ``image``). With ``native_video``,
    neighbouring image parts with a ``time`` become one video; a lone one stays an image.

    Raises:
        DataError: a part has another type; a video must be given as frames.
        MediaError: an image is missing, cannot be decoded, or has more than 8 bits per channel.
    """
    if system := arguments.system_prompt:
        others = [message for message in given if message["role"] != "system"]
        given = [{"role": "system", "content": system}, *others]
    read = []
    for message in given:
        content, shown = message["content"], list[dict[str, Any]]()
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        parts = [part for part in parts if part["type"] == "text" or not arguments.blind]
        for timed, group in groupby(parts, key=lambda part: native_video and "time" in part):
            together = list(group)
            opened = [_opened(part, arguments) for part in together]
            if timed and len(opened) > 1:
                times = [float(part["time"]) for part in together]
                opened = [{"type": "video", "video": [part["image"] for part in opened], "times": times}]
            shown += opened
        read.append({"role": message["role"], "content": shown})
    return read


def media_in(messages: Messages, kind: str) -> list[dict[str, Any]]:
    """The parts that are an ``image``, or a ``video``."""
    return [part for message in messages for part in message["content"] if part["type"] == kind]


def _opened(part: dict[str, Any], arguments: GeneratingArguments) -> dict[str, Any]:
    """A part with its picture opened, as RGB and within the limits of pixels."""
    if part["type"] == "text":
        return {"type": "text", "text": part["text"]}
    if part["type"] != "image":
        raise DataError(
            f"A message has a part of type {part['type']!r}, but only text and images are accepted; give a video as "
            "its frames."
        )
    source = part.get("url", part.get("image"))
    if isinstance(source, str):
        try:
            with Image.open(source) as opened:
                opened.load()
                source = opened
        except OSError as error:
            raise MediaError(f"{source}: the image cannot be read ({error}).") from error
    if not isinstance(source, Image.Image):
        raise MediaError(f"An image part is {type(source).__name__}, expected a PIL image or a file path.")
    if source.mode.startswith(("I", "F")):  # 16- or 32-bit grey values: converting them to RGB would clip, not scale
        raise MediaError(f"An image of mode {source.mode!r} was given, expected 8 bits per channel.")
    image = source if source.mode == "RGB" else source.convert("RGB")
    return {"type": "image", "image": fit_pixels(image, arguments.min_pixels, arguments.max_pixels)}


class GeneratingAdapter(MedtasksAdapter):
    """Answers batch by batch; greedy by default. Settings in a task's ``generation_kwargs`` that are none of
    `GenerationSettings` are reported as ignored."""

    name: str
    runs_model = True
    alone_when_sampling = True  # whether each sampled answer is a separate batch

    def __init__(self, given: GeneratingArguments) -> None:
        super().__init__()
        least, most = given.min_pixels, given.max_pixels
        if least is not None and most is not None and least > most:
            raise UsageError(f"min_pixels is {least}, which is more than max_pixels ({most}).")
        self._given = given
        self.batch_size: int = given.batch_size
        self._facts: dict[str, Any] = {}
        settings = {"batch_size", "max_pixels", "min_pixels", "max_new_tokens", "system_prompt", "seed", "blind"}
        self._settings = given.model_dump(include=settings)
        self._usage: dict[str, int] = {}
        self._ignored: set[str] = set()

    def describe(self) -> dict[str, Any]:
        """Provenance of the answers, JSON-serializable: checkpoint, versions and limits. ``usage`` counts this
        replica's work so far; replicas' counts may be summed."""
        return {
            "model": self.name,
            **self._facts,
            **self._settings,
            "ignored_generation_settings": sorted(self._ignored),
            "usage": dict(self._usage),
        }

    def batches(self, requests: list[ChatRequest]) -> Iterable[list[ChatRequest]]:
        return list(plan_batches(requests, self.batch_size, alone_when_sampling=self.alone_when_sampling))

    def messages_of(self, request: ChatRequest, *, native_video: bool = False) -> Messages:
        return read_messages(request.messages(self.task_dict), self._given, native_video=native_video)

    def seed_of(self, request: ChatRequest) -> int:
        return sample_seed(self._given.seed, request.sample_id, request.repeat)

    def settings_of(self, requests: list[ChatRequest]) -> GenerationSettings:
        """The settings of a batch, which are equal; those without effect are reported."""
        settings = read_settings(requests[0].settings, self._given.max_new_tokens)
        if fresh := set(settings.ignored) - self._ignored:
            self._ignored |= fresh
            logger.warning(f"{self.name}: generation settings without effect: {', '.join(sorted(fresh))}")
        return settings
