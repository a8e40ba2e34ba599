"""Temporal F1 (Zhang et al. 2024, Libra): agreement of the words for change over time."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from medtasks.api import Checkpoint, MetricUnavailableError, Pair, PairStatistics, find_checkpoint

from medtasks_radiology.radeval_metric import (
    RadEvalMetric,
    printing_to_standard_error,
    radeval_module,
)

VARIABLE = "STANZA_RESOURCES_DIR"
CONTENTS = {
    "list of models": ("resources.json",),
    "radiology model for entities": ("en/ner/radiology*.pt",),
    "tokenizer": ("en/tokenize/*.pt",),
}


class TemporalF1(RadEvalMetric):
    """Mean temporal F1 (0..1) over reports: the words for change, such as *new* or *worsened*, that
    both reports have.

    Two reports without any such word score 1; a word that only the prediction has scores 0 against
    a reference without any. No word is assigned to a finding.
    """

    variable = VARIABLE
    packages = ("radeval", "stanza")
    libraries = ("radeval", "stanza")
    choices = {"package": "radiology"}
    sees = frozenset({"change"})

    def __init__(self) -> None:
        super().__init__("temporal_f1", "temporal F1", "~/stanza_resources")

    def checkpoint(self) -> Checkpoint:
        """The directory of Stanza's models, which its own variable names."""
        name = os.path.expanduser(self.model)
        if not os.path.isdir(name):
            raise MetricUnavailableError(
                f"Stanza's radiology models are not in {name}; fetch them: python -c \"import "
                "stanza; stanza.download('en', package='radiology')\", or name their directory in "
                f"{VARIABLE}"
            )
        return find_checkpoint(name, VARIABLE, CONTENTS)

    def load(self, checkpoint: Checkpoint) -> Any:
        """RadEval's module, which loads the models when it is imported."""
        return radeval_module("metrics.f1temporal.f1temporal")

    def compute(self, loaded: Any, pairs: Sequence[Pair]) -> list[PairStatistics]:
        """The F1 of each pair."""
        predictions = [prediction for prediction, _ in pairs]
        references = [reference for _, reference in pairs]
        with printing_to_standard_error():
            result = loaded.F1Temporal(predictions=predictions, references=references)
        self.model_calls += 2 * len(pairs)
        return [(float(score), 1.0) for score in result["sample_scores"]]
