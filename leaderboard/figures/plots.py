"""Figures of a board as data: their columns, the models with a value in one of them, the shape, and
a description in words.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

from medtasks.stats.ranks import normalised_ranks

from ..board.floors import floors_text, highest_floor
from ..board.usage import amount, plotted
from ..schema.board import BenchmarkBoard, Board, BoardColumn, BoardPlot, BoardTable, Cell
from ..schema.numbers import (
    MINUS,
    UNITS,
    difference,
    direction,
    safe_name,
    shown,
    shown_interval,
    shown_name,
)
from .shapes import (
    LOOKS,
    Axis,
    Block,
    Blocks,
    Heat,
    Line,
    Look,
    Plane,
    Point,
    Radar,
    distinct,
    listed,
)

MOST_MODELS = 8
"""Maximum number of models in all figures but heat maps; more could not be distinguished."""
FEWEST_AXES, FEWEST_CURVES = 3, 3
"""Least number of columns and of models in a radar chart."""
_LABEL = 26
"""Characters of a model's name."""
_WIDE = 20.0
"""Ratio of the largest to the smallest value from which an axis is logarithmic."""


@dataclass(frozen=True)
class Figure:
    """A figure; ``extent`` says how many of the models with a value it shows (``8 of 31 models``;
    empty if all), ``incomplete`` whether a value over too few items is among them, ``omitted`` what
    it leaves out, in sentences; ``alt`` describes it to those who cannot see it.
    """

    plot: BoardPlot
    shape: Blocks | Heat | Radar | Plane
    extent: str
    incomplete: bool
    omitted: str
    alt: str

    @property
    def title(self) -> str:
        return f"{self.plot.title} ({self.extent})" if self.extent else self.plot.title


def model_order(benchmark: BenchmarkBoard) -> dict[str, int]:
    """The order of models in tables and figures of a benchmark: by the first score that ranks any,
    then by slug.
    """
    models: list[str] = []
    for ranking in benchmark.rankings:
        if ranking.ranked:
            models = [place.model for place in ranking.ranked]
            break
    in_tables: set[str] = set()
    for table in benchmark.tables:
        in_tables.update(row.model for row in table.every_row)
    models += sorted(in_tables - set(models))
    return {model: place for place, model in enumerate(models)}


def figures_of(board: Board, benchmark: BenchmarkBoard) -> dict[str, Figure]:
    """The figures by the name of their plot, without those that no model has a value for, and
    without letters and timelines, which pages draw into their tables.
    """
    makers = {"cost": _cost, "reliability": _confidence, "coverage": _confidence}
    figures = {}
    for plot in benchmark.plots:
        if plot.kind in ("letters", "timeline"):
            continue
        make = makers.get(plot.kind, _scores)
        figure = make(board, benchmark, plot)
        if figure is not None:
            figures[plot.name] = figure
    return figures


def figure_files(benchmark: BenchmarkBoard, plot: str, formats: Iterable[str]) -> dict[str, str]:
    """The paths of a figure's files on a site, by format."""
    return {
        kind: f"figures/{safe_name(benchmark.name)}/{safe_name(plot)}.{kind}" for kind in formats
    }


def _labels(board: Board, models: Iterable[str]) -> dict[str, str]:
    names = {model: shown_name(board, model) for model in models}
    return dict(zip(names, distinct([*names.values()], _LABEL), strict=True))


def _extent(drawn: Collection[object], of: Collection[object]) -> str:
    return f"{len(drawn)} of {len(of)} models" if len(drawn) < len(of) else ""


def _line(label: str, look: Look, column: BoardColumn, cell: Cell | None) -> Line:
    if cell is None or cell.value is None:
        return Line(label, look, "", (None,))
    text, ends, words = shown(cell.value, column.unit) + "*" * cell.incomplete, None, ""
    if cell.low is not None and cell.high is not None:
        ends, words = (
            (scaled(cell.low, column), scaled(cell.high, column)),
            f" ({shown_interval(cell, column.unit)})",
        )
    return Line(
        label,
        look,
        text,
        (scaled(cell.value, column),),
        ends,
        cell.incomplete,
        f"{label} {text}{words}",
    )


