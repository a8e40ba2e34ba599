"""CheXbert F1 (Smit et al. 2020): agreement on 14 findings that a BERT model reads off each report.

Every condition of a report counts as one decision. The statistics of a report are the true
positives, false positives and false negatives of each condition, so that micro and macro F1 are
those of the whole corpus, as RadEval computes them, and not means over reports.
"""

from __future__ import annotations

from collections.abc import Sequence
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

from medtasks_radiology.radeval_metric import RadEvalMetric, device, radeval_module

CONDITIONS = (
    "Enlarged Cardiomediastinum",
    "Cardiomegaly",
    "Lung Opacity",
    "Lung Lesion",
    "Edema",
    "Consolidation",
    "Pneumonia",
    "Atelectasis",
    "Pneumothorax",
    "Pleural Effusion",
    "Pleural Other",
    "Fracture",
    "Support Devices",
    "No Finding",
)
"""In the order of the model's heads."""
FIVE = ("Cardiomegaly", "Edema", "Consolidation", "Atelectasis", "Pleural Effusion")
"""The conditions of the CheXpert competition."""
VARIABLE = "MEDTASKS_RADIOLOGY_CHEXBERT"
WEIGHTS = "chexbert.pth"
CONTENTS = {
    "config.json": ("config.json",),
    "vocab.txt": ("vocab.txt",),
    WEIGHTS: (WEIGHTS,),
}
BATCH = 64
Counts = npt.NDArray[np.float64]


class CheXbertF1(RadEvalMetric):
    """CheXbert F1 (0..1) over the conditions of the whole corpus, ``micro`` or ``macro``.

    A positive and an uncertain condition both count as present, as in RadEval. With ``macro``, a
    condition that occurs neither in a reference nor in a prediction counts as 0, as in RadEval.
    Without any condition, micro F1 is undefined. Reports of more than 512 tokens are truncated by
    the model.
    """

    variable = VARIABLE
    width = 3 * len(CONDITIONS)
    packages = (*RadEvalMetric.packages, "sklearn", "appdirs")
    choices = {"uncertain": "present", "max_tokens": "512"}
    sees = frozenset({"negation", "omission", "invention"})

    def __init__(self, average: str, conditions: Sequence[str]) -> None:
        super().__init__(
            f"chexbert_{average}{len(conditions)}", f"CheXbert {average} F1, {len(conditions)}"
        )
        self._average = average
        self._places = [CONDITIONS.index(name) for name in conditions]

    @property
    def statistics_key(self) -> str:
        """All four metrics are computed from the same counts."""
        return sign(
            "medtasks_radiology_chexbert",
            **self.choices,
            **{name: package_version(name) for name in self.libraries},
        )

    def checkpoint(self) -> Checkpoint:
        """The directory with ``chexbert.pth`` and the files of bert-base-uncased."""
        if not self.model:
            raise MetricUnavailableError(
                f"no CheXbert checkpoint is named; name a directory with {WEIGHTS}, config.json "
                f"and vocab.txt in {VARIABLE}"
            )
        return find_checkpoint(self.model, VARIABLE, CONTENTS)

    def load(self, checkpoint: Checkpoint) -> Any:
        """RadEval's labeler, with the weights of the checkpoint."""
        import torch
        from transformers import BertConfig, BertModel, BertTokenizer

        labelers = radeval_module("metrics._chexbert_base")
        evaluators = radeval_module("metrics.f1chexbert.f1chexbert")
        directory = str(checkpoint.directory)
        config = BertConfig.from_pretrained(directory, local_files_only=True)
        weights = _weights_of(checkpoint)
        try:
            model = labelers.BaseBertLabeler(
                device=device(),
                backbone=BertModel(config),
                num_4way_heads=len(CONDITIONS) - 1,
                state_dict=weights,
            ).eval()
        except RuntimeError as error:  # torch names every weight that is missing or does not fit
            first = str(error).splitlines()[0]
            raise MedtasksError(
                f"{checkpoint.directory / WEIGHTS} does not fit {checkpoint.directory}/config.json "
                f"({first}); expected the weights of CheXbert"
            ) from error
        # without its constructor, which downloads the weights
        evaluator = evaluators.F1CheXbert.__new__(evaluators.F1CheXbert)
        torch.nn.Module.__init__(evaluator)
        evaluator._init_evaluator(
            model=model,
            tokenizer=BertTokenizer.from_pretrained(directory, local_files_only=True),
            device=device(),
            batch_size=BATCH,
        )
        return evaluator

    def compute(self, loaded: Any, pairs: Sequence[Pair]) -> list[PairStatistics]:
        """The counts of each pair; every distinct text is labelled once."""
        texts = sorted({text for pair in pairs for text in pair})
        labels = dict(zip(texts, loaded.get_labels(texts), strict=True))
        self.model_calls += -(-len(texts) // BATCH)
        rows = []
        for prediction, reference in pairs:
            predicted = np.array(labels[prediction], dtype=bool)
            expected = np.array(labels[reference], dtype=bool)
            counts = np.stack(
                [predicted & expected, predicted & ~expected, ~predicted & expected], axis=1
            )
            rows.append(tuple(counts.ravel().astype(float).tolist()))
        return rows

    def score(self, totals: Counts) -> Counts:
        """F1 ``(...)`` of summed counts ``(..., 42)``."""
        totals = np.asarray(totals, dtype=np.float64)
        counts = totals.reshape(*totals.shape[:-1], len(CONDITIONS), 3)[..., self._places, :]
        if self._average == "micro":
            return _f1(counts.sum(axis=-2), undefined=np.nan)
        return np.asarray(_f1(counts, undefined=0.0).mean(axis=-1))


def _f1(counts: Counts, undefined: float) -> Counts:
    """F1 ``(...)`` of ``(..., 3)``: true positives, false positives, false negatives; NaN stays."""
    hits = 2 * counts[..., 0]
    decisions = hits + counts[..., 1] + counts[..., 2]
    scores = np.divide(
        hits, decisions, out=np.full(decisions.shape, undefined), where=decisions != 0
    )
    return np.asarray(scores)


def _weights_of(checkpoint: Checkpoint) -> dict[str, Any]:
    """The state of the model in ``chexbert.pth``, as the authors saved it on several GPUs."""
    import torch

    path = checkpoint.directory / WEIGHTS
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
        state = content["model_state_dict"]
    except Exception as error:  # pickle and torch raise many unrelated types
        raise MedtasksError(
            f"{path} cannot be read as CheXbert's weights ({type(error).__name__}: {error}); "
            "download it again"
        ) from error
    return {name.replace("module.", ""): weight for name, weight in state.items()}


CHEXBERT = (
    CheXbertF1("micro", CONDITIONS),
    CheXbertF1("macro", CONDITIONS),
    CheXbertF1("micro", FIVE),
    CheXbertF1("macro", FIVE),
)
