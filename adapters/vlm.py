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

import psutil
import torch
from loguru import logger

from medtasks.core.errors import (
    DataError,
    MedtasksError,
    UsageError,
    exit_with_sentence,
    first_line,
)
from medtasks.core.settings import current_settings
from medtasks.metrics.learned.checkpoints import no_progress_bars
from medtasks.runs.replies import Reply

from ._base import GeneratingAdapter
from ._checkpoint import VLMArguments, load_checkpoint
from ._decoding import Decoder
from ._messages import media_in, read_messages
from ._reading import Prompt, Reader, padded
from ._requests import ChatRequest, sample_seed
from ._settings import GenerationSettings
from ._shared_prefix import SharedPrefix, refusal

COUNTERS = (
    "media_encoded",
    "media_reused",
    "prompt_tokens_computed",
    "prompt_tokens_reused",
    "ties_decided_alone",
)
SHARE = 0.25
"""Of free memory, for keys and values; their copies, activations and scores need the rest."""
LEAST, MOST = 2_048, 65_536
"""Limits of the tokens in a batch, whatever the free memory."""
CALM = 64
"""Batches without running out of memory after which larger ones are tried again."""
TYPICAL_ANSWER = 512
"""Tokens of an answer for which a batch has room; more from the first longer one on.

Limits are meant for models that reason: with room for the whole limit in every row, batches would
be many times smaller.
"""
TRIED = 4
"""Tokens whose scores are compared with and without sharing, once per kind of batch."""
TOLERANCE = {torch.float32: 1e-4, torch.float16: 0.01, torch.bfloat16: 0.05}
"""Largest allowed difference, relative to the largest score.

Padding alone changes scores by 1e-6 in single precision and by nearly 0.01 in bfloat16; wrong
positions or masks by 0.01 to 0.2.
"""