def scaled(value: float, column: BoardColumn) -> float:
    """A value as drawn: fractions in percent, all others as they are."""
    return 100.0 * value if column.unit == "fraction" else value


Series: TypeAlias = "list[tuple[BoardColumn, list[Line]]]"
"""The columns of a figure, with a line for each model."""
HeatCells: TypeAlias = "list[tuple[str, float | None]]"
"""Of one column, a cell for each model: its text, and 0 (worst) to 1 (best)."""


def _scores(board: Board, benchmark: BenchmarkBoard, plot: BoardPlot) -> Figure | None:
    """Bars, a heat map, dumbbells or a radar of the plot's columns: of at most `MOST_MODELS`
    models, but all on a heat map, which has no signed columns.
    """
    tables = sorted(benchmark.tables, key=lambda table: table.name != plot.table)
    columns, signed = _plotted_columns(plot, tables)
    keys = {*plot.columns, *plot.against}
    cells_by_model = _cells_by_model(tables)
    order = [model for model in model_order(benchmark) if model in cells_by_model]
    valued = [model for model in order if _has_value(cells_by_model[model], keys)]
    drawn = valued if plot.kind == "heatmap" else valued[:MOST_MODELS]
    if not drawn or not columns:
        return None

    labels = _labels(board, drawn)
    looks = _looks([order.index(model) for model in drawn])

    def lines_of(column: BoardColumn) -> tuple[BoardColumn, list[Line]]:
        lines = []
        for model, look in zip(drawn, looks, strict=True):
            cell = cells_by_model[model].get(column.key)
            lines.append(_line(labels[model], look, column, cell))
        return column, lines

    series, *against = [
        [lines_of(column) for column in side] for side in zip(*columns, strict=True)
    ]
    absent = []
    incomplete = False
    for side in (series, *against):
        for column, lines in side:
            absent += [f"{line.label} in {column.label}" for line in lines if line.value is None]
            incomplete |= any(line.incomplete for line in lines)
    omitted = _omitted(absent, _count_apart(tables, keys), signed)
    extent = _extent(drawn, valued)
    shape, words = _shape(plot, series, against, extent, board.confidence)
    return Figure(plot, shape, extent, incomplete, omitted.strip(), f"{words}{omitted}")


def _summary(column: BoardColumn, lines: Sequence[Line]) -> str:
    """The best and the last model of a column (signed: the lowest and the highest), with their
    numbers; incomplete ones only if there are no others.
    """
    found = [one for one in lines if one.competing is not None] or [
        one for one in lines if one.value is not None
    ]
    if not found:
        return f"{column.label}: no value"
    sign = -1 if column.higher_is_better and not column.signed else 1
    ordered = sorted(found, key=lambda one: sign * (one.value or 0.0))
    unit = "" if column.unit in ("points", "score") else f" {UNITS[column.unit]}"
    first, last = ordered[0], ordered[-1]
    best_count = sum(one.text == first.text for one in ordered)
    if best_count == len(ordered):
        return f"{column.label}: {'all' if best_count > 1 else first.label} {first.text}{unit}"
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
    names = {
        "fraction": "percent",
        "points": "points (0 to 100)",
        "seconds": "seconds",
        "score": "score",
    }
    return " or ".join(name for unit, name in names.items() if unit in units)


