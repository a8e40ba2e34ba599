"""A figure of a board as data: what pages and files draw."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from ..schema.board import Board
from ..schema.numbers import shown_name
from ..schema.plot_data import BoardPlot
from .bars import BarChart
from .dumbbells import DumbbellChart
from .heat_map import HeatMap
from .labels import distinct
from .plane import Plane
from .radar import Radar

Shape: TypeAlias = "BarChart | DumbbellChart | HeatMap | Radar | Plane"

_MOST_IN_LABEL = 26


@dataclass(frozen=True)
class Figure:
    """A figure of a plot.

    Args:
        plot: the plot of the board.
        shape: what is drawn.
        extent: how many of the models with a value are drawn (``8 of 31 models``); empty if all.
        incomplete: whether a score over too few items is among them.
        omitted: what the figure leaves out, in sentences.
        alt: a description for readers who cannot see the figure.
    """

    plot: BoardPlot
    shape: Shape
    extent: str
    incomplete: bool
    omitted: str
    alt: str

    @property
    def title(self) -> str:
        return f"{self.plot.title} ({self.extent})" if self.extent else self.plot.title


def model_labels(board: Board, models: Iterable[str]) -> dict[str, str]:
    """The label of each model: its name, shortened, and different from all other labels."""
    names = {model: shown_name(board, model) for model in models}
    labels = distinct([*names.values()], _MOST_IN_LABEL)
    return dict(zip(names, labels, strict=True))


def extent_text(drawn: Collection[object], valued: Collection[object]) -> str:
    """``8 of 31 models``; empty if all models with a value are drawn."""
    return f"{len(drawn)} of {len(valued)} models" if len(drawn) < len(valued) else ""
