"""The columns of a board layout with key, unit, direction and chance level; breakdowns have one per group."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from medtasks.catalog.board_layout import ALL_GROUPS, Column
from medtasks.metrics.item_metrics import SIGNED
from medtasks.metrics.registry import get_metric
from medtasks.metrics.registry import unit_of as unit_of

from .board import BoardColumn

GroupsOf = Callable[[str, str], Iterable[str]]
"""The groups of a task's breakdown in the results."""
ChanceOf = Callable[[Column], "float | None"]
"""The accuracy of uniform guessing at the items of a column in the results."""

_SHARED = ("task", "metric", "label", "breakdown", "group", "remark")
_SAFE = re.compile(r"[A-Za-z0-9_-]{1,60}")
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")


def column_key(column: Column) -> str:
    """The column's key: task, metric, breakdown and group joined by dots.

    Characters other than letters, digits, ``_`` and ``-`` are replaced, with a hash to keep keys distinct.

    >>> column_key(Column("mi_cxr", "accuracy", "Overall")), column_key(Column("t", "chrf++", "chrF++"))
    ('mi_cxr.accuracy', 't.chrf-3fc81af5')
    """
    parts = (column.task, column.metric, column.breakdown, column.group)
    return ".".join(_safe(part) for part in parts if part is not None)


def _safe(part: str) -> str:
    if _SAFE.fullmatch(part):
        return part
    digest = hashlib.sha256(part.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{_UNSAFE.sub('-', part).strip('-')[:40]}-{digest}"


def board_columns(
    columns: Iterable[Column], groups: GroupsOf, chance: ChanceOf = lambda _: None
) -> tuple[BoardColumn, ...]:
    """The columns, each once, with ``ALL_GROUPS`` replaced by one column for each of the ``groups``, sorted.

    Raises:
        UsageError: a task or metric is unknown.
    """
    found: dict[str, BoardColumn] = {}
    for column in columns:
        each = [column]
        if column.breakdown is not None and column.group == ALL_GROUPS:
            keys = sorted(set(groups(column.task, column.breakdown)))
            each = [replace(column, label=key.replace("_", " "), group=key) for key in keys]
        for one in each:
            if (key := column_key(one)) not in found:
                found[key] = BoardColumn(
                    **{name: getattr(one, name) for name in _SHARED},
                    key=key,
                    unit=unit_of(one.metric),
                    higher_is_better=get_metric(one.metric).higher_is_better,
                    signed=one.metric in SIGNED,
                    chance=chance(one) if one.metric == "accuracy" else None,
                )
    return tuple(found.values())
