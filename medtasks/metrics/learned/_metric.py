"""Base of BERTScore and BLEURT: many pairs at once, each distinct pair computed once and cached."""

from __future__ import annotations

import importlib.util
import math
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from medtasks.core.errors import MedtasksError
from medtasks.core.settings import current_settings
from medtasks.metrics.base import Array, MeanMetric, MetricUnavailableError
from medtasks.metrics.learned._checkpoint import Checkpoint, find_checkpoint
from medtasks.metrics.learned.pair_cache import Pair, keep_scores, kept_scores

BATCH = 64  # texts or pairs in one forward pass
CHUNK = 256  # pairs between two writes to the cache; their embeddings are in memory


class LearnedMetric(MeanMetric):
    """A mean metric whose score of a pair comes from a model.

    The seventh digit of a score may depend on the pairs in its batch, as with all float sums. Batches are formed from
    sorted texts, so the order of the pairs does not matter, and a cached score does not change. Lone surrogates are
    replaced by U+FFFD, since no tokenizer takes them.

    Attributes:
        model_calls: forward passes so far; cached scores need none.
    """

    name: str
    packages: tuple[str, ...] = ("torch", "transformers")
    variable: str

    def __init__(self, model: str) -> None:
        self._model = model
        self._lock = threading.RLock()
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
        """Why a package or the model is not on this machine, with the command that fixes it; offline."""
        for package in self.packages:
            if importlib.util.find_spec(package) is None:
                return (
                    f"the package {package.replace('_', '-')} is not installed; run `pip install 'medtasks[learned]'`"
                )
        try:
            self._checkpoint()
        except MetricUnavailableError as error:
            return str(error)
        return None

    def statistics(self, prediction: str, reference: str) -> Array:
        """``(score, 1)``. For more than a few pairs `scores` is much faster.

        Raises:
            MetricUnavailableError, MedtasksError: as `scores`.
        """
        return np.array([self.scores([(prediction, reference)])[0], 1.0])

    def scores(self, pairs: Sequence[Pair]) -> Array:
        """Scores, float64 of shape ``(n,)``, of n pairs (prediction, reference).

        Raises:
            MetricUnavailableError: a package or the model is absent.
            MedtasksError: the checkpoint cannot be loaded, or a score is not a finite number.
        """
        reason = self.unavailable()
        if reason is not None:
            raise MetricUnavailableError(reason)
        asked = [(_encodable(prediction), _encodable(reference)) for prediction, reference in pairs]
        with self._lock:
            checkpoint = self._checkpoint()
            key = f"{self.signature}|identity:{checkpoint.identity}"
            known = kept_scores(key, list(dict.fromkeys(asked)))
            fresh = sorted({pair for pair in asked if pair not in known}, key=lambda pair: (pair[1], pair[0]))
            for begin in range(0, len(fresh), CHUNK):
                chunk = fresh[begin : begin + CHUNK]
                if self._loaded is None or self._loaded[0] != key:
                    self._loaded = None  # frees the memory of the previous one
                    self._loaded = (key, self._load(checkpoint))
                computed = dict(zip(chunk, self._compute(self._loaded[1], chunk), strict=True))
                if not all(map(math.isfinite, computed.values())):
                    raise MedtasksError(f"{self.model}: {self.name} is not a finite number; check the weights")
                keep_scores(key, computed)
                known.update(computed)
        return np.array([known[pair] for pair in asked], dtype=np.float64)

    def _load(self, checkpoint: Checkpoint) -> Any:
        """Model and tokenizer, in the form that `_compute` takes."""
        raise NotImplementedError

    def _compute(self, loaded: Any, pairs: list[Pair]) -> list[float]:
        """The scores of distinct pairs; adds its forward passes to ``model_calls``."""
        raise NotImplementedError

    def _checkpoint(self) -> Checkpoint:
        return find_checkpoint(self.model, self.variable)

    def _label(self) -> str:
        try:
            return self._checkpoint().label
        except MetricUnavailableError:
            return self.model


def batches_by_length(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Indices in batches of similar lengths, shortest first, so that little of a batch is padding."""
    order = sorted(range(len(lengths)), key=lambda index: lengths[index])
    for begin in range(0, len(order), BATCH):
        yield order[begin : begin + BATCH]


def _encodable(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
