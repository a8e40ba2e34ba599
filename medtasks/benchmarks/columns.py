"""Shorthands for several columns of a board layout."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from medtasks.benchmarks.card import ALL_GROUPS, Column


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
