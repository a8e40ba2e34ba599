"""RaTEScore (Zhao et al. 2024): similarity of the medical entities of both reports, weighted by
type.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from medtasks.api import Checkpoint, Pair, PairStatistics, find_checkpoint, package_version

from medtasks_radiology.radeval_metric import (
    RadEvalMetric,
    device,
    printing_to_standard_error,
    radeval_module,
)

ENTITIES = "Angelakeke/RaTE-NER-Deberta"
ENCODER = "FremyCompany/BioLORD-2023-C"
VARIABLE = "MEDTASKS_RADIOLOGY_RATESCORE_NER"
ENCODER_VARIABLE = "MEDTASKS_RADIOLOGY_RATESCORE_ENCODER"


@dataclass(frozen=True)
class RaTEScoreModels:
    """RadEval's scorer, and its function that splits texts into sentences."""

    scorer: Any
    sentence_split: Any


class RaTEScore(RadEvalMetric):
    """Mean RaTEScore (0..1) over reports, with the weights for long reports.

    A pair with a text in which the model finds no entity scores .5, as in RadEval; an empty text
    scores 0.
    """

    variable = VARIABLE
    packages = (*RadEvalMetric.packages, "medspacy", "pandas", "loguru")
    libraries = (*RadEvalMetric.libraries, "medspacy")
    choices = {"weights": "long", "no_entity": "0.5", "empty": "0"}
    sees = frozenset({"negation", "laterality", "omission", "invention"})

    def __init__(self) -> None:
        super().__init__("ratescore", "RaTEScore", ENTITIES)

    def unavailable(self) -> str | None:
        """Also if the installed numpy breaks spaCy, which medspacy holds below 3.8."""
        thinc, numpy = package_version("thinc"), package_version("numpy")
        if thinc.startswith("8.2.") and not numpy.startswith("1."):
            return (
                f"spaCy's thinc {thinc} cannot be imported beside numpy {numpy}: install 'numpy<2' "
                "and 'pandas<3' in an environment of its own"
            )
        return super().unavailable()

    def checkpoint(self) -> Checkpoint:
        """The model that finds entities; the identity includes that of the encoder."""
        entities = find_checkpoint(self.model, VARIABLE)
        encoder = _encoder()
        return Checkpoint(
            entities.directory,
            f"{entities.label}+{encoder.label}",
            f"{entities.identity}+{encoder.identity}",
        )

    def load(self, checkpoint: Checkpoint) -> RaTEScoreModels:
        """RadEval's scorer with both models."""
        module = radeval_module("metrics.RaTEScore.scorer")
        utils = radeval_module("metrics.RaTEScore.utils")
        with printing_to_standard_error():
            scorer = module.RaTEScore(
                bert_model=str(checkpoint.directory),
                eval_model=str(_encoder().directory),
                batch_size=16,
                use_gpu=device() == "cuda",
            )
        return RaTEScoreModels(scorer, utils.sentence_split)

    def compute(self, loaded: RaTEScoreModels, pairs: Sequence[Pair]) -> list[PairStatistics]:
        """The score of each pair, one pair at a time: the library assigns the sentences of a batch
        to the wrong reports after a text without any.
        """
        return [(self._score_of(loaded, *pair), 1.0) for pair in pairs]

    def _score_of(self, models: RaTEScoreModels, prediction: str, reference: str) -> float:
        """The score of one pair."""
        if not prediction.strip() or not reference.strip():
            return 0.0
        with printing_to_standard_error():
            for text in (prediction, reference):
                sentences, _ = models.sentence_split([text])
                if not sentences:
                    return 0.5  # no sentence, so no entity
            scores, *_ = models.scorer.compute_score([prediction], [reference])
        self.model_calls += 1
        return float(scores[0])


def _encoder() -> Checkpoint:
    """The model that compares entities."""
    name = os.environ.get(ENCODER_VARIABLE, "").strip() or ENCODER
    return find_checkpoint(name, ENCODER_VARIABLE)
