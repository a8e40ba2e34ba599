"""Timelines: rounds of streaming items as each model answered them, and the time from which they are answerable."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ..board import BenchmarkBoard, Board, BoardPlot, Round, Timeline
from .canvas import Drawing, new_figure
from .chosen import label_models
from .style import GRID, INK, LOOKS, MOST_MODELS, MUTED, PAPER, SPAN, Drawn
from .text import listed, short

__all__ = ["MOST_ITEMS", "draw"]

MOST_ITEMS = 6
"""How many items a figure shows."""

_MARKS: dict[str, Drawn] = {
    "positive": {
        "marker": "^",
        "markersize": 7,
        "color": LOOKS[0].colour,
        "markeredgecolor": INK,
        "markeredgewidth": 0.5,
    },
    "negative": {"marker": "o", "markersize": 5, "color": PAPER, "markeredgecolor": INK, "markeredgewidth": 1.1},
    "invalid": {"marker": "x", "markersize": 6, "color": LOOKS[3].colour, "markeredgewidth": 1.8},
}
_ANSWERABLE: Drawn = {"facecolor": SPAN, "alpha": 0.28, "edgecolor": "none"}
_TOLERANCE: Drawn = {"facecolor": "none", "edgecolor": INK, "hatch": "////", "linewidth": 0.5, "alpha": 0.6}


def draw(board: Board, benchmark: BenchmarkBoard, plot: BoardPlot, subtitle: Sequence[str]) -> Drawing | None:
    """A panel for each item, a line of rounds for each model. None where the plot's tasks have no timeline."""
    items, models = _items(benchmark, plot)
    if not items:
        return None
    labels = dict(zip(models, label_models(board, [(model, False) for model in models], 24), strict=True))
    drawn = {
        item: [one for one in found if one.model in models[:MOST_MODELS]]
        for item, found in list(items.items())[:MOST_ITEMS]
    }
    drawn = {item: found for item, found in drawn.items() if found}
    title = plot.title + _extent(len(drawn), len(items), len(models))
    rows = [len(found) for found in drawn.values()]
    figure = new_figure(title, sum(0.21 * row + 0.62 for row in rows) + 0.75, lines=subtitle)
    grid = figure.add_gridspec(len(rows), 1, height_ratios=[row + 2.5 for row in rows])
    for number, found in enumerate(drawn.values()):
        _panel(figure.add_subplot(grid[number]), found, labels)
    handles: list[Artist] = [Line2D([], [], linestyle="none", **how) for how in _MARKS.values()]
    names = [*_MARKS, "answerable (from t*)", "within tolerance of t*", "question is put"]
    handles += [Patch(**_ANSWERABLE), Patch(**_TOLERANCE), Line2D([], [], color=MUTED, linestyle=(0, (1, 1.5)))]
    figure.legend(handles, names, loc="outside lower center", ncols=2)
    return Drawing(figure, title, _alt(drawn, labels))


def _extent(shown: int, items: int, models: int) -> str:
    parts = []
    if shown < items:
        parts.append(f"{shown} of {items} items")
    if models > MOST_MODELS:
        parts.append(f"{MOST_MODELS} of {models} models")
    return f" ({', '.join(parts)})" if parts else ""


def _items(benchmark: BenchmarkBoard, plot: BoardPlot) -> tuple[dict[tuple[str, str], list[Timeline]], list[str]]:
    """Timelines by task and item, and their models, best first. A column of a group stands for all of its tasks."""
    columns = {column.key: column.task for table in benchmark.tables for column in table.columns}
    tasks = {columns[key] for key in plot.columns if key in columns}
    named = [one for one in benchmark.timelines if one.task in tasks]
    found = named or list(benchmark.timelines)
    best = [one.model for ranking in benchmark.rankings[:1] for one in ranking.ranked]
    places = {model: place for place, model in enumerate(best)}
    models = sorted({one.model for one in found}, key=lambda model: (places.get(model, len(places)), model))
    items: dict[tuple[str, str], list[Timeline]] = {}
    for one in sorted(found, key=lambda one: (one.task, one.item, models.index(one.model))):
        items.setdefault((one.task, one.item), []).append(one)
    return items, models


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


def _alt(drawn: dict[tuple[str, str], list[Timeline]], labels: dict[str, str]) -> str:
    said = []
    for found in drawn.values():
        due = found[0].expected_time
        from_ = "never answerable" if due is None else f"answerable from {due:g} (tolerance {found[0].tolerance:g})"
        lines = listed([_first(one, labels[one.model]) for one in found], 8).replace(";", ",")
        said.append(f"{short(found[0].item, 44)}, {from_}: {lines}")
    return f"Timelines of streaming items; rounds are positive, negative or invalid. {listed(said)}."


def _first(one: Timeline, label: str) -> str:
    positive = [turn.time for turn in one.rounds if _kind(turn) == "positive"]
    invalid = sum(_kind(turn) == "invalid" for turn in one.rounds)
    said = f"first positive at {min(positive):g}" if positive else "never positive"
    return f"{label} {said}" + (f" with {invalid} of {len(one.rounds)} rounds invalid" if invalid else "")
