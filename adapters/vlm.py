"""``medtasks_vlm``: any transformers image-text-to-text checkpoint as a chat back-end of lmms-eval.

Batches stay within the memory of the device. What prompts have in common is computed once, if the
model's class supports it and the first batch of each kind had the same scores as without sharing.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from itertools import zip_longest
from typing import Any

import torch
from loguru import logger

from medtasks.core.errors import (
    DataError,
    MedtasksError,
    UsageError,
    exit_with_sentence,
)
from medtasks.metrics.learned.checkpoints import no_progress_bars
from medtasks.runs.replies import Reply, ReplyTiming

from ._base import GeneratingAdapter
from ._checkpoint import LoadedCheckpoint, VLMArguments, load_checkpoint
from ._decoding import Decoder
from ._messages import read_messages
from ._reading import Prompt, Reader, padded
from ._requests import ChatRequest, sample_seed
from ._settings import GenerationSettings
from ._shared_prefix import SharedPrefix, refusal
from ._sharing_check import BatchKind, fault_of_sharing
from ._token_budget import TokenBudget, default_tokens, is_out_of_memory

COUNTERS = (
    "media_encoded",
    "media_reused",
    "prompt_tokens_computed",
    "prompt_tokens_reused",
    "ties_decided_alone",
)


class MedtasksVLM(GeneratingAdapter):
    """Generates answers with a vision-language checkpoint (:class:`VLMArguments`).

    Errors in arguments, checkpoint or media end the process with one sentence and exit code 1.
    """

    name = "medtasks_vlm"
    holds_model = True

    @exit_with_sentence
    def __init__(self, **arguments: Any) -> None:
        """Load the checkpoint that `VLMArguments` name onto the device of this process."""
        settings = VLMArguments.read(arguments)
        super().__init__(settings, settings.device)
        self._arguments: VLMArguments = settings
        checkpoint = self._load(settings)
        self._model = checkpoint.model
        self.processor = checkpoint.processor
        self._facts = checkpoint.facts
        self._usage = dict.fromkeys(COUNTERS, 0)
        self._padding = self.processor.tokenizer.pad_token_id
        self._reader = Reader(self.processor, self._model.config)
        self._decoder = Decoder(self._model, self.processor.tokenizer)
        self._shared = SharedPrefix(self._model, self._usage)
        self._budget = TokenBudget(default_tokens(self._model))
        # kinds of batches whose scores were the same with sharing
        self._tested_kinds: set[BatchKind] = set()
        self._settings |= {
            "video": settings.video,
            "share_prefix": settings.share_prefix or "switched off",
        }
        reason = refusal(self._model) if settings.share_prefix else None
        if reason is not None:
            self._stop_sharing(reason)
        self._reading = ThreadPoolExecutor(1, thread_name_prefix="medtasks-reading")
        self._read_ahead: tuple[list[ChatRequest], Future[list[Prompt]]] | None = None

    def _load(self, settings: VLMArguments) -> LoadedCheckpoint:
        """The checkpoint with its processor; progress is shown by the first process alone."""
        is_quiet = self.rank != 0 or settings.pretrained == "tiny"
        with no_progress_bars() if is_quiet else nullcontext():
            checkpoint = load_checkpoint(settings, self.device)
        if settings.video == "native" and not hasattr(checkpoint.processor, "video_processor"):
            raise UsageError(
                f"video=native was given, but the processor of {settings.pretrained} takes no "
                "videos; leave it out."
            )
        return checkpoint

    @property
    def _is_sharing(self) -> bool:
        """Whether prefixes are shared: it was requested, and nothing has stopped it."""
        return self._settings["share_prefix"] is True

    def _stop_sharing(self, reason: str) -> None:
        """Compute every prompt from the start from now on; the description states the reason."""
        self._settings["share_prefix"] = reason
        self._shared.forget()
        logger.warning(f"medtasks_vlm: every prompt is computed from the start: {reason}")

    def clean(self) -> None:
        """Free the model; the harness calls this once it has all answers."""
        del self._decoder, self._shared
        super().clean()

    def batches(self, requests: list[ChatRequest]) -> Iterator[list[ChatRequest]]:
        """``requests`` in batches; a thread reads the next one during the current one."""
        planned = [*super().batches(requests)]
        ahead: Future[list[Prompt]] | None = None
        for batch, following in zip_longest(planned, planned[1:]):
            self._read_ahead = batch, ahead or self._start_reading(batch)
            ahead = self._start_reading(following) if following else None
            yield batch

    def _start_reading(self, batch: list[ChatRequest]) -> Future[list[Prompt]]:
        """Have the reading thread read the prompts of a batch."""
        return self._reading.submit(lambda: [self._prompt(request) for request in batch])

    def _prompts(self, batch: list[ChatRequest]) -> list[Prompt]:
        """The prompts of a batch, which were read ahead unless it is a part of a failed batch."""
        ahead, self._read_ahead = self._read_ahead, None
        if ahead is not None and ahead[0] is batch:
            return ahead[1].result()
        return self._start_reading(batch).result()

    def _prompt(self, request: ChatRequest) -> Prompt:
        """The model inputs of a request; ``seconds`` are those of a prompt with media."""
        began = time.monotonic()
        messages = read_messages(
            request.messages(self.task_dict),
            self._arguments,
            native_video=self._arguments.video == "native",
        )
        try:
            prompt = self._reader.prompt(messages, request.options, whole=not self._is_sharing)
        except DataError as error:
            raise DataError(f"The model cannot take sample {request.sample_id}: {error}") from error
        if not prompt.media:
            return prompt
        return replace(prompt, seconds=round(time.monotonic() - began, 6))

    def answer(self, requests: list[ChatRequest]) -> list[Reply]:
        """The replies to a batch, whose settings are equal."""
        settings = self.settings_of(requests)
        self.report_ignored(settings)
        first = requests[0]
        seed = sample_seed(self._arguments.seed, first.sample_id, first.repeat)
        prompts = self._prompts(requests)
        room = self._budget.room_for_answer(settings.max_new_tokens)
        if self._budget.has_just_failed:
            # Frames of the error kept tensors alive. Without a collection they would still take the
            # device's memory, and the next batch would fail.
            gc.collect()
            torch.cuda.empty_cache()
        replies: list[Reply] = []
        # with gradients, whatever is shared would keep everything that it was computed from
        with torch.inference_mode():
            while len(replies) < len(prompts):
                batch = self._budget.fitting(prompts[len(replies) :], room)
                try:
                    replies += self._batch(batch, settings, seed)
                except (MemoryError, RuntimeError) as error:
                    if not is_out_of_memory(error):
                        raise
                    raise self._after_running_out_of_memory(batch, room) from error
                self._budget.count_success()
        self._budget.note_lengths(replies)
        return replies

    def _after_running_out_of_memory(self, batch: Sequence[Prompt], room: int) -> MedtasksError:
        """Halve the size of batches; return the error of a batch that cannot be divided.

        The harness sends the requests of a larger batch again in parts (`isolated`).
        """
        longest = max(prompt.tokens for prompt in batch) + room
        tokens = len(batch) * longest
        self._shared.forget()
        self._budget.halve(tokens)
        if len(batch) > 1:
            logger.warning(
                f"medtasks_vlm: out of memory on a batch of {tokens:,} tokens; "
                f"going on with {self._budget.tokens:,} at once"
            )
        return MedtasksError(
            f"The device ran out of memory on a single sample of {longest:,} tokens, its answer "
            "included; lower max_pixels."
        )

    def _batch(
        self, prompts: Sequence[Prompt], settings: GenerationSettings, seed: int
    ) -> list[Reply]:
        """The replies to prompts that fit in memory together.

        Where rounding may have decided a reply, the prompt is answered again alone.
        """
        has_beams = settings.num_beams != 1
        if self._is_sharing and not has_beams:
            self._test_sharing(prompts)
        is_shared = self._is_sharing and not has_beams
        began = time.monotonic()
        if is_shared:
            inputs, reused = self._shared.inputs(prompts, self._padding)
        else:
            inputs = self._inputs_from_the_start(prompts)
            reused = [0] * len(prompts)
        options = [prompt.options for prompt in prompts]
        decoded = self._decoder.decode(inputs, options, settings, seed)
        rounding_may_decide = is_shared or len(prompts) > 1
        replies: list[Reply] = []
        for prompt, (reply, is_tied), reused_tokens in zip(prompts, decoded, reused, strict=True):
            if is_tied and rounding_may_decide:
                reply, reused_tokens = self._reply_alone(prompt, settings), 0
            replies.append(
                replace(
                    reply,
                    reused_tokens=reused_tokens,
                    vision_tokens=prompt.vision_tokens,
                    media_seconds=prompt.seconds,
                )
            )
        timing = _timing_of_batch(decoded[0][0].timing, prompts, began)
        return [replace(reply, timing=timing) for reply in replies]

    def _reply_alone(self, prompt: Prompt, settings: GenerationSettings) -> Reply:
        """The reply to a prompt with a tie, in a batch of its own and computed from the start."""
        self._usage["ties_decided_alone"] += 1
        inputs = self._inputs_from_the_start([prompt])
        [(reply, _)] = self._decoder.decode(inputs, [prompt.options], settings)
        return reply

    def _inputs_from_the_start(self, prompts: Sequence[Prompt]) -> dict[str, Any]:
        """Inputs of whole prompts.

        Pixels, which are left out while prefixes are shared, are read again.
        """
        whole: list[Prompt] = []
        for prompt in prompts:
            if prompt.media and not prompt.has_pixels:
                prompt = self._reader.prompt(prompt.messages, prompt.options, whole=True)
            whole.append(prompt)
            self._usage["media_encoded"] += sum(media.count for media in prompt.media)
            self._usage["prompt_tokens_computed"] += prompt.tokens
        return padded(whole, self._padding, self._model)

    def _test_sharing(self, prompts: Sequence[Prompt]) -> None:
        """Test sharing on the first batch of a kind; stop sharing if its scores differ."""
        kind = BatchKind.of(prompts)
        if kind in self._tested_kinds:
            return
        tested = prompts[:2]
        alone = (self._inputs_from_the_start([prompt]) for prompt in tested)
        reason = fault_of_sharing(self._decoder, self._shared, tested, alone, self._padding)
        if reason is None:
            self._tested_kinds.add(kind)
        else:
            self._stop_sharing(reason)


def _timing_of_batch(
    generation: ReplyTiming | None, prompts: Sequence[Prompt], began: float
) -> ReplyTiming | None:
    """The timing of a batch that is answered now, from that of its ``generation``.

    The model began with the batch at ``began``. Its media were read before, while the model
    answered the batch before it; their seconds count, as a user would wait for them.
    """
    if generation is None:
        return None
    media_seconds = sum(prompt.seconds for prompt in prompts)
    sent = began - media_seconds
    first_token: float | None = None
    if generation.first_token is not None:
        first_token = generation.sent + generation.first_token - sent
    return replace(generation, seconds=time.monotonic() - sent, sent=sent, first_token=first_token)
