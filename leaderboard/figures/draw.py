"""Figures of a board as files, by matplotlib: SVG with a dark mode, PNG and PDF, with reproducible
bytes.
"""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
from matplotlib import figure as mpl
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.projections.polar import PolarAxes

from ..schema.board import FORMATS, Board
from .plots import Figure, figure_files, figures_of
from .shapes import LOOKS, Axis, Block, Blocks, Heat, Look, Plane, Radar, short, wrapped

Drawn: TypeAlias = "dict[str, Any]"
"""Style arguments of matplotlib."""

INK, MUTED, GRID, PAPER = "#1b2026", "#59636e", "#cfd6dd", "#fefefe"
"""Text and axes, secondary text, grid lines, and the page. No series has these colours, so a dark
page can replace them by those of `DARK`.
"""
DARK = {INK: "#e9edf1", MUTED: "#a7b0ba", GRID: "#3b434c", PAPER: "#14181d"}
_DEMONSTRATION = "Miniature data: a demonstration, not a benchmark result."
WIDTH = 4.8
"""Inches: at the width of a phone the text is still about 10 pixels high."""
_ROW = 0.165
"""Height of a line of bars in inches."""
_MOST_NUMBERS = 12
"""Columns of a heat map up to which a cell has room for its number."""
_MISSING: Drawn = {"facecolor": "none", "hatch": "xxxx", "edgecolor": MUTED, "linewidth": 0.0}
_DARK_TEXT, _LIGHT_TEXT = "#101010", "#fafafa"
_DARK_BELOW = 0.633
"""The position in the colour map at which its (monotonic) luminance reaches 0.3."""
_INKED = (
    "axes.edgecolor",
    "axes.labelcolor",
    "legend.labelcolor",
    "text.color",
    "xtick.color",
    "ytick.color",
)
_SETTINGS: Drawn = {
    **dict.fromkeys(_INKED, INK),
    **dict.fromkeys(("axes.facecolor", "figure.facecolor"), "none"),
    **dict.fromkeys(("axes.labelsize", "font.size"), 8.5),
    **dict.fromkeys(("legend.fontsize", "xtick.labelsize", "ytick.labelsize"), 8),
    **dict.fromkeys(
        ("axes.spines.right", "axes.spines.top", "legend.frameon", "text.parse_math"), False
    ),
    "axes.axisbelow": True,
    "axes.linewidth": 0.7,
    "font.family": ["sans-serif"],
    "font.sans-serif": [
        "DejaVu Sans"
    ],  # comes with matplotlib; viewers without it use the generic family
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "hatch.linewidth": 0.5,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "medtasks",
}
_DPI = 200
_DOCTYPE = re.compile(r"<!DOCTYPE[^>]*>\s*")
_FILL, _AS_STYLE = re.compile(r' fill="(#[0-9a-f]{6})"'), r' style="fill: \1"'


def _mark(look: Look, size: float, **more: Any) -> Drawn:
    edge = {"markeredgecolor": INK, "markeredgewidth": 0.5}
    return {"marker": look.marker, "markersize": size, "color": look.colour, **edge, **more}


_FILLED = _mark(LOOKS[0], 5.5)
_HOLLOW = _mark(LOOKS[1], 5, color=PAPER, markeredgecolor=LOOKS[3].colour, markeredgewidth=1.4)


def draw_all(
    board: Board, site: Path, formats: Sequence[str] = FORMATS
) -> dict[tuple[str, str], dict[str, str]]:
    """Draw every plot of ``board`` to ``site/figures/<benchmark>/<plot>.<format>``; return by
    benchmark and plot the paths in ``site`` by format.

    A plot for which no model has a value is neither drawn nor returned. The same board gives the
    same bytes.
    """
    found = {}
    for benchmark in board.benchmarks:
        for name, one in figures_of(board, benchmark).items():
            files = found[benchmark.name, name] = figure_files(benchmark, name, formats)
            for kind, content in draw(board, one, formats).items():
                (site / files[kind]).parent.mkdir(parents=True, exist_ok=True)
                (site / files[kind]).write_bytes(content)
    return found


