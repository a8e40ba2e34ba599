"""How many tokens a batch may have, so that it stays within the memory of the device."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import psutil
import torch

from medtasks.core.settings import current_settings
from medtasks.runs.replies import Reply

from ._reading import Prompt

SHARE = 0.25
"""Share of free memory for keys and values; their copies, activations and scores need the rest."""
LEAST, MOST = 2_048, 65_536
"""Limits of the tokens in a batch, whatever the free memory."""
GROW_AFTER = 64
"""Batches without running out of memory after which larger ones are tried again."""
TYPICAL_ANSWER = 512
"""Tokens of an answer for which a batch has room; more from the first longer one on.

Limits are meant for models that reason: with room for the whole limit in every row, batches would
be many times smaller.
"""


class TokenBudget:
    """The number of ``tokens`` that a batch may have, prompts and answers together.

    It begins with ``most``, is halved when memory runs out, and grows again after `GROW_AFTER`
    batches.
    """

    def __init__(self, most: int) -> None:
        """Allow ``most`` tokens, and never more."""
        self.tokens = most
        self._most = most
        self._batches_since_failure = 0
        self._longest_answer = TYPICAL_ANSWER

    @property
    def has_just_failed(self) -> bool:
        """Whether no batch has fitted yet, or none since memory ran out."""
        return not self._batches_since_failure

    def room_for_answer(self, limit: int) -> int:
        """Tokens kept free in every row for answers of at most ``limit`` tokens."""
        return min(limit, self._longest_answer)

    def fitting(self, prompts: Sequence[Prompt], room: int) -> Sequence[Prompt]:
        """The first prompts, at least one, that fit in memory with ``room`` for their answers.

        They have the same kinds of media: not all models accept batches that mix them.
        """
        longest = 0
        kinds = prompts[0].kinds
        for number, prompt in enumerate(prompts):
            longest = max(longest, prompt.tokens + room)
            fits = (number + 1) * longest <= self.tokens
            if number > 0 and not (fits and prompt.kinds == kinds):
                return prompts[:number]
        return prompts

    def count_success(self) -> None:
        """Count a batch that fitted; after `GROW_AFTER` of them, try batches of twice the size."""
        self._batches_since_failure += 1
        if self._batches_since_failure % GROW_AFTER == 0:
            self.tokens = min(2 * self.tokens, self._most)

    def halve(self, used: int) -> None:
        """Allow half as many tokens as the batch of ``used`` tokens that did not fit."""
        self._batches_since_failure = 0
        self.tokens = max(1, used // 2)

    def note_lengths(self, replies: Iterable[Reply]) -> None:
        """Keep room for the longest answer so far."""
        for reply in replies:
            self._longest_answer = max(self._longest_answer, reply.output_tokens or 0)


def default_tokens(model: Any) -> int:
    """Number of tokens whose keys and values fit in a quarter of the device's free memory."""
    config = model.config.get_text_config(decoder=True)
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    # a key and a value in each layer
    bytes_per_token = 2 * config.num_hidden_layers * heads * width * model.dtype.itemsize
    if model.device.type == "cuda":
        free = torch.cuda.mem_get_info(model.device)[0]
    else:
        free = psutil.virtual_memory().available // current_settings().on_this_machine
    return max(LEAST, min(MOST, int(SHARE * free / bytes_per_token)))


def is_out_of_memory(error: Exception) -> bool:
    """Whether the device or the machine ran out of memory."""
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return True
    # torch raises a plain RuntimeError on the CPU
    return "can't allocate memory" in str(error)
