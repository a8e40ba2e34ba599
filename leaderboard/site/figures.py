"""Figures drawn on the pages, from the same models, columns and scales as the figures that can be downloaded."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..board import BenchmarkBoard, Board, BoardColumn, BoardPlot, Timeline
from ..figures.chosen import Chosen, Shown, choose, scaled
from ..figures.looks import LOOKS, MOST_MODELS, Look, short
from ..figures.values import (
    all_values,
    axis_title,
    by_scale,
    chance_of,
    cost_points,
    coverage_words,
    difference_of,
    ends_of,
    goodness_of,
    heat_number,
    is_radar,
    is_wide,
    pair_names,
    reliability_series,
    reliability_words,
    rim_of,
    span,
)
from ..numbers import UNITS, shown
from ..usage import amount

COLOURS = 10
"""Of a heat map."""
PLANE = (320, 220)
"""Width and height of the area of a plane."""
RADIUS = 140
"""Of a radar."""


@dataclass(frozen=True)
class Line:
    """One model in a block: a bar from ``start``, an interval, or two marks; places are percentages of the axis."""

    label: str
    look: int
    text: str
    start: str = ""
    width: str = ""
    ends: tuple[str, str] | None = None
    marks: tuple[str, str] | None = None


@dataclass(frozen=True)
class Block:
    """The models in one column; ``note`` is its remark, or the chance level drawn at ``chance``."""

    label: str
    note: str
    zero: str
    chance: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Heat:
    """Rows of cells: text, and colour 0 (worst) to 9 (best), None without a value."""

    across: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[str, int | None], ...]], ...]
    worst: str
    best: str
    ranks: bool


@dataclass(frozen=True)
class Curve:
    """A model on a plane: a path, upright intervals, and dots of a radius. Without a path, dots alone."""

    label: str
    look: int
    path: str
    ends: str
    dots: tuple[tuple[float, float, float], ...]


@dataclass(frozen=True)
class Plane:
    """Curves over two axes; ticks are places with their texts."""

    across: str
    up: str
    across_ticks: tuple[tuple[float, str], ...]
    up_ticks: tuple[tuple[float, str], ...]
    curves: tuple[Curve, ...]
    diagonal: bool = False


@dataclass(frozen=True)
class Radar:
    """Closed curves around a centre: rings with their value, and axes with their end, label, its place and anchor."""

    rings: tuple[tuple[float, str], ...]
    axes: tuple[tuple[float, float, str, float, float, str], ...]
    curves: tuple[Curve, ...]


@dataclass(frozen=True)
class Drawn:
    """A figure: blocks of lines, a heat map, a radar or a plane; ``extent`` says how many of the models, if not all.

    ``words`` describe it to those who cannot see it, if no table beside it has the same numbers.
    """

    plot: BoardPlot
    extent: str
    blocks: tuple[Block, ...] = ()
    heat: Heat | None = None
    plane: Plane | None = None
    radar: Radar | None = None
    incomplete: bool = False
    omitted: str = ""
    axis: str = ""
    words: str = ""


def drawn_figures(board: Board, benchmark: BenchmarkBoard) -> dict[str, Drawn]:
    """The figures by the name of their plot, without those that no model has a value for.

    Letters and timelines are drawn into their own tables (:func:`share_bar`, :func:`time_axis`).
    """
    found = {plot.name: _drawn(board, benchmark, plot) for plot in benchmark.plots}
    return {name: figure for name, figure in found.items() if figure is not None}


def _drawn(board: Board, benchmark: BenchmarkBoard, plot: BoardPlot) -> Drawn | None:
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
    radar = _radar(chosen) if plot.kind == "radar" and is_radar(chosen) else None
    return Drawn(
        plot,
        chosen.extent,
        blocks=() if heat or radar else tuple(_blocks(plot, chosen, plot.kind == "paired")),
        radar=radar,
        heat=_heat(plot, chosen) if heat else None,
        incomplete=chosen.incomplete,
        omitted=chosen.omissions().strip(),
        axis="" if heat else axis_title(chosen.columns),
    )


def _blocks(plot: BoardPlot, chosen: Chosen, paired: bool) -> Iterable[Block]:
    """Columns that can share an axis have one, so that their bars can be compared."""
    axes = {}
    for places in by_scale(chosen.columns):
        columns = [chosen.columns[place] for place in places]
        others = [chosen.against[place] for place in places] if paired else []
        values = [value for column in (*columns, *others) for one in chosen.models for value in _values(one, column)]
        chances = [] if paired else [(chance_of(column, plot), column) for column in columns]
        values += [scaled(chance, column) for chance, column in chances if chance is not None]
        axes.update(dict.fromkeys(places, span(values, columns[0].unit in ("fraction", "points"))))
    for place, column in enumerate(chosen.columns):
        axis = axes[place]
        zero = _place(0.0, axis)
        if paired:
            other = chosen.against[place]
            lines = [_pair(one, column, other, axis) for one in chosen.models]
            yield Block(" against ".join(pair_names(column, other)), "", zero, "", tuple(lines))
            continue
        chance = chance_of(column, plot)
        note = column.remark if chance is None else f"dashed: chance {shown(chance, column.unit)}"
        at = "" if chance is None else _place(scaled(chance, column), axis)
        yield Block(column.label, note, zero, at, tuple(_bar(one, column, axis) for one in chosen.models))


def _values(one: Shown, column: BoardColumn) -> list[float]:
    value = one.value(column)
    return [] if value is None else [value, *(one.ends(column) or ())]


def _bar(one: Shown, column: BoardColumn, axis: tuple[float, float]) -> Line:
    value, ends = one.value(column), one.ends(column)
    if value is None:
        return Line(one.label, _look(one.look), "no value")
    return Line(
        one.label,
        _look(one.look),
        one.number(column),
        start=_place(min(value, 0.0), axis),
        width=_share(abs(value), axis),
        ends=None if ends is None else (_place(ends[0], axis), _place(ends[1], axis)),
    )


def _pair(one: Shown, column: BoardColumn, other: BoardColumn, axis: tuple[float, float]) -> Line:
    first, second = one.value(column), one.value(other)
    if first is None or second is None:
        return Line(one.label, _look(one.look), "no value")
    marks = (_place(first, axis), _place(second, axis))
    return Line(one.label, _look(one.look), difference_of(one, column, other), marks=marks)


def _look(look: Look) -> int:
    return LOOKS.index(look)


def _place(value: float, axis: tuple[float, float]) -> str:
    return f"{100 * (value - axis[0]) / (axis[1] - axis[0]):.4g}%"


def _share(value: float, axis: tuple[float, float]) -> str:
    return f"{100 * value / (axis[1] - axis[0]):.4g}%"


def _heat(plot: BoardPlot, chosen: Chosen) -> Heat:
    """Models by columns, with the fewer of the two across."""
    goodness = goodness_of(plot, chosen)
    columns, models = [one.label for one in chosen.columns], [one.label for one in chosen.models]
    cells = [
        [
            (heat_number(plot, column, model, good), None if good is None else min(int(COLOURS * good), COLOURS - 1))
            for model, good in zip(chosen.models, of_column, strict=True)
        ]
        for column, of_column in zip(chosen.columns, goodness, strict=True)
    ]
    turned = len(columns) > len(models)
    down, across = (columns, models) if turned else (models, columns)
    rows = cells if turned else [list(row) for row in zip(*cells, strict=True)]
    worst, best = ends_of(plot, chosen)
    named = tuple((label, tuple(row)) for label, row in zip(down, rows, strict=True))
    return Heat(tuple(across), named, worst, best, plot.ranks)


def _radar(chosen: Chosen) -> Radar:
    """All axes have one scale, from 0 in the middle; a missing value is a gap."""
    rim = rim_of(chosen.columns, max(all_values(chosen)))
    angles = [2 * math.pi * place / len(chosen.columns) for place in range(len(chosen.columns))]

    def at(radius: float, angle: float) -> tuple[float, float]:
        return round(radius * math.sin(angle), 1), round(-radius * math.cos(angle), 1)

    axes = []
    for angle, column in zip(angles, chosen.columns, strict=True):
        label = column.label if column.higher_is_better else f"{column.label} (lower is better)"
        side = math.sin(angle)
        anchor = "middle" if abs(side) < 1e-6 else "start" if side > 0 else "end"
        x, y = at(RADIUS + 8, angle)
        axes.append((*at(RADIUS, angle), short(label, 30), x, y + 4 - 4 * math.cos(angle), anchor))
    curves = []
    for one in chosen.models:
        dots, path, pen = [], "", False
        for angle, column in [*zip(angles, chosen.columns, strict=True), (angles[0], chosen.columns[0])]:
            value = one.value(column)
            if value is not None:
                x, y = at(RADIUS * value / rim, angle)
                path += f"{'L' if pen else 'M'}{x} {y}"
                dots.append((x, y, 3.0))
            pen = value is not None
        curves.append(Curve(one.label, _look(one.look), path, "", tuple(dict.fromkeys(dots))))
    rings = tuple((RADIUS * share, f"{rim * share:g}") for share in (0.25, 0.5, 0.75, 1))
    return Radar(rings, tuple(axes), tuple(curves))


def _confidence(board: Board, benchmark: BenchmarkBoard, plot: BoardPlot) -> Drawn | None:
    """Accuracy by confidence, or by the share of the answers of which a model is most confident."""
    series, extent = reliability_series(board, benchmark, plot)
    if not series:
        return None
    curves = []
    for label, look, one in series:
        if plot.kind == "coverage":
            curve = one.reliability.curve
            points = [(place / len(curve), value, 3.0) for place, value in enumerate(curve, start=1)]
            ends: list[tuple[float, float, float]] = []
        else:
            bins = one.reliability.bins
            answers = sum(each.answers for each in bins)
            points = [(each.confidence, each.accuracy, 2 + 5 * math.sqrt(each.answers / answers)) for each in bins]
            ends = [(each.confidence, *each.interval) for each in bins if each.interval is not None]
        curves.append(_curve(label, look, points, ends, joined=True))
    percent = tuple((share / 100, f"{share}") for share in range(0, 101, 20))
    across = "share of the answers, most confident first (%)" if plot.kind == "coverage" else "confidence (%)"
    width, height = PLANE
    plane = Plane(
        across,
        "accuracy (%)",
        tuple((width * place, text) for place, text in percent),
        tuple((height * (1 - place), text) for place, text in percent),
        tuple(curves),
        diagonal=plot.kind == "reliability",
    )
    words = coverage_words(series) if plot.kind == "coverage" else reliability_words(series)
    return Drawn(plot, extent.strip(" ()"), plane=plane, words=words)


def _cost(board: Board, benchmark: BenchmarkBoard, plot: BoardPlot) -> Drawn | None:
    points = cost_points(board, benchmark, plot)
    if points is None:
        return None
    column, costs = points.column, [value for _, value in points.drawn]
    wide = is_wide(costs)
    low, high = (math.log10(min(costs)), math.log10(max(costs))) if wide else (0.0, max(costs) or 1.0)
    room = 0.06 * (high - low) or 1.0
    low, high = low - room * wide, high + room
    ticks = [low + (high - low) * share for share in (0.1, 0.5, 0.9)] if wide else [0.0, high / 2.2, high / 1.1]
    found = [value for one, _ in points.drawn for value in _values(one, column)]
    bottom, top = min(0.0, *found), max(found) or 1.0
    top += 0.05 * (top - bottom)

    def across(cost: float) -> float:
        return ((math.log10(cost) if wide else cost) - low) / (high - low)

    def up(score: float) -> float:
        return (score - bottom) / (top - bottom)

    curves = []
    for one, cost in points.drawn:
        value, ends = one.value(column), one.ends(column)
        if value is None:
            continue  # a ranked run has one
        upright = [] if ends is None else [(across(cost), up(ends[0]), up(ends[1]))]
        curves.append(_curve(one.label, one.look, [(across(cost), up(value), 5.0)], upright, joined=False))
    width, height = PLANE
    plane = Plane(
        f"{points.measure.label.lower()} ({points.measure.unit})",
        f"{column.label} ({UNITS[column.unit]})",
        tuple((width * (tick - low) / (high - low), amount(10**tick if wide else tick) or "0") for tick in ticks),
        tuple((height * (1 - share), f"{bottom + share * (top - bottom):.3g}") for share in (0.0, 0.5, 1 / 1.05)),
        tuple(curves),
    )
    absent = f"Without a value: {', '.join(points.absent)}." if points.absent else ""
    return Drawn(plot, points.extent.strip(" ()"), plane=plane, omitted=absent)


def _curve(
    label: str,
    look: Look,
    points: Sequence[tuple[float, float, float]],
    ends: Sequence[tuple[float, float, float]],
    *,
    joined: bool,
) -> Curve:
    """Points are shares of both axes and a radius, ``ends`` a share of the axis across and two upwards."""
    width, height = PLANE
    dots = tuple((round(width * x, 1), round(height * (1 - y), 1), round(radius, 1)) for x, y, radius in points)
    path = "M" + "L".join(f"{x} {y}" for x, y, _ in dots) if joined else ""
    upright = "".join(f"M{width * x:.1f} {height * (1 - low):.1f}V{height * (1 - high):.1f}" for x, low, high in ends)
    return Curve(label, LOOKS.index(look), path, upright, dots)


@dataclass(frozen=True)
class TimeAxis:
    """The time axis of a streaming item; places are percentages of its width."""

    start: float
    end: float

    def place(self, time: float) -> str:
        return f"{2 + 96 * (time - self.start) / ((self.end - self.start) or 1):.2f}%"

    def width(self, length: float) -> str:
        return f"{max(0.4, 96 * length / ((self.end - self.start) or 1)):.2f}%"


def time_axis(lines: Sequence[Timeline], further: Iterable[float] = ()) -> TimeAxis:
    """The axis of the models' rounds of one item, of its question and t*, and of ``further`` times."""
    first = lines[0]
    times = [first.query_time, *further, *(one.time for line in lines for one in line.rounds)]
    if first.expected_time is not None:
        times += [first.expected_time - first.tolerance, first.expected_time + first.tolerance]
    return TimeAxis(min(times), max(times))


def share_bar(count: int, total: int, right: int, right_total: int) -> tuple[str, str]:
    """Path data, as of interval bars, of a count's share and of the share that is right."""
    share = 100 * count / total if total else 0.0
    expected = 100 * right / right_total if right_total else 0.0
    return f"M0 4H{share:.3g}", f"M{expected:.3g} 0V8"
