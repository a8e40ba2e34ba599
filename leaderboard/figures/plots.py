"""Figures of a board as data: which shape a plot is, and its description in words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from medtasks.stats.ranks import normalised_ranks

from ..board.board import BenchmarkBoard, Board, BoardColumn, BoardPlot
from ..board.numbers import MINUS, UNITS, difference, shown
from ..board.usage import amount, plotted
from .chosen import LOOKS, MOST_MODELS, Chosen, Shown, choose, extent_of, labelled_best, listed, scaled
from .shapes import Axis, Block, Blocks, Heat, Line, Plane, Point, Radar


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
    found: dict[str, Figure | None] = {}
    for plot in benchmark.plots:
        if plot.kind == "cost":
            found[plot.name] = _cost(board, benchmark, plot)
        elif plot.kind in ("reliability", "coverage"):
            found[plot.name] = _confidence(board, benchmark, plot)
        elif plot.kind not in ("letters", "timeline"):
            chosen = choose(board, benchmark, plot)
            if not chosen.models or not chosen.columns:
                continue
            made: tuple[Blocks | Heat | Radar, str] | None = None
            if plot.kind == "heatmap":
                made = _heat(plot, chosen)
            elif plot.kind == "paired":
                made = _dumbbells(chosen)
            elif plot.kind == "radar":
                made = _radar(chosen)
            shape, words = made or _bars(plot, chosen, board.confidence)
            omitted, alt = chosen.omitted.strip(), f"{words}{chosen.omitted}"
            found[plot.name] = Figure(plot, shape, chosen.extent, chosen.incomplete, omitted, alt)
    return {name: figure for name, figure in found.items() if figure is not None}


def _scale_of(column: BoardColumn) -> str:
    """The scale of a column: percent and points share one."""
    return "percent" if column.unit in ("fraction", "points") else column.unit


def _axis_title(columns: Iterable[BoardColumn]) -> str:
    """The units of the numbers along the axis."""
    units = {column.unit for column in columns}
    names = {"fraction": "percent", "points": "points (0 to 100)", "seconds": "seconds", "score": "score"}
    return " or ".join(name for unit, name in names.items() if unit in units)


def _on_axes(blocks: Sequence[Block], columns: Sequence[Sequence[BoardColumn]]) -> list[Block]:
    """The blocks, each of one or two columns, with one axis for all that share a scale, as percent and points do.

    Axes include 0, and have room for a number at the end of the longest bar.
    """
    scales = [_scale_of(first) for first, *_ in columns]
    axes = {}
    for scale in scales:
        members = [block for block, own in zip(blocks, scales, strict=True) if own == scale]
        values = [value for block in members for line in block.lines for value in (*line.values, *(line.ends or ()))]
        numbers = [0.0, *(one for one in (*values, *(block.chance for block in members)) if one is not None)]
        low, high = min(numbers), max(numbers)
        if high == low:
            high = 1.0
        room = 0.16 * (high - low)
        low, high = low - (room if low < 0 else 0.0), high + room
        if scale == "percent":  # no tick beyond 100 percent, but room for the numbers
            low, high = max(low, -118.0), min(high, 118.0)
        title = _axis_title(column for of, own in zip(columns, scales, strict=True) if own == scale for column in of)
        axes[scale] = Axis(title, low, high)
    return [block._replace(axis=axes[scale]) for block, scale in zip(blocks, scales, strict=True)]


def _bars(plot: BoardPlot, chosen: Chosen, confidence: float) -> tuple[Blocks, str]:
    """A block for each column, with intervals and the chance level; each model keeps its place and look."""
    blocks, chances = [], {}
    for column in chosen.columns:
        lines = [Line(m.label, m.look, m.number(column), (m.value(column),), m.ends(column)) for m in chosen.models]
        note, level = column.remark, None
        if plot.chance is not None:
            chance = plot.chance if column.chance is None else column.chance
            chances[chance] = shown(chance, column.unit)
            note, level = f"dashed: chance {chances[chance]}", scaled(chance, column)
        blocks.append(Block([column.label], note, level, lines))
    which = f" for {chosen.extent}" if chosen.extent else ""
    said = f" Chance level {' or '.join(chances.values())}, drawn dashed." if chances else ""
    summary = listed([chosen.summary(column) for column in chosen.columns])
    words = f"Bar chart{which}, with {100 * confidence:g} % intervals. {summary}.{said}"
    return Blocks(_on_axes(blocks, [[column] for column in chosen.columns]), False), words


def _dumbbells(chosen: Chosen) -> tuple[Blocks, str]:
    """A block for each pair of columns, a line for each model with the difference as a number."""
    pairs = list(zip(chosen.columns, chosen.against, strict=True))
    blocks, parts = [], []
    for column, other in pairs:
        # percent and points are drawn on one axis, fractions in percent
        lines, unit = [], "points" if column.unit == "fraction" else column.unit
        for one in chosen.models:
            first, second = one.value(column), one.value(other)
            text = "" if first is None or second is None else difference(first - second, unit).replace(MINUS, "-")
            lines.append(Line(one.label, one.look, text, (first, second)))
        same = column.label == other.label
        names = [f"{one.label} ({one.task})" if same else one.label for one in (column, other)]
        blocks.append(Block(names, "", None, lines))
        numbers = listed([f"{line.label} {line.text}" for line in lines if line.text]) or "no model has both"
        parts.append(f"{names[0]} minus {names[1]}: {numbers}")
    which = f" for {chosen.extent}" if chosen.extent else ""
    return Blocks(_on_axes(blocks, pairs), True), f"Dumbbell chart{which}. {listed(parts)}."


def _heat(plot: BoardPlot, chosen: Chosen) -> tuple[Heat, str]:
    """Models by columns, with the fewer of the two across, so that the figure fits a phone.

    Cells are coloured from 0 for the worst to 1 for the best. Ranks need a complete value. Values are compared on one
    scale if all columns have the same unit and direction.
    """
    columns, models = chosen.columns, chosen.models
    values = [[one.complete(column) if plot.ranks else one.value(column) for one in models] for column in columns]
    shared = len({(column.unit, column.higher_is_better) for column in columns}) <= 1
    every = [value for row in values for value in row if value is not None]
    cells: list[list[tuple[str, float | None]]] = []
    for column, row in zip(columns, values, strict=True):
        if plot.ranks:
            ranks = normalised_ranks(row, higher_is_better=column.higher_is_better)
            cells.append([("", None) if rank is None else (f"{rank:.2f}", 1 - rank) for rank in ranks])
            continue
        known = every if shared else [value for value in row if value is not None]
        low, high = min(known, default=0.0), max(known, default=0.0)
        cells.append([])
        for one, value in zip(models, row, strict=True):
            share = None
            if value is not None:
                share = 0.5 if low == high else (value - low) / (high - low)
                share = share if column.higher_is_better else 1 - share
            cells[-1].append((one.number(column), share))
    worst, best, lacks = "last: 1", "best: 0", "rank"
    if not plot.ranks:
        worst, best, lacks = "worst of the column", "best of the column", "value"
    if shared and not plot.ranks:
        digits = 3 if columns[0].unit == "score" else 1
        ends = sorted((min(every), max(every)), reverse=not columns[0].higher_is_better)
        worst, best = f"worst: {ends[0]:.{digits}f}", f"best: {ends[1]:.{digits}f}"
    down, across = [one.label for one in models], [one.label for one in columns]
    rows = list(zip(*cells, strict=True))
    if len(columns) > len(models):
        down, across, rows = across, down, list(map(tuple, cells))
    size = f"{len(models)} models by {len(columns)} columns, lighter is better, hatched has no {lacks}"
    words = f"Heat map of values, {size}. {listed([chosen.summary(column) for column in columns], most=6)}."
    if plot.ranks:
        of_model = [[1 - good for _, good in row if good is not None] for row in zip(*cells, strict=True)]
        means = sorted(
            (math.fsum(one) / len(one), model.label) for model, one in zip(models, of_model, strict=True) if one
        )
        lowest = listed([f"{label} {mean:.2f}" for mean, label in means], most=3)
        words = f"Heat map of ranks, 0 for the best and 1 for the last, {size}. Lowest mean over the columns: {lowest}."
    return Heat(across, list(zip(down, rows, strict=True)), worst, best, lacks), words


def _radar(chosen: Chosen) -> tuple[Radar, str] | None:
    """All axes have one scale, from 0 in the middle.

    None unless there are three or more columns, on one scale, none of them signed, and nothing below 0.
    """
    columns, models = chosen.columns, chosen.models
    values = [value for one in models for column in columns if (value := one.value(column)) is not None]
    signed = any(column.signed for column in columns)
    if signed or len(columns) < 3 or len({*map(_scale_of, columns)}) > 1 or min(values) < 0:
        return None
    highest = max(values)
    top = min(100.0, 20.0 * math.ceil(highest / 20)) if _scale_of(columns[0]) == "percent" else highest
    names = [one.label if one.higher_is_better else f"{one.label} (lower is better)" for one in columns]
    curves = [(one.label, one.look, [one.value(column) for column in columns]) for one in models]
    which = chosen.extent or f"{len(models)} models"
    summary = listed([chosen.summary(column) for column in columns])
    words = f"Radar chart for {which} with {len(columns)} axes, from 0 in the middle. {summary}."
    return Radar(names, max(top, highest) or 1.0, _axis_title(columns), curves), words


def _confidence(board: Board, benchmark: BenchmarkBoard, plot: BoardPlot) -> Figure | None:
    """Accuracy by confidence, or by the share of the answers of which a model is most confident."""
    tasks = {column.task for table in benchmark.tables for column in table.columns if column.key in plot.columns}
    found = {one.model: one.reliability for one in benchmark.reliability if one.task in tasks}
    labels = labelled_best(board, benchmark, found)
    if not labels:
        return None
    curves, texts = [], []
    for look, (model, label) in zip(LOOKS, labels.items(), strict=False):
        bins, curve = found[model].bins, found[model].curve
        points = []
        if plot.kind == "coverage":
            points = [Point(100 * place / len(curve), 100 * value, 3.0) for place, value in enumerate(curve, start=1)]
            text = f"{points[0].y:.0f} % right among the most confident tenth, {points[-1].y:.0f} % among all"
        else:
            answers = sum(each.answers for each in bins)
            for each in bins:
                ends = None if each.interval is None else (100 * each.interval[0], 100 * each.interval[1])
                radius = 2 + 5 * math.sqrt(each.answers / answers)
                points.append(Point(100 * each.confidence, 100 * each.accuracy, radius, ends))
            text = ", ".join(f"{point.x:.0f} % sure, {point.y:.0f} % right" for point in points)
        curves.append((label, look, points))
        texts.append(f"{label}: {text}")
    what, across = "confidence", "confidence (%)"
    if plot.kind == "coverage":
        what, across = "coverage", "share of the answers, most confident first (%)"
    plane = Plane(across, "accuracy (%)", curves, joined=True, percent=True, diagonal=plot.kind == "reliability")
    alt = f"Line chart of accuracy by {what}. {listed(texts)}."
    return Figure(plot, plane, extent_of(len(curves), len(labels)), False, "", alt)


def _cost(board: Board, benchmark: BenchmarkBoard, plot: BoardPlot) -> Figure | None:
    """The models of ``benchmark.usage`` with the score of the plot's column; None without any cost."""
    measure = plotted([(one.usage, one.cost) for one in benchmark.usage])
    columns = (column for table in benchmark.tables for column in table.columns)
    column = next((one for one in columns if one.key in plot.columns), None)
    if measure is None or column is None:
        return None
    used = {one.model: one for one in benchmark.usage}
    costs = {model: measure.value(one.usage, one.cost) for model, one in used.items()}
    labels = labelled_best(board, benchmark, used)
    known = [(model, value) for model in labels if (value := costs[model]) is not None]
    curves, numbers, incomplete = [], [], False
    for look, (model, cost) in zip(LOOKS, known[:MOST_MODELS], strict=False):
        one = Shown(labels[model], look, {column.key: used[model].score})
        score, star = one.value(column), one.complete(column) is None
        incomplete |= star
        numbers.append(f"{one.described(column)} at {amount(cost)}")
        points = () if score is None else (Point(cost, score, 5.0, one.ends(column)),)  # a ranked run has one
        curves.append((one.label + "*" * star, look, points))
    extent = extent_of(len(curves), len(known))
    absent = [label for model, label in labels.items() if costs[model] is None]
    omitted = f"Without a value: {listed(absent)}." if absent else ""
    across = f"{measure.label.lower()} ({measure.unit})"
    words = f"Scatter plot{f' ({extent})' if extent else ''}. {column.label} against {across}: {listed(numbers)}."
    plane = Plane(across, f"{column.label} ({UNITS[column.unit]})", curves, joined=False, percent=False)
    return Figure(plot, plane, extent, incomplete, omitted, " ".join(filter(None, (words, omitted))))
