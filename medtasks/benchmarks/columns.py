"""Shorthands for several columns of a board layout."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from medtasks.benchmarks.card import ALL_GROUPS, CardTable, Column, Plot
from medtasks.task_model import prompt_metric


def scores(task: str, metrics: Mapping[str, str], suffix: str = "") -> tuple[Column, ...]:
    """Several metrics of one task; ``metrics`` maps each to its heading."""
    return tuple(Column(task, metric, f"{label}{suffix}") for metric, label in metrics.items())


def tasks(names: Mapping[str, str], metric: str) -> tuple[Column, ...]:
    """One metric of several tasks; ``names`` maps each to its heading."""
    return tuple(Column(task, metric, label) for task, label in names.items())


def groups(task: str, metric: str, breakdown: str) -> tuple[Column, ...]:
    """One metric over every group of a breakdown."""
    return (Column(task, metric, breakdown, breakdown, ALL_GROUPS),)


def labelled(columns: Iterable[Column], suffix: str) -> tuple[Column, ...]:
    """The columns, with ``suffix`` after their headings."""
    return tuple(replace(column, label=f"{column.label}{suffix}") for column in columns)


def prompt_sensitivity(task: str, prompts: int, metric: str = "accuracy") -> tuple[CardTable, tuple[Plot, ...]]:
    """Table and figures of a task or group that is asked with several prompts, whose first metric is ``metric``."""
    over = scores(task, {metric: "mean over prompts", **_PROMPT_LABELS})
    each = scores(task, {prompt_metric(number): f"prompt {number}" for number in range(1, prompts + 1)})
    table = CardTable(
        "prompt-sensitivity",
        "Paraphrased prompts",
        (*over, *each),
        note="Spread: standard deviation of the prompts' scores, without what sampling noise adds; 0 for a model "
        "that does not depend on the prompt. The standard error of one prompt's score is about a quarter of its "
        "interval's width. Worst and best prompt: chosen on one half of the clusters, scored on the other.",
    )
    plots = (
        Plot("prompt-sensitivity", table.title, "bars", over),
        Plot("prompts", "Score under each prompt", "bars", each, chance=True),
        Plot("prompt-ranks", "Rank under each prompt", "heatmap", each, ranks=True),
    )
    return table, plots


_PROMPT_LABELS = {
    "worst_prompt": "worst prompt",
    "best_prompt": "best prompt",
    "prompt_spread": "spread over prompts",
    "prompt_agreement": "same option under every prompt",
}

_ORDER_LABELS = {
    "circular_accuracy": "right in every rotation",
    "rotation_consistency": "same option in every rotation",
    "letter_preference": "letter preference",
}


def option_order(task: str, parts: Mapping[str, str], metric: str = "accuracy") -> tuple[CardTable, tuple[Plot, ...]]:
    """Table and figures of a task or group whose options are rotated.

    Args:
        task: its name.
        parts: headings of its parts, for their circular accuracies.
        metric: the metric of a single answer.
    """
    columns = scores(task, {metric: "mean over rotations", **_ORDER_LABELS})
    table = CardTable(
        "option-order",
        "Options in every rotation",
        (*columns, *labelled(tasks(parts, "circular_accuracy"), ", every rotation")),
        note="Letter preference: how far the letters chosen are from those of a model that prefers none; 0 is best.",
    )
    plots = (
        Plot("option-order", table.title, "bars", columns),
        Plot("rotated-letters", "Letters chosen with rotated options", "letters", columns[:1]),
    )
    return table, plots
