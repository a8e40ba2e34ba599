"""The base of learned metrics: scores of distinct pairs, in batches, kept between runs."""

from __future__ import annotations

import contextlib
import importlib.util
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from medtasks.core.errors import MedtasksError
from medtasks.core.extras import install_line
from medtasks.core.settings import current_settings
from medtasks.core.text import well_formed
from medtasks.metrics.base import (
    Array,
    MeanMetric,
    MetricUnavailableError,
    Pairs,
    mean_table,
)
from medtasks.metrics.learned.checkpoints import Checkpoint, find_checkpoint
from medtasks.metrics.learned.pair_scores import Pair, keep_scores, kept_scores

BATCH = 64
"""Texts or pairs in one forward pass."""
CHUNK = 256
"""Pairs between two writes to the cache; their embeddings are in memory."""


class LearnedMetric(MeanMetric):
    """A mean metric whose score of a pair comes from a model.

    The seventh digit of a score may depend on the pairs in its batch, as with all float sums.
    Batches are formed from sorted texts, so the order of the pairs does not matter, and a cached
    score does not change. Lone surrogates are replaced by U+FFFD, since no tokenizer takes them.
    ``model_calls`` counts forward passes.
    """

    name: str
    packages: tuple[str, ...] = ("torch", "transformers")
    variable: str

    def __init__(self, model: str) -> None:
        self._model = model
        self._loaded: tuple[str, Any] | None = None
        self.model_calls = 0

    @property
    def model(self) -> str:
        """Hub id or checkpoint directory: the environment variable's, else the constructor's."""
        return str(getattr(current_settings(), f"{self.name}_model")) or self._model

    @property
    def signature(self) -> str:
        """Metric, model and versions; see the subclasses."""
        raise NotImplementedError

    def unavailable(self) -> str | None:
        """Why a package or the model is not on this machine, with the command that fixes it;
        offline.
        """
        for package in self.packages:
            if importlib.util.find_spec(package) is None:
                name = package.replace("_", "-")
                return f"the package {name} is not installed: {install_line('learned')}"
        try:
            self._checkpoint()
        except MetricUnavailableError as error:
            return str(error)
        return None

    def table(self, pairs: Pairs) -> Array:
        """``(score, 1)``; raises as :meth:`scores`."""
        return mean_table(self.scores(pairs))

    def scores(self, pairs: Sequence[Pair]) -> Array:
        """Scores, float64 of shape ``(n,)``, of n pairs (prediction, reference).

        Raises:
            MetricUnavailableError: a package or the model is absent.
            MedtasksError: the checkpoint cannot be loaded, or a score is not a finite number.
        """
        reason = self.unavailable()
        if reason is not None:
            raise MetricUnavailableError(reason)
        asked: list[Pair] = []
        for prediction, reference in pairs:
            asked.append((well_formed(prediction), well_formed(reference)))
        checkpoint = self._checkpoint()
        key = f"{self.signature}|identity:{checkpoint.identity}"
        scores = kept_scores(key, list(dict.fromkeys(asked)))
        # sorted by reference, so that a batch does not depend on the order of the pairs
        missing = sorted(set(asked) - set(scores), key=lambda pair: (pair[1], pair[0]))
        for begin in range(0, len(missing), CHUNK):
            chunk = missing[begin : begin + CHUNK]
            model = self._model_for(checkpoint, key)
            computed = dict(zip(chunk, self._compute(model, chunk), strict=True))
            if not all(map(math.isfinite, computed.values())):
                raise MedtasksError(
                    f"{self.model}: {self.name} is not a finite number; check the weights"
                )
            keep_scores(key, computed)
            scores.update(computed)
        return np.array([scores[pair] for pair in asked], dtype=np.float64)

    def _model_for(self, checkpoint: Checkpoint, key: str) -> Any:
        """The loaded model of the checkpoint, kept for the next pairs under the same ``key``."""
        if self._loaded is None or self._loaded[0] != key:
            self._loaded = None  # frees the memory of the previous one
            self._loaded = (key, self._load(checkpoint))
        return self._loaded[1]

    def _load(self, checkpoint: Checkpoint) -> Any:
        """Model, tokenizer and what else `_compute` takes."""
        raise NotImplementedError

    def _compute(self, loaded: Any, pairs: list[Pair]) -> list[float]:
        """The scores of distinct pairs; adds its forward passes to ``model_calls``."""
        raise NotImplementedError

    def _checkpoint(self) -> Checkpoint:
        return find_checkpoint(self.model, self.variable)

    def _label(self) -> str:
        """The model in signatures: the checkpoint's label, or what was asked for without one."""
        with contextlib.suppress(MetricUnavailableError):
            return self._checkpoint().label
        return self.model


def batches_by_length(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Indices in batches of similar lengths, shortest first, so that little of a batch is
    padding.
    """
    order = sorted(range(len(lengths)), key=lambda index: lengths[index])
    for begin in range(0, len(order), BATCH):
        yield order[begin : begin + BATCH]
