"""Figures of a board as data: their columns, the models with a value in one of them, the shape, and a description in
words."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from medtasks.stats.ranks import normalised_ranks

from ..board.board import BenchmarkBoard, Board, BoardColumn, BoardPlot, Cell
from ..board.numbers import MINUS, UNITS, difference, direction, shown, shown_interval, shown_name
from ..board.usage import amount, plotted
from .shapes import LOOKS, Axis, Block, Blocks, Heat, Line, Look, Plane, Point, Radar, distinct, listed

MOST_MODELS = 8
"""Maximum number of models in all figures but heat maps; more could not be distinguished."""
_LABEL = 26
"""Characters of a model's name."""


@dataclass(frozen=True)
class Figure:
    """A figure; ``extent`` says how many of the models with a value it shows (``8 of 31 models``; empty if all),
    ``incomplete`` whether a value over too few items is among them, ``omitted`` what it leaves out, in sentences;
    ``alt`` describes it to those who cannot see it."""

    plot: BoardPlot
    shape: Blocks | Heat | Radar | Plane
    extent: str
    incomplete: bool
    omitted: str
    alt: str

    @property
    def title(self) -> str:
        return f"{self.plot.title} ({self.extent})" if self.extent else self.plot.title


class Mark(NamedTuple):
    """A score as drawn (`scaled`), with its interval; ``text`` is its number, with a star if incomplete, ``words`` has
    the interval, too. ``competing`` is the value if it is complete."""

    value: float | None = None
    ends: tuple[float, float] | None = None
    text: str = ""
    words: str = ""
    competing: float | None = None


class Shown(NamedTuple):
    """A model in a figure; ``label`` is its name, shortened, ``look`` the same in all figures of a benchmark if
    possible."""

    label: str
    look: Look
    cells: Mapping[str, Cell]

    def mark(self, column: BoardColumn) -> Mark:
        cell = self.cells.get(column.key)
        if cell is None or cell.value is None:
            return Mark()
        value, text = scaled(cell.value, column), shown(cell.value, column.unit) + "*" * cell.incomplete
        ends, words = None, text
        if cell.low is not None and cell.high is not None:
            ends = scaled(cell.low, column), scaled(cell.high, column)
            words = f"{text} ({shown_interval(cell, column.unit)})"
        return Mark(value, ends, text, f"{self.label} {words}", None if cell.incomplete else value)


def scaled(value: float, column: BoardColumn) -> float:
    """A value as drawn: fractions in percent, all others as they are."""
    return 100.0 * value if column.unit == "fraction" else value


def model_order(benchmark: BenchmarkBoard) -> dict[str, int]:
    """The order of models in tables and figures of a benchmark: by the first score that ranks any, then by slug."""
    ranked = next(([one.model for one in ranking.ranked] for ranking in benchmark.rankings if ranking.ranked), [])
    others = {row.model for table in benchmark.tables for row in table.every_row}
    return {model: place for place, model in enumerate([*ranked, *sorted(others - set(ranked))])}


def figures_of(board: Board, benchmark: BenchmarkBoard) -> dict[str, Figure]:
    """The figures by the name of their plot, without those that no model has a value for, and without letters and
    timelines, which pages draw into their tables."""
    makers = {"cost": _cost, "reliability": _confidence, "coverage": _confidence}
    plots = [plot for plot in benchmark.plots if plot.kind not in ("letters", "timeline")]
    found = {plot.name: makers.get(plot.kind, _scores)(board, benchmark, plot) for plot in plots}
    return {name: figure for name, figure in found.items() if figure is not None}


def _labels(board: Board, models: Sequence[str]) -> dict[str, str]:
    return dict(zip(models, distinct([shown_name(board, model) for model in models], _LABEL), strict=True))


def _labelled_best(board: Board, benchmark: BenchmarkBoard, models: Collection[str]) -> dict[str, str]:
    return _labels(board, [model for model in model_order(benchmark) if model in models])


def _extent(drawn: int, of: int) -> str:
    return f"{drawn} of {of} models" if drawn < of else ""


