"""Shared by the back-ends that run a checkpoint: arguments, batches, conversations."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from typing import Any

from loguru import logger

from medtasks.runs.replies import Reply

from ._base import Arguments, ChatRequest, Count, MedtasksAdapter, Natural
from ._decoding import GenerationSettings, read_settings
from ._messages import Conversation, PixelLimits, read_messages


def plan_batches(
    requests: Iterable[ChatRequest],
    size: int,
    max_new_tokens: int | None = None,
    *,
    alone_when_sampling: bool = True,
) -> Iterator[list[ChatRequest]]:
    """Yield batches of at most ``size`` requests with equal settings.

    With ``alone_when_sampling`` each sampled answer is a separate batch, so that its draw depends on its seed alone.

    The order is by generation settings, media, item, then text length, longest first: samples that share images and
    rounds of one stream are adjacent, batches need little padding, and out-of-memory errors occur early.
    """

    def settings_key(request: ChatRequest) -> str:
        return json.dumps(dict(request.settings), sort_keys=True, default=str)

    def key(request: ChatRequest) -> tuple[Any, ...]:
        item = request.item_id if request.item_id != request.sample_id else ""
        length = -len(request.prompt)
        return settings_key(request), request.media, item, length, request.task, request.sample_id, request.repeat

    ordered = sorted(requests, key=key)
    for _, same_settings in groupby(ordered, key=settings_key):
        group = list(same_settings)
        settings = read_settings(group[0].settings, max_new_tokens)
        step = 1 if settings.sampling and alone_when_sampling else size
        for start in range(0, len(group), step):
            yield group[start : start + step]


class GeneratingArguments(Arguments):
    """Arguments of every back-end that generates."""

    pretrained: str
    """Checkpoint directory or hub id."""

    max_pixels: Count | None = None
    """Pixels per image (width times height) at most; larger images are scaled down."""

    min_pixels: Count | None = None
    """Pixels per image at least; smaller images are scaled up."""

    max_new_tokens: Count | None = None
    """Overrides the tasks' own limit."""

    system_prompt: str | None = None
    """Overrides the tasks' own system message."""

    seed: Natural = 0
    """Seeds each sampled answer, together with sample id and repeat."""

    blind: bool = False
    """Send every prompt without images and frames, to measure what can be answered from the text."""


class GeneratingAdapter(MedtasksAdapter):
    """Answers batch by batch; greedy by default.

    A task's ``generation_kwargs`` may set temperature, top_p, top_k, num_beams, repetition_penalty, max_new_tokens (by
    default 512), do_sample and until; others are reported as ignored.
    """

    name: str
    runs_model = True
    alone_when_sampling = True
    """Whether each sampled answer is a separate batch."""

    def __init__(self, given: GeneratingArguments) -> None:
        super().__init__()
        self._given = given
        self.batch_size: int = given.batch_size
        self._limits = PixelLimits(given.min_pixels, given.max_pixels)
        self._facts: dict[str, Any] = {}
        settings = ("batch_size", "max_pixels", "min_pixels", "max_new_tokens", "system_prompt", "seed", "blind")
        self._settings: dict[str, Any] = {name: getattr(given, name) for name in settings}
        self._usage: dict[str, int] = {}
        self._ignored: set[str] = set()

    def describe(self) -> dict[str, Any]:
        """Provenance of the answers, JSON-serializable: checkpoint, versions and limits.

        ``usage`` counts this replica's work so far; replicas' counts may be summed.
        """
        return {
            "model": self.name,
            **self._facts,
            **self._settings,
            "ignored_generation_settings": sorted(self._ignored),
            "usage": self._usage,
        }

    def batches(self, requests: list[ChatRequest]) -> Iterable[list[ChatRequest]]:
        """``requests`` as :func:`plan_batches` arranges them."""
        limit, alone = self._given.max_new_tokens, self.alone_when_sampling
        return list(plan_batches(requests, self.batch_size, limit, alone_when_sampling=alone))

    def answer(self, requests: list[ChatRequest]) -> list[Reply]:
        """The replies to a batch, whose settings are equal."""
        settings = read_settings(requests[0].settings, self._given.max_new_tokens)
        if fresh := set(settings.ignored) - self._ignored:
            self._ignored |= fresh
            logger.warning(f"{self.name}: generation settings without effect: {', '.join(sorted(fresh))}")
        return self._answer(settings, requests)

    def _answer(self, settings: GenerationSettings, requests: list[ChatRequest]) -> list[Reply]:
        raise NotImplementedError

    def _conversation(self, request: ChatRequest, *, native_video: bool = False) -> Conversation:
        messages, given = request.messages(self.task_dict), self._given
        read = read_messages(messages, self._limits, given.system_prompt, native_video=native_video, blind=given.blind)
        return replace(read, options=request.options)
