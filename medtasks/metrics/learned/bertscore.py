"""BERTScore F1 (Zhang et al. 2020) through the library ``bert-score``."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from medtasks.core.errors import UsageError
from medtasks.core.settings import current_settings
from medtasks.metrics.base import package_version, sign
from medtasks.metrics.learned._checkpoint import Checkpoint, load_weights
from medtasks.metrics.learned._metric import LearnedMetric, batches_by_length
from medtasks.metrics.learned.pair_cache import Pair


@dataclass(frozen=True)
class _Encoder:
    model: Any
    tokenizer: Any
    weights: defaultdict[int, float]  # by token: 1, special tokens 0, as in the library without IDF


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

    def _load(self, checkpoint: Checkpoint) -> _Encoder:
        from transformers import AutoConfig, AutoModel

        config = AutoConfig.from_pretrained(str(checkpoint.directory), local_files_only=True)
        if getattr(config, "is_encoder_decoder", False):
            raise UsageError(f"{self.model} is an encoder with a decoder, expected an encoder such as roberta-large")
        layers = config.num_hidden_layers
        if not 1 <= self.layer <= layers:
            raise UsageError(f"layer {self.layer} of {self.model} does not exist; it has 1 to {layers}")
        config.num_hidden_layers = self.layer  # the layers above are never needed
        model = load_weights(AutoModel, config, checkpoint, optional="pooler")
        tokenizer = _tokenizer(checkpoint, config)
        weights: defaultdict[int, float] = defaultdict(lambda: 1.0)
        weights[tokenizer.sep_token_id] = weights[tokenizer.cls_token_id] = 0.0
        return _Encoder(model, tokenizer, weights)

    def _compute(self, loaded: _Encoder, pairs: list[Pair]) -> list[float]:
        texts = sorted({text.strip() for pair in pairs for text in pair} - {""})
        embedded = self._embed(loaded, texts)
        scores = []
        for prediction, reference in pairs:
            sides = [embedded[text.strip()] for text in (reference, prediction) if text.strip()]
            scores.append(_f1(*sides) if len(sides) == 2 else 0.0)
        return scores

    def _embed(self, loaded: _Encoder, texts: list[str]) -> dict[str, tuple[Any, Any, Any]]:
        """Embedding (tokens, width), mask (tokens) and weight (tokens) of every text, on the CPU."""
        from bert_score.utils import get_bert_embedding, sent_encode

        lengths = [len(sent_encode(loaded.tokenizer, text)) for text in texts]
        embedded = {}
        for batch in batches_by_length(lengths):
            chosen = [texts[index] for index in batch]
            embeddings, masks, weights = get_bert_embedding(
                chosen, loaded.model, loaded.tokenizer, loaded.weights, device=loaded.model.device
            )
            self.model_calls += 1
            embeddings, masks = embeddings.cpu(), masks.cpu()
            for row, index in enumerate(batch):
                end = lengths[index]
                embedded[texts[index]] = embeddings[row, :end], masks[row, :end], weights[row, :end]
        return embedded


def _f1(reference: tuple[Any, Any, Any], prediction: tuple[Any, Any, Any]) -> float:
    """The library's F1 of one pair; not in batches, whose padding can match better than a negative similarity."""
    from bert_score.utils import greedy_cos_idf

    # one row each; clones, because the library normalises in place
    rows = [part.clone().unsqueeze(0) for part in (*reference, *prediction)]
    return float(greedy_cos_idf(*rows)[2].item())


def _tokenizer(checkpoint: Checkpoint, config: Any) -> Any:
    """The checkpoint's tokenizer, with a space before the first word if the library asks for one."""
    from transformers import AutoTokenizer, GPT2Tokenizer, GPT2TokenizerFast, RobertaTokenizer, RobertaTokenizerFast

    spaced = (GPT2Tokenizer, GPT2TokenizerFast, RobertaTokenizer, RobertaTokenizerFast)
    where = str(checkpoint.directory)
    tokenizer = AutoTokenizer.from_pretrained(where, local_files_only=True)
    if isinstance(tokenizer, spaced):
        tokenizer = AutoTokenizer.from_pretrained(where, local_files_only=True, add_prefix_space=True)
    positions = getattr(config, "max_position_embeddings", None)
    if positions is not None:
        # RoBERTa counts positions from its padding id + 1. A tokenizer without a limit would not truncate.
        reserved = config.pad_token_id + 1 if "roberta" in config.model_type else 0
        tokenizer.model_max_length = min(tokenizer.model_max_length, positions - reserved)
    return tokenizer