def draw(board: Board, one: Figure, formats: Sequence[str]) -> dict[str, bytes]:
    """A figure as the content of a file in each format."""
    lines = [_DEMONSTRATION] if board.demonstration else []
    lines += ["Some values are incomplete (*)."] if one.incomplete else []
    makers: dict[type, Callable[..., mpl.Figure]] = {
        Blocks: _blocks,
        Heat: _heat,
        Radar: _radar,
        Plane: _plane,
    }
    with drawing():
        return images(makers[type(one.shape)](one.shape, one.title, lines), one.title, formats)


@contextmanager
def drawing() -> Iterator[None]:
    """Our settings on top of matplotlib's defaults; the user's own are restored afterwards."""
    with style.context(_SETTINGS, after_reset=True), warnings.catch_warnings():
        # names may be in any script; browsers have the glyphs that the bundled font lacks
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from")
        yield


def _new_figure(
    title: str, height: float, lines: Sequence[str], width: float = WIDTH
) -> mpl.Figure:
    """An empty figure of ``width`` by ``height`` inches, plus the height of its heading (``title``,
    then ``lines``).
    """
    characters = int(width * 11.5)
    heading = [
        *wrapped(title, characters).split("\n"),
        *(wrapped(line, int(characters * 1.2)) for line in lines),
    ]
    tall = height + 0.2 * sum(line.count("\n") + 1 for line in heading)
    figure = mpl.Figure(figsize=(width, tall), dpi=72, layout="constrained")
    figure.suptitle("\n".join(heading), x=0.01, ha="left", fontsize=9.5, linespacing=1.3)
    return figure


def images(figure: mpl.Figure, title: str, formats: Sequence[str]) -> dict[str, bytes]:
    """The content of a file in each format; an SVG has a style for dark pages that replaces our
    neutral colours.

    The axes are placed once for all formats: it takes longer than drawing, and formats measure text
    differently. Positions are rounded: the solver adds numbers in the order of memory addresses, so
    their last bit differs between processes, and matplotlib makes the ids of clip paths out of all
    digits.
    """
    if (engine := figure.get_layout_engine()) is not None:
        engine.execute(figure)
        figure.set_layout_engine("none")
    for axes in figure.axes:
        left, bottom, width, height = (
            round(number, 9) for number in axes.get_position(original=True).bounds
        )
        axes.set_position((left, bottom, width, height))
    options: dict[str, Drawn] = {
        "svg": {
            "metadata": {
                "Title": title,
                "Creator": "medtasks",
                "Date": None,
                "Format": None,
                "Type": None,
            }
        },
        "pdf": {"metadata": {"Title": title, "CreationDate": None, "ModDate": None}},
        # a PNG cannot adapt to a dark page: dark text needs a light background
        "png": {"metadata": {"Software": None}, "dpi": _DPI, "facecolor": PAPER},
    }
    rules = "".join(
        f'[style*="{what}: {light}"]{{{what}:{dark} !important}}'
        for light, dark in DARK.items()
        for what in ("fill", "stroke")
    )
    sheet = f'<style type="text/css">@media (prefers-color-scheme: dark){{{rules}}}</style>\n '
    found = {}
    for kind in formats:
        stream = io.BytesIO()
        figure.savefig(stream, format=kind, **options[kind])
        found[kind] = stream.getvalue()
        if kind == "svg":
            head, defs, body = _DOCTYPE.sub("", found[kind].decode("utf-8")).partition("<defs>")
            # the background of a hatch is an attribute; all else is a style
            found[kind] = f"{head}{sheet}{defs}{_FILL.sub(_AS_STYLE, body)}".encode()
    return found


def _legend(figure: mpl.Figure, names: Sequence[str], how: Sequence[Drawn]) -> None:
    handles = [Line2D([], [], **{"linestyle": "none", **one}) for one in how]
    legend = figure.legend(
        handles, [str(n) for n in range(len(handles))], loc="outside lower center", ncols=2
    )
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set_text(name)  # given to `legend`, labels that begin with an underscore are left out


