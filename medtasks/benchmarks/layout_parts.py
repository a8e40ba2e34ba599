"""Columns, tables and figures of which board layouts are made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from medtasks.catalog.board_layout import ALL_GROUPS, BoardLayout, Column, LayoutTable, Plot
from medtasks.catalog.task_model import prompt_metric
from medtasks.metrics.item_metrics import ErrorRate

HEADLINE = "headline"
"""The table of headline scores; no other table may have the name."""

_PROMPTS_NOTE = (
    "Spread: standard deviation of the scores under different prompts, corrected for "
    "sampling noise; 0 means that the prompt has no effect. The standard error of one prompt's "
    "score is about a quarter of its interval's width. Worst and best prompt: chosen on one "
    "half of the clusters and scored on the other."
)

HARMS = "could harm a patient"
"""The leaderboard's remark on errors that could do so if they go unnoticed."""


def scores(task: str, metrics: Mapping[str, str], suffix: str = "") -> tuple[Column, ...]:
    """Several metrics of one task; ``metrics`` maps each to its heading."""
    return tuple(Column(task, metric, f"{label}{suffix}") for metric, label in metrics.items())


def tasks(names: Mapping[str, str], metric: str, suffix: str = "") -> tuple[Column, ...]:
    """One metric of several tasks; ``names`` maps each to its heading."""
    return tuple(Column(task, metric, f"{label}{suffix}") for task, label in names.items())


def groups(task: str, metric: str, breakdown: str) -> tuple[Column, ...]:
    """One metric over every group of a breakdown."""
    return (Column(task, metric, breakdown, breakdown, ALL_GROUPS),)


def with_notes(notes: Mapping[str, str], *tables: LayoutTable) -> tuple[LayoutTable, ...]:
    """The tables, with the ``notes`` on them by name; tables with a note of their own keep it."""
    noted: list[LayoutTable] = []
    for table in tables:
        note = table.note or notes.get(table.name, "")
        noted.append(replace(table, note=note))
    return tuple(noted)


def prompt_sensitivity(
    task: str, prompts: int, metric: str = "accuracy"
) -> tuple[LayoutTable, tuple[Plot, ...]]:
    """Table and figures of a task or group that is asked with several prompts.

    ``metric`` is its first one.
    """
    labels = {
        metric: "mean over prompts",
        "worst_prompt": "worst prompt",
        "best_prompt": "best prompt",
        "prompt_spread": "spread over prompts",
        "prompt_agreement": "same option under every prompt",
    }
    prompt_labels = {prompt_metric(number): f"prompt {number}" for number in range(1, prompts + 1)}
    over_prompts = scores(task, labels)
    by_prompt = scores(task, prompt_labels)
    table = LayoutTable(
        "prompt-sensitivity",
        "Paraphrased prompts",
        (*over_prompts, *by_prompt),
        note=_PROMPTS_NOTE,
    )
    ranks_title = "Rank under each prompt, from 0 (best) to 1 (last)"
    plots = (
        Plot("prompt-sensitivity", table.title, "bars", over_prompts),
        Plot("prompts", "Score under each prompt", "bars", by_prompt, chance=True),
        Plot("prompt-ranks", ranks_title, "heatmap", by_prompt, ranks=True),
    )
    return table, plots


def option_order(
    task: str, parts: Mapping[str, str], metric: str = "accuracy"
) -> tuple[LayoutTable, tuple[Plot, ...]]:
    """Table and figures of a task or group whose options are rotated.

    ``parts`` maps the tasks or groups in it to their headings.
    """
    labels = {
        metric: "mean over rotations",
        "circular_accuracy": "right in every rotation",
        "rotation_consistency": "same option in every rotation",
        "letter_preference": "letter preference",
    }
    columns = scores(task, labels)
    table = LayoutTable(
        "option-order",
        "Options in every rotation",
        (*columns, *tasks(parts, "circular_accuracy", ", every rotation")),
        note="Letter preference: the difference between the chosen letters and those expected "
        "without any preference; 0 is best.",
    )
    plots = (
        Plot("option-order", table.title, "bars", columns),
        Plot("rotated-letters", "Letters chosen with rotated options", "letters", columns[:1]),
    )
    return table, plots


def error_columns(
    task: str,
    rates: Iterable[ErrorRate],
    suffix: str = "",
    *,
    breakdown: str | None = None,
    group: str | None = None,
) -> tuple[Column, ...]:
    """Rates of kinds of error: first those that could harm a patient.

    Then follow errors that do no harm, then correct outcomes.
    """
    columns = []
    for rate in sorted(rates, key=lambda rate: (rate.higher_is_better, not rate.harms)):
        label = f"{rate.label}{suffix}"
        columns.append(Column(task, rate.name, label, breakdown, group, _remark(rate)))
    return tuple(columns)


def _remark(rate: ErrorRate) -> str:
    """What the board says below the heading of a rate; nothing about correct outcomes."""
    if rate.higher_is_better:
        return ""
    return HARMS if rate.harms else "no harm by itself"


def kinds_of_error(
    columns: Sequence[Column], further: Sequence[Column] = (), note: str = "", name: str = "errors"
) -> tuple[LayoutTable, Plot]:
    """Table and figure of kinds of error.

    ``further`` columns, and those without a remark, are only in the table.
    """
    harmful = ", ".join(column.label.lower() for column in columns if column.remark == HARMS)
    notes = []
    if harmful:
        notes.append(f"Errors that could harm a patient if they go unnoticed: {harmful}.")
    if note:
        notes.append(note)
    without_remarks = [replace(column, remark="") for column in further]
    table = LayoutTable(name, "Kinds of error", (*columns, *without_remarks), note=" ".join(notes))
    plotted = tuple(column for column in columns if column.remark)
    return table, Plot(name, table.title, "bars", plotted, note="Lower is better.")


def columns_of(layout: BoardLayout) -> Iterator[Column]:
    """Every column of the layout, headline first."""
    yield from layout.headline
    for table in layout.tables:
        yield from table.columns
    for plot in layout.plots:
        yield from plot.columns
        yield from plot.against