def _on_axes(blocks: Sequence[tuple[Block, Sequence[BoardColumn]]]) -> list[Block]:
    """The blocks, each of one or two columns, with one axis for all that share a scale, as percent
    and points do: it includes 0, and has room for a number at the end of the longest bar.
    """
    axes = {}
    for scale in {_scale_of(first) for _, (first, *_) in blocks}:
        members = [(block, columns) for block, columns in blocks if _scale_of(columns[0]) == scale]
        numbers = [0.0]
        for block, _ in members:
            values = (
                block.chance,
                *(one for line in block.lines for one in (*line.values, *(line.ends or ()))),
            )
            numbers += [value for value in values if value is not None]
        low, high = min(numbers), max(numbers)
        high = high if low < high else 1.0
        room = 0.16 * (high - low)
        low, high = low - room * (low < 0), high + room
        if scale == "percent":  # no tick beyond 100 percent, but room for the numbers
            low, high = max(low, -118.0), min(high, 118.0)
        axes[scale] = Axis(
            _axis_title(column for _, columns in members for column in columns), low, high
        )
    return [block._replace(axis=axes[_scale_of(first)]) for block, (first, *_) in blocks]


def _bars(plot: BoardPlot, series: Series, extent: str, confidence: float) -> tuple[Blocks, str]:
    blocks: list[tuple[Block, list[BoardColumn]]] = []
    drawn: dict[str, None] = {}
    for column, lines in series:
        note, level = column.remark, None
        if plot.chance is not None and column.chance is None:
            column = column.model_copy(update={"chance": plot.chance})
        highest = highest_floor(column)
        if plot.chance is not None and highest is not None:
            others = floors_text(column, without=highest)
            drawn[f"{highest.name} {shown(highest.level, column.unit)}"] = None
            note = (
                f"dashed: {highest.name} {shown(highest.level, column.unit)}"
                + f"; {others}" * bool(others)
            )
            level = scaled(highest.level, column)
        blocks.append((Block([column.label], note, level, lines), [column]))
    which = f" for {extent}" if extent else ""
    said = f" Dashed: {' or '.join(drawn)}." if drawn else ""
    summary = listed([_summary(*one) for one in series])
    words = f"Bar chart{which}, with {100 * confidence:g} % intervals. {summary}.{said}"
    return Blocks(_on_axes(blocks), False, confidence), words


def _dumbbells(
    series: Series, against: Series, extent: str, confidence: float
) -> tuple[Blocks, str]:
    blocks, parts = [], []
    for (column, firsts), (other, seconds) in zip(series, against, strict=True):
        # percent and points are drawn on one axis, fractions in percent
        lines, unit = [], "points" if column.unit == "fraction" else column.unit
        for one, two in zip(firsts, seconds, strict=True):
            values, text = (one.value, two.value), ""
            if one.value is not None and two.value is not None:
                text = difference(one.value - two.value, unit).replace(MINUS, "-")
            lines.append(Line(one.label, one.look, text, values))
        same = column.label == other.label
        names = [f"{one.label} ({one.task})" if same else one.label for one in (column, other)]
        blocks.append((Block(names, "", None, lines), [column, other]))
        numbers = (
            listed([f"{line.label} {line.text}" for line in lines if line.text])
            or "no model has both"
        )
        parts.append(f"{names[0]} minus {names[1]}: {numbers}")
    which = f" for {extent}" if extent else ""
    return Blocks(_on_axes(blocks), True, confidence), f"Dumbbell chart{which}. {listed(parts)}."


def _plotted_columns(
    plot: BoardPlot, tables: Sequence[BoardTable]
) -> tuple[list[list[BoardColumn]], list[str]]:
    """The plot's columns, each alone or with the one it is drawn against, and the labels of signed
    columns that a heat map leaves out.

    A column is looked up in the first table that has it; unknown ones are left out.
    """
    by_key: dict[str, BoardColumn] = {}
    for table in reversed(tables):
        by_key |= {column.key: column for column in table.columns}
    sides = (plot.columns, plot.against) if plot.against else (plot.columns,)
    columns = []
    signed = []
    for keys in zip(*sides, strict=False):
        if not by_key.keys() >= set(keys):
            continue
        first = by_key[keys[0]]
        if plot.kind == "heatmap" and first.signed:
            signed.append(first.label)
        else:
            columns.append([by_key[key] for key in keys])
    return columns, signed


def _cells_by_model(tables: Sequence[BoardTable]) -> dict[str, dict[str, Cell]]:
    """The cells of comparable models by column; those of the first table that has a column."""
    cells: dict[str, dict[str, Cell]] = {}
    for table in tables:
        for row in table.rows:
            cells[row.model] = {**row.cells, **cells.get(row.model, {})}
    return cells