class MedtasksVLM(GeneratingAdapter):
    """Generates answers with a vision-language checkpoint (:class:`VLMArguments`).

    Errors in arguments, checkpoint or media end the process with one sentence and exit code 1.
    """

    name = "medtasks_vlm"
    holds_model = True

    @exit_with_sentence
    def __init__(self, **arguments: Any) -> None:
        settings = VLMArguments.read(arguments)
        super().__init__(settings, settings.device)
        self._arguments: VLMArguments = settings
        is_quiet = self.rank != 0 or settings.pretrained == "tiny"
        with no_progress_bars() if is_quiet else nullcontext():
            checkpoint = load_checkpoint(settings, self.device)
        self._model = checkpoint.model
        self.processor = checkpoint.processor
        self._facts = checkpoint.facts
        if settings.video == "native" and not hasattr(self.processor, "video_processor"):
            raise UsageError(
                f"video=native was given, but the processor of {settings.pretrained} takes no "
                "videos; leave it out."
            )
        self._usage = dict.fromkeys(COUNTERS, 0)
        self._padding = self.processor.tokenizer.pad_token_id
        self._reader = Reader(self.processor, self._model.config)
        self._decoder = Decoder(self._model, self.processor.tokenizer)
        self._shared = SharedPrefix(self._model, self._usage)
        self._tried: set[tuple[int, bool, bool]] = set()
        self._most_tokens = default_tokens(self._model)
        self._tokens = self._most_tokens
        self._calm = 0
        self._longest_answer = TYPICAL_ANSWER
        self._settings |= {
            "video": settings.video,
            "share_prefix": settings.share_prefix or "switched off",
        }
        if settings.share_prefix:
            reason = refusal(self._model)
            if reason is not None:
                self._stop_sharing(reason)
        self._reading = ThreadPoolExecutor(1, thread_name_prefix="medtasks-reading")
        self._read_ahead: tuple[list[ChatRequest], Future[list[Prompt]]] | None = None

    @property
    def _sharing(self) -> bool:
        return self._settings["share_prefix"] is True

    def _stop_sharing(self, reason: str) -> None:
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
        return self._reading.submit(lambda: [self._prompt(request) for request in batch])

    def _prompts(self, batch: list[ChatRequest]) -> list[Prompt]:
        """The prompts of a batch, which were read ahead unless it is a part of a failed batch."""
        ahead, self._read_ahead = self._read_ahead, None
        if ahead is not None and ahead[0] is batch:
            return ahead[1].result()
        return self._start_reading(batch).result()

    def _prompt(self, request: ChatRequest) -> Prompt:
        began = time.monotonic()
        messages = read_messages(
            request.messages(self.task_dict),
            self._arguments,
            native_video=self._arguments.video == "native",
        )
        try:
            prompt = self._reader.prompt(messages, request.options, whole=not self._sharing)
        except DataError as error:
            raise DataError(f"The model cannot take sample {request.sample_id}: {error}") from error
        if not prompt.media:
            return prompt
        return replace(prompt, seconds=round(time.monotonic() - began, 6))

    def answer(self, requests: list[ChatRequest]) -> list[Reply]:
        """The replies to a batch, whose settings are equal."""
        settings = self.settings_of(requests)
        first = requests[0]
        seed = sample_seed(self._arguments.seed, first.sample_id, first.repeat)
        prompts = self._prompts(requests)
        room = min(settings.max_new_tokens, self._longest_answer)
        if not self._calm:
            # After running out of memory, frames of the error kept tensors alive. Without a
            # collection they would still take the device's memory, and the next batch would fail.
            gc.collect()
            torch.cuda.empty_cache()
        replies: list[Reply] = []
        # with gradients, whatever is shared would keep everything that it was computed from
        with torch.inference_mode():
            while len(replies) < len(prompts):
                batch = self._fitting(prompts[len(replies) :], room)
                try:
                    replies += self._batch(batch, settings, seed)
                except (MemoryError, RuntimeError) as error:
                    if not is_out_of_memory(error):
                        raise
                    raise self._after_running_out_of_memory(batch, room) from error
                self._calm += 1
                if self._calm % CALM == 0:
                    self._tokens = min(2 * self._tokens, self._most_tokens)
        for reply in replies:
            self._longest_answer = max(self._longest_answer, reply.output_tokens or 0)
        return replies

    def _after_running_out_of_memory(self, batch: Sequence[Prompt], room: int) -> MedtasksError:
        """Halve the size of batches; return the error of a batch that cannot be divided.

        The harness sends the requests of a larger batch again in parts (`isolated`).
        """
        longest = max(prompt.tokens for prompt in batch) + room
        self._shared.forget()
        self._calm = 0
        self._tokens = max(1, len(batch) * longest // 2)
        if len(batch) > 1:
            logger.warning(
                f"medtasks_vlm: out of memory on a batch of {len(batch) * longest:,} tokens; "
                f"going on with {self._tokens:,} at once"
            )
        return MedtasksError(
            f"The device ran out of memory on a single sample of {longest:,} tokens, its answer "
            "included; lower max_pixels."
        )

    def _fitting(self, prompts: Sequence[Prompt], room: int) -> Sequence[Prompt]:
        """The first prompts, at least one, that fit in memory with ``room`` for their answers.

        They have the same kinds of media: not all models accept batches that mix them.
        """
        longest = 0
        kinds = prompts[0].kinds
        for number, prompt in enumerate(prompts):
            longest = max(longest, prompt.tokens + room)
            fits = (number + 1) * longest <= self._tokens
            if number > 0 and not (fits and prompt.kinds == kinds):
                return prompts[:number]
        return prompts

    def _batch(
        self, prompts: Sequence[Prompt], settings: GenerationSettings, seed: int
    ) -> list[Reply]:
        is_shared = settings.num_beams == 1 and self._may_share(prompts)
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
                self._usage["ties_decided_alone"] += 1
                reply, reused_tokens = self._reply_alone(prompt, settings), 0
            replies.append(
                replace(
                    reply,
                    reused_tokens=reused_tokens,
                    vision_tokens=prompt.vision_tokens,
                    media_seconds=prompt.seconds,
                )
            )
        return replies

    def _reply_alone(self, prompt: Prompt, settings: GenerationSettings) -> Reply:
        """The reply to a prompt in a batch of its own, computed from the start."""
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

    def _may_share(self, prompts: Sequence[Prompt]) -> bool:
        """Whether prefixes are shared.

        The first batch of a kind is compared with its prompts computed alone.
        """
        messages = prompts[0].messages
        images = len(media_in(messages, "image"))
        has_videos = bool(media_in(messages, "video"))
        kind = (min(images, 2), has_videos, len(prompts) > 1)
        if not self._sharing or kind in self._tried:
            return self._sharing
        reason = self._fault_of_sharing(prompts[:2])
        if reason is not None:
            self._stop_sharing(reason)
            return False
        self._tried.add(kind)
        return True

    def _fault_of_sharing(self, prompts: Sequence[Prompt]) -> str | None:
        """Why prefixes of these prompts cannot be shared; None if their scores are the same."""
        alone: list[tuple[torch.Tensor, torch.Tensor]] = []
        for prompt in prompts:
            alone.append(self._decoder.scores(self._inputs_from_the_start([prompt]), TRIED))
        try:
            inputs, _ = self._shared.inputs(prompts, self._padding)
            tokens, scores = self._decoder.scores(inputs, TRIED)
        except Exception as error:  # an untested model class may raise anything
            if is_out_of_memory(error):
                raise
            return first_line(error)
        for row, (expected_tokens, expected) in enumerate(alone):
            # scores up to and including the first different token have the same input
            equal_tokens = int((tokens[row] == expected_tokens[0]).cumprod(0).sum())
            compared = slice(equal_tokens + 1)
            largest_gap = (scores[row, compared] - expected[0, compared]).abs().max()
            gap = float(largest_gap / expected.abs().max())
            if not gap <= TOLERANCE[self._model.dtype]:  # NaN is no small difference, either
                return f"scores differ by {gap:.1%} from those of the prompt alone"
        return None


def default_tokens(model: Any) -> int:
    """Number of tokens whose keys and values fit in a quarter of the device's free memory."""
    config = model.config.get_text_config(decoder=True)
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    per_token = 2 * config.num_hidden_layers * heads * width * model.dtype.itemsize
    if model.device.type == "cuda":
        free = torch.cuda.mem_get_info(model.device)[0]
    else:
        free = psutil.virtual_memory().available // current_settings().on_this_machine
    return max(LEAST, min(MOST, int(SHARE * free / per_token)))


def is_out_of_memory(error: Exception) -> bool:
    """Whether the device or the machine ran out of memory."""
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return True
    # torch raises a plain RuntimeError on the CPU
    return "can't allocate memory" in str(error)