def _blocks(shape: Blocks, title: str, lines: Sequence[str]) -> mpl.Figure:
    by_axis: dict[Axis, list[Block]] = {}
    for block in shape.blocks:
        by_axis.setdefault(block.axis, []).append(block)
    rows = [sum(len(block.lines) + 1.4 for block in blocks) for blocks in by_axis.values()]
    figure = _new_figure(title, sum(rows) * _ROW + 0.55 * len(rows) + 0.3 * shape.paired, lines)
    grid = figure.add_gridspec(len(rows), 1, height_ratios=rows)
    for number, (axis, blocks) in enumerate(by_axis.items()):
        axes = figure.add_subplot(grid[number])
        axes.set_xlim(axis.low, axis.high)
        ticks: list[float] = []
        top = 0.0
        for block in blocks:
            _block(axes, block, top, axis.high - axis.low)
            ticks += [top + place for place in range(1, len(block.lines) + 1)]
            top += len(block.lines) + 1.4
        if not shape.paired:
            axes.axvline(0, color=INK, linewidth=0.7)
        axes.set_ylim(top - 0.6, -0.7)
        axes.set_yticks(ticks, [line.label for block in blocks for line in block.lines])
        intervals = "" if shape.paired else f"; lines are {100 * shape.confidence:g} % intervals"
        axes.set_xlabel(f"{axis.title}{intervals}")
        axes.grid(True, axis="x", color=GRID)
        axes.tick_params(axis="y", length=0)
        axes.tick_params(axis="x", color=MUTED, labelcolor=INK)
        axes.spines["left"].set_visible(False)
    if shape.paired:
        _legend(figure, ["named first", "named second"], [_FILLED, _HOLLOW])
    return figure


def _block(axes: Axes, block: Block, top: float, width: float) -> None:
    """A heading at ``top``, and below it bars, or dumbbells for two names, on an axis of a
    ``width``.
    """

    def write(x: float, y: float, text: str, **style: Any) -> None:
        axes.text(x, y, text, va="center", **{"size": 7, **style}).set_in_layout(False)

    heading = short(block.names[0], 22 if block.note else 36)
    if len(block.names) > 1:
        heading = " against ".join(short(name, 44) for name in block.names)
        if len(heading) > 44:
            heading = " against ".join(short(name, 18) for name in block.names)
    across = axes.get_yaxis_transform()
    write(0, top, heading, transform=across, weight="bold", size=8.5)
    write(1, top, block.note, transform=across, ha="right", color=MUTED)
    reason: Drawn = {"style": "italic", "color": MUTED}  # of a missing number
    for place, line in enumerate(block.lines, start=1):
        y = top + place
        known = [value for value in line.values if value is not None]
        if len(block.names) > 1:
            if len(known) == 2:
                axes.plot(known[::-1], [y, y], color=MUTED, linewidth=1.3)
            for value, how in zip(line.values[::-1], (_HOLLOW, _FILLED), strict=True):
                if value is not None:
                    axes.plot([value], [y], linestyle="none", **how)
            lacking = [
                short(name, 20)
                for name, value in zip(block.names, line.values, strict=True)
                if value is None
            ]
            text = line.text or f"no value: {' and '.join(lacking)}"
            write(max(known, default=0.0) + 0.025 * width, y, text, **({} if line.text else reason))
        elif not known:
            write(0.01 * width, y, "no value", **reason)
        else:
            look = line.look
            axes.barh(
                y,
                known,
                height=0.74,
                color=look.colour,
                hatch=look.hatch,
                edgecolor=INK,
                linewidth=0.5,
            )
            if line.ends:
                axes.plot(
                    line.ends,
                    [y, y],
                    color=INK,
                    linewidth=1.2,
                    marker="|",
                    markersize=4,
                    markeredgewidth=1,
                )
            write(max(0.0, *known, *(line.ends or ())) + 0.015 * width, y, line.text)
    if block.chance is not None:
        ends = [top + 0.45, top + len(block.lines) + 0.55]
        axes.plot([block.chance] * 2, ends, color=INK, linewidth=1.1, linestyle=(0, (4, 2)))