def _has_value(cells: Mapping[str, Cell], keys: Collection[str]) -> bool:
    """Whether a model has a value in one of the columns."""
    return any(key in keys and cell.value is not None for key, cell in cells.items())


def _looks(places: Iterable[int]) -> list[Look]:
    """A look for each model by its place on the board, or the first free one if that is taken."""
    taken: list[int] = []
    for place in places:
        free = [number for number in range(len(LOOKS)) if number not in taken]
        if not free:
            taken.append(place % len(LOOKS))
        elif place in free:
            taken.append(place)
        else:
            taken.append(free[0])
    return [LOOKS[number] for number in taken]


def _count_apart(tables: Sequence[BoardTable], keys: Collection[str]) -> int:
    """The number of rows that are not comparable and have a cell in one of the columns."""
    rows = set()
    for table in tables:
        for row in table.apart:
            if not row.cells.keys().isdisjoint(keys):
                rows.add((row.model, row.runs))
    return len(rows)


def _omitted(absent: Sequence[str], apart: int, signed: Sequence[str]) -> str:
    """What a figure leaves out, in sentences that each begin with a space."""
    omitted = ""
    if absent:
        omitted += f" Without a value: {listed(absent)}."
    if apart:
        rows_are = "row is" if apart == 1 else "rows are"
        omitted += f" {apart} {rows_are} not comparable and not drawn."
    if signed:
        omitted += f" Not drawn, since 0 is best: {listed(signed)}."
    return omitted


def _shape(
    plot: BoardPlot, series: Series, against: Sequence[Series], extent: str, confidence: float
) -> tuple[Blocks | Heat | Radar, str]:
    """The shape of a plot's kind with its description; bars if a radar cannot be drawn."""
    if plot.kind == "heatmap":
        return _heat(plot, series)
    if plot.kind == "radar":
        radar = _radar(series, extent)
        return radar or _bars(plot, series, extent, confidence)
    if against:
        return _dumbbells(series, against[0], extent, confidence)
    return _bars(plot, series, extent, confidence)


def _heat(plot: BoardPlot, series: Series) -> tuple[Heat, str]:
    """Models by columns, lighter cells for better ones.

    The fewer of models and columns are across, so that the figure fits a phone. Cells are 0 for
    the worst to 1 for the best, on one scale if all columns have the same unit and direction. Ranks
    need a complete value.
    """
    labels = [line.label for line in series[0][1]]
    columns = [column.label for column, _ in series]
    size = f"{len(labels)} models by {len(columns)} columns, lighter is better, hatched has no"
    if plot.ranks:
        cells = [_rank_cells(column, lines) for column, lines in series]
        worst, best, lacks = "last: 1", "best: 0", "rank"
        lowest = listed(_mean_ranks(labels, cells), most=3)
        words = (
            f"Heat map of ranks, 0 for the best and 1 for the last, {size} rank. "
            f"Lowest mean over the columns: {lowest}."
        )
    else:
        cells, worst, best = _value_cells(series)
        lacks = "value"
        summary = listed([_summary(column, lines) for column, lines in series], most=6)
        words = f"Heat map of values, {size} value. {summary}."
    if len(columns) > len(labels):
        return Heat(
            labels, list(zip(columns, map(tuple, cells), strict=True)), worst, best, lacks
        ), words
    rows = list(zip(*cells, strict=True))
    return Heat(columns, list(zip(labels, rows, strict=True)), worst, best, lacks), words


def _rank_cells(column: BoardColumn, lines: Sequence[Line]) -> HeatCells:
    values = [line.competing for line in lines]
    cells: HeatCells = []
    for rank in normalised_ranks(values, higher_is_better=column.higher_is_better):
        if rank is None:
            cells.append(("", None))
        else:
            cells.append((f"{rank:.2f}", 1 - rank))
    return cells


