"""Figures of rows below headings, such as bars: a panel for each axis, with its groups of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from matplotlib import figure as mpl
from matplotlib.axes import Axes

from ..axes import Axis
from .style import GRID, INK, MUTED, Heading, Style, new_figure

MISSING: Style = {"style": "italic", "color": MUTED}
"""Style of the text in place of a missing number."""
_ROW_HEIGHT = 0.165
"""In inches."""
_HEADING_ROWS = 1.4
"""Height of a group's heading, in rows."""
_AXIS_HEIGHT = 0.55
"""Height of an axis with its title, in inches."""


class Group(Protocol):
    """Rows that a panel draws below a heading."""

    @property
    def axis(self) -> Axis: ...

    @property
    def labels(self) -> Sequence[str]: ...


AnyGroup = TypeVar("AnyGroup", bound=Group)


@dataclass(frozen=True)
class DrawnPanel(Generic[AnyGroup]):
    """Groups of rows on one axis, from top to bottom; a row's y is its number in the panel."""

    axes: Axes
    axis: Axis
    groups: Sequence[AnyGroup]

    def headings(self) -> Iterator[tuple[float, AnyGroup]]:
        """The groups, each with the y of its heading; its rows follow in steps of 1."""
        top = 0.0
        for group in self.groups:
            yield top, group
            top += len(group.labels) + _HEADING_ROWS

    @property
    def span(self) -> float:
        """The length of the axis in its unit."""
        return self.axis.high - self.axis.low

    def write(self, x: float, y: float, text: str, **style: Any) -> None:
        """Write text beside or above rows; the layout leaves no room for it."""
        written = self.axes.text(x, y, text, va="center", **{"size": 7, **style})
        written.set_in_layout(False)

    def write_heading(self, y: float, heading: str, note: str = "") -> None:
        """Write a group's heading at the left edge and its note at the right one."""
        across = self.axes.get_yaxis_transform()
        self.write(0, y, heading, transform=across, weight="bold", size=8.5)
        if note:
            self.write(1, y, note, transform=across, ha="right", color=MUTED)

    def finish(self, title: str) -> None:
        """Label the rows and the axis."""
        ticks: list[float] = []
        labels: list[str] = []
        for top, group in self.headings():
            ticks += [top + number for number in range(1, len(group.labels) + 1)]
            labels += group.labels
        bottom = _row_count(self.groups)
        self.axes.set_ylim(bottom - 0.6, -0.7)
        self.axes.set_yticks(ticks, labels)
        self.axes.set_xlabel(title)
        self.axes.grid(True, axis="x", color=GRID)
        self.axes.tick_params(axis="y", length=0)
        self.axes.tick_params(axis="x", color=MUTED, labelcolor=INK)
        self.axes.spines["left"].set_visible(False)


def panelled_figure(
    groups: Sequence[AnyGroup], heading: Heading, *, legend_height: float = 0.0
) -> tuple[mpl.Figure, list[DrawnPanel[AnyGroup]]]:
    """A figure with an empty panel for each axis, with room for ``legend_height`` inches more."""
    by_axis: dict[Axis, list[AnyGroup]] = {}
    for group in groups:
        by_axis.setdefault(group.axis, []).append(group)
    row_counts = [_row_count(sharing) for sharing in by_axis.values()]
    height = sum(row_counts) * _ROW_HEIGHT + _AXIS_HEIGHT * len(row_counts) + legend_height
    figure = new_figure(heading, height)
    grid = figure.add_gridspec(len(row_counts), 1, height_ratios=row_counts)
    panels = []
    for number, (axis, sharing) in enumerate(by_axis.items()):
        axes = figure.add_subplot(grid[number])
        axes.set_xlim(axis.low, axis.high)
        panels.append(DrawnPanel(axes, axis, sharing))
    return figure, panels


def _row_count(groups: Sequence[Group]) -> float:
    """The height of groups with their headings, in rows."""
    return sum(len(group.labels) + _HEADING_ROWS for group in groups)
