"""``medtasks_vlm``: any transformers image-text-to-text checkpoint as a chat back-end of lmms-eval."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import zip_longest
from typing import Any, Literal

from medtasks.core.errors import DataError, UsageError
from medtasks.core.exits import exit_with_sentence
from medtasks.runs.replies import Reply

from ._answering import Answering
from ._base import ChatRequest, Count
from ._checkpoint import CheckpointArguments, load_checkpoint
from ._decoding import GenerationSettings, sample_seed
from ._generating import GeneratingAdapter
from ._reading import Prompt


class VLMArguments(CheckpointArguments):
    """Arguments of ``medtasks_vlm``."""

    device: str = "auto"
    """``auto``, ``cpu``, ``cuda`` or ``cuda:N``. Under ``accelerate launch`` each process takes its own GPU."""

    batch_size: Count = 32
    """Samples per batch at most. Answers are stored batch by batch, so a killed run loses at most one batch. Sampled
    answers are always batches of one, so that a draw depends on its seed alone. A batch has no more tokens than a
    quarter of the device's free memory can cache; one that runs out of memory is halved."""

    share_prefix: bool = True
    """Compute what prompts have in common (pictures, frames, system message) once. A model whose token scores change
    with sharing falls back to computing every prompt from the start."""

    video: Literal["images", "native"] = "images"
    """``images``: frames of a video are a list of images. ``native``: they are one video with its times, for
    checkpoints whose processor takes videos."""


class MedtasksVLM(GeneratingAdapter):
    """Generates answers with a vision-language checkpoint (:class:`VLMArguments`).

    Errors in arguments, checkpoint or media end the process with one sentence and exit code 1.
    """

    name = "medtasks_vlm"
    holds_model = True

    @exit_with_sentence
    def __init__(self, **arguments: Any) -> None:
        given = VLMArguments.read(arguments)
        super().__init__(given)
        device = self.join_replicas(given.device)
        progress = self.rank == 0 and given.pretrained != "tiny"
        model, self.processor, self._facts = load_checkpoint(given, device, self._limits, progress=progress)
        self._native_video = given.video == "native"
        if self._native_video and not hasattr(self.processor, "video_processor"):
            raise UsageError(
                f"video=native was given, but the processor of {given.pretrained} takes no videos; leave it out."
            )
        self._settings["video"] = given.video
        self._answering = Answering(model, self.processor, share_prefix=given.share_prefix)
        self._note_usage()
        self._reading = ThreadPoolExecutor(1, thread_name_prefix="medtasks-reading")
        self._begun: tuple[list[ChatRequest], Future[list[Prompt]]] | None = None

    def clean(self) -> None:
        """Free the model; the harness calls this once it has all answers."""
        del self._answering
        super().clean()

    def _note_usage(self) -> None:
        """Note the number of pictures, videos and prompt tokens computed and reused, and why nothing is shared."""
        self._usage = self._answering.usage()
        self._settings["share_prefix"] = self._answering.not_shared or True

    def batches(self, requests: list[ChatRequest]) -> Iterator[list[ChatRequest]]:
        """``requests`` in batches; a thread reads the next one while the device works on this one."""
        planned = [*super().batches(requests)]
        ahead = None
        for batch, following in zip_longest(planned, planned[1:]):
            self._begun = batch, ahead or self._begin(batch)
            ahead = self._begin(following) if following else None
            yield batch

    def _answer(self, settings: GenerationSettings, requests: list[ChatRequest]) -> list[Reply]:
        begun, self._begun = self._begun, None
        read = begun[1] if begun and begun[0] is requests else self._begin(requests)  # a part of a failed batch
        prompts = read.result()
        seed = sample_seed(self._given.seed, requests[0].sample_id, requests[0].repeat)
        replies = self._answering.answer(prompts, settings, seed)
        self._note_usage()
        return replies

    def _begin(self, batch: list[ChatRequest]) -> Future[list[Prompt]]:
        return self._reading.submit(lambda: [self._prompt(request) for request in batch])

    def _prompt(self, request: ChatRequest) -> Prompt:
        began = time.monotonic()
        conversation = self._conversation(request, native_video=self._native_video)
        try:
            prompt = self._answering.read(conversation)
            return replace(prompt, seconds=round(time.monotonic() - began, 6)) if prompt.units else prompt
        except DataError as error:
            raise DataError(f"The model cannot take sample {request.sample_id}: {error}") from error
