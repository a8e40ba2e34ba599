"""The base of learned metrics: statistics of distinct pairs, in batches, kept between runs."""

from __future__ import annotations

import contextlib
import importlib.util
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from medtasks.core.errors import MedtasksError
from medtasks.core.extras import install_line
from medtasks.core.settings import named_checkpoint
from medtasks.core.text import well_formed
from medtasks.metrics.base import (
    Array,
    MeanMetric,
    MetricUnavailableError,
    Pairs,
)
from medtasks.metrics.learned.checkpoints import Checkpoint, find_checkpoint
from medtasks.metrics.learned.pair_statistics import (
    Pair,
    PairStatistics,
    keep_statistics,
    kept_statistics,
)

BATCH = 64
"""Texts or pairs in one forward pass."""
CHUNK = 256
"""Pairs between two writes to the cache; their embeddings are in memory."""


class LearnedMetric(MeanMetric):
    """A metric whose statistics of a pair come from a model.

    A subclass defines ``name``, ``variable``, ``signature``, :meth:`load` and :meth:`compute`. The
    score is the mean of the pairs' scores unless it also defines ``width`` and ``score``. The
    seventh digit of a score may depend on the pairs in its batch, as with all float sums. Batches
    are formed from sorted texts, so the order of the pairs does not matter, and cached statistics
    do not change. Lone surrogates are replaced by U+FFFD, since no tokenizer takes them.
    ``model_calls`` counts forward passes.

    Attributes:
        packages: the modules that the metric imports.
        install: the command that installs them.
        variable: the environment variable that names the checkpoint.
        tasks: tasks of other packages that the metric scores although their files do not name it.
    """

    name: str
    packages: tuple[str, ...] = ("torch", "transformers")
    install: str = install_line("learned")
    variable: str
    tasks: tuple[str, ...] = ()

    def __init__(self, model: str) -> None:
        self._model = model
        self._loaded: tuple[str, Any] | None = None
        self.model_calls = 0

    @property
    def model(self) -> str:
        """Hub id or checkpoint directory: the environment variable's, else the constructor's."""
        return named_checkpoint(self.variable) or self._model

    @property
    def signature(self) -> str:
        """Metric, model and versions; see the subclasses."""
        raise NotImplementedError

    @property
    def statistics_key(self) -> str:
        """What determines the statistics of a pair, by default the signature. Metrics that compute
        different scores of the same statistics return the same key, so that the model runs once.
        """
        return self.signature

    def unavailable(self) -> str | None:
        """Why a package or the model is not on this machine, with the command that fixes it;
        offline.
        """
        for package in self.packages:
            if importlib.util.find_spec(package) is None:
                name = package.replace("_", "-")
                return f"the package {name} is not installed: {self.install}"
        try:
            self.checkpoint()
        except MetricUnavailableError as error:
            return str(error)
        return None

    def table(self, pairs: Pairs) -> Array:
        """Statistics ``(n, width)``, NaN for a pair to which the model gave none; raises as
        :meth:`scores`.
        """
        reason = self.unavailable()
        if reason is not None:
            raise MetricUnavailableError(reason)
        asked: list[Pair] = []
        for prediction, reference in pairs:
            asked.append((well_formed(prediction), well_formed(reference)))
        statistics = self._statistics_of(asked)
        table = np.full((len(asked), self.width), np.nan)
        for row, pair in enumerate(asked):
            if statistics[pair]:
                table[row] = statistics[pair]
        return table

    def scores(self, pairs: Sequence[Pair]) -> Array:
        """Scores, float64 of shape ``(n,)``, of n pairs (prediction, reference); NaN for a pair
        without one.

        Raises:
            MetricUnavailableError: a package or the model is absent.
            MedtasksError: the checkpoint cannot be loaded, or a score is not a finite number.
        """
        return np.asarray(self.score(self.table(tuple(pairs))), dtype=np.float64)

    def checkpoint(self) -> Checkpoint:
        """The checkpoint on this machine.

        Raises:
            MetricUnavailableError: it is absent or incomplete.
        """
        return find_checkpoint(self.model, self.variable)

    def load(self, checkpoint: Checkpoint) -> Any:
        """Model, tokenizer and what else `compute` takes."""
        raise NotImplementedError

    def compute(self, loaded: Any, pairs: Sequence[Pair]) -> Sequence[PairStatistics]:
        """The ``width`` statistics of each of these distinct pairs; empty ones for a pair about
        which the model says nothing usable. Adds its forward passes to ``model_calls``.
        """
        raise NotImplementedError

    def label(self) -> str:
        """The model in signatures: the checkpoint's label, or what was asked for without one."""
        with contextlib.suppress(MetricUnavailableError):
            return self.checkpoint().label
        return self.model

    def _statistics_of(self, asked: Sequence[Pair]) -> dict[Pair, PairStatistics]:
        """The statistics of each distinct pair, cached or computed."""
        checkpoint = self.checkpoint()
        key = f"{self.statistics_key}|identity:{checkpoint.identity}"
        statistics = kept_statistics(key, list(dict.fromkeys(asked)))
        # sorted by reference, so that a batch does not depend on the order of the pairs
        missing = sorted(set(asked) - set(statistics), key=lambda pair: (pair[1], pair[0]))
        for begin in range(0, len(missing), CHUNK):
            chunk = missing[begin : begin + CHUNK]
            model = self._model_for(checkpoint, key)
            computed = dict(zip(chunk, self.compute(model, chunk), strict=True))
            self._check(computed)
            keep_statistics(key, computed)
            statistics.update(computed)
        return statistics

    def _check(self, computed: Mapping[Pair, PairStatistics]) -> None:
        """Refuse statistics of another length, or that are not finite numbers."""
        for numbers in computed.values():
            if len(numbers) not in (0, self.width):
                raise MedtasksError(
                    f"{self.name}: `compute` gave {len(numbers)} statistics of a pair, expected "
                    f"{self.width} (`width`), or none"
                )
            if not all(map(math.isfinite, numbers)):
                raise MedtasksError(
                    f"{self.model}: {self.name} is not a finite number; check the weights"
                )

    def _model_for(self, checkpoint: Checkpoint, key: str) -> Any:
        """The loaded model of the checkpoint, kept for the next pairs under the same ``key``."""
        if self._loaded is None or self._loaded[0] != key:
            self._loaded = None  # frees the memory of the previous one
            self._loaded = (key, self.load(checkpoint))
        return self._loaded[1]


def mean_statistics(scores: Sequence[float]) -> list[PairStatistics]:
    """The statistics of pairs with these scores for a metric that averages them."""
    return [(score, 1.0) for score in scores]


def batches_by_length(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Indices in batches of similar lengths, shortest first, so that little of a batch is
    padding.
    """
    order = sorted(range(len(lengths)), key=lambda index: lengths[index])
    for begin in range(0, len(order), BATCH):
        yield order[begin : begin + BATCH]
