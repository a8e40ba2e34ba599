"""All lexical metrics of many samples at once: the numbers of ``Metric.statistics``, bit for bit, without its
repeats.

Each distinct text is tokenized once for all metrics, each distinct pair is scored once, and the n-gram
metrics count through integer sorts (`medtasks.metrics._ngrams`). Nothing computed for one sample depends on
its neighbours, so order, chunking and workers cannot change a number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

from medtasks.errors import UsageError
from medtasks.metrics import meteor
from medtasks.metrics._lcs import lcs_length
from medtasks.metrics._ngrams import Integers, matched_ngrams
from medtasks.metrics.base import Array
from medtasks.metrics.bleu import MAX_ORDER, tokenize_13a
from medtasks.metrics.chrf import CHAR_ORDER, chrf_words
from medtasks.metrics.lookup import get_metric
from medtasks.metrics.registry import LEXICAL

__all__ = ["lexical_statistics"]

CHUNK = 2048  # pairs at a time: enough for the sorts to pay, little enough to keep memory flat


def lexical_statistics(
    predictions: Sequence[str],
    references: Sequence[str],
    metrics: Sequence[str] = LEXICAL,
    workers: int = 1,
) -> tuple[dict[str, Array], dict[str, str]]:
    """Sufficient statistics of every sample under every metric.

    Args:
        predictions: n texts.
        references: n texts, in the same order.
        metrics: names out of ``LEXICAL``.
        workers: threads. Most of the work holds Python's global lock, so more than one gains little on an
            ordinary build; the results are the same.

    Returns:
        ``{name: float64 (n, width)}`` and, for each metric that cannot be computed here, ``{name: reason}``.

    Raises:
        UsageError: the two sequences differ in length, a name is not a lexical metric, or ``workers`` is
            below 1.
    """
    if len(predictions) != len(references):
        raise UsageError(f"found {len(predictions)} predictions and {len(references)} references, expected as many")
    if workers < 1:
        raise UsageError(f"workers is {workers}, expected 1 or more")
    unknown = [name for name in metrics if name not in LEXICAL]
    if unknown:
        raise UsageError(f"{unknown[0]!r} is not a lexical metric; choose from {', '.join(LEXICAL)}")
    reasons = {name: reason for name in metrics if (reason := get_metric(name).unavailable()) is not None}
    computed = [name for name in metrics if name not in reasons]

    distinct: dict[tuple[str, str], int] = {}
    rows = [distinct.setdefault(pair, len(distinct)) for pair in zip(predictions, references, strict=True)]
    pairs = list(distinct)
    chunks = [pairs[begin : begin + CHUNK] for begin in range(0, len(pairs), CHUNK)]
    score = partial(_chunk_statistics, metrics=computed)
    if workers == 1:
        parts = list(map(score, chunks))
    else:
        with ThreadPoolExecutor(workers) as pool:
            parts = list(pool.map(score, chunks))

    statistics = {}
    for name in computed:
        empty = np.zeros((0, get_metric(name).width))
        statistics[name] = np.concatenate([empty, *(part[name] for part in parts)])[rows]
    return statistics, reasons


def _chunk_statistics(pairs: list[tuple[str, str]], metrics: Sequence[str]) -> dict[str, Array]:
    """The statistics of one chunk of pairs, each family of metrics from one extraction."""
    wanted = set(metrics)
    found: dict[str, Array] = {}
    if wanted & {"rouge1", "rouge2", "rougeL"}:
        found |= _rouge(pairs, wanted)
    if wanted & {"chrf", "chrf++"}:
        found |= _chrf(pairs, wanted)
    if "bleu" in wanted:
        found["bleu"] = _bleu(pairs)
    if "meteor" in wanted:
        found["meteor"] = _meteor(pairs)
    if "exact_match" in wanted:
        single = get_metric("exact_match").statistics
        found["exact_match"] = np.array([single(prediction, reference) for prediction, reference in pairs])
    return {name: found[name] for name in metrics}


def _sides(
    pairs: list[tuple[str, str]], tokenize: Callable[[str], list[str]]
) -> tuple[list[list[str]], list[list[str]]]:
    """Tokens of the predictions and of the references; a text that occurs twice is tokenized once."""
    tokens = {text: tokenize(text) for text in dict.fromkeys(text for pair in pairs for text in pair)}
    return [tokens[prediction] for prediction, _ in pairs], [tokens[reference] for _, reference in pairs]


def _rouge(pairs: list[tuple[str, str]], wanted: set[str]) -> dict[str, Array]:
    from rouge_score.tokenize import tokenize

    predictions, references = _sides(pairs, partial(tokenize, stemmer=None))
    found = {}
    if wanted & {"rouge1", "rouge2"}:
        counts = matched_ngrams(predictions, references, 2)
        found["rouge1"], found["rouge2"] = _mean_f1(counts[:, 0]), _mean_f1(counts[:, 1])
    if "rougeL" in wanted:
        lengths = map(lcs_length, references, predictions)
        sizes = ((len(left), len(right)) for left, right in zip(predictions, references, strict=True))
        counts = np.array([(*size, length) for size, length in zip(sizes, lengths, strict=True)], dtype=np.int64)
        found["rougeL"] = _mean_f1(counts)
    return found


def _mean_f1(counts: Integers) -> Array:
    """``(F1, 1)`` per row of (prediction count, reference count, matches), rounded as rouge-score rounds."""
    precision = counts[:, 2] / np.maximum(counts[:, 0], 1)
    recall = counts[:, 2] / np.maximum(counts[:, 1], 1)
    total = precision + recall
    f1 = np.divide(2 * precision * recall, total, out=np.zeros(len(counts)), where=total > 0)
    return np.column_stack([f1, np.ones(len(counts))])


def _chrf(pairs: list[tuple[str, str]], wanted: set[str]) -> dict[str, Array]:
    squeezed = {text: "".join(text.split()) for pair in pairs for text in pair}
    counts = matched_ngrams([squeezed[left] for left, _ in pairs], [squeezed[right] for _, right in pairs], CHAR_ORDER)
    found = {"chrf": _chrf_rows(counts)}
    if "chrf++" in wanted:
        words = matched_ngrams(*_sides(pairs, chrf_words), max_order=2)
        found["chrf++"] = np.hstack([found["chrf"], _chrf_rows(words)])
    return found


def _chrf_rows(counts: Integers) -> Array:
    """sacrebleu's row: the prediction count of an order is 0 where the reference has no such n-gram."""
    predicted = np.where(counts[:, :, 1] > 0, counts[:, :, 0], 0)
    rows = np.stack([predicted, counts[:, :, 1], counts[:, :, 2]], axis=-1)
    return rows.reshape(len(counts), -1).astype(np.float64)


def _bleu(pairs: list[tuple[str, str]]) -> Array:
    counts = matched_ngrams(*_sides(pairs, tokenize_13a), max_order=MAX_ORDER)
    return np.hstack([counts[:, 0, :2], counts[:, :, 2], counts[:, :, 0]]).astype(np.float64)


def _meteor(pairs: list[tuple[str, str]]) -> Array:
    predictions, references = _sides(pairs, meteor.word_tokens)
    scores = list(map(meteor.token_score, predictions, references))
    return np.column_stack([scores, np.ones(len(scores))])
