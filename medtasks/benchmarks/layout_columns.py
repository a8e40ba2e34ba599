"""Shorthands for several columns of a board layout."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from medtasks.catalog.board_layout import ALL_GROUPS, Column, LayoutTable, Plot
from medtasks.catalog.task_model import prompt_metric
from medtasks.metrics.item_metrics import ErrorRate


def scores(task: str, metrics: Mapping[str, str], suffix: str = "") -> tuple[Column, ...]:
    """Several metrics of one task; ``metrics`` maps each to its heading."""
    return tuple(Column(task, metric, f"{label}{suffix}") for metric, label in metrics.items())


def tasks(names: Mapping[str, str], metric: str, suffix: str = "") -> tuple[Column, ...]:
    """One metric of several tasks; ``names`` maps each to its heading."""
    return tuple(Column(task, metric, f"{label}{suffix}") for task, label in names.items())


def groups(task: str, metric: str, breakdown: str) -> tuple[Column, ...]:
    """One metric over every group of a breakdown."""
    return (Column(task, metric, breakdown, breakdown, ALL_GROUPS),)


def prompt_sensitivity(task: str, prompts: int, metric: str = "accuracy") -> tuple[LayoutTable, tuple[Plot, ...]]:
    """Table and figures of a task or group that is asked with several prompts, whose first metric is ``metric``."""
    over = scores(task, {metric: "mean over prompts", **_PROMPT_LABELS})
    each = scores(task, {prompt_metric(number): f"prompt {number}" for number in range(1, prompts + 1)})
    table = LayoutTable(
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
        Plot("prompt-ranks", "Rank under each prompt, from 0 (best) to 1 (last)", "heatmap", each, ranks=True),
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


def option_order(task: str, parts: Mapping[str, str], metric: str = "accuracy") -> tuple[LayoutTable, tuple[Plot, ...]]:
    """Table and figures of a task or group whose options are rotated; ``parts`` are its parts with their headings."""
    columns = scores(task, {metric: "mean over rotations", **_ORDER_LABELS})
    table = LayoutTable(
        "option-order",
        "Options in every rotation",
        (*columns, *tasks(parts, "circular_accuracy", ", every rotation")),
        note="Letter preference: how far the letters chosen are from those of a model that prefers none; 0 is best.",
    )
    plots = (
        Plot("option-order", table.title, "bars", columns),
        Plot("rotated-letters", "Letters chosen with rotated options", "letters", columns[:1]),
    )
    return table, plots


HARMS = "could harm a patient"
"""What the board calls errors that could, if nobody noticed them."""


def error_columns(
    task: str, rates: Iterable[ErrorRate], suffix: str = "", *, breakdown: str | None = None, group: str | None = None
) -> tuple[Column, ...]:
    """Rates of kinds of error: first those that could harm a patient, then those that do not, then correct outcomes."""
    columns = []
    for rate in sorted(rates, key=lambda rate: (rate.higher_is_better, not rate.harms)):
        remark = "" if rate.higher_is_better else HARMS if rate.harms else "no harm by itself"
        columns.append(Column(task, rate.name, f"{rate.label}{suffix}", breakdown, group, remark))
    return tuple(columns)


def kinds_of_error(
    columns: Sequence[Column], further: Sequence[Column] = (), note: str = "", name: str = "errors"
) -> tuple[LayoutTable, Plot]:
    """Table and figure of kinds of error; ``further`` columns and those without a remark are only in the table."""
    harmful = ", ".join(column.label.lower() for column in columns if column.remark == HARMS)
    further = [replace(column, remark="") for column in further]
    notes = [f"Could harm a patient if nobody noticed: {harmful}." if harmful else "", note]
    table = LayoutTable(name, "Kinds of error", (*columns, *further), note=" ".join(filter(None, notes)))
    drawn = tuple(column for column in columns if column.remark)
    return table, Plot(name, table.title, "bars", drawn, note="Lower is better.")
