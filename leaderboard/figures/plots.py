"""Figures as data: the numbers, labels and axes of the five kinds, which pages and matplotlib draw alike.

Bars and dumbbells are lines in blocks (:class:`Blocks`); cost, reliability and coverage are points on a plane.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from medtasks.stats.ranks import normalised_ranks

from ..board.board import BenchmarkBoard, Board, BoardColumn, BoardPlot, ModelReliability
from ..board.numbers import MINUS, UNITS, difference, shown
from ..board.usage import amount, plotted
from .chosen import LOOKS, MOST_MODELS, Chosen, Look, Shown, choose, labelled_best, listed, plotted_tasks, scaled

_WIDE = 20.0
"""Ratio of the largest to the smallest value from which an axis is logarithmic."""


class Axis(NamedTuple):
    """The axis of bars: its units and its ends. Places on a page are percentages of its width."""

    title: str
    low: float
    high: float

    def place(self, value: float) -> str:
        return f"{100 * (value - self.low) / (self.high - self.low):.4g}%"

    def width(self, length: float) -> str:
        return f"{100 * length / (self.high - self.low):.4g}%"


class Line(NamedTuple):
    """A model in a block: the value of a bar with its interval, or the two values of a dumbbell. ``missing`` are the
    names of columns without a value."""

    label: str
    look: Look
    text: str
    values: tuple[float | None, ...]
    ends: tuple[float, float] | None
    missing: tuple[str, ...]


class Block(NamedTuple):
    """The models in one column, or in a pair of columns; ``note`` is its remark, or says what ``chance`` is."""

    names: tuple[str, ...]
    note: str
    chance: float | None
    axis: Axis
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Blocks:
    """Bars, or dumbbells if ``paired``; blocks with the same axis can be compared."""

    blocks: tuple[Block, ...]
    paired: bool

    @property
    def title(self) -> str:
        """The units of all axes."""
        return " or ".join(dict.fromkeys(block.axis.title for block in self.blocks))


@dataclass(frozen=True)
class Heat:
    """Rows of cells: text, and 0 (worst) to 1 (best), None without a value."""

    across: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[str, float | None], ...]], ...]
    worst: str
    best: str
    lacks: str


@dataclass(frozen=True)
class Radar:
    """Closed curves around a centre, on one scale from 0 to ``rim``: a value for each axis, None for a gap."""

    axes: tuple[str, ...]
    rim: float
    title: str
    curves: tuple[tuple[str, Look, tuple[float | None, ...]], ...]

    @property
    def angles(self) -> list[float]:
        return [2 * math.pi * place / len(self.axes) for place in range(len(self.axes))]


class Point(NamedTuple):
    """A dot with a radius, and the interval of its height."""

    x: float
    y: float
    radius: float
    ends: tuple[float, float] | None = None


@dataclass(frozen=True)
class Plane:
    """Points of models over two axes, in the order in which they are ``joined``; ``percent`` axes end at 100."""

    across: str
    up: str
    curves: tuple[tuple[str, Look, tuple[Point, ...]], ...]
    joined: bool
    percent: bool
    diagonal: bool = False

    @property
    def points(self) -> list[Point]:
        return [point for _, _, points in self.curves for point in points]

    @property
    def wide(self) -> bool:
        """Whether the axis across is logarithmic."""
        costs = [point.x for point in self.points]
        return not self.percent and min(costs) > 0 and max(costs) > _WIDE * min(costs)


@dataclass(frozen=True)
class Figure:
    """A figure; ``extent`` says how many of the models it shows, if not all, ``omitted`` what it leaves out, ``alt``
    describes it to those who cannot see it."""

    plot: BoardPlot
    shape: Blocks | Heat | Radar | Plane
    extent: str
    incomplete: bool
    omitted: str
    alt: str

    @property
    def title(self) -> str:
        return f"{self.plot.title} ({self.extent})" if self.extent else self.plot.title


def figures_of(board: Board, benchmark: BenchmarkBoard) -> dict[str, Figure]:
    """The figures by the name of their plot, without those that no model has a value for.

    Letters and timelines are not among them: pages draw them into their tables.
    """
    found = {plot.name: _figure(board, benchmark, plot) for plot in benchmark.plots}
    return {name: figure for name, figure in found.items() if figure is not None}


def _figure(board: Board, benchmark: BenchmarkBoard, plot: BoardPlot) -> Figure | None:
    if plot.kind in ("letters", "timeline"):
        return None
    if plot.kind == "cost":
        return _cost(board, benchmark, plot)
    if plot.kind in ("reliability", "coverage"):
        return _confidence(board, benchmark, plot)
    heat = plot.kind == "heatmap"
    chosen = choose(board, benchmark, plot).in_order() if heat else choose(board, benchmark, plot, MOST_MODELS)
    if not chosen.models or not chosen.columns:
        return None
    shape: Blocks | Heat | Radar
    if heat:
        shape, words = _heat(plot, chosen)
    elif plot.kind == "radar" and _is_radar(chosen):
        shape, words = _radar(chosen)
    elif plot.kind == "paired":
        shape, words = _dumbbells(chosen)
    else:
        shape, words = _bars(plot, chosen, board.confidence)
    omitted = chosen.omissions()
    return Figure(plot, shape, chosen.extent, chosen.incomplete, omitted.strip(), f"{words}{omitted}")


# bars and dumbbells


def _axes(
    columns: Sequence[BoardColumn], values: Sequence[Sequence[float]], against: Sequence[BoardColumn] = ()
) -> list[Axis]:
    """The axes of the columns, of which each has ``values``: one for all that share a scale, as percent and points."""
    axes: dict[int, Axis] = {}
    for places in _by_scale(columns):
        title = axis_title(one[place] for place in places for one in (columns, against) if one)
        ends = _span([value for place in places for value in values[place]], title.startswith("p"))
        axes |= dict.fromkeys(places, Axis(title, *ends))
    return [axes[place] for place in range(len(columns))]


def _by_scale(columns: Sequence[BoardColumn]) -> list[list[int]]:
    """Places of the columns that can share an axis, as percent and points can; ordered by their first column."""
    found: dict[str, list[int]] = {}
    for place, column in enumerate(columns):
        found.setdefault("percent" if column.unit in ("fraction", "points") else column.unit, []).append(place)
    return list(found.values())


def axis_title(columns: Iterable[BoardColumn]) -> str:
    """The units of the numbers along the axis."""
    units = {column.unit for column in columns}
    names = {"fraction": "percent", "points": "points (0 to 100)", "seconds": "seconds", "score": "score"}
    return " or ".join(name for unit, name in names.items() if unit in units)


def _span(values: Iterable[float], percent: bool) -> tuple[float, float]:
    """Ends of an axis that includes 0, with room for a number at the end of the longest bar."""
    found = [0.0, *values]
    low, high = min(found), max(found)
    if high == low:
        high = 1.0
    room = 0.16 * (high - low)
    low, high = low - (room if low < 0 else 0.0), high + room
    # no tick beyond 100 percent, but room for the numbers
    return (max(low, -118.0), min(high, 118.0)) if percent else (low, high)


def _bars(plot: BoardPlot, chosen: Chosen, confidence: float) -> tuple[Blocks, str]:
    """A block for each column, with intervals and the chance level; each model keeps its place and look."""
    chances = [  # the plot's level is the default of its columns
        None if plot.chance is None else plot.chance if column.chance is None else column.chance
        for column in chosen.columns
    ]
    levels = [[] if level is None else [scaled(level, one)] for one, level in zip(chosen.columns, chances, strict=True)]
    values = [
        [
            value
            for one in chosen.models
            for value in (one.value(column), *(one.ends(column) or ()))
            if value is not None
        ]
        + level
        for column, level in zip(chosen.columns, levels, strict=True)
    ]
    blocks = []
    for column, chance, level, axis in zip(chosen.columns, chances, levels, _axes(chosen.columns, values), strict=True):
        note = column.remark if chance is None else f"dashed: chance {shown(chance, column.unit)}"
        lines = []
        for one in chosen.models:
            value = one.value(column)
            missing = () if value is not None else (column.label,)
            lines.append(Line(one.label, one.look, one.number(column), (value,), one.ends(column), missing))
        blocks.append(Block((column.label,), note, next(iter(level), None), axis, tuple(lines)))
    which = f" for {chosen.extent}" if chosen.extent else ""
    unlike = {level: column for level, column in zip(chances, chosen.columns, strict=True) if level is not None}
    guessing = " or ".join(shown(level, column.unit) for level, column in unlike.items())
    said = f" Chance level {guessing}, drawn dashed." if guessing else ""
    summary = listed([chosen.summary(column) for column in chosen.columns])
    return Blocks(tuple(blocks), False), f"Bar chart{which}, with {100 * confidence:g} % intervals. {summary}.{said}"


def _dumbbells(chosen: Chosen) -> tuple[Blocks, str]:
    """A block for each pair of columns, a line for each model with the difference as a number."""
    pairs = list(zip(chosen.columns, chosen.against, strict=True))
    values = [[value for one in chosen.models for c in pair if (value := one.value(c)) is not None] for pair in pairs]
    blocks, parts = [], []
    for pair, axis in zip(pairs, _axes(chosen.columns, values, chosen.against), strict=True):
        names = tuple(c.label if pair[0].label != pair[1].label else f"{c.label} ({c.task})" for c in pair)
        lines = []
        for one in chosen.models:
            both = tuple(one.value(column) for column in pair)
            missing = tuple(name for name, value in zip(names, both, strict=True) if value is None)
            lines.append(Line(one.label, one.look, _difference(both, pair[0]), both, None, missing))
        blocks.append(Block(names, "", None, axis, tuple(lines)))
        numbers = listed([f"{line.label} {line.text}" for line in lines if line.text]) or "no model has both"
        parts.append(f"{names[0]} minus {names[1]}: {numbers}")
    which = f" for {chosen.extent}" if chosen.extent else ""
    return Blocks(tuple(blocks), True), f"Dumbbell chart{which}. {listed(parts)}."


def _difference(values: Sequence[float | None], column: BoardColumn) -> str:
    """The difference with its sign; empty if one of the two is missing."""
    first, second = values
    if first is None or second is None:
        return ""
    # percent and points are drawn on one axis, fractions in percent
    return difference(first - second, "points" if column.unit == "fraction" else column.unit).replace(MINUS, "-")


# heat maps


def _heat(plot: BoardPlot, chosen: Chosen) -> tuple[Heat, str]:
    """Models by columns, with the fewer of the two across, so that the figure fits a phone."""
    goodness = _goodness(plot, chosen)
    columns, models = [one.label for one in chosen.columns], [one.label for one in chosen.models]
    cells = [
        [
            ("" if good is None else f"{1 - good:.2f}" if plot.ranks else model.number(column), good)
            for model, good in zip(chosen.models, of_column, strict=True)
        ]
        for column, of_column in zip(chosen.columns, goodness, strict=True)
    ]
    turned = len(columns) > len(models)
    down, across = (columns, models) if turned else (models, columns)
    rows = cells if turned else [list(row) for row in zip(*cells, strict=True)]
    lacks = "rank" if plot.ranks else "value"
    worst, best = _ends(plot, chosen)
    named = tuple((label, tuple(row)) for label, row in zip(down, rows, strict=True))
    size = f"{len(models)} models by {len(columns)} columns, lighter is better, hatched has no {lacks}"
    if not plot.ranks:
        summary = listed([chosen.summary(column) for column in chosen.columns], 6)
        words = f"Heat map of values, {size}. {summary}."
    else:
        of_model = [[1 - good for good in row if good is not None] for row in zip(*goodness, strict=True)]
        means = sorted((math.fsum(one) / len(one), label) for label, one in zip(models, of_model, strict=True) if one)
        lowest = listed([f"{label} {mean:.2f}" for mean, label in means], 3)
        words = f"Heat map of ranks, 0 for the best and 1 for the last, {size}. Lowest mean over the columns: {lowest}."
    return Heat(tuple(across), named, worst, best, lacks), words


def _goodness(plot: BoardPlot, chosen: Chosen) -> list[list[float | None]]:
    """By column and model 0 (worst) to 1 (best), 0.5 if all are equal; None without a value.

    Ranks need a complete one.
    """
    if plot.ranks:
        ranks = [
            normalised_ranks([one.complete(column) for one in chosen.models], higher_is_better=column.higher_is_better)
            for column in chosen.columns
        ]
        return [[None if rank is None else 1 - rank for rank in row] for row in ranks]
    table = [[model.value(column) for model in chosen.models] for column in chosen.columns]
    shared = _share_a_scale(chosen.columns)
    goodness = []
    for row, column in zip(table, chosen.columns, strict=True):
        found = _all_values(chosen) if shared else [value for value in row if value is not None]
        low, high = min(found, default=0.0), max(found, default=0.0)
        worst, best = (low, high) if column.higher_is_better else (high, low)
        goodness.append(
            [None if one is None else 0.5 if low == high else (one - worst) / (best - worst) for one in row]
        )
    return goodness


def _share_a_scale(columns: Sequence[BoardColumn]) -> bool:
    """Whether all columns have the same unit and direction, so that they share a scale."""
    return len({(column.unit, column.higher_is_better) for column in columns}) <= 1


def _ends(plot: BoardPlot, chosen: Chosen) -> tuple[str, str]:
    if plot.ranks:
        return "last: 1", "best: 0"
    if not _share_a_scale(chosen.columns):
        return "worst of the column", "best of the column"
    found = _all_values(chosen)
    digits = 3 if chosen.columns[0].unit == "score" else 1
    ends = (f"{min(found):.{digits}f}", f"{max(found):.{digits}f}")
    low, high = ends if chosen.columns[0].higher_is_better else ends[::-1]
    return f"worst: {low}", f"best: {high}"


def _all_values(chosen: Chosen) -> list[float]:
    """The values of all models in all columns."""
    return [value for one in chosen.models for column in chosen.columns if (value := one.value(column)) is not None]


# radars


def _is_radar(chosen: Chosen) -> bool:
    """Whether the columns make a radar: three or more, on one scale, none of them signed, and nothing below 0."""
    signed = any(column.signed for column in chosen.columns)
    enough = len(chosen.columns) >= 3 and len(_by_scale(chosen.columns)) == 1
    return not signed and enough and min(_all_values(chosen)) >= 0


def _radar(chosen: Chosen) -> tuple[Radar, str]:
    """All axes have one scale, from 0 in the middle."""
    highest = max(_all_values(chosen))
    top = min(100.0, 20.0 * math.ceil(highest / 20)) if chosen.columns[0].unit in ("fraction", "points") else highest
    names = [one.label if one.higher_is_better else f"{one.label} (lower is better)" for one in chosen.columns]
    curves = [(one.label, one.look, tuple(one.value(column) for column in chosen.columns)) for one in chosen.models]
    which = chosen.extent or f"{len(chosen.models)} models"
    summary = listed([chosen.summary(column) for column in chosen.columns])
    words = f"Radar chart for {which} with {len(chosen.columns)} axes, from 0 in the middle. {summary}."
    return Radar(tuple(names), max(top, highest) or 1.0, axis_title(chosen.columns), tuple(curves)), words


# planes


def _extent(drawn: int, of: int) -> str:
    return f"{drawn} of {of} models" if drawn < of else ""


def _confidence(board: Board, benchmark: BenchmarkBoard, plot: BoardPlot) -> Figure | None:
    """Accuracy by confidence, or by the share of the answers of which a model is most confident."""
    tasks = plotted_tasks(benchmark, plot)
    found = {one.model: one for one in benchmark.reliability if one.task in tasks}
    labels = labelled_best(board, benchmark, found, 26)
    if not labels:
        return None
    make, across = (
        (_by_coverage, "share of the answers, most confident first (%)")
        if plot.kind == "coverage"
        else (_by_confidence, "confidence (%)")
    )
    made = [(label, look, *make(found[model])) for look, (model, label) in zip(LOOKS, labels.items(), strict=False)]
    curves = tuple((label, look, points) for label, look, points, _ in made)
    words = listed([f"{label}: {text}" for label, _, _, text in made])
    what = "coverage" if plot.kind == "coverage" else "confidence"
    plane = Plane(across, "accuracy (%)", curves, joined=True, percent=True, diagonal=plot.kind == "reliability")
    alt = f"Line chart of accuracy by {what}. {words}."
    return Figure(plot, plane, _extent(len(curves), len(labels)), False, "", alt)


def _by_coverage(model: ModelReliability) -> tuple[tuple[Point, ...], str]:
    curve = model.reliability.curve
    points = [Point(100 * place / len(curve), 100 * value, 3.0) for place, value in enumerate(curve, start=1)]
    text = f"{points[0].y:.0f} % right among the most confident tenth, {points[-1].y:.0f} % among all"
    return tuple(points), text


def _by_confidence(model: ModelReliability) -> tuple[tuple[Point, ...], str]:
    bins = model.reliability.bins
    answers = sum(each.answers for each in bins)
    points = []
    for each in bins:
        ends = None if each.interval is None else (100 * each.interval[0], 100 * each.interval[1])
        radius = 2 + 5 * math.sqrt(each.answers / answers)
        points.append(Point(100 * each.confidence, 100 * each.accuracy, radius, ends))
    return tuple(points), ", ".join(f"{point.x:.0f} % sure, {point.y:.0f} % right" for point in points)


def _cost(board: Board, benchmark: BenchmarkBoard, plot: BoardPlot) -> Figure | None:
    """The models of ``benchmark.usage`` with the score of the plot's column; None without any cost."""
    measure = plotted([(one.usage, one.cost) for one in benchmark.usage])
    columns = (column for table in benchmark.tables for column in table.columns)
    column = next((one for one in columns if one.key in plot.columns), None)
    if measure is None or column is None:
        return None
    used = {one.model: one for one in benchmark.usage}
    costs = {model: measure.value(one.usage, one.cost) for model, one in used.items()}
    labels = labelled_best(board, benchmark, used, 26)
    known = [(model, value) for model in labels if (value := costs[model]) is not None]
    curves, numbers, incomplete = [], [], False
    for look, (model, cost) in zip(LOOKS, known[:MOST_MODELS], strict=False):
        one = Shown(labels[model], look, {column.key: used[model].score})
        score, star = one.value(column), one.complete(column) is None
        incomplete |= star
        numbers.append(f"{one.described(column)} at {amount(cost)}")
        points = () if score is None else (Point(cost, score, 5.0, one.ends(column)),)  # a ranked run has one
        curves.append((one.label + "*" * star, look, points))
    extent = _extent(len(curves), len(known))
    absent = [label for model, label in labels.items() if costs[model] is None]
    omitted = f"Without a value: {listed(absent)}." if absent else ""
    across = f"{measure.label.lower()} ({measure.unit})"
    words = f"Scatter plot{f' ({extent})' if extent else ''}. {column.label} against {across}: {listed(numbers)}."
    plane = Plane(across, f"{column.label} ({UNITS[column.unit]})", tuple(curves), joined=False, percent=False)
    return Figure(plot, plane, extent, incomplete, omitted, " ".join(filter(None, (words, omitted))))
