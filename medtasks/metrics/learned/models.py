"""BERTScore (Zhang et al. 2020) through the library ``bert-score``, and BLEURT (Sellam et al. 2020) in PyTorch.

BLEURT is a BERT regression model of human ratings, whose reference implementation needs TensorFlow. The port is small:
input as in the reference implementation, then transformers' ``BertForSequenceClassification`` with one output.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from medtasks.core.errors import MedtasksError, UsageError
from medtasks.core.settings import current_settings
from medtasks.metrics.base import package_version, sign
from medtasks.metrics.learned._metric import Checkpoint, LearnedMetric, Pair, batches_by_length, load_weights


class BertScore(LearnedMetric):
    """Mean BERTScore F1 (about 0..1): greedy cosine matches of contextual embeddings; no IDF, no baseline rescaling.

    Embeddings and matching are the library's own. Two behaviours that transformers 5 breaks are restored: RoBERTa and
    GPT-2 tokenizers encode the first word of a text with a space before it (transformers 5 ignores the library's
    setting, and all scores change), and an empty or blank text scores 0 against any other (transformers 5 raises).
    Texts that are too long for the model are truncated, as in the library.

    ``model`` is a hub id or checkpoint directory, ``layer`` the one whose output is compared, from 1; 17 is the
    library's choice for ``roberta-large``. ``MEDTASKS_BERTSCORE_MODEL`` and ``MEDTASKS_BERTSCORE_LAYER`` override them.
    """

    name = "bertscore"
    packages = ("torch", "transformers", "bert_score")
    variable = "MEDTASKS_BERTSCORE_MODEL"

    def __init__(self, model: str = "roberta-large", layer: int = 17) -> None:
        super().__init__(model)
        self._layer = layer

    @property
    def layer(self) -> int:
        return current_settings().bertscore_layer or self._layer

    @property
    def signature(self) -> str:
        """Model (hub id, or a directory's fingerprint), layer, weighting, first-word space and library versions."""
        versions = {name: package_version(name) for name in ("bert-score", "transformers")}
        choices = {"idf": "no", "rescale": "no", "prefix_space": "yes"}
        return sign(self.name, model=self._label(), layer=self.layer, **choices, **versions)

    def _load(self, checkpoint: Checkpoint) -> tuple[Any, Any, defaultdict[int, float]]:
        # with the weights of tokens: 1, special tokens 0, as in the library without IDF
        import transformers
        from transformers import AutoConfig, AutoModel, AutoTokenizer

        where = str(checkpoint.directory)
        config = AutoConfig.from_pretrained(where, local_files_only=True)
        if getattr(config, "is_encoder_decoder", False):
            raise UsageError(f"{self.model} is an encoder with a decoder, expected an encoder such as roberta-large")
        layers = config.num_hidden_layers
        if not 1 <= self.layer <= layers:
            raise UsageError(f"layer {self.layer} of {self.model} does not exist; it has 1 to {layers}")
        config.num_hidden_layers = self.layer  # the layers above are never needed
        model = load_weights(AutoModel, config, checkpoint, optional="pooler")
        tokenizer = AutoTokenizer.from_pretrained(where, local_files_only=True)
        names = ("GPT2Tokenizer", "GPT2TokenizerFast", "RobertaTokenizer", "RobertaTokenizerFast")
        if isinstance(tokenizer, tuple(getattr(transformers, name) for name in names)):
            tokenizer = AutoTokenizer.from_pretrained(where, local_files_only=True, add_prefix_space=True)
        positions = getattr(config, "max_position_embeddings", None)
        if positions is not None:
            # RoBERTa counts positions from its padding id + 1. A tokenizer without a limit would not truncate.
            reserved = config.pad_token_id + 1 if "roberta" in config.model_type else 0
            tokenizer.model_max_length = min(tokenizer.model_max_length, positions - reserved)
        weights: defaultdict[int, float] = defaultdict(lambda: 1.0)
        weights[tokenizer.sep_token_id] = weights[tokenizer.cls_token_id] = 0.0
        return model, tokenizer, weights

    def _compute(self, loaded: tuple[Any, Any, defaultdict[int, float]], pairs: list[Pair]) -> list[float]:
        from bert_score.utils import get_bert_embedding, greedy_cos_idf, sent_encode

        model, tokenizer, weights = loaded
        texts = sorted({text.strip() for pair in pairs for text in pair} - {""})
        lengths = [len(sent_encode(tokenizer, text)) for text in texts]
        embedded = {}  # embedding (tokens, width), mask and weight (tokens) of every text, on the CPU
        for batch in batches_by_length(lengths):
            chosen = [texts[index] for index in batch]
            rows = get_bert_embedding(chosen, model, tokenizer, weights, device=model.device)
            self.model_calls += 1
            embeddings, masks, token_weights = (part.cpu() for part in rows)
            for row, index in enumerate(batch):
                end = lengths[index]
                embedded[texts[index]] = embeddings[row, :end], masks[row, :end], token_weights[row, :end]
        scores = []
        for prediction, reference in pairs:
            sides = [embedded[text.strip()] for text in (reference, prediction) if text.strip()]
            if len(sides) < 2:
                scores.append(0.0)
                continue
            # one row each: in a batch, padding can match better than a negative similarity; clones, because the library
            # normalises in place
            parts = [part.clone().unsqueeze(0) for side in sides for part in side]
            scores.append(float(greedy_cos_idf(*parts)[2].item()))
        return scores


MAX_TOKENS = 128
TEXT_TOKENS = MAX_TOKENS - 3  # [CLS] and two [SEP]


class Bleurt(LearnedMetric):
    """Mean BLEURT of the checkpoint ``bleurt-base-128``: a rating, mostly between -1.5 and 1, not bounded.

    The model reads ``[CLS] reference [SEP] prediction [SEP]``, at most 128 tokens; if a pair is longer, its
    longer side is truncated first. As in the reference implementation, special tokens in a text are ordinary
    characters, and empty texts are rated like any other.

    ``model`` is a hub id or directory of a transformers ``BertForSequenceClassification`` checkpoint with one label, by
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
