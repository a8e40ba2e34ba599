"""Which keys a task or group file may have, and what may stand under each: the harness's keys and our ``metadata``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from medtasks.validation.yaml_text import FunctionName

__all__ = [
    "AGGREGATIONS",
    "GENERATION_KEYS",
    "GROUP_KEYS",
    "METADATA_KEYS",
    "METRIC_KEYS",
    "OUTPUT_TYPES",
    "PIPELINE_KEYS",
    "REQUIRED_FOR_GROUPS",
    "REQUIRED_FOR_TASKS",
    "REQUIRED_METADATA",
    "TASK_KEYS",
    "TEMPLATE_KEYS",
    "Expected",
]


@dataclass(frozen=True)
class Expected:
    """What may stand under a key, in words and as a test."""

    words: str
    fits: Callable[[Any], bool]


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and not isinstance(value, FunctionName) and bool(value.strip())


def _is_function(value: Any) -> bool:
    return isinstance(value, FunctionName)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and -1e18 < value < 1e18


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(_is_text(item) for item in value)


def _is_stops(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


TEXT = Expected("a text", _is_text)
ANY_TEXT = Expected("a text", lambda value: isinstance(value, str) and not isinstance(value, FunctionName))
FUNCTION = Expected("`!function` with the dotted name of a function", _is_function)
TEXT_OR_FUNCTION = Expected("a text or `!function` with a dotted name", lambda one: _is_text(one) or _is_function(one))
CHOICES = Expected(
    "a text, a list, a mapping or `!function` with a dotted name",
    lambda one: _is_text(one) or _is_function(one) or isinstance(one, (list, dict)),
)
MAPPING = Expected("a mapping", lambda value: isinstance(value, dict))
ENTRIES = Expected("a list that is not empty", lambda value: isinstance(value, list) and bool(value))
TEXTS = Expected("a list of texts", _is_texts)
MEMBERS = Expected("a list of names that is not empty", lambda value: _is_texts(value) and bool(value))
STOPS = Expected("a list of texts, which may be empty", _is_stops)
YES_NO = Expected("true or false", lambda value: isinstance(value, bool))
COUNT = Expected("a whole number from 1", lambda value: _is_whole(value) and value >= 1)
FROM_ZERO = Expected("a whole number from 0", lambda value: _is_whole(value) and value >= 0)
WHOLE = Expected("a whole number", _is_whole)
AMOUNT = Expected("a number from 0", lambda value: _is_number(value) and math.isfinite(value) and value >= 0)
SHARE = Expected("a number above 0, up to 1", lambda value: _is_number(value) and 0 < value <= 1)
VERSION = Expected("a version number above 0", lambda value: _is_number(value) and math.isfinite(value) and value > 0)
TAGS = Expected("none, a text or a list", lambda value: _is_text(value) or isinstance(value, list))
TEXT_OR_TEXTS = Expected("a text or a list of texts", lambda value: _is_text(value) or _is_texts(value))

TASK_KEYS: Mapping[str, Expected] = {
    "task": TEXT,
    "task_alias": TEXT,
    "tag": TEXT_OR_TEXTS,
    "dataset_path": TEXT,
    "dataset_name": TEXT,
    "dataset_kwargs": MAPPING,
    "training_split": TEXT,
    "validation_split": TEXT,
    "test_split": TEXT,
    "fewshot_split": TEXT,
    "full_docs": YES_NO,
    "process_results_use_image": YES_NO,
    "process_docs": FUNCTION,
    # as texts these would be templates over all fields of a document, hidden ones too
    "doc_to_visual": FUNCTION,
    "doc_to_text": FUNCTION,
    "doc_to_messages": FUNCTION,
    "doc_to_target": TEXT_OR_FUNCTION,
    "doc_to_choice": CHOICES,
    "process_results": FUNCTION,
    "description": ANY_TEXT,
    "target_delimiter": ANY_TEXT,
    "fewshot_delimiter": ANY_TEXT,
    "fewshot_config": MAPPING,
    "num_fewshot": FROM_ZERO,
    "metric_list": ENTRIES,
    "output_type": TEXT,
    "generation_kwargs": MAPPING,
    "repeats": COUNT,
    "filter_list": ENTRIES,
    "cluster_key": TEXT,
    "score_key": TEXT,
    "metadata": MAPPING,
    "lmms_eval_specific_kwargs": MAPPING,
    "model_specific_generation_kwargs": MAPPING,
    "model_specific_target_kwargs": MAPPING,
    "reasoning_tags": TAGS,
    "auto_strip_thinking": YES_NO,
}
"""Keys of a task file."""

GROUP_KEYS: Mapping[str, Expected] = {
    "group": TEXT,
    "group_alias": TEXT,
    "task": MEMBERS,
    "aggregate_metric_list": ENTRIES,
    "metadata": MAPPING,
}
"""Keys of a group file."""

METADATA_KEYS: Mapping[str, Expected] = {
    "version": VERSION,
    "benchmark": TEXT,
    "title": TEXT,
    "breakdowns": TEXTS,
    "pooled": TEXTS,
    "learned": TEXTS,
    "rubrics": TEXTS,
    "compare_with": TEXT,
}
"""Keys of ``metadata``."""

GENERATION_KEYS: Mapping[str, Expected] = {
    "max_new_tokens": COUNT,
    "temperature": AMOUNT,
    "do_sample": YES_NO,
    "until": STOPS,
    "top_p": SHARE,
    "top_k": FROM_ZERO,
    "min_p": AMOUNT,
    "num_beams": COUNT,
    "repetition_penalty": AMOUNT,
    "seed": WHOLE,
}
"""Keys of ``generation_kwargs`` that back-ends commonly know."""

METRIC_KEYS: Mapping[str, Expected] = {
    "metric": TEXT,
    "aggregation": TEXT_OR_FUNCTION,
    "higher_is_better": YES_NO,
}
"""Keys of one entry of ``metric_list``; all are required."""

PIPELINE_KEYS: Mapping[str, Expected] = {"name": TEXT, "filter": ENTRIES}
"""Keys of one entry of ``filter_list``; all are required."""

TEMPLATE_KEYS: Mapping[str, Expected] = {"template": TEXT, "stage1_template": TEXT}
"""Keys of ``lmms_eval_specific_kwargs`` that must be texts; a benchmark may have others."""

REQUIRED_FOR_TASKS = (
    "task",
    "dataset_path",
    "test_split",
    "output_type",
    "process_docs",
    "doc_to_visual",
    "doc_to_text",
    "doc_to_messages",
    "doc_to_target",
    "process_results",
    "generation_kwargs",
    "metric_list",
    "filter_list",
    "lmms_eval_specific_kwargs",
    "metadata",
)
REQUIRED_FOR_GROUPS = ("group", "task", "metadata")
REQUIRED_METADATA = ("version", "benchmark", "title")

OUTPUT_TYPES = ("generate_until", "generate_until_multi_round", "generate_until_agentic")
"""The harness's kinds of request for which the protocol of this package is made."""

AGGREGATIONS = frozenset({"mean", "median", "bypass"})
"""Aggregations of the harness that can be named, and make sense of one number a sample."""