def _scores(board: Board, benchmark: BenchmarkBoard, plot: BoardPlot) -> Figure | None:
    """Bars, a heat map, dumbbells or a radar of the plot's columns: of at most `MOST_MODELS` models, but all on a heat
    map, which has no signed columns.

    A column is looked up in the plot's own table first, then in the benchmark's others; unknown ones are left out.
    """
    heat = plot.kind == "heatmap"
    tables = sorted(benchmark.tables, key=lambda table: table.name != plot.table)
    known = {column.key: column for table in reversed(tables) for column in table.columns}
    keys = list(zip(plot.columns, plot.against or plot.columns, strict=False))
    pairs = [(known[one], known[other]) for one, other in keys if one in known and other in known]
    columns = [one for one, _ in pairs if not (heat and one.signed)]
    against = [other for _, other in pairs] if plot.against else []
    signed = [one.label for one, _ in pairs if heat and one.signed]

    rows: dict[str, dict[str, Cell]] = {}
    for row in (row for table in tables for row in table.rows):
        rows[row.model] = {**row.cells, **rows.get(row.model, {})}
    order = [model for model in model_order(benchmark) if model in rows]
    asked = {*plot.columns, *plot.against}
    valued = [one for one in order if any(cell.value is not None and key in asked for key, cell in rows[one].items())]
    drawn = valued if heat else valued[:MOST_MODELS]
    if not drawn or not columns:
        return None

    # the look of a model is that of its place on the board, or the first free one if that is taken
    taken: list[int] = []
    for place in map(order.index, drawn):
        free = [number for number in range(len(LOOKS)) if number not in taken] or [place % len(LOOKS)]
        taken.append(place if place in free else free[0])
    labels = _labels(board, drawn)
    models = [Shown(labels[one], LOOKS[look], rows[one]) for one, look in zip(drawn, taken, strict=True)]

    every = [(column, model, model.mark(column)) for column in (*columns, *against) for model in models]
    absent = [f"{model.label} in {column.label}" for column, model, mark in every if mark.value is None]
    apart = {(row.model, row.runs) for table in tables for row in table.apart if asked & row.cells.keys()}
    omitted = f" Without a value: {listed(absent)}." if absent else ""
    if apart:
        omitted += f" {len(apart)} {'row is' if len(apart) == 1 else 'rows are'} not comparable and not drawn."
    if signed:
        omitted += f" Not drawn, since 0 is best: {listed(signed)}."
    incomplete = any(mark.competing != mark.value for _, _, mark in every)
    extent = _extent(len(drawn), len(valued))
    made: tuple[Blocks | Heat | Radar, str] | None = None
    if heat:
        made = _heat(plot, columns, models)
    elif plot.kind == "paired":
        made = _dumbbells(list(zip(columns, against, strict=True)), models, extent)
    elif plot.kind == "radar":
        made = _radar(columns, models, extent)
    shape, words = made or _bars(plot, columns, models, extent, board.confidence)
    return Figure(plot, shape, extent, incomplete, omitted.strip(), f"{words}{omitted}")


def _summary(column: BoardColumn, models: Sequence[Shown]) -> str:
    """The best and the last model of a column (signed: the lowest and the highest), with their numbers; incomplete ones
    only if there are no others."""
    every = [(one.label, one.mark(column)) for one in models]
    found = [(label, mark) for label, mark in every if mark.competing is not None]
    found = found or [(label, mark) for label, mark in every if mark.value is not None]
    if not found:
        return f"{column.label}: no value"
    sign = -1 if column.higher_is_better and not column.signed else 1
    ordered = sorted(found, key=lambda one: sign * (one[1].value or 0.0))
    unit = "" if column.unit in ("points", "score") else f" {UNITS[column.unit]}"
    (label, first), (_, last) = ordered[0], ordered[-1]
    best_count = sum(one.text == first.text for _, one in ordered)
    if best_count == len(ordered):
        return f"{column.label}: {'all' if best_count > 1 else label} {first.text}{unit}"
    lowest = f"{first.words}{unit}" + (f" (and {best_count - 1} more)" if best_count > 1 else "")
    highest = f"{last.words}{unit}"
    if column.signed:
        return f"{column.label}, {direction(column)}: from {lowest} to {highest}"
    return f"{column.label}: best {lowest}, last {highest}"


def _scale_of(column: BoardColumn) -> str:
    """The scale of a column: percent and points share one."""
    return "percent" if column.unit in ("fraction", "points") else column.unit


def _axis_title(columns: Iterable[BoardColumn]) -> str:
    units = {column.unit for column in columns}
    names = {"fraction": "percent", "points": "points (0 to 100)", "seconds": "seconds", "score": "score"}
    return " or ".join(name for unit, name in names.items() if unit in units)


