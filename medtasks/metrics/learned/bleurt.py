"""BLEURT (Sellam et al. 2020) in PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from medtasks.core.errors import MedtasksError
from medtasks.metrics.base import package_version, sign
from medtasks.metrics.facts import NOT_IN_SUMMARY, MetricFacts
from medtasks.metrics.learned.checkpoints import Checkpoint, load_weights
from medtasks.metrics.learned.learned_metric import (
    LearnedMetric,
    batches_by_length,
    mean_statistics,
)
from medtasks.metrics.learned.pair_statistics import Pair, PairStatistics

MAX_TOKENS = 128
TEXT_TOKENS = MAX_TOKENS - 3
"""Without [CLS] and two [SEP]."""


class Bleurt(LearnedMetric):
    """Mean BLEURT of the checkpoint ``bleurt-base-128``: a rating, mostly between -1.5 and 1, not
    bounded.

    A BERT regression model of human ratings, whose reference implementation needs TensorFlow. The
    port is small: input as there, then ``BertForSequenceClassification`` with one output. The model
    reads ``[CLS] reference [SEP] prediction [SEP]``, at most 128 tokens; if a pair is longer, its
    longer side is truncated first. Special tokens in a text are ordinary characters, and empty
    texts are rated like any other.

    ``model`` is a hub id or directory of a transformers ``BertForSequenceClassification``
    checkpoint with one label, by default the community's conversion of ``bleurt-base-128``;
    ``MEDTASKS_BLEURT_MODEL`` overrides it.
    """

    name = "bleurt"
    facts = MetricFacts(unit="score", headline=NOT_IN_SUMMARY, cited=("sellam2020bleurt",))
    variable = "MEDTASKS_BLEURT_MODEL"

    def __init__(self, model: str = "Elron/bleurt-base-128") -> None:
        super().__init__(model)

    @property
    def signature(self) -> str:
        """Model (hub id, or a directory's fingerprint), token limit and library version."""
        version = package_version("transformers")
        return sign(self.name, model=self.label(), max_tokens=MAX_TOKENS, transformers=version)

    def load(self, checkpoint: Checkpoint) -> tuple[Any, Any]:
        """The checkpoint's model and tokenizer."""
        from transformers import AutoConfig, AutoTokenizer, BertForSequenceClassification

        where = str(checkpoint.directory)
        config = AutoConfig.from_pretrained(where, local_files_only=True)
        self._require_bleurt(config)
        model = load_weights(BertForSequenceClassification, config, checkpoint)
        return model, AutoTokenizer.from_pretrained(where, local_files_only=True)

    def _require_bleurt(self, config: Any) -> None:
        """Refuse a checkpoint that is not a BERT regression model for pairs of this length."""
        positions = config.max_position_embeddings
        is_regression = config.model_type == "bert" and config.num_labels == 1
        if not is_regression or positions < MAX_TOKENS:
            raise MedtasksError(
                f"{self.model} is a {config.model_type} model with {config.num_labels} label(s) "
                f"and {positions} positions, expected bert, 1 label and at least {MAX_TOKENS}; "
                f"name a BLEURT checkpoint in {self.variable}"
            )

    def compute(self, loaded: tuple[Any, Any], pairs: Sequence[Pair]) -> list[PairStatistics]:
        """The rating of each pair; pairs of similar length are in one batch."""
        import torch

        model, tokenizer = loaded
        rows = _model_inputs(tokenizer, pairs)
        scores = [0.0] * len(pairs)
        for batch in batches_by_length([len(row["input_ids"]) for row in rows]):
            inputs = tokenizer.pad(
                [rows[index] for index in batch], padding_side="right", return_tensors="pt"
            )
            with torch.no_grad():
                output = model(**inputs.to(model.device))
            self.model_calls += 1
            for index, score in zip(batch, output.logits[:, 0].tolist(), strict=True):
                scores[index] = score
        return mean_statistics(scores)


def _model_inputs(tokenizer: Any, pairs: Sequence[Pair]) -> list[dict[str, list[int]]]:
    """The model's inputs for each pair: reference, then prediction, with their special tokens."""
    predictions, references = zip(*pairs, strict=True)
    prediction_ids = _token_ids(tokenizer, predictions)
    reference_ids = _token_ids(tokenizer, references)
    rows = []
    for prediction, reference in zip(prediction_ids, reference_ids, strict=True):
        of_reference, of_prediction = kept_tokens(len(reference), len(prediction))
        first = [tokenizer.cls_token_id, *reference[:of_reference], tokenizer.sep_token_id]
        second = [*prediction[:of_prediction], tokenizer.sep_token_id]
        types = [0] * len(first) + [1] * len(second)
        rows.append({"input_ids": first + second, "token_type_ids": types})
    return rows


def _token_ids(tokenizer: Any, texts: Sequence[str]) -> list[list[int]]:
    """The tokens of each text, without those beyond the limit of both sides together, which are
    never kept.
    """
    encoded = tokenizer(
        list(texts),
        max_length=TEXT_TOKENS,
        add_special_tokens=False,
        split_special_tokens=True,
        truncation=True,
    )
    ids: list[list[int]] = encoded["input_ids"]
    return ids


def kept_tokens(reference: int, prediction: int, limit: int = TEXT_TOKENS) -> tuple[int, int]:
    """How many tokens of each side are kept: the longer side (on a tie, the prediction) loses one
    until both fit.

    >>> kept_tokens(100, 40), kept_tokens(20, 200), kept_tokens(90, 90)
    ((85, 40), (20, 105), (63, 62))
    """
    if reference + prediction <= limit:
        return reference, prediction
    half = limit // 2
    if reference <= half:
        return reference, limit - reference
    if prediction <= half:
        return limit - prediction, prediction
    return limit - half, half
