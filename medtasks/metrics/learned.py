"""BERTScore (Zhang et al. 2020) through the library ``bert-score``, and BLEURT (Sellam et al. 2020)
in PyTorch: many pairs at once, on a GPU if there is one, each distinct pair computed once.

The extra ``learned`` installs what they need; importing this module imports neither torch nor
transformers. Checkpoints are directories, or snapshots in the hub's local cache. Nothing is
downloaded: the error about a missing checkpoint has the command that fetches it.

Scores are kept between runs in one SQLite file, ``learned/pairs.sqlite3`` in the user's cache
directory. It only saves
time: if it cannot be read or written, scores are computed without it, with a warning.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import math
import re
import sqlite3
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np

from medtasks.core.cache import cache_root
from medtasks.core.errors import MedtasksError, UsageError, first_line
from medtasks.core.files import file_sha256, file_state
from medtasks.core.settings import current_settings
from medtasks.core.text import well_formed
from medtasks.metrics.base import (
    Array,
    MeanMetric,
    MetricUnavailableError,
    Pairs,
    mean_table,
    package_version,
    sign,
)
from medtasks.metrics.facts import MetricFacts

T = TypeVar("T")
Pair: TypeAlias = tuple[str, str]
"""A prediction and its reference."""

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
TOKENIZER = ("tokenizer.json", "vocab.json", "vocab.txt", "*.model")
BATCH = 64  # texts or pairs in one forward pass
CHUNK = 256  # pairs between two writes to the cache; their embeddings are in memory
LOCK_SECONDS = 60.0  # how long to wait for another process's transaction
_TABLE = (
    "CREATE TABLE IF NOT EXISTS scores (signature TEXT NOT NULL, pair BLOB NOT NULL, score REAL NOT NULL, "
    "PRIMARY KEY (signature, pair)) WITHOUT ROWID"
)


@dataclass(frozen=True)
class Checkpoint:
    """``identity`` changes with any weight or setting: the commit, or the fingerprint of the
    directory. ``label``, in signatures, is the hub id, or the first 16 hex digits of the
    identity.
    """

    directory: Path
    label: str
    identity: str


def find_checkpoint(name: str, variable: str) -> Checkpoint:
    """The checkpoint called ``name``, a directory or a hub id; messages suggest ``variable`` to
    name another.

    Raises:
        MetricUnavailableError: it is not on this machine, or lacks configuration, tokenizer or
            weights.
    """
    directory, fix = Path(name).expanduser(), f"name a complete checkpoint directory in {variable}"
    is_local = directory.is_dir()
    if not is_local:
        if not HUB_ID.fullmatch(name):
            raise MetricUnavailableError(
                f"{name} is neither a checkpoint directory nor a hub id (owner/name); name one in {variable}"
            )
        fix = f"run `hf download {name}`, or name a checkpoint directory in {variable}"
        from huggingface_hub import constants

        config = None
        if (Path(constants.HF_HUB_CACHE) / f"models--{name.replace('/', '--')}").is_dir():
            from huggingface_hub import (
                try_to_load_from_cache,
            )  # which takes longer than scoring a few samples

            config = try_to_load_from_cache(name, "config.json")
        if not isinstance(config, str):
            raise MetricUnavailableError(f"the model {name} is not on this machine; {fix}")
        directory = Path(config).parent
    kinds = {"config.json": ("config.json",), "tokenizer": TOKENIZER, "weights": WEIGHTS}
    for kind, patterns in kinds.items():
        if not any(path.is_file() for pattern in patterns for path in directory.glob(pattern)):
            raise MetricUnavailableError(
                f"{directory} contains no {kind} ({' or '.join(patterns)}); {fix}"
            )
    if not is_local:
        return Checkpoint(directory, name, directory.name)
    patterns = ("*.json", "*.txt", "*.model", *WEIGHTS)
    files = sorted(
        {path for pattern in patterns for path in directory.glob(pattern) if path.is_file()}
    )
    identity = _fingerprint(tuple((path, file_state(path.stat())) for path in files))
    return Checkpoint(directory, identity[:16], identity)


@lru_cache(maxsize=8)
def _fingerprint(files: tuple[tuple[Path, tuple[int, ...]], ...]) -> str:
    """Weights count in full: a cached score of another fine-tuning would be a wrong score."""
    return hashlib.sha256(
        "".join(f"{path.name}\0{file_sha256(path)}\n" for path, _ in files).encode()
    ).hexdigest()


def load_weights(
    auto_class: Any, config: Any, checkpoint: Checkpoint, optional: str | None = None
) -> Any:
    """The model in single precision and evaluation mode, on the GPU if there is one.

    An error says which weights are missing: transformers would fill them with random numbers.
    Weights with the word ``optional`` in their name may be missing, because no score depends on
    them.
    """
    import torch

    try:
        with no_progress_bars():
            options = {
                "dtype": torch.float32,
                "local_files_only": True,
                "output_loading_info": True,
            }
            model, report = auto_class.from_pretrained(
                str(checkpoint.directory), config=config, **options
            )
    except Exception as error:  # transformers, safetensors and pickle raise a dozen unrelated types
        raise MedtasksError(
            f"{checkpoint.directory}: the model cannot be loaded: {first_line(error)}"
        ) from error
    missing = sorted(
        key
        for key in map(str, report.get("missing_keys", ()))
        if optional is None or optional not in key
    )
    if missing:
        raise MedtasksError(
            f"{checkpoint.directory}: {len(missing)} weight(s) missing, first {missing[0]}; "
            f"expected a complete {type(model).__name__}, take another checkpoint"
        )
    model.eval()
    return model.to("cuda" if torch.cuda.is_available() else "cpu")


@contextlib.contextmanager
def no_progress_bars() -> Iterator[None]:
    """Disable transformers' progress bars inside the block; the setting is process-wide."""
    from transformers.utils import logging

    was_on = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if was_on:
            logging.enable_progress_bar()


