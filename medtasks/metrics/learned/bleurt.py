"""BLEURT (Sellam et al. 2020): a BERT regression model of human ratings, here in PyTorch.

The reference implementation needs TensorFlow, and the only port on the package registry is a release 0.0.1. The port is
small: input as in the reference implementation, then transformers' ``BertForSequenceClassification`` with one output.
"""

from __future__ import annotations

from typing import Any

from medtasks.core.errors import MedtasksError
from medtasks.metrics.base import package_version, sign
from medtasks.metrics.learned._metric import Checkpoint, LearnedMetric, Pair, batches_by_length, load_weights

MAX_TOKENS = 128
TEXT_TOKENS = MAX_TOKENS - 3  # [CLS] and two [SEP]


class Bleurt(LearnedMetric):
    """Mean BLEURT of the checkpoint ``bleurt-base-128``: a rating, mostly between -1.5 and 1, not bounded.

    The model reads ``[CLS] reference [SEP] prediction [SEP]``, at most 128 tokens; if a pair is longer, its
    longer side is truncated first. As in the reference implementation, special tokens in a text are ordinary
    characters, and empty texts are rated like any other.

    Args:
        model: hub id or directory of a transformers ``BertForSequenceClassification`` checkpoint with one label, by
            default the community's conversion of ``bleurt-base-128``; ``MEDTASKS_BLEURT_MODEL`` overrides it.
    """

    name = "bleurt"
    variable = "MEDTASKS_BLEURT_MODEL"

    def __init__(self, model: str = "Elron/bleurt-base-128") -> None:
        super().__init__(model)

    @property
    def signature(self) -> str:
        """Model (hub id, or a directory's fingerprint), token limit and library version."""
        version = package_version("transformers")
        return sign(self.name, model=self._label(), max_tokens=MAX_TOKENS, transformers=version)

    def _load(self, checkpoint: Checkpoint) -> tuple[Any, Any]:
        from transformers import AutoConfig, AutoTokenizer, BertForSequenceClassification

        where = str(checkpoint.directory)
        config = AutoConfig.from_pretrained(where, local_files_only=True)
        if config.model_type != "bert" or config.num_labels != 1 or config.max_position_embeddings < MAX_TOKENS:
            raise MedtasksError(
                f"{self.model} is a {config.model_type} model with {config.num_labels} label(s) and "
                f"{config.max_position_embeddings} positions, expected bert, 1 label and at least {MAX_TOKENS}; "
                f"name a BLEURT checkpoint in {self.variable}"
            )
        model = load_weights(BertForSequenceClassification, config, checkpoint)
        return model, AutoTokenizer.from_pretrained(where, local_files_only=True)

    def _compute(self, loaded: tuple[Any, Any], pairs: list[Pair]) -> list[float]:
        import torch

        model, tokenizer = loaded
        ids = []
        for side in zip(*pairs, strict=True):  # predictions, references
            # tokens beyond the limit of both sides together are never kept
            options = {"add_special_tokens": False, "split_special_tokens": True, "truncation": True}
            ids.append(tokenizer(list(side), max_length=TEXT_TOKENS, **options)["input_ids"])
        rows = []
        for prediction, reference in zip(*ids, strict=True):
            of_reference, of_prediction = kept_tokens(len(reference), len(prediction))
            first = [tokenizer.cls_token_id, *reference[:of_reference], tokenizer.sep_token_id]
            second = [*prediction[:of_prediction], tokenizer.sep_token_id]
            rows.append({"input_ids": first + second, "token_type_ids": [0] * len(first) + [1] * len(second)})
        scores = [0.0] * len(pairs)
        for batch in batches_by_length([len(row["input_ids"]) for row in rows]):
            inputs = tokenizer.pad([rows[index] for index in batch], padding_side="right", return_tensors="pt")
            with torch.no_grad():
                output = model(**inputs.to(model.device))
            self.model_calls += 1
            for index, score in zip(batch, output.logits[:, 0].tolist(), strict=True):
                scores[index] = score
        return scores


def kept_tokens(reference: int, prediction: int, limit: int = TEXT_TOKENS) -> tuple[int, int]:
    """How many tokens of each side are kept: the longer side (on a tie, the prediction) loses one until both fit.

    >>> kept_tokens(100, 40), kept_tokens(20, 200), kept_tokens(90, 90)
    ((85, 40), (20, 105), (63, 62))
    """
    half = limit // 2
    if reference + prediction <= limit:
        return reference, prediction
    if reference <= half:
        return reference, limit - reference
    return (limit - prediction, prediction) if prediction <= half else (limit - half, half)
