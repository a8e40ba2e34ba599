"""Heads that name the facts in a vector: how both parts of the model learn what pictures show."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from .model import HIDDEN


class Naming:
    """Names what a vector shows, with a linear head for each name."""

    def __init__(self, facts: Iterable[Mapping[str, str]]) -> None:
        self.values: dict[str, dict[str, int]] = {}
        for vector_facts in facts:
            for name, value in vector_facts.items():
                numbers = self.values.setdefault(name, {})
                numbers.setdefault(value, len(numbers))
        self.heads = torch.nn.ModuleList(
            torch.nn.Linear(HIDDEN, len(numbers)) for numbers in self.values.values()
        )

    def __call__(
        self, vectors: torch.Tensor, facts: Sequence[Mapping[str, str]]
    ) -> dict[str, torch.Tensor]:
        """The summed loss of naming each vector's facts, by benchmark."""
        rows: dict[str, list[int]] = defaultdict(list)
        for row, vector_facts in enumerate(facts):
            for name in vector_facts:
                rows[name].append(row)
        losses: dict[str, torch.Tensor] = defaultdict(lambda: torch.zeros(()))
        for (name, numbers), head in zip(self.values.items(), self.heads, strict=True):
            if not rows[name]:
                continue
            right = torch.tensor([numbers[facts[row][name]] for row in rows[name]])
            scores = head(vectors[rows[name]])
            loss = torch.nn.functional.cross_entropy(scores, right, reduction="sum")
            benchmark = name.split()[0]
            losses[benchmark] = losses[benchmark] + loss
        return losses


def schedule(optimizer: Any, steps: int) -> Any:
    """The learning rate: a warm-up of 40 steps, then half a cosine down to 4 %."""

    def share(step: int) -> float:
        cosine = 0.52 + 0.48 * math.cos(math.pi * step / steps)
        return min(1.0, (step + 1) / 40) * cosine

    return torch.optim.lr_scheduler.LambdaLR(optimizer, share)