def _heat(shape: Heat, title: str, lines: Sequence[str]) -> mpl.Figure:
    across, down = [short(name) for name in shape.across], [short(name) for name, _ in shape.rows]
    numbers = len(across) <= _MOST_NUMBERS
    width = max(WIDTH, 2.0 + (0.36 if numbers else 0.2) * len(across))
    above = 0.065 * max((len(name) for name in across), default=0)
    figure = _new_figure(title, 0.18 * len(down) + above + 0.75, lines, width)
    axes = figure.add_subplot()
    axes.patch.set(**_MISSING)
    goodness = np.array(
        [[math.nan if good is None else good for _, good in row] for _, row in shape.rows]
    )
    cells = axes.pcolormesh(np.ma.masked_invalid(goodness), cmap="cividis", vmin=0, vmax=1)
    for y, (_, row) in enumerate(shape.rows):
        for x, (text, good) in enumerate(row):
            if numbers and good is not None:
                ink = _LIGHT_TEXT if good < _DARK_BELOW else _DARK_TEXT
                axes.text(x + 0.5, y + 0.5, text, ha="center", va="center", size=7, color=ink)
    axes.invert_yaxis()
    axes.set_xticks([place + 0.5 for place in range(len(across))], across, rotation=90)
    axes.set_yticks([place + 0.5 for place in range(len(down))], down)
    axes.tick_params(length=0, top=False, labeltop=True, bottom=False, labelbottom=False)
    axes.spines[:].set_visible(False)
    key = figure.colorbar(
        cells, ax=axes, location="bottom", aspect=30, shrink=0.6, anchor=(0, 0), ticks=[0, 1]
    )
    key.ax.set_xticklabels([shape.worst, shape.best], size=7)
    key.ax.get_xticklabels()[0].set_horizontalalignment("left")
    key.ax.get_xticklabels()[1].set_horizontalalignment("right")
    key.ax.tick_params(length=0)
    key.outline.set_visible(False)
    if key.solids is not None:
        key.solids.set_rasterized(False)
    figure.legend([Patch(**_MISSING)], [f"no {shape.lacks}"], loc="lower right", fontsize=7)
    return figure


def _radar(shape: Radar, title: str, lines: Sequence[str]) -> mpl.Figure:
    figure = _new_figure(title, 4.3 + 0.19 * math.ceil(len(shape.curves) / 2), lines)
    axes = cast(PolarAxes, figure.add_subplot(projection="polar"))
    axes.set_theta_zero_location("N")
    axes.set_theta_direction(-1)
    angles = shape.angles
    styles: list[Drawn] = []
    for _, look, values in shape.curves:
        drawn = [math.nan if value is None else value for value in values]
        styles.append(_mark(look, 5, markeredgecolor=PAPER, linestyle=look.line, linewidth=1.5))
        axes.plot([*angles, angles[0]], [*drawn, drawn[0]], **styles[-1])
    axes.set_ylim(0, shape.rim)
    rings = [shape.rim * share for share in (0.25, 0.5, 0.75, 1)]
    axes.set_yticks(rings, [f"{ring:g}" for ring in rings], size=6.5, color=MUTED)
    axes.set_rlabel_position(math.degrees(angles[1]) / 2)
    axes.grid(True, color=GRID)
    axes.spines["polar"].set_color(GRID)
    axes.set_xticks(angles, [wrapped(name, 22) for name in shape.axes], size=7.5, color=INK)
    for label, angle in zip(axes.get_xticklabels(), angles, strict=True):
        side = round(math.sin(angle), 6)
        label.set_horizontalalignment("left" if side > 0 else "right" if side < 0 else "center")
    axes.set_xlabel(shape.title, size=7.5)
    _legend(figure, [label for label, _, _ in shape.curves], styles)
    return figure


def _plane(shape: Plane, title: str, lines: Sequence[str]) -> mpl.Figure:
    figure = _new_figure(title, 2.7 + 0.18 * ((len(shape.curves) + 1) // 2), lines)
    axes = figure.add_subplot()
    if shape.diagonal:
        axes.plot([0, 100], [0, 100], color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)))
    for _, look, points in shape.curves:
        if shape.joined:
            places = [point.x for point in points]
            axes.plot(
                places,
                [point.y for point in points],
                color=look.colour,
                linestyle=look.line,
                linewidth=1.0,
            )
        for point in points:
            axes.plot([point.x] * 2, point.ends or [point.y] * 2, color=look.colour, linewidth=1.0)
            axes.plot([point.x], [point.y], linestyle="none", **_mark(look, 1.4 * point.radius))
    if shape.joined:  # of percentages
        axes.set(xlim=(-2, 102), ylim=(-2, 102))
    elif shape.across.wide:
        axes.set_xscale("log")
    else:
        axes.set_xlim(0, shape.across.high)
    axes.set(xlabel=shape.across.title, ylabel=shape.up.title)
    axes.grid(True, color=GRID)
    styles = [
        _mark(look, 6, linestyle=look.line) if shape.joined else _mark(look, 7)
        for _, look, _ in shape.curves
    ]
    _legend(figure, [label for label, _, _ in shape.curves], styles)
    return figure
