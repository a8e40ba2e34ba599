"""Figures of a board as files, by matplotlib: SVG with a dark mode, PNG and PDF, with reproducible bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import matplotlib
from matplotlib import figure as mpl
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.projections.polar import PolarAxes

from ..board.board import FORMATS, Board
from ..board.numbers import safe_name
from .canvas import WIDTH, drawing, images, new_figure
from .chosen import GRID, INK, LOOKS, MUTED, PAPER, Drawn, short, wrapped
from .plots import Axis, Block, Blocks, Figure, Heat, Line, Plane, Radar, figures_of

_DEMONSTRATION = "Miniature data: a demonstration, not a benchmark result."
_ROW = 0.165
"""Height of a line of bars in inches."""
_FILLED = LOOKS[0].mark(5.5)
_HOLLOW: Drawn = {
    "marker": "s",
    "markersize": 5,
    "color": PAPER,
    "markeredgecolor": LOOKS[3].colour,
    "markeredgewidth": 1.4,
}
_MOST_NUMBERS = 12
"""Columns of a heat map up to which a cell has room for its number."""
_MISSING: Drawn = {"facecolor": "none", "hatch": "xxxx", "edgecolor": INK, "linewidth": 0.3, "alpha": 0.55}
_DARK_TEXT, _LIGHT_TEXT = "#101010", "#fafafa"
_DARK_BELOW = 0.633
"""The position in the colour map at which its (monotonic) luminance reaches 0.3."""


def draw_all(board: Board, directory: Path, formats: Sequence[str] = FORMATS) -> dict[tuple[str, str], dict[str, str]]:
    """Draw every plot of ``board`` to ``directory/<benchmark>/<plot>.<format>``; return by benchmark and plot the paths
    by format.

    A plot for which no model has a value is neither drawn nor returned. The same board gives the same bytes.
    """
    found = {}
    for benchmark in board.benchmarks:
        for name, one in figures_of(board, benchmark).items():
            files = {kind: f"{safe_name(benchmark.name)}/{safe_name(name)}.{kind}" for kind in formats}
            for kind, content in draw(board, one, formats).items():
                path = directory / files[kind]
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            found[benchmark.name, name] = files
    return found


def draw(board: Board, one: Figure, formats: Sequence[str]) -> dict[str, bytes]:
    """A figure as the content of a file in each format."""
    lines = [_DEMONSTRATION] if board.demonstration else []
    lines += ["Some values are incomplete (*)."] if one.incomplete else []
    with drawing():
        if isinstance(one.shape, Blocks):
            figure = _blocks(one.shape, one.title, lines, board.confidence)
        elif isinstance(one.shape, Heat):
            figure = _heat(one.shape, one.title, lines)
        elif isinstance(one.shape, Radar):
            figure = _radar(one.shape, one.title, lines)
        else:
            figure = _plane(one.shape, one.title, lines)
        return images(figure, one.title, formats)


def _legend(figure: mpl.Figure, names: Sequence[str], how: Sequence[Drawn]) -> None:
    handles = [Line2D([], [], **{"linestyle": "none", **one}) for one in how]
    legend = figure.legend(handles, [str(n) for n in range(len(handles))], loc="outside lower center", ncols=2)
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set_text(name)  # given to `legend`, labels that begin with an underscore are left out


def _blocks(shape: Blocks, title: str, lines: Sequence[str], confidence: float) -> mpl.Figure:
    """One axis per scale; on it a block of lines for each column, a line for each model."""
    by_axis: dict[Axis, list[Block]] = {}
    for block in shape.blocks:
        by_axis.setdefault(block.axis, []).append(block)
    rows = [sum(len(block.lines) + 1.4 for block in blocks) for blocks in by_axis.values()]
    figure = new_figure(title, sum(rows) * _ROW + 0.55 * len(rows) + 0.3 * shape.paired, lines=lines)
    grid = figure.add_gridspec(len(rows), 1, height_ratios=rows)
    for number, (axis, blocks) in enumerate(by_axis.items()):
        axes = figure.add_subplot(grid[number])
        what = axis.title if shape.paired else f"{axis.title}; lines are {100 * confidence:g} % intervals"
        _draw_axis(axes, axis, blocks, what, shape.paired)
    if shape.paired:
        _legend(figure, ["named first", "named second"], [_FILLED, _HOLLOW])
    return figure


def _draw_axis(axes: Axes, axis: Axis, blocks: Sequence[Block], title: str, paired: bool) -> None:
    axes.set_xlim(axis.low, axis.high)
    ticks, names, top, width = [], [], 0.0, axis.high - axis.low
    for block in blocks:
        across = axes.get_yaxis_transform()
        left = _heading(block)
        axes.text(0, top, left, transform=across, va="center", weight="bold", size=8.5).set_in_layout(False)
        note = axes.text(1, top, block.note, transform=across, va="center", ha="right", size=7, color=MUTED)
        note.set_in_layout(False)
        for number, line in enumerate(block.lines, start=1):
            ticks.append(top + number)
            names.append(line.label)
            (_dumbbell if paired else _bar)(axes, line, top + number, width)
        if block.chance is not None:
            ends = [top + 0.45, top + len(block.lines) + 0.55]
            axes.plot([block.chance] * 2, ends, color=INK, linewidth=1.1, linestyle=(0, (4, 2)))
        top += len(block.lines) + 1.4
    if not paired:
        axes.axvline(0, color=INK, linewidth=0.7)
    axes.set_ylim(top - 0.6, -0.7)
    axes.set_yticks(ticks, names)
    axes.set_xlabel(title)
    axes.grid(True, axis="x", color=GRID)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", color=MUTED, labelcolor=INK)
    axes.spines["left"].set_visible(False)


def _heading(block: Block) -> str:
    if len(block.names) == 1:
        return short(block.names[0], 22 if block.note else 36)
    whole = " against ".join(short(name, 44) for name in block.names)
    return whole if len(whole) <= 44 else " against ".join(short(name, 18) for name in block.names)


def _bar(axes: Axes, line: Line, at: float, width: float) -> None:
    (value,) = line.values
    if value is None:
        _written(axes, 0.01 * width, at, "no value", italic=True)
        return
    axes.barh(at, value, height=0.74, color=line.look.colour, hatch=line.look.hatch, edgecolor=INK, linewidth=0.5)
    if line.ends:
        axes.plot(line.ends, [at, at], color=INK, linewidth=1.2, marker="|", markersize=4, markeredgewidth=1)
    _written(axes, max(0.0, value, *(line.ends or ())) + 0.015 * width, at, line.text)


def _dumbbell(axes: Axes, line: Line, at: float, width: float) -> None:
    first, second = line.values
    if first is not None and second is not None:
        axes.plot([second, first], [at, at], color=MUTED, linewidth=1.3)
    for value, how in ((second, _HOLLOW), (first, _FILLED)):
        if value is not None:
            axes.plot([value], [at], linestyle="none", **how)
    x = max((value for value in line.values if value is not None), default=0.0) + 0.025 * width
    missing = " and ".join(short(name, 20) for name in line.missing)
    _written(axes, x, at, line.text or f"no value: {missing}", italic=not line.text)


def _written(axes: Axes, x: float, y: float, text: str, italic: bool = False) -> None:
    """A number, or the reason why there is none, beside a bar or a mark."""
    style: Drawn = {"style": "italic", "color": MUTED} if italic else {}
    axes.text(x, y, text, va="center", size=7, **style).set_in_layout(False)


def _heat(shape: Heat, title: str, lines: Sequence[str]) -> mpl.Figure:
    across, down = [short(name) for name in shape.across], [short(name) for name, _ in shape.rows]
    numbers = len(across) <= _MOST_NUMBERS
    width = max(WIDTH, 2.0 + (0.36 if numbers else 0.2) * len(across))
    above = 0.065 * max((len(name) for name in across), default=0)
    figure = new_figure(title, 0.18 * len(down) + above + 0.75, width=width, lines=lines)
    body, key = figure.subplots(2, 1, height_ratios=[max(len(down), 3), 0.7])
    for y, (_, row) in enumerate(shape.rows):
        for x, (text, good) in enumerate(row):
            _cell(body, (x, y), good, text if numbers else "")
    body.set_xlim(0, len(across))
    body.set_ylim(len(down), 0)
    body.set_xticks([place + 0.5 for place in range(len(across))], across, rotation=90)
    body.set_yticks([place + 0.5 for place in range(len(down))], down)
    body.tick_params(length=0, top=False, labeltop=True, bottom=False, labelbottom=False)
    for spine in body.spines.values():
        spine.set_visible(False)
    _key(key, shape, width)
    return figure


def _cell(axes: Axes, at: tuple[int, int], good: float | None, text: str = "") -> None:
    if good is None:
        axes.add_patch(Rectangle(at, 1, 1, **_MISSING))
        return
    colour = matplotlib.colormaps["cividis"](good)[:3]
    axes.add_patch(Rectangle(at, 1, 1, facecolor=colour, edgecolor=colour, linewidth=0.2))
    ink = _LIGHT_TEXT if good < _DARK_BELOW else _DARK_TEXT
    if text:
        axes.text(at[0] + 0.5, at[1] + 0.5, text, ha="center", va="center", size=7, color=ink)


def _key(axes: Axes, shape: Heat, width: float) -> None:
    """What the lightest, the darkest and the hatched cells mean."""
    steps = 12
    for step in range(steps):
        _cell(axes, (step, 0), step / (steps - 1))
    _cell(axes, (steps + 2, 0), None)
    axes.text(0, -0.15, shape.worst, va="top", size=7)
    axes.text(steps, -0.15, shape.best, va="top", ha="right", size=7)
    axes.text(steps + 3.3, 0.5, f"no {shape.lacks}", va="center", size=7)
    axes.set_xlim(0, max(steps + 6, 4.2 * width))
    axes.set_ylim(-1.1, 1)
    axes.set_axis_off()


def _radar(shape: Radar, title: str, lines: Sequence[str]) -> mpl.Figure:
    figure = new_figure(title, 4.3 + 0.19 * math.ceil(len(shape.curves) / 2), lines=lines)
    axes = cast(PolarAxes, figure.add_subplot(projection="polar"))
    axes.set_theta_zero_location("N")
    axes.set_theta_direction(-1)
    angles = shape.angles
    styles: list[Drawn] = []
    for _, look, values in shape.curves:
        drawn = [math.nan if value is None else value for value in values]
        styles.append({**look.mark(5), "markeredgecolor": PAPER, "linestyle": look.line, "linewidth": 1.5})
        axes.plot([*angles, angles[0]], [*drawn, drawn[0]], **styles[-1])
    axes.set_ylim(0, shape.rim)
    rings = [shape.rim * share for share in (0.25, 0.5, 0.75, 1)]
    axes.set_yticks(rings)
    axes.set_yticklabels([f"{ring:g}" for ring in rings], size=6.5, color=MUTED)
    axes.set_rlabel_position(math.degrees(angles[1]) / 2)
    axes.grid(True, color=GRID)
    axes.spines["polar"].set_color(GRID)
    axes.set_xticks(angles)
    axes.set_xticklabels([wrapped(name, 22) for name in shape.axes], size=7.5, color=INK)
    for label, angle in zip(axes.get_xticklabels(), angles, strict=True):
        side = round(math.sin(angle), 6)
        label.set_horizontalalignment("left" if side > 0 else "right" if side < 0 else "center")
    axes.set_xlabel(shape.title, size=7.5)
    _legend(figure, [label for label, _, _ in shape.curves], styles)
    return figure


def _plane(shape: Plane, title: str, lines: Sequence[str]) -> mpl.Figure:
    figure = new_figure(title, 2.7 + 0.18 * ((len(shape.curves) + 1) // 2), lines=lines)
    axes = figure.add_subplot()
    if shape.diagonal:
        axes.plot([0, 100], [0, 100], color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)))
    for _, look, points in shape.curves:
        if shape.joined:
            places = [point.x for point in points]
            axes.plot(places, [point.y for point in points], color=look.colour, linestyle=look.line, linewidth=1.0)
        for point in points:
            axes.plot([point.x] * 2, point.ends or [point.y] * 2, color=look.colour, linewidth=1.0)
            axes.plot([point.x], [point.y], linestyle="none", **look.mark(1.4 * point.radius))
    if shape.percent:
        axes.set_xlim(-2, 102)
        axes.set_ylim(-2, 102)
    elif shape.wide:
        axes.set_xscale("log")
    else:
        axes.set_xlim(0, 1.08 * max(point.x for point in shape.points) or 1.0)
    axes.set_xlabel(shape.across)
    axes.set_ylabel(shape.up)
    axes.grid(True, color=GRID)
    styles = [{**look.mark(6), "linestyle": look.line} if shape.joined else look.mark(7) for _, look, _ in shape.curves]
    _legend(figure, [label for label, _, _ in shape.curves], styles)
    return figure