def _on_axes(blocks: Sequence[Block], columns: Sequence[Sequence[BoardColumn]]) -> list[Block]:
    """The blocks, each of one or two columns, with one axis for all that share a scale, as percent and points do: it
    includes 0, and has room for a number at the end of the longest bar."""
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


def _bars(
    plot: BoardPlot, columns: Sequence[BoardColumn], models: Sequence[Shown], extent: str, confidence: float
) -> tuple[Blocks, str]:
    blocks, chances = [], {}
    for column in columns:
        marks = [(one, one.mark(column)) for one in models]
        lines = [Line(one.label, one.look, mark.text, (mark.value,), mark.ends) for one, mark in marks]
        note, level = column.remark, None
        if plot.chance is not None:
            chance = plot.chance if column.chance is None else column.chance
            chances[chance] = shown(chance, column.unit)
            note, level = f"dashed: chance {chances[chance]}", scaled(chance, column)
        blocks.append(Block([column.label], note, level, lines))
    which = f" for {extent}" if extent else ""
    said = f" Chance level {' or '.join(chances.values())}, drawn dashed." if chances else ""
    summary = listed([_summary(column, models) for column in columns])
    words = f"Bar chart{which}, with {100 * confidence:g} % intervals. {summary}.{said}"
    return Blocks(_on_axes(blocks, [[column] for column in columns]), False), words


def _dumbbells(
    pairs: Sequence[tuple[BoardColumn, BoardColumn]], models: Sequence[Shown], extent: str
) -> tuple[Blocks, str]:
    blocks, parts = [], []
    for column, other in pairs:
        # percent and points are drawn on one axis, fractions in percent
        lines, unit = [], "points" if column.unit == "fraction" else column.unit
        for one in models:
            first, second = one.mark(column).value, one.mark(other).value
            text = "" if first is None or second is None else difference(first - second, unit).replace(MINUS, "-")
            lines.append(Line(one.label, one.look, text, (first, second)))
        same = column.label == other.label
        names = [f"{one.label} ({one.task})" if same else one.label for one in (column, other)]
        blocks.append(Block(names, "", None, lines))
        numbers = listed([f"{line.label} {line.text}" for line in lines if line.text]) or "no model has both"
        parts.append(f"{names[0]} minus {names[1]}: {numbers}")
    which = f" for {extent}" if extent else ""
    return Blocks(_on_axes(blocks, pairs), True), f"Dumbbell chart{which}. {listed(parts)}."


def _heat(plot: BoardPlot, columns: Sequence[BoardColumn], models: Sequence[Shown]) -> tuple[Heat, str]:
    """Models by columns, with the fewer of the two across, so that the figure fits a phone: cells from 0 for the worst
    to 1 for the best, on one scale if all columns have the same unit and direction. Ranks need a complete value."""
    marks = [[one.mark(column) for one in models] for column in columns]
    values = [[mark.competing if plot.ranks else mark.value for mark in row] for row in marks]
    shared = len({(column.unit, column.higher_is_better) for column in columns}) <= 1
    every = [value for row in values for value in row if value is not None]
    cells: list[list[tuple[str, float | None]]] = []
    for column, row, texts in zip(columns, values, marks, strict=True):
        if plot.ranks:
            ranks = normalised_ranks(row, higher_is_better=column.higher_is_better)
            cells.append([("", None) if rank is None else (f"{rank:.2f}", 1 - rank) for rank in ranks])
            continue
        known = every if shared else [value for value in row if value is not None]
        low, high = min(known, default=0.0), max(known, default=0.0)
        cells.append([])
        for mark, value in zip(texts, row, strict=True):
            share = None
            if value is not None:
                share = 0.5 if low == high else (value - low) / (high - low)
                share = share if column.higher_is_better else 1 - share
            cells[-1].append((mark.text, share))
    down, across = [one.label for one in models], [one.label for one in columns]
    rows = list(zip(*cells, strict=True))
    size = f"{len(models)} models by {len(columns)} columns, lighter is better, hatched has no"
    if plot.ranks:
        worst, best, lacks = "last: 1", "best: 0", "rank"
        of_model = [[1 - good for _, good in row if good is not None] for row in rows]
        means = [(math.fsum(one) / len(one), label) for label, one in zip(down, of_model, strict=True) if one]
        lowest = listed([f"{label} {mean:.2f}" for mean, label in sorted(means)], most=3)
        words = f"Heat map of ranks, 0 for the best and 1 for the last, {size} rank. "
        words += f"Lowest mean over the columns: {lowest}."
    else:
        worst, best, lacks = "worst of the column", "best of the column", "value"
        summary = listed([_summary(column, models) for column in columns], most=6)
        words = f"Heat map of values, {size} value. {summary}."
        if shared:
            digits = 3 if columns[0].unit == "score" else 1
            ends = sorted((min(every), max(every)), reverse=not columns[0].higher_is_better)
            worst, best = f"worst: {ends[0]:.{digits}f}", f"best: {ends[1]:.{digits}f}"
    if len(columns) > len(models):
        down, across, rows = across, down, list(map(tuple, cells))
    return Heat(across, list(zip(down, rows, strict=True)), worst, best, lacks), words


