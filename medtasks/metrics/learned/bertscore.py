"""BERTScore F1 (Zhang et al. 2020) through the library ``bert-score``."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from medtasks.core.errors import UsageError
from medtasks.core.settings import current_settings
from medtasks.metrics.base import package_version, sign
from medtasks.metrics.learned._metric import Checkpoint, LearnedMetric, Pair, batches_by_length, load_weights


class BertScore(LearnedMetric):
    """Mean BERTScore F1 (about 0..1): greedy cosine matches of contextual embeddings; no IDF, no baseline rescaling.

    Embeddings and matching are the library's own. Two behaviours that transformers 5 breaks are restored: RoBERTa and
    GPT-2 tokenizers encode the first word of a text with a space before it (transformers 5 ignores the library's
    setting, and all scores change), and an empty or blank text scores 0 against any other (transformers 5 raises).
    Texts that are too long for the model are truncated, as in the library.

    Args:
        model: hub id or checkpoint directory; ``MEDTASKS_BERTSCORE_MODEL`` overrides it.
        layer: whose output to compare, from 1; 17 is the library's choice for ``roberta-large``.
            ``MEDTASKS_BERTSCORE_LAYER`` overrides it.
    """

    name = "bertscore"
    packages = ("torch", "transformers", "bert_score")
    variable = "MEDTASKS_BERTSCORE_MODEL"

    def __init__(self, model: str = "roberta-large", layer: int = 17) -> None:
        super().__init__(model)
        self._layer = layer

    @property
    def layer(self) -> int:
        """The environment variable's layer, else the constructor's."""
        return current_settings().bertscore_layer or self._layer

    @property
    def signature(self) -> str:
        """Model (hub id, or a directory's fingerprint), layer, weighting, first-word space and library versions."""
        return sign(
            self.name,
            model=self._label(),
            layer=self.layer,
            idf="no",
            rescale="no",
            prefix_space="yes",
            bert_score=package_version("bert-score"),
            transformers=package_version("transformers"),
        )

    def _load(self, checkpoint: Checkpoint) -> tuple[Any, Any, defaultdict[int, float]]:
        """Model, tokenizer, and the weights of tokens: 1, special tokens 0, as in the library without IDF."""
        from transformers import (
            AutoConfig,
            AutoModel,
            AutoTokenizer,
            GPT2Tokenizer,
            GPT2TokenizerFast,
            RobertaTokenizer,
            RobertaTokenizerFast,
        )

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
        if isinstance(tokenizer, (GPT2Tokenizer, GPT2TokenizerFast, RobertaTokenizer, RobertaTokenizerFast)):
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
