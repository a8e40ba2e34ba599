"""Figures of a benchmark, and the data that are plotted besides scores in tables."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from medtasks.runs.usage import Usage
from medtasks.scoring.scores import Reliability

from .board_record import BoardRecord
from .score_tables import Cell

FORMATS = ("svg", "png", "pdf")
"""File formats of figures."""


class BoardPlot(BoardRecord):
    """A figure of a benchmark.

    Its numbers come from ``table`` (a name), or from the benchmark's ``letters``, ``reliability``,
    ``timelines`` or ``usage``.
    """

    name: str
    title: str
    kind: Literal[
        "bars",
        "cost",
        "coverage",
        "heatmap",
        "latency",
        "letters",
        "paired",
        "radar",
        "reliability",
        "timeline",
    ]
    table: str
    columns: tuple[str, ...]
    against: tuple[str, ...] = ()
    ranks: bool = False
    chance: float | None = None
    note: str = ""


class LetterCounts(BoardRecord):
    """How often each letter was right and chosen in one task.

    ``chosen`` includes extraction failures, in brackets. ``preference`` is as in
    `medtasks.scoring.scores.Letters`.
    """

    task: str
    model: str
    gold: dict[str, int]
    chosen: dict[str, int]
    preference: dict[str, tuple[float, float | None, float | None]] = Field(default={})


class ModelReliability(BoardRecord):
    """Accuracy by confidence of one model in one task or group."""

    task: str
    model: str
    reliability: Reliability


class ModelUsage(BoardRecord):
    """What a model's run used for the benchmark's first headline score, with that score.

    ``run`` is a key of `Board.runs`, ``cost`` the cost of all answers, in the currency of the
    organiser's prices.
    """

    model: str
    run: str
    score: Cell
    usage: Usage
    cost: float | None = None
