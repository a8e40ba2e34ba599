"""Timelines: each model's rounds of streaming items, and the time from which these are answerable."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ..board import BenchmarkBoard, Board, BoardPlot, Round, Timeline
from .canvas import Drawing, new_figure
from .chosen import labelled_best, plotted_tasks
from .looks import GRID, INK, LOOKS, MOST_MODELS, MUTED, PAPER, SPAN, Drawn, listed, short

MOST_ITEMS = 6
"""Maximum number of items in a figure."""

_MARKS: dict[str, Drawn] = {
    "positive": {**LOOKS[0].mark(7), "marker": "^"},
    "negative": {"marker": "o", "markersize": 5, "color": PAPER, "markeredgecolor": INK, "markeredgewidth": 1.1},
    "invalid": {"marker": "x", "markersize": 6, "color": LOOKS[3].colour, "markeredgewidth": 1.8},
}
_ANSWERABLE: Drawn = {"facecolor": SPAN, "alpha": 0.28, "edgecolor": "none"}
_TOLERANCE: Drawn = {"facecolor": "none", "edgecolor": INK, "hatch": "////", "linewidth": 0.5, "alpha": 0.6}


def draw(board: Board, benchmark: BenchmarkBoard, plot: BoardPlot, subtitle: Sequence[str]) -> Drawing | None:
    """A panel for each item, a line of rounds for each model. None if there are no timelines."""
    tasks = plotted_tasks(benchmark, plot)
    # a group has no timelines of its own: those of its tasks are drawn
    every = [one for one in benchmark.timelines if one.task in tasks] or benchmark.timelines
    if not every:
        return None
    labels = labelled_best(board, benchmark, {one.model for one in every}, 24)
    models = list(labels)
    items = sorted({(one.task, one.item) for one in every})
    shown = sorted((one for one in every if one.model in models[:MOST_MODELS]), key=lambda one: models.index(one.model))
    panels = [[one for one in shown if (one.task, one.item) == item] for item in items[:MOST_ITEMS]]
    panels = [found for found in panels if found]
    extent = [f"{len(panels)} of {len(items)} items"] * (len(panels) < len(items))
    extent += [f"{MOST_MODELS} of {len(models)} models"] * (len(models) > MOST_MODELS)
    title = plot.title + (f" ({', '.join(extent)})" if extent else "")
    rows = [len(found) for found in panels]
    figure = new_figure(title, sum(0.21 * row + 0.62 for row in rows) + 0.75, lines=subtitle)
    grid = figure.add_gridspec(len(rows), 1, height_ratios=[row + 2.5 for row in rows])
    for number, found in enumerate(panels):
        _panel(figure.add_subplot(grid[number]), found, labels)
    handles: list[Artist] = [Line2D([], [], linestyle="none", **how) for how in _MARKS.values()]
    names = [*_MARKS, "answerable (from t*)", "within tolerance of t*", "question is asked"]
    handles += [Patch(**_ANSWERABLE), Patch(**_TOLERANCE), Line2D([], [], color=MUTED, linestyle=(0, (1, 1.5)))]
    figure.legend(handles, names, loc="outside lower center", ncols=2)
    return Drawing(figure, title, _alt(panels, labels))


def _panel(axes: Axes, found: Sequence[Timeline], labels: dict[str, str]) -> None:
    first = found[0]
    times = [one.time for line in found for one in line.rounds] + [first.query_time]
    due = first.expected_time
    last = max([*times, *([] if due is None else [due + first.tolerance])])
    room = 0.04 * ((last - min(times)) or 1.0)
    axes.set_xlim(min(times) - room, last + room)
    note = "never answerable"
    if due is not None:
        axes.axvspan(due, last + room, **_ANSWERABLE)
        axes.axvspan(due - first.tolerance, due + first.tolerance, **_TOLERANCE)
        note = f"t* = {due:g} ± {first.tolerance:g}"
    axes.axvline(first.query_time, color=MUTED, linestyle=(0, (1, 1.5)), linewidth=1.2)
    for row, line in enumerate(found):
        axes.axhline(row, color=GRID, linewidth=0.6)
        for one in line.rounds:
            axes.plot([one.time], [row], linestyle="none", zorder=3, **_MARKS[_kind(one)])
    axes.set_yticks(range(len(found)), [labels[one.model] for one in found])
    axes.set_ylim(len(found) - 0.4, -0.6)
    axes.set_title(f"{short(first.item, 34)} ({note})", loc="left", size=8)
    axes.set_xlabel("time in the item", size=7.5)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def _kind(one: Round) -> str:
    if not one.valid:
        return "invalid"
    return "positive" if one.positive else "negative"


def _alt(panels: Sequence[Sequence[Timeline]], labels: dict[str, str]) -> str:
    parts = []
    for found in panels:
        due = found[0].expected_time
        start = "never answerable" if due is None else f"answerable from {due:g} (tolerance {found[0].tolerance:g})"
        lines = listed([_described(one, labels[one.model]) for one in found]).replace(";", ",")
        parts.append(f"{short(found[0].item, 44)}, {start}: {lines}")
    return f"Timelines of streaming items; rounds are positive, negative or invalid. {listed(parts)}."


def _described(one: Timeline, label: str) -> str:
    kinds = [_kind(each) for each in one.rounds]
    positive = [each.time for each, kind in zip(one.rounds, kinds, strict=True) if kind == "positive"]
    text = f"{label} first positive at {min(positive):g}" if positive else f"{label} never positive"
    invalid = kinds.count("invalid")
    return f"{text} with {invalid} of {len(kinds)} rounds invalid" if invalid else text
