"""A drawn figure as the contents of image files, with reproducible bytes."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence

from matplotlib import figure as mpl

from .style import DARK, PAPER, Style

_DPI = 200
_DOCTYPE = re.compile(r"<!DOCTYPE[^>]*>\s*")
_FILL, _FILL_AS_STYLE = re.compile(r' fill="(#[0-9a-f]{6})"'), r' style="fill: \1"'


def images(figure: mpl.Figure, title: str, formats: Sequence[str]) -> dict[str, bytes]:
    """The content of a file in each format; an SVG adapts to dark pages."""
    _fix_positions(figure)
    contents = {}
    for name in formats:
        stream = io.BytesIO()
        figure.savefig(stream, format=name, **_options(name, title))
        contents[name] = stream.getvalue()
        if name == "svg":
            contents[name] = _with_dark_colours(contents[name].decode("utf-8")).encode()
    return contents


def _fix_positions(figure: mpl.Figure) -> None:
    """Place the axes, once for all formats, and round their positions.

    The layout takes longer than drawing, and formats measure text differently. The solver adds
    numbers in the order of memory addresses, so their last bit differs between processes, and
    matplotlib makes the ids of clip paths out of all digits.
    """
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
        figure.set_layout_engine("none")
    for axes in figure.axes:
        bounds = axes.get_position(original=True).bounds
        left, bottom, width, height = (round(number, 9) for number in bounds)
        axes.set_position((left, bottom, width, height))


def _options(name: str, title: str) -> Style:
    """The arguments of `savefig` for a format: metadata without dates and versions."""
    if name == "svg":
        unwanted = dict.fromkeys(("Date", "Format", "Type"))
        return {"metadata": {"Title": title, "Creator": "medtasks", **unwanted}}
    if name == "pdf":
        return {"metadata": {"Title": title, "CreationDate": None, "ModDate": None}}
    # a PNG cannot adapt to a dark page: dark text needs a light background
    return {"metadata": {"Software": None}, "dpi": _DPI, "facecolor": PAPER}


def _with_dark_colours(svg: str) -> str:
    """The SVG with a style sheet that replaces our neutral colours on dark pages."""
    rules = ""
    for light, dark in DARK.items():
        for attribute in ("fill", "stroke"):
            selector = f'[style*="{attribute}: {light}"]'
            rules += f"{selector}{{{attribute}:{dark} !important}}"
    sheet = f'<style type="text/css">@media (prefers-color-scheme: dark){{{rules}}}</style>\n '
    head, definitions, body = _DOCTYPE.sub("", svg).partition("<defs>")
    # the background of a hatch is an attribute; all else is a style
    return f"{head}{sheet}{definitions}{_FILL.sub(_FILL_AS_STYLE, body)}"
