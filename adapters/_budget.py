"""How many rows go to the device at once, and what happens when memory runs out."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import psutil
import torch
from loguru import logger

from medtasks.errors import MedtasksError

SHARE = 0.25
"""Share of the free memory for keys and values; copies of them, activations and scores need the rest."""
LEAST, MOST = 2_048, 65_536
CALM = 64
"""After this many batches without running out of memory, larger ones are tried again."""
T = TypeVar("T")


class Budget:
    """Batches of at most ``tokens`` tokens, padding and answers included, or of a single longer row.

    Args:
        tokens: per batch.
        free: releases what is kept on the device.
    """

    def __init__(self, tokens: int, free: Callable[[], None]) -> None:
        self.tokens = tokens
        self._free = free
        self._now = tokens
        self._calm = 0

    def run(self, lengths: Sequence[int], compute: Callable[[range], list[T]]) -> Iterator[T]:
        """Yield what ``compute`` returns for consecutive rows of ``lengths`` tokens, in their order.

        If memory runs out, the batch is halved, and so are the next ones.

        Raises
        ------
        MedtasksError
            A single row does not fit.
        """
        start = 0
        while start < len(lengths):
            rows = range(start, start + self._fitting(lengths[start:]))
            computed = self._attempt(rows, compute)
            if computed is None:
                if len(rows) == 1:
                    raise MedtasksError(
                        f"The device ran out of memory on a single sample of {lengths[start]:,} tokens, its answer "
                        "included; set max_pixels lower."
                    )
                self._shrink(len(rows) * max(lengths[row] for row in rows))
                continue
            yield from computed
            start = rows.stop
            self._grow()

    def _fitting(self, lengths: Sequence[int]) -> int:
        longest = 0
        for count, length in enumerate(lengths):
            longest = max(longest, length)
            if count and (count + 1) * longest > self._now:
                return count
        return len(lengths)

    def _attempt(self, rows: range, compute: Callable[[range], list[T]]) -> list[T] | None:
        try:
            return compute(rows)
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
        # the error, whose frames hold tensors, is released only here
        self._free()
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        return None

    def _shrink(self, tried: int) -> None:
        self._now = max(1, tried // 2)
        self._calm = 0
        logger.warning(
            f"medtasks_vlm: out of memory on a batch of {tried:,} tokens; going on with {self._now:,} at once"
        )

    def _grow(self) -> None:
        self._calm += 1
        if self._calm == CALM and self._now < self.tokens:
            self._now = min(2 * self._now, self.tokens)
            self._calm = 0


def default_tokens(model: Any) -> int:
    """Tokens whose keys and values take a quarter of the free memory of the model's device."""
    config = model.config.get_text_config(decoder=True)
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    per_token = 2 * config.num_hidden_layers * heads * width * model.dtype.itemsize
    if model.device.type == "cuda":
        free = torch.cuda.mem_get_info(model.device)[0]
    else:
        free = psutil.virtual_memory().available // int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    return max(LEAST, min(MOST, int(SHARE * free / per_token)))


def is_out_of_memory(error: Exception) -> bool:
    """Whether the device or the machine ran out of memory."""
    return isinstance(error, (MemoryError, torch.OutOfMemoryError)) or "can't allocate memory" in str(error)
