"""Styles of figures, drawing without global state, and reproducible files."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import matplotlib
from matplotlib.figure import Figure

from .chosen import DARK, GRID, INK, PAPER, wrapped

WIDTH = 4.8
"""Inches: at the width of a phone the text is still about 10 pixels high."""

_SETTINGS = {
    "axes.axisbelow": True,
    "axes.edgecolor": INK,
    "axes.facecolor": "none",
    "axes.grid": False,
    "axes.labelcolor": INK,
    "axes.labelsize": 8.5,
    "axes.linewidth": 0.7,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 9,
    "figure.facecolor": "none",
    "font.family": ["sans-serif"],
    "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib; viewers without it use the generic family
    "font.size": 8.5,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "hatch.linewidth": 0.5,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "legend.labelcolor": INK,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "medtasks",
    "text.color": INK,
    "text.parse_math": False,
    "text.usetex": False,
    "xtick.color": INK,
    "xtick.labelsize": 8,
    "ytick.color": INK,
    "ytick.labelsize": 8,
}
_DPI = 200
_DOCTYPE = re.compile(r"<!DOCTYPE[^>]*>\s*")
_FILL = re.compile(r' fill="(#[0-9a-f]{6})"')


@contextmanager
def drawing() -> Iterator[None]:
    """Our settings on top of matplotlib's defaults; the user's own are restored afterwards."""
    with matplotlib.rc_context(), warnings.catch_warnings():
        # names may be in any script; browsers have the glyphs that the bundled font lacks
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        yield


def new_figure(title: str, height: float, width: float = WIDTH, lines: Sequence[str] = ()) -> Figure:
    """An empty figure of ``width`` by ``height`` inches, plus the height of its heading (``title``, then ``lines``)."""
    characters = int(width * 11.5)
    heading = [*wrapped(title, characters).split("\n"), *(wrapped(line, int(characters * 1.2)) for line in lines)]
    tall = height + 0.2 * sum(line.count("\n") + 1 for line in heading)
    figure = Figure(figsize=(width, tall), dpi=72, layout="constrained")
    figure.suptitle("\n".join(heading), x=0.01, ha="left", fontsize=9.5, linespacing=1.3)
    return figure


def images(figure: Figure, title: str, formats: Sequence[str]) -> dict[str, bytes]:
    """The content of a file in each format."""
    _lay_out(figure)
    return {kind: _bytes(figure, title, kind) for kind in formats}


def _lay_out(figure: Figure) -> None:
    """Place the axes once for all formats: it takes longer than drawing, and formats measure text differently.

    Positions are rounded: the solver adds numbers in the order of memory addresses, so their last bit differs between
    processes, and matplotlib makes the ids of clip paths out of all digits.
    """
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
        figure.set_layout_engine("none")
    for axes in figure.axes:
        left, bottom, width, height = (round(number, 9) for number in axes.get_position(original=True).bounds)
        axes.set_position((left, bottom, width, height))


def _bytes(figure: Figure, title: str, kind: str) -> bytes:
    stream = io.BytesIO()
    if kind == "svg":
        known = {"Title": title, "Creator": "medtasks", "Date": None, "Format": None, "Type": None}
        figure.savefig(stream, format="svg", metadata=known)
        return _themed(stream.getvalue().decode("utf-8")).encode("utf-8")
    if kind == "pdf":
        dates = {"Title": title, "CreationDate": None, "ModDate": None}
        figure.savefig(stream, format="pdf", metadata=dates)
    else:
        # a PNG cannot adapt to a dark page: dark text needs a light background
        figure.savefig(stream, format="png", dpi=_DPI, facecolor=PAPER, metadata={"Software": None})
    return stream.getvalue()


def _themed(svg: str) -> str:
    """The SVG with a style for dark pages that replaces our neutral colours."""
    rules = "".join(
        f'[style*="{what}: {light}"]{{{what}:{dark} !important}}'
        for light, dark in DARK.items()
        for what in ("fill", "stroke")
    )
    style = f'<style type="text/css">@media (prefers-color-scheme: dark){{{rules}}}</style>\n '
    head, defs, body = _DOCTYPE.sub("", svg).partition("<defs>")
    # the background of a hatch is an attribute; all else is a style
    return f"{head}{style}{defs}" + _FILL.sub(r' style="fill: \1"', body)
