"""What all drawn figures share: matplotlib's settings, colours, the heading and the legend."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from matplotlib import figure as mpl
from matplotlib import style
from matplotlib.lines import Line2D

from ..labels import wrapped
from ..looks import Look

Style: TypeAlias = "dict[str, Any]"
"""Keyword arguments of matplotlib."""

INK, MUTED, GRID, PAPER = "#1b2026", "#59636e", "#cfd6dd", "#fefefe"
"""Text and axes, secondary text, grid lines, and the page. No series has these colours, so a dark
page can replace them by those of `DARK`.
"""
DARK = {INK: "#e9edf1", MUTED: "#a7b0ba", GRID: "#3b434c", PAPER: "#14181d"}
WIDTH = 4.8
"""Inches: at the width of a phone the text is still about 10 pixels high."""
_CHARACTERS_PER_INCH = 11.5
"""Of the title."""
_LINE_HEIGHT = 0.2
"""Of the heading, in inches."""
_INKED = (
    "axes.edgecolor",
    "axes.labelcolor",
    "legend.labelcolor",
    "text.color",
    "xtick.color",
    "ytick.color",
)
_SETTINGS: Style = {
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
    # comes with matplotlib; viewers without it use the generic family
    "font.sans-serif": ["DejaVu Sans"],
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "hatch.linewidth": 0.5,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "medtasks",
}


@dataclass(frozen=True)
class Heading:
    """What is written above a figure: its title, and remarks below it."""

    title: str
    remarks: Sequence[str]


@contextmanager
def drawing() -> Iterator[None]:
    """Use our settings on top of matplotlib's defaults; the user's are restored afterwards."""
    with style.context(_SETTINGS, after_reset=True), warnings.catch_warnings():
        # names may be in any script; browsers have the glyphs that the bundled font lacks
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from")
        yield


def mark(look: Look, size: float, **changes: Any) -> Style:
    """The style of a series' markers, with ``changes``."""
    return {
        "marker": look.marker,
        "markersize": size,
        "color": look.colour,
        "markeredgecolor": INK,
        "markeredgewidth": 0.5,
        **changes,
    }


def new_figure(heading: Heading, height: float, width: float = WIDTH) -> mpl.Figure:
    """An empty figure of ``width`` by ``height`` inches, plus the height of its heading."""
    characters = int(width * _CHARACTERS_PER_INCH)
    lines = [wrapped(heading.title, characters)]
    lines += [wrapped(remark, int(characters * 1.2)) for remark in heading.remarks]
    text = "\n".join(lines)
    line_count = text.count("\n") + 1
    size = (width, height + _LINE_HEIGHT * line_count)
    figure = mpl.Figure(figsize=size, dpi=72, layout="constrained")
    figure.suptitle(text, x=0.01, ha="left", fontsize=9.5, linespacing=1.3)
    return figure


def add_legend(figure: mpl.Figure, names: Sequence[str], styles: Sequence[Style]) -> None:
    """Add a legend below the axes, with a name for each style of line or marker."""
    handles = [Line2D([], [], **{"linestyle": "none", **line_style}) for line_style in styles]
    numbers = [str(number) for number in range(len(handles))]
    legend = figure.legend(handles, numbers, loc="outside lower center", ncols=2)
    # `legend` itself would leave out names that begin with an underscore
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set_text(name)
