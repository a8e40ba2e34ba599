"""Batches that the model computes from the start, as its processor would pad them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import torch

from ._reading import Prompt

__all__ = ["alike", "padded"]


def alike(prompts: Sequence[Prompt]) -> Iterator[list[int]]:
    """Positions of prompts that can share a batch: models disagree about rows with media beside rows without."""

    def kind(number: int) -> list[str]:
        return sorted(prompts[number].inputs)

    for _, numbers in groupby(sorted(range(len(prompts)), key=kind), key=kind):
        yield list(numbers)


def padded(prompts: Sequence[Prompt], padding: int, model: Any) -> dict[str, Any]:
    """One batch of ``prompts`` on the model's device: tokens padded left, media one after the other.

    Where prompts have different numbers of tiles, the missing ones are zeros, as processors fill them up.
    """
    length = max(prompt.tokens for prompt in prompts)
    batch: dict[str, Any] = {}
    for name in prompts[0].inputs:
        values = [prompt.inputs[name] for prompt in prompts]
        if not isinstance(values[0], torch.Tensor):
            batch[name] = [one for value in values for one in value]
        elif _per_token(name):
            fill = padding if name == "input_ids" else 0
            sides = [(length - value.shape[1], 0) for value in values]
            rows = [torch.nn.functional.pad(one, side, value=fill) for one, side in zip(values, sides, strict=True)]
            batch[name] = torch.cat(rows)
        else:
            batch[name] = torch.cat(_same_size(values))
    return {name: _on_device(value, model) for name, value in batch.items()}


def _per_token(name: str) -> bool:
    return name in ("input_ids", "attention_mask") or name.endswith("token_type_ids")


def _same_size(values: list[torch.Tensor]) -> list[torch.Tensor]:
    """``values`` with zeros after them in every dimension but the first."""
    sizes = [max(size) for size in zip(*(value.shape[1:] for value in values), strict=True)]
    filled = []
    for value in values:
        sides = [side for have, want in zip(value.shape[:0:-1], sizes[::-1], strict=True) for side in (0, want - have)]
        filled.append(torch.nn.functional.pad(value, sides) if any(sides) else value)
    return filled


def _on_device(value: Any, model: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    return value.to(model.device, model.dtype if value.is_floating_point() else None)
