"""The published recipe of Kvasir-VQA-x1: Hugging Face ``evaluate`` metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import evaluate

Compute = Callable[[list[str], list[str]], dict[str, float]]
"""A metric as a function of (predictions, references)."""
_MODULES = ("rouge", "meteor", "chrf", "bleu", "exact_match")


def published_recipe() -> tuple[dict[str, Compute], str]:
    """The metrics by name, and where their modules came from."""
    modules, origin = _modules()
    return {
        "rouge": partial(_rouge, modules["rouge"], True),
        "rouge, no bootstrap": partial(_rouge, modules["rouge"], False),
        "meteor": partial(_single, modules["meteor"], "meteor", "meteor"),
        "chrf": partial(_single, modules["chrf"], "chrf", "score"),
        "chrf++": partial(_single, modules["chrf"], "chrf++", "score", word_order=2),
        "bleu": partial(_single, modules["bleu"], "bleu", "bleu"),
        "exact_match": partial(_exact_match, modules["exact_match"]),
    }, origin


def _modules() -> tuple[Mapping[str, Any], str]:
    """The hub's modules or, without the hub, those of ``hf_metrics``."""
    try:
        return {name: evaluate.load(name) for name in _MODULES}, "the hub's modules"
    except Exception as error:  # whatever a missing hub raises: connection, cache, offline errors
        local = Path(__file__).parent / "hf_metrics"
        modules = {name: evaluate.load(str(local / name)) for name in _MODULES}
        reason = type(error).__name__
        return modules, f"local modules of `performance/hf_metrics` (the hub: {reason})"


def _rouge(
    module: Any, aggregated: bool, predictions: list[str], references: list[str]
) -> dict[str, float]:
    scores = module.compute(
        predictions=predictions,
        references=references,
        rouge_types=["rouge1", "rouge2", "rougeL"],
        use_aggregator=aggregated,
    )
    if aggregated:
        return dict(scores)
    return {name: float(sum(values) / len(values)) for name, values in scores.items()}


def _single(
    module: Any,
    name: str,
    key: str,
    predictions: list[str],
    references: list[str],
    **options: Any,
) -> dict[str, float]:
    result = module.compute(predictions=predictions, references=references, **options)
    return {name: float(result[key])}


def _exact_match(module: Any, predictions: list[str], references: list[str]) -> dict[str, float]:
    stripped_predictions = [text.strip().lower() for text in predictions]
    stripped_references = [text.strip().lower() for text in references]
    return _single(module, "exact_match", "exact_match", stripped_predictions, stripped_references)