class LearnedMetric(MeanMetric):
    """A mean metric whose score of a pair comes from a model.

    The seventh digit of a score may depend on the pairs in its batch, as with all float sums.
    Batches are formed from sorted texts, so the order of the pairs does not matter, and a cached
    score does not change. Lone surrogates are replaced by U+FFFD, since no tokenizer takes them.
    ``model_calls`` counts forward passes.
    """

    name: str
    packages: tuple[str, ...] = ("torch", "transformers")
    variable: str

    def __init__(self, model: str) -> None:
        self._model = model
        self._loaded: tuple[str, Any] | None = None
        self.model_calls = 0

    @property
    def model(self) -> str:
        """Hub id or checkpoint directory: the environment variable's, else the constructor's."""
        return str(getattr(current_settings(), f"{self.name}_model")) or self._model

    @property
    def signature(self) -> str:
        """Metric, model and versions; see the subclasses."""
        raise NotImplementedError

    def unavailable(self) -> str | None:
        """Why a package or the model is not on this machine, with the command that fixes it;
        offline.
        """
        for package in self.packages:
            if importlib.util.find_spec(package) is None:
                name = package.replace("_", "-")
                return f"the package {name} is not installed; run `pip install 'medtasks[learned]'`"
        try:
            self._checkpoint()
        except MetricUnavailableError as error:
            return str(error)
        return None

    def table(self, pairs: Pairs) -> Array:
        """``(score, 1)``; raises as :meth:`scores`."""
        return mean_table(self.scores(pairs))

    def scores(self, pairs: Sequence[Pair]) -> Array:
        """Scores, float64 of shape ``(n,)``, of n pairs (prediction, reference).

        Raises:
            MetricUnavailableError: a package or the model is absent.
            MedtasksError: the checkpoint cannot be loaded, or a score is not a finite number.
        """
        reason = self.unavailable()
        if reason is not None:
            raise MetricUnavailableError(reason)
        asked = [
            (well_formed(prediction), well_formed(reference)) for prediction, reference in pairs
        ]
        checkpoint = self._checkpoint()
        key = f"{self.signature}|identity:{checkpoint.identity}"
        known = kept_scores(key, list(dict.fromkeys(asked)))
        fresh = sorted(
            {pair for pair in asked if pair not in known}, key=lambda pair: (pair[1], pair[0])
        )
        for begin in range(0, len(fresh), CHUNK):
            chunk = fresh[begin : begin + CHUNK]
            if self._loaded is None or self._loaded[0] != key:
                self._loaded = None  # frees the memory of the previous one
                self._loaded = (key, self._load(checkpoint))
            computed = dict(zip(chunk, self._compute(self._loaded[1], chunk), strict=True))
            if not all(map(math.isfinite, computed.values())):
                raise MedtasksError(
                    f"{self.model}: {self.name} is not a finite number; check the weights"
                )
            keep_scores(key, computed)
            known.update(computed)
        return np.array([known[pair] for pair in asked], dtype=np.float64)

    def _load(self, checkpoint: Checkpoint) -> Any:
        """Model, tokenizer and what else `_compute` takes."""
        raise NotImplementedError

    def _compute(self, loaded: Any, pairs: list[Pair]) -> list[float]:
        """The scores of distinct pairs; adds its forward passes to ``model_calls``."""
        raise NotImplementedError

    def _checkpoint(self) -> Checkpoint:
        return find_checkpoint(self.model, self.variable)

    def _label(self) -> str:
        with contextlib.suppress(MetricUnavailableError):
            return self._checkpoint().label
        return self.model


