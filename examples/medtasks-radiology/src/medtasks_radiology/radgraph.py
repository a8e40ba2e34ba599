"""RadGraph F1 (Jain et al. 2021, Delbrouck et al. 2022): agreement of the entities and relations
that a model reads off both reports.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from medtasks.api import (
    Checkpoint,
    MedtasksError,
    MetricUnavailableError,
    Pair,
    PairStatistics,
    find_checkpoint,
    package_version,
    sign,
)

from medtasks_radiology.radeval_metric import (
    RadEvalMetric,
    printing_to_standard_error,
    radeval_module,
)

VARIABLE = "MEDTASKS_RADIOLOGY_RADGRAPH"
MODEL_TYPE = "radgraph-xl"
CONTENTS = {
    "config.json": ("config.json",),
    "vocabulary": ("vocabulary/*.txt",),
    "weights": ("weights.th",),
}
ENCODER = {
    "config.json": ("config.json",),
    "tokenizer": ("tokenizer.json", "vocab.txt", "vocab.json"),
}
"""What is needed of the encoder that the checkpoint's config.json names: no weights."""
LEVELS = ("simple", "partial", "complete")


class RadGraphF1(RadEvalMetric):
    """Mean RadGraph F1 (0..1) of RadGraph-XL over reports.

    ``simple`` compares the words and labels of entities; ``partial`` also whether an entity has a
    relation; ``complete`` the relations themselves. A report that is empty scores 0, as in RadEval.
    """

    variable = VARIABLE
    width = len(LEVELS) + 1
    packages = (*RadEvalMetric.packages, "appdirs", "dotmap", "h5py", "jsonpickle", "nltk")
    choices = {"type": MODEL_TYPE}
    sees = frozenset({"negation", "laterality", "severity", "change", "omission", "invention"})

    def __init__(self, level: str) -> None:
        super().__init__(f"radgraph_{level}", f"RadGraph F1, {level}")
        self._place = LEVELS.index(level)

    @property
    def statistics_key(self) -> str:
        """The three levels are computed together."""
        return sign(
            "medtasks_radiology_radgraph",
            **self.choices,
            **{name: package_version(name) for name in self.libraries},
        )

    def checkpoint(self) -> Checkpoint:
        """The unpacked ``radgraph-xl.tar.gz``; its identity includes that of its encoder."""
        if not self.model:
            raise MetricUnavailableError(
                "no RadGraph checkpoint is named; name the directory with the unpacked "
                f"radgraph-xl.tar.gz in {VARIABLE}"
            )
        found = find_checkpoint(self.model, VARIABLE, CONTENTS)
        if found.directory.name != MODEL_TYPE:
            raise MetricUnavailableError(
                f"{found.directory} is not called {MODEL_TYPE}, by which RadEval finds it; rename "
                "it"
            )
        encoder = find_checkpoint(
            _encoder_of(found.directory), f"{found.directory}/config.json", ENCODER
        )
        return Checkpoint(found.directory, found.label, f"{found.identity}+{encoder.identity}")

    def load(self, checkpoint: Checkpoint) -> Any:
        """RadEval's F1 of all three levels."""
        library = radeval_module("metrics.radgraph")
        with printing_to_standard_error():
            try:
                return library.F1RadGraph(
                    reward_level="all",
                    model_type=MODEL_TYPE,
                    model_cache_dir=str(checkpoint.directory.parent),
                )
            except Exception as error:  # its readers raise KeyError, RuntimeError and others
                raise MedtasksError(
                    f"{checkpoint.directory}: RadGraph cannot be loaded "
                    f"({type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''})"
                ) from error

    def compute(self, loaded: Any, pairs: Sequence[Pair]) -> list[PairStatistics]:
        """The F1 of the three levels of each pair, and 1."""
        import torch

        predictions = [prediction.strip() for prediction, _ in pairs]
        references = [reference.strip() for _, reference in pairs]
        if not any(map(_has_both, predictions, references)):  # the library cannot do without
            return [(0.0, 0.0, 0.0, 1.0)] * len(pairs)
        with printing_to_standard_error(), torch.no_grad():
            _, by_level, *_ = loaded(hyps=predictions, refs=references)
        self.model_calls += 2 * len(pairs)
        return [(*map(float, levels), 1.0) for levels in zip(*by_level, strict=True)]

    def score(self, totals: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The mean F1 ``(...)`` of totals ``(..., 4)``."""
        totals = np.asarray(totals, dtype=np.float64)
        count = totals[..., -1]
        scores = np.divide(
            totals[..., self._place], count, out=np.full(count.shape, np.nan), where=count > 0
        )
        return np.asarray(scores)


def _has_both(prediction: str, reference: str) -> bool:
    return bool(prediction) and bool(reference)


def _encoder_of(directory: Path) -> str:
    """The encoder that the checkpoint names: a hub id or a directory."""
    path = directory / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        return str(config["dataset_reader"]["token_indexers"]["bert"]["model_name"])
    except (ValueError, KeyError, TypeError) as error:
        raise MetricUnavailableError(
            f"{path} does not name an encoder (dataset_reader.token_indexers.bert.model_name); "
            "unpack radgraph-xl.tar.gz again"
        ) from error


RADGRAPH = tuple(RadGraphF1(level) for level in LEVELS)
