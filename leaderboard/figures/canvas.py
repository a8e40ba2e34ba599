"""Styles of figures, drawing without global state, and reproducible files."""

from __future__ import annotations

import io
import re
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import matplotlib
from matplotlib.figure import Figure

from medtasks.text import first_names, one_line

Drawn: TypeAlias = "dict[str, Any]"
"""Style arguments of matplotlib."""

WIDTH = 4.8
"""Inches: at the width of a phone the text is still about 10 pixels high."""

MOST_MODELS = 8
"""Maximum number of models in all figures but heat maps; more could not be distinguished."""

INK, MUTED, GRID, PAPER = "#1b2026", "#59636e", "#cfd6dd", "#fefefe"
"""Text and axes, secondary text, grid lines, and the page. No series has these colours, so a dark page can replace
them by those of `DARK`."""

DARK = {INK: "#e9edf1", MUTED: "#a7b0ba", GRID: "#3b434c", PAPER: "#14181d"}

SPAN = "#56b4e9"


_EDGE: Drawn = {"markeredgecolor": INK, "markeredgewidth": 0.5}


class Look(NamedTuple):
    """The style of one series: a colour of Okabe and Ito (grey for their yellow, which fades on white), and marks."""

    colour: str
    marker: str
    hatch: str
    line: tuple[int, tuple[float, ...]]

    def mark(self, size: float) -> Drawn:
        return {"marker": self.marker, "markersize": size, "color": self.colour, **_EDGE}


LOOKS = (
    Look("#0072b2", "o", "", (0, ())),
    Look("#e69f00", "s", "////", (0, (6, 2))),
    Look("#009e73", "^", "||||", (0, (2, 2))),
    Look("#d55e00", "D", "\\\\\\\\", (0, (6, 2, 1, 2))),
    Look("#56b4e9", "v", "xxxx", (0, (1, 1))),
    Look("#cc79a7", "P", "----", (0, (9, 2, 2, 2, 2, 2))),
    Look("#8d96a0", "X", "++++", (0, (4, 1))),
    Look("#9b7a00", "*", "//", (0, (3, 1, 1, 1, 1, 1))),
)

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


@dataclass(frozen=True)
class Drawing:
    """A figure, its title, and its alternative text."""

    figure: Figure
    title: str
    alt: str


def short(text: str, most: int = 30) -> str:
    """``text`` on one line; the middle of a long one is cut, because sizes and versions are at the end.

    >>> short("laboratory/Very-Long-Model-Name-72B-Instruct", 24)
    'laboratory/Ve…B-Instruct'
    """
    plain = one_line(text)
    if len(plain) <= most:
        return plain
    end = (most - 1) * 2 // 5
    return f"{plain[: most - 1 - end]}…{plain[len(plain) - end :]}"


def distinct(texts: Sequence[str], most: int = 30) -> list[str]:
    """`short` of each, with a number added to those that would be equal."""
    cut = [short(text, most) for text in texts]
    return [
        f"{text} ({cut[: place + 1].count(text)})" if cut.count(text) > 1 else text for place, text in enumerate(cut)
    ]


def wrapped(text: str, width: int) -> str:
    """``text`` in at most three lines of ``width`` characters."""
    return "\n".join(textwrap.wrap(one_line(text), width, max_lines=3, placeholder=" …"))


def listed(parts: Sequence[str], most: int = 8) -> str:
    """The first ``most`` parts as a list in a sentence, and the number of the others."""
    return first_names(parts, most, "; ")


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


def save(drawn: Drawing, directory: Path, stem: str, formats: Sequence[str]) -> dict[str, str]:
    """Write ``stem`` in each format below ``directory``; return the relative paths by format."""
    written = {}
    _lay_out(drawn.figure)
    for kind in formats:
        path = directory / f"{stem}.{kind}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_bytes(drawn, kind))
        written[kind] = f"{stem}.{kind}"
    return written


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
        # a PNG cannot adapt to a dark page: dark text needs a light background
        drawn.figure.savefig(stream, format="png", dpi=_DPI, facecolor=PAPER, metadata={"Software": None})
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
