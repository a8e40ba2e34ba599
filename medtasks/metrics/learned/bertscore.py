"""BERTScore (Zhang et al. 2020) through the library ``bert-score``."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

from medtasks.core.errors import UsageError
from medtasks.core.settings import current_settings
from medtasks.metrics.base import package_version, sign
from medtasks.metrics.facts import NOT_IN_SUMMARY, MetricFacts
from medtasks.metrics.learned.checkpoints import Checkpoint, load_weights
from medtasks.metrics.learned.learned_metric import (
    LearnedMetric,
    batches_by_length,
    mean_statistics,
)
from medtasks.metrics.learned.pair_statistics import Pair, PairStatistics


class BertScore(LearnedMetric):
    """Mean BERTScore F1 (about 0..1): greedy cosine matches of contextual embeddings; no IDF, no
    baseline rescaling.

    Embeddings and matching are the library's own. Two behaviours that transformers 5 breaks are
    restored: RoBERTa and GPT-2 tokenizers encode the first word of a text with a space before it
    (transformers 5 ignores the library's setting, and all scores change), and an empty or blank
    text scores 0 against any other (transformers 5 raises). Texts that are too long for the model
    are truncated, as in the library.

    ``model`` is a hub id or checkpoint directory, ``layer`` the one whose output is compared, from
    1; 17 is the library's choice for ``roberta-large``. ``MEDTASKS_BERTSCORE_MODEL`` and
    ``MEDTASKS_BERTSCORE_LAYER`` override them.
    """

    name = "bertscore"
    facts = MetricFacts(
        headline=NOT_IN_SUMMARY, item_bounds=(-math.inf, 1.0), cited=("zhang2020bertscore",)
    )
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
        """Model (hub id, or a directory's fingerprint), layer, weighting, first-word space and
        library versions.
        """
        versions = {name: package_version(name) for name in ("bert-score", "transformers")}
        return sign(
            self.name,
            model=self.label(),
            layer=self.layer,
            idf="no",
            rescale="no",
            prefix_space="yes",
            **versions,
        )

    def load(self, checkpoint: Checkpoint) -> _Encoder:
        """The checkpoint's model up to the compared layer, and its tokenizer."""
        from transformers import AutoConfig, AutoModel

        config = AutoConfig.from_pretrained(str(checkpoint.directory), local_files_only=True)
        self._require_encoder(config)
        config.num_hidden_layers = self.layer  # the layers above are never needed
        model = load_weights(AutoModel, config, checkpoint, optional="pooler")
        tokenizer = _tokenizer(checkpoint, config)
        weights: defaultdict[int, float] = defaultdict(lambda: 1.0)
        weights[tokenizer.sep_token_id] = weights[tokenizer.cls_token_id] = 0.0
        return _Encoder(model, tokenizer, weights)

    def _require_encoder(self, config: Any) -> None:
        """Refuse a model with a decoder, or without the compared layer."""
        if getattr(config, "is_encoder_decoder", False):
            raise UsageError(
                f"{self.model} is an encoder with a decoder, expected an encoder such as "
                "roberta-large"
            )
        layers = config.num_hidden_layers
        if not 1 <= self.layer <= layers:
            raise UsageError(
                f"layer {self.layer} of {self.model} does not exist; it has 1 to {layers}"
            )

    def compute(self, loaded: _Encoder, pairs: Sequence[Pair]) -> list[PairStatistics]:
        """F1 of each pair, 0 if a text is blank; every distinct text is encoded once."""
        texts: set[str] = set()
        for prediction, reference in pairs:
            texts.update((prediction.strip(), reference.strip()))
        embedded = self._embedded(loaded, sorted(texts - {""}))
        scores = []
        for prediction, reference in pairs:
            expected = embedded.get(reference.strip())
            predicted = embedded.get(prediction.strip())
            if expected is None or predicted is None:
                scores.append(0.0)
            else:
                scores.append(_best_matches(expected, predicted))
        return mean_statistics(scores)

    def _embedded(self, encoder: _Encoder, texts: list[str]) -> dict[str, _Embedded]:
        """The embeddings of the tokens of every text, on the CPU."""
        from bert_score.utils import get_bert_embedding, sent_encode

        model, tokenizer, weights = encoder
        lengths = [len(sent_encode(tokenizer, text)) for text in texts]
        embedded: dict[str, _Embedded] = {}
        for batch in batches_by_length(lengths):
            chosen = [texts[index] for index in batch]
            parts = get_bert_embedding(chosen, model, tokenizer, weights, device=model.device)
            self.model_calls += 1
            embeddings, masks, token_weights = (part.cpu() for part in parts)
            for row, index in enumerate(batch):
                end = lengths[index]
                embedded[texts[index]] = _Embedded(
                    embeddings[row, :end], masks[row, :end], token_weights[row, :end]
                )
        return embedded


class _Encoder(NamedTuple):
    """A model, its tokenizer, and the weights of tokens: 1, special tokens 0, as in the library
    without IDF.
    """

    model: Any
    tokenizer: Any
    weights: defaultdict[int, float]


class _Embedded(NamedTuple):
    """The tensors of a text: embeddings ``(tokens, width)``, mask and weights ``(tokens)``."""

    embeddings: Any
    mask: Any
    weights: Any


def _tokenizer(checkpoint: Checkpoint, config: Any) -> Any:
    """The checkpoint's tokenizer, which sets a space before the first word and truncates texts that
    are too long for the model.
    """
    from transformers import AutoTokenizer, GPT2Tokenizer, RobertaTokenizer

    where = str(checkpoint.directory)
    tokenizer = AutoTokenizer.from_pretrained(where, local_files_only=True)
    if isinstance(tokenizer, (GPT2Tokenizer, RobertaTokenizer)):
        tokenizer = AutoTokenizer.from_pretrained(
            where, local_files_only=True, add_prefix_space=True
        )
    positions = getattr(config, "max_position_embeddings", None)
    if positions is not None:
        # RoBERTa counts positions from its padding id + 1. A tokenizer without a limit would
        # not truncate.
        reserved = config.pad_token_id + 1 if "roberta" in config.model_type else 0
        tokenizer.model_max_length = min(tokenizer.model_max_length, positions - reserved)
    return tokenizer


def _best_matches(reference: _Embedded, prediction: _Embedded) -> float:
    """F1 of the greedy matches of two texts.

    They are passed alone: in a batch, padding can match better than a negative similarity.
    """
    from bert_score.utils import greedy_cos_idf

    # clones, because the library normalises in place
    parts = [part.clone().unsqueeze(0) for part in (*reference, *prediction)]
    _, _, f1 = greedy_cos_idf(*parts)
    return float(f1.item())
