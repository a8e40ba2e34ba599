"""Batched generation within the memory limit, with or without shared prompt prefixes."""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import psutil
import torch
from loguru import logger

from medtasks.core.errors import MedtasksError, first_line
from medtasks.core.settings import current_settings
from medtasks.runs.replies import Reply

from ._decoding import Decoder
from ._generating import Conversation, GenerationSettings
from ._prefix import SharedPrefix, refusal
from ._reading import Prompt, Reader, padded

SHARE = 0.25
"""Share of free memory for keys and values; their copies, activations and scores need the rest."""
LEAST, MOST = 2_048, 65_536
CALM = 64
"""After this many batches without running out of memory, larger ones are tried again."""
T = TypeVar("T")


class Budget:
    """Batches of at most ``tokens`` tokens, including padding and answers; a longer row is a batch of its own.

    ``free`` releases tensors cached on the device.
    """

    def __init__(self, tokens: int, free: Callable[[], None]) -> None:
        self._most = self._now = tokens
        self._free = free
        self._calm = 0

    def run(self, lengths: Sequence[int], compute: Callable[[range], list[T]]) -> Iterator[T]:
        """Yield the results of ``compute`` for consecutive rows of ``lengths`` tokens, in order.

        If memory runs out, this batch and the following ones are halved.
        """
        start = 0
        while start < len(lengths):
            stop, longest = start + 1, lengths[start]
            while stop < len(lengths) and (stop + 1 - start) * max(longest, lengths[stop]) <= self._now:
                longest = max(longest, lengths[stop])
                stop += 1
            try:
                computed = compute(range(start, stop))
            except (MemoryError, RuntimeError) as error:
                if not is_out_of_memory(error):
                    raise
                computed = None
            if computed is not None:
                yield from computed
                start = stop
                self._calm += 1
                if self._calm == CALM and self._now < self._most:
                    self._now, self._calm = min(2 * self._now, self._most), 0
                continue

            # outside the except block, because the error's frames keep tensors alive
            self._free()
            gc.collect()
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
            if stop == start + 1:
                raise MedtasksError(
                    f"The device ran out of memory on a single sample of {longest:,} tokens, its answer included; "
                    "lower max_pixels."
                )
            tried = (stop - start) * longest
            self._now, self._calm = max(1, tried // 2), 0
            logger.warning(
                f"medtasks_vlm: out of memory on a batch of {tried:,} tokens; going on with {self._now:,} at once"
            )


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
    return isinstance(error, (MemoryError, torch.OutOfMemoryError)) or "can't allocate memory" in str(error)


TYPICAL_ANSWER = 512
"""Tokens of an answer for which a batch has room; more from the first longer one on. Limits are meant for models that
reason: with room for the whole limit in every row, batches would be many times smaller."""
TRIED = 4
"""Number of tokens whose scores are compared with and without sharing, once per kind of batch."""
TOLERANCE = {torch.float32: 1e-4, torch.float16: 0.01, torch.bfloat16: 0.05}
"""Largest allowed difference, relative to the largest score. Padding alone changes scores by 1e-6 in single precision
and by nearly 0.01 in bfloat16; wrong positions or masks by 0.01 to 0.2."""


class Answering:
    """Answers prompts with a model and its processor.

    Common prefixes are computed once if the model's class supports it and the first batch of each kind (no picture,
    one, several; video; one row, several) had the same scores as without sharing; else ``not_shared`` is the reason.
    ``usage`` counts pictures, videos and prompt tokens computed and reused, and ties decided alone.

    Args:
        model: in evaluation mode, on its device.
        processor: with a tokenizer that pads left.
        share_prefix: False computes every prompt from the start.
    """

    def __init__(self, model: Any, processor: Any, *, share_prefix: bool) -> None:
        counted = "media_encoded", "media_reused", "prompt_tokens_computed", "prompt_tokens_reused"
        self.usage = dict.fromkeys((*counted, "ties_decided_alone"), 0)
        self._model = model
        self._padding = processor.tokenizer.pad_token_id
        self._reader = Reader(processor, model.config)
        self._decoder = Decoder(model, processor.tokenizer)
        self._shared = SharedPrefix(model, self.usage)
        self._budget = Budget(default_tokens(model), self._shared.forget)
        self._tried: set[tuple[int, bool, bool]] = set()
        self._longest_answer = TYPICAL_ANSWER
        self.not_shared = refusal(model) if share_prefix else "switched off"
        if share_prefix and self.not_shared:
            self._give_up(self.not_shared)

    def read(self, conversation: Conversation) -> Prompt:
        """The prompt of a conversation, for :meth:`answer`; thread-safe."""
        return self._reader.prompt(conversation, whole=bool(self.not_shared))

    def answer(self, prompts: Sequence[Prompt], settings: GenerationSettings, seed: int) -> list[Reply]:
        """One reply per prompt; ``seed`` seeds sampling."""
        room = min(settings.max_new_tokens, self._longest_answer)

        def compute(rows: range) -> list[Reply]:
            return self._batch(prompts[rows.start : rows.stop], settings, seed)

        with torch.inference_mode():  # with gradients, whatever is shared would keep all that it was computed from
            replies = list(self._budget.run([prompt.tokens + room for prompt in prompts], compute))
        self._longest_answer = max(self._longest_answer, *(reply.output_tokens or 0 for reply in replies))
        return replies

    def _batch(self, prompts: Sequence[Prompt], settings: GenerationSettings, seed: int) -> list[Reply]:
        sharing = settings.num_beams == 1 and self._may_share(prompts)
        if sharing:
            inputs, reused = self._shared.inputs(prompts, self._padding)
            decoded = self._decoder.decode(inputs, [prompt.chat.options for prompt in prompts], settings, seed)
        else:
            decoded, reused = self._from_the_start(prompts, settings, seed), [0] * len(prompts)
        replies = []
        for prompt, (reply, tied), count in zip(prompts, decoded, reused, strict=True):
            if tied and (sharing or len(prompts) > 1):  # rounding may have decided it
                self.usage["ties_decided_alone"] += 1
                [(reply, _)], count = self._from_the_start([prompt], settings), 0
            replies.append(
                replace(reply, reused_tokens=count, vision_tokens=prompt.vision_tokens, media_seconds=prompt.seconds)
            )
        return replies

    def _from_the_start(
        self, prompts: Sequence[Prompt], settings: GenerationSettings, seed: int = 0
    ) -> list[tuple[Reply, bool]]:
        whole = []
        for prompt in prompts:  # while prefixes are shared, pixels are left out
            complete = not prompt.units or any(name.startswith("pixel") for name in prompt.inputs)
            whole.append(prompt if complete else self._reader.prompt(prompt.chat, whole=True))
        alike: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for number, prompt in enumerate(whole):  # not all models accept batches that mix kinds of media
            alike[tuple(sorted(prompt.inputs))].append(number)
        decoded: dict[int, tuple[Reply, bool]] = {}
        for numbers in alike.values():
            inputs = self._padded([whole[number] for number in numbers])
            options = [whole[number].chat.options for number in numbers]
            decoded.update(zip(numbers, self._decoder.decode(inputs, options, settings, seed), strict=True))
        return [decoded[number] for number in range(len(prompts))]

    def _padded(self, prompts: Sequence[Prompt]) -> dict[str, Any]:
        self.usage["media_encoded"] += sum(unit.count for prompt in prompts for unit in prompt.units)
        self.usage["prompt_tokens_computed"] += sum(prompt.tokens for prompt in prompts)
        return padded(prompts, self._padding, self._model)

    def _may_share(self, prompts: Sequence[Prompt]) -> bool:
        """Whether prefixes are shared; the first batch of a kind is compared with its prompts computed alone."""
        chat = prompts[0].chat
        kind = (min(len(chat.images), 2), bool(chat.videos), len(prompts) > 1)
        if self.not_shared or kind in self._tried:
            return not self.not_shared
        whole = [self._reader.prompt(prompt.chat, whole=True) for prompt in prompts[:2]]
        alone = [self._decoder.scores(self._padded([prompt]), TRIED) for prompt in whole]
        try:
            tokens, scores = self._decoder.scores(self._shared.inputs(prompts[:2], self._padding)[0], TRIED)
        except Exception as error:  # an untested model class may raise anything
            if is_out_of_memory(error):
                raise
            self._give_up(first_line(error))
            return False
        for row, (expected_tokens, expected) in enumerate(alone):
            # scores up to and including the first different token have the same input
            same = int((tokens[row] == expected_tokens[0]).cumprod(0).sum()) + 1
            gap = float((scores[row, :same] - expected[0, :same]).abs().max() / expected.abs().max())
            if not gap <= TOLERANCE[self._model.dtype]:
                self._give_up(f"scores differ by {gap:.1%} from those of the prompt alone")
                return False
        self._tried.add(kind)
        return True

    def _give_up(self, reason: str) -> None:
        self.not_shared = reason
        self._shared.forget()
        logger.warning(f"medtasks_vlm: every prompt is computed from the start: {reason}")
