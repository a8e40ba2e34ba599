"""Drawing without global state, and files whose bytes follow from the numbers alone."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from .style import DARK, GRID, INK, PAPER, WIDTH
from .text import wrapped

__all__ = ["Drawing", "drawing", "new_figure", "save"]

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
    "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib; whoever lacks it sees the generic family behind it
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


@dataclass(frozen=True)
class Drawing:
    """A figure, its title, and the text for those who do not see it."""

    figure: Figure
    title: str
    alt: str


@contextmanager
def drawing() -> Iterator[None]:
    """matplotlib's defaults and ours, whatever the user's own settings; those are back afterwards."""
    with matplotlib.rc_context(), warnings.catch_warnings():
        # a name may be of any script; browsers have the glyphs that the bundled font lacks
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        yield


def new_figure(title: str, height: float, width: float = WIDTH, lines: Sequence[str] = ()) -> Figure:
    """An empty figure of ``width`` by ``height`` inches and the room that its heading takes: ``title``, then
    ``lines``."""
    characters = int(width * 11.5)
    heading = [*wrapped(title, characters).split("\n"), *(wrapped(line, int(characters * 1.2)) for line in lines)]
    tall = height + 0.2 * sum(line.count("\n") + 1 for line in heading)
    figure = Figure(figsize=(width, tall), dpi=72, layout="constrained")
    figure.suptitle("\n".join(heading), x=0.01, ha="left", fontsize=9.5, linespacing=1.3)
    return figure


def save(drawn: Drawing, directory: Path, stem: str, formats: Sequence[str]) -> dict[str, str]:
    """Write ``stem`` in each format below ``directory``; the paths relative to it, by format."""
    written = {}
    engine = drawn.figure.get_layout_engine()
    if engine is not None:  # once for all formats: it takes longer than drawing, and they measure text differently
        engine.execute(drawn.figure)
        drawn.figure.set_layout_engine("none")
    for kind in formats:
        path = directory / f"{stem}.{kind}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_bytes(drawn, kind))
        written[kind] = f"{stem}.{kind}"
    return written


def _bytes(drawn: Drawing, kind: str) -> bytes:
    stream = io.BytesIO()
    if kind == "svg":
        known = {"Title": drawn.title, "Creator": "medtasks", "Date": None, "Format": None, "Type": None}
        drawn.figure.savefig(stream, format="svg", metadata=known)
        return _themed(stream.getvalue().decode("utf-8")).encode("utf-8")
    if kind == "pdf":
        dates = {"Title": drawn.title, "CreationDate": None, "ModDate": None}
        drawn.figure.savefig(stream, format="pdf", metadata=dates)
    else:
        # a picture of points cannot follow the page: dark text needs a light ground
        drawn.figure.savefig(stream, format="png", dpi=_DPI, facecolor=PAPER, metadata={"Software": None})
    return stream.getvalue()


def _themed(svg: str) -> str:
    """The SVG with a style for dark pages: what has one of our neutral colours gets its counterpart."""
    rules = "".join(
        f'[style*="{what}: {light}"]{{{what}:{dark} !important}}'
        for light, dark in DARK.items()
        for what in ("fill", "stroke")
    )
    style = f'<style type="text/css">@media (prefers-color-scheme: dark){{{rules}}}</style>\n '
    head, defs, body = _DOCTYPE.sub("", svg).partition("<defs>")
    # the ground of a hatch is an attribute, where all else is a style
    return f"{head}{style}{defs}" + _FILL.sub(r' style="fill: \1"', body)