def batches_by_length(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Indices in batches of similar lengths, shortest first, so that little of a batch is
    padding.
    """
    order = sorted(range(len(lengths)), key=lambda index: lengths[index])
    for begin in range(0, len(order), BATCH):
        yield order[begin : begin + BATCH]


def kept_scores(signature: str, pairs: Sequence[Pair]) -> dict[Pair, float]:
    """The stored scores of those of ``pairs`` that have one under this signature, which names
    everything that can change a score, model fingerprint included.
    """

    def read(connection: sqlite3.Connection) -> dict[Pair, float]:
        query = "SELECT score FROM scores WHERE signature = ? AND pair = ?"
        rows = (
            (pair, connection.execute(query, (signature, _pair_hash(pair))).fetchone())
            for pair in pairs
        )
        return {pair: row[0] for pair, row in rows if row is not None}

    return _in_file(read) or {}


def keep_scores(signature: str, scores: Mapping[Pair, float]) -> None:
    """Store ``scores`` in one transaction. A pair that has a score under this signature keeps
    it.
    """
    rows = [(signature, _pair_hash(pair), score) for pair, score in scores.items()]
    _in_file(
        lambda connection: connection.executemany(
            "INSERT OR IGNORE INTO scores VALUES (?, ?, ?)", rows
        )
    )


def _in_file(work: Callable[[sqlite3.Connection], T]) -> T | None:
    """What ``work`` returns, in one transaction; several processes may read and write at once.

    None, with a warning, if the file is read-only, locked for too long or damaged, or the disk is
    full.
    """
    path = cache_root() / "learned" / "pairs.sqlite3"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with (
            contextlib.closing(sqlite3.connect(path, timeout=LOCK_SECONDS)) as connection,
            connection,
        ):
            connection.execute(_TABLE)
            return work(connection)
    except (OSError, sqlite3.Error) as error:
        text = f"{path}: the score cache cannot be used ({error}); if it is damaged, delete it"
        warnings.warn(text, RuntimeWarning, stacklevel=4)
        return None


def _pair_hash(pair: Pair) -> bytes:
    """What is stored of a pair instead of its text."""
    prediction, reference = (text.encode("utf-8", "surrogatepass") for text in pair)
    return hashlib.sha256(b"%d:%b%b" % (len(prediction), prediction, reference)).digest()


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
    facts = MetricFacts(item_bounds=(-math.inf, 1.0), cited=("zhang2020bertscore",))
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
        choices = {"idf": "no", "rescale": "no", "prefix_space": "yes"}
        return sign(self.name, model=self._label(), layer=self.layer, **choices, **versions)

    def _load(self, checkpoint: Checkpoint) -> tuple[Any, Any, defaultdict[int, float]]:
        # with the weights of tokens: 1, special tokens 0, as in the library without IDF
        from transformers import (
            AutoConfig,
            AutoModel,
            AutoTokenizer,
            GPT2Tokenizer,
            RobertaTokenizer,
        )

        where = str(checkpoint.directory)
        config = AutoConfig.from_pretrained(where, local_files_only=True)
        if getattr(config, "is_encoder_decoder", False):
            raise UsageError(
                f"{self.model} is an encoder with a decoder, expected an encoder such as roberta-large"
            )
        layers = config.num_hidden_layers
        if not 1 <= self.layer <= layers:
            raise UsageError(
                f"layer {self.layer} of {self.model} does not exist; it has 1 to {layers}"
            )
        config.num_hidden_layers = self.layer  # the layers above are never needed
        model = load_weights(AutoModel, config, checkpoint, optional="pooler")
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
        weights: defaultdict[int, float] = defaultdict(lambda: 1.0)
        weights[tokenizer.sep_token_id] = weights[tokenizer.cls_token_id] = 0.0
        return model, tokenizer, weights

    def _compute(
        self, loaded: tuple[Any, Any, defaultdict[int, float]], pairs: list[Pair]
    ) -> list[float]:
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
                embedded[texts[index]] = (
                    embeddings[row, :end],
                    masks[row, :end],
                    token_weights[row, :end],
                )
        scores = []
        for prediction, reference in pairs:
            sides = [embedded[text.strip()] for text in (reference, prediction) if text.strip()]
            if len(sides) < 2:
                scores.append(0.0)
                continue
            # one row each: in a batch, padding can match better than a negative similarity; clones,
            # because the library normalises in place
            parts = [part.clone().unsqueeze(0) for side in sides for part in side]
            scores.append(float(greedy_cos_idf(*parts)[2].item()))
        return scores


MAX_TOKENS = 128
TEXT_TOKENS = MAX_TOKENS - 3  # [CLS] and two [SEP]


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
    facts = MetricFacts(unit="score", cited=("sellam2020bleurt",))
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
        if (
            config.model_type != "bert"
            or config.num_labels != 1
            or config.max_position_embeddings < MAX_TOKENS
        ):
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
            options = {
                "add_special_tokens": False,
                "split_special_tokens": True,
                "truncation": True,
            }
            ids.append(tokenizer(list(side), max_length=TEXT_TOKENS, **options)["input_ids"])
        rows = []
        for prediction, reference in zip(*ids, strict=True):
            of_reference, of_prediction = kept_tokens(len(reference), len(prediction))
            first = [tokenizer.cls_token_id, *reference[:of_reference], tokenizer.sep_token_id]
            second = [*prediction[:of_prediction], tokenizer.sep_token_id]
            rows.append(
                {
                    "input_ids": first + second,
                    "token_type_ids": [0] * len(first) + [1] * len(second),
                }
            )
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
        return scores


def kept_tokens(reference: int, prediction: int, limit: int = TEXT_TOKENS) -> tuple[int, int]:
    """How many tokens of each side are kept: the longer side (on a tie, the prediction) loses one
    until both fit.

    >>> kept_tokens(100, 40), kept_tokens(20, 200), kept_tokens(90, 90)
    ((85, 40), (20, 105), (63, 62))
    """
    half = limit // 2
    if reference + prediction <= limit:
        return reference, prediction
    if reference <= half:
        return reference, limit - reference
    return (limit - prediction, prediction) if prediction <= half else (limit - half, half)


LEARNED: Mapping[str, LearnedMetric] = {metric.name: metric for metric in (BertScore(), Bleurt())}
"""The learned metrics by name, with the models of the scripts behind table 6 of arXiv
2506.09958.
"""