def _radar(columns: Sequence[BoardColumn], models: Sequence[Shown], extent: str) -> tuple[Radar, str] | None:
    """Curves over three or more axes with one scale from 0 in the middle; None if a column is signed or on another
    scale, or a value below 0."""
    curves = [(one.label, one.look, [one.mark(column).value for column in columns]) for one in models]
    values = [value for _, _, curve in curves for value in curve if value is not None]
    signed = any(column.signed for column in columns)
    if signed or len(columns) < 3 or len({*map(_scale_of, columns)}) > 1 or min(values) < 0:
        return None
    highest = max(values)
    top = min(100.0, 20.0 * math.ceil(highest / 20)) if _scale_of(columns[0]) == "percent" else highest
    names = [one.label if one.higher_is_better else f"{one.label} (lower is better)" for one in columns]
    summary = listed([_summary(column, models) for column in columns])
    which = extent or f"{len(models)} models"
    words = f"Radar chart for {which} with {len(columns)} axes, from 0 in the middle. {summary}."
    return Radar(names, max(top, highest) or 1.0, _axis_title(columns), curves), words


def _confidence(board: Board, benchmark: BenchmarkBoard, plot: BoardPlot) -> Figure | None:
    tasks = {column.task for table in benchmark.tables for column in table.columns if column.key in plot.columns}
    found = {one.model: one.reliability for one in benchmark.reliability if one.task in tasks}
    labels = _labelled_best(board, benchmark, found)
    if not labels:
        return None
    curves, texts = [], []
    for look, (model, label) in zip(LOOKS, labels.items(), strict=False):
        bins, curve = found[model].bins, found[model].curve
        if plot.kind == "coverage":
            points = [Point(100 * place / len(curve), 100 * value, 3.0) for place, value in enumerate(curve, start=1)]
            text = f"{points[0].y:.0f} % right among the most confident tenth, {points[-1].y:.0f} % among all"
        else:
            answers, points = sum(each.answers for each in bins), []
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
    return Figure(plot, plane, _extent(len(curves), len(labels)), False, "", alt)


def _cost(board: Board, benchmark: BenchmarkBoard, plot: BoardPlot) -> Figure | None:
    measure = plotted([(one.usage, one.cost) for one in benchmark.usage])
    columns = (column for table in benchmark.tables for column in table.columns)
    column = next((one for one in columns if one.key in plot.columns), None)
    if measure is None or column is None:
        return None
    used = {one.model: one for one in benchmark.usage}
    labels = _labelled_best(board, benchmark, used)
    costs = {model: measure.value(used[model].usage, used[model].cost) for model in labels}
    known = [(model, cost) for model, cost in costs.items() if cost is not None]
    curves, numbers, incomplete = [], [], False
    for look, (model, cost) in zip(LOOKS, known[:MOST_MODELS], strict=False):
        mark = Shown(labels[model], look, {column.key: used[model].score}).mark(column)
        star = mark.competing is None
        incomplete |= star
        numbers.append(f"{mark.words} at {amount(cost)}")
        points = () if mark.value is None else (Point(cost, mark.value, 5.0, mark.ends),)  # a ranked run has one
        curves.append((labels[model] + "*" * star, look, points))
    extent = _extent(len(curves), len(known))
    absent = [labels[model] for model, cost in costs.items() if cost is None]
    omitted = f"Without a value: {listed(absent)}." if absent else ""
    across = f"{measure.label.lower()} ({measure.unit})"
    words = f"Scatter plot{f' ({extent})' if extent else ''}. {column.label} against {across}: {listed(numbers)}."
    plane = Plane(across, f"{column.label} ({UNITS[column.unit]})", curves, joined=False, percent=False)
    return Figure(plot, plane, extent, incomplete, omitted, " ".join(filter(None, (words, omitted))))