def _mean_ranks(labels: Sequence[str], cells: Sequence[HeatCells]) -> list[str]:
    """The models with their mean rank over the columns, lowest first."""
    means = []
    for label, row in zip(labels, zip(*cells, strict=True), strict=True):
        ranks = [1 - share for _, share in row if share is not None]
        if ranks:
            means.append((math.fsum(ranks) / len(ranks), label))
    return [f"{label} {mean:.2f}" for mean, label in sorted(means)]


def _value_cells(series: Series) -> tuple[list[HeatCells], str, str]:
    """The cells of values by column, and what the two ends of the scale are."""
    scales = {(column.unit, column.higher_is_better) for column, _ in series}
    by_column = [[line.value for line in lines if line.value is not None] for _, lines in series]
    if len(scales) > 1:
        cells = []
        for (column, lines), values in zip(series, by_column, strict=True):
            cells.append(_shares(column, lines, values))
        return cells, "worst of the column", "best of the column"
    every = list(chain.from_iterable(by_column))
    first, _ = series[0]
    digits = 3 if first.unit == "score" else 1
    worst, best = sorted((min(every), max(every)), reverse=not first.higher_is_better)
    cells = [_shares(column, lines, every) for column, lines in series]
    return cells, f"worst: {worst:.{digits}f}", f"best: {best:.{digits}f}"


def _shares(column: BoardColumn, lines: Sequence[Line], scale: Sequence[float]) -> HeatCells:
    """The cells of a column, placed between the lowest and the highest number of ``scale``."""
    low, high = min(scale, default=0.0), max(scale, default=0.0)
    cells: HeatCells = []
    for line in lines:
        share = None
        if line.value is not None:
            share = 0.5 if low == high else (line.value - low) / (high - low)
            if not column.higher_is_better:
                share = 1 - share
        cells.append((line.text, share))
    return cells


def _radar(series: Series, extent: str) -> tuple[Radar, str] | None:
    """Curves of three or more models over three or more axes with one scale from 0 in the middle;
    None if a column is signed or on another scale, or a value below 0. One or two models are
    compared more easily as bars.
    """
    columns = [column for column, _ in series]
    models = zip(*(lines for _, lines in series), strict=True)
    curves = [(lines[0].label, lines[0].look, [line.value for line in lines]) for lines in models]
    values = [value for _, _, curve in curves for value in curve if value is not None]
    signed = any(column.signed for column in columns)
    too_few = len(columns) < FEWEST_AXES or len(curves) < FEWEST_CURVES
    if signed or too_few or len({*map(_scale_of, columns)}) > 1 or min(values) < 0:
        return None
    highest = max(values)
    top = (
        min(100.0, 20.0 * math.ceil(highest / 20))
        if _scale_of(columns[0]) == "percent"
        else highest
    )
    names = [
        one.label if one.higher_is_better else f"{one.label} (lower is better)" for one in columns
    ]
    summary = listed([_summary(*one) for one in series])
    which = extent or f"{len(curves)} models"
    words = f"Radar chart for {which} with {len(columns)} axes, from 0 in the middle. {summary}."
    return Radar(names, max(top, highest) or 1.0, _axis_title(columns), curves), words


def _confidence(board: Board, benchmark: BenchmarkBoard, plot: BoardPlot) -> Figure | None:
    tasks = {
        column.task
        for table in benchmark.tables
        for column in table.columns
        if column.key in plot.columns
    }
    found = {one.model: one.reliability for one in benchmark.reliability if one.task in tasks}
    labels = _labels(board, (model for model in model_order(benchmark) if model in found))
    curves, texts = [], []
    for look, (model, label) in zip(LOOKS, labels.items(), strict=False):
        bins, curve = found[model].bins, found[model].curve
        if plot.kind == "coverage":
            points = [
                Point(100 * place / len(curve), 100 * value, 3.0)
                for place, value in enumerate(curve, start=1)
            ]
            text = f"{points[0].y:.0f} % right among the most confident tenth, {points[-1].y:.0f} % among all"
        else:
            answers, points = sum(each.answers for each in bins), []
            for each in bins:
                ends = (
                    None
                    if each.interval is None
                    else (100 * each.interval[0], 100 * each.interval[1])
                )
                radius = 2 + 5 * math.sqrt(each.answers / answers)
                points.append(Point(100 * each.confidence, 100 * each.accuracy, radius, ends))
            text = ", ".join(f"{point.x:.0f} % sure, {point.y:.0f} % right" for point in points)
        curves.append((label, look, points))
        texts.append(f"{label}: {text}")
    if not curves:
        return None
    what, title = "confidence", "confidence (%)"
    if plot.kind == "coverage":
        what, title = "coverage", "share of the answers, most confident first (%)"
    across = Axis(title, 0.0, 100.0, [(float(share), f"{share}") for share in range(0, 101, 20)])
    up = across._replace(title="accuracy (%)")
    plane = Plane(across, up, curves, joined=True, diagonal=plot.kind == "reliability")
    alt = f"Line chart of accuracy by {what}. {listed(texts)}."
    return Figure(plot, plane, _extent(curves, labels), False, "", alt)


def _cost(board: Board, benchmark: BenchmarkBoard, plot: BoardPlot) -> Figure | None:
    measure = plotted([(one.usage, one.cost) for one in benchmark.usage])
    columns = (column for table in benchmark.tables for column in table.columns)
    column = next((one for one in columns if one.key in plot.columns), None)
    if measure is None or column is None:
        return None
    used = {one.model: one for one in benchmark.usage}
    labels = _labels(board, (model for model in model_order(benchmark) if model in used))
    costs = {model: measure.value(used[model].usage, used[model].cost) for model in labels}
    known = {model: cost for model, cost in costs.items() if cost is not None}
    curves, numbers, incomplete = [], [], False
    for look, (model, cost) in zip(LOOKS, known.items(), strict=False):
        line = _line(labels[model], look, column, used[model].score)
        incomplete |= line.incomplete
        numbers.append(f"{line.words} at {amount(cost)}")
        points = (
            [] if line.value is None else [Point(cost, line.value, 5.0, line.ends)]
        )  # a ranked run has one
        curves.append((labels[model] + "*" * line.incomplete, look, points))
    extent = _extent(curves, known)
    absent = [labels[model] for model in costs if model not in known]
    omitted = f"Without a value: {listed(absent)}." if absent else ""
    across = f"{measure.label.lower()} ({measure.unit})"
    words = f"Scatter plot{f' ({extent})' if extent else ''}. {column.label} against {across}: {listed(numbers)}."
    plane = _cost_plane(across, f"{column.label} ({UNITS[column.unit]})", curves)
    return Figure(
        plot, plane, extent, incomplete, omitted, " ".join(filter(None, (words, omitted)))
    )


def _cost_plane(across: str, up: str, curves: Sequence[tuple[str, Look, Sequence[Point]]]) -> Plane:
    """All costs and scores, with 0 unless costs are logarithmic."""
    points = [point for _, _, of_model in curves for point in of_model]
    costs = [point.x for point in points]
    wide = min(costs) > 0 and max(costs) > _WIDE * min(costs)
    low, high = (
        (math.log10(min(costs)), math.log10(max(costs))) if wide else (0.0, max(costs) or 1.0)
    )
    room = 0.06 * (high - low) or 1.0
    low, high = low - room * wide, high + room
    marks = [
        10 ** (low + (high - low) * share) if wide else high * share for share in (0.1, 0.5, 0.9)
    ]
    scores = [score for point in points for score in (point.y, *(point.ends or ()))]
    bottom, top = min(0.0, *scores), max(scores) or 1.0
    heights = [
        (value, f"{value:.3g}")
        for value in (bottom + (top - bottom) * share for share in (0, 0.5, 1))
    ]
    return Plane(
        Axis(across, low, high, [(mark, amount(mark) or "0") for mark in marks], wide),
        Axis(up, bottom, top + 0.05 * (top - bottom), heights),
        curves,
        joined=False,
    )
