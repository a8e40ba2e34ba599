"""Letters: how often each option was right and how often it was chosen, a panel for each model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.patches import Patch

from ..board import BenchmarkBoard, Board, BoardPlot, LetterCounts
from .canvas import Drawing, new_figure
from .chosen import labelled_best, plotted_tasks
from .looks import GRID, INK, LOOKS, MOST_MODELS, PAPER, Drawn, listed, short

_RIGHT: Drawn = {"facecolor": PAPER, "edgecolor": INK, "hatch": "////", "linewidth": 0.6}
_CHOSEN: Drawn = {"facecolor": LOOKS[0].colour, "edgecolor": INK, "linewidth": 0.6}


def draw(board: Board, benchmark: BenchmarkBoard, plot: BoardPlot, subtitle: Sequence[str]) -> Drawing | None:
    """Shares of the answers of each task, with extraction failures below the letters. None without counts."""
    of_plot = plotted_tasks(benchmark, plot)
    entries = [one for one in benchmark.letters if one.task in of_plot and any(one.chosen.values())]
    if not entries:
        return None
    labels = labelled_best(board, benchmark, {one.model for one in entries}, 20)
    models = list(labels)
    drawn = [one for one in entries if one.model in models[:MOST_MODELS]]
    drawn.sort(key=lambda one: (of_plot.index(one.task), models.index(one.model)))
    tasks = list(dict.fromkeys(one.task for one in drawn))
    title = plot.title + (f" ({MOST_MODELS} of {len(models)} models)" if len(models) > MOST_MODELS else "")
    names = [list(dict.fromkeys((*one.gold, *one.chosen))) for one in drawn]
    rows = math.ceil(len(drawn) / 2)
    heights = [max(len(found) for found in names[2 * row : 2 * row + 2]) for row in range(rows)]
    figure = new_figure(title, sum(0.2 * one + 0.42 for one in heights) + 0.5, lines=subtitle)
    grid = figure.add_gridspec(rows, 2, height_ratios=[one + 1.6 for one in heights])
    highest = max(
        [1.0, *(share for one in drawn for counts in (one.gold, one.chosen) for share in _shares(counts).values())]
    )
    for number, one in enumerate(drawn):
        axes = figure.add_subplot(grid[number // 2, number % 2])
        heading = labels[one.model] if len(tasks) == 1 else f"{short(labels[one.model], 18)}\n{short(one.task, 30)}"
        _panel(axes, one, names[number], heading, highest)
        if number >= len(drawn) - 2:
            axes.set_xlabel("percent of answers")
    handles = [Patch(**_RIGHT), Patch(**_CHOSEN)]
    figure.legend(handles, ["is right", "was chosen"], loc="outside lower center", ncols=2)
    return Drawing(figure, title, _alt(drawn, labels, len(models)))


def _shares(counts: Mapping[str, int]) -> dict[str, float]:
    total = sum(counts.values())
    return {name: 100 * count / total for name, count in counts.items()} if total else {}


def _panel(axes: Axes, one: LetterCounts, names: Sequence[str], heading: str, highest: float) -> None:
    for counts, shift, style in ((one.gold, -0.2, _RIGHT), (one.chosen, 0.2, _CHOSEN)):
        shares = _shares(counts)
        places = [place for place, name in enumerate(names) if name in shares]
        axes.barh([place + shift for place in places], [shares[names[place]] for place in places], height=0.38, **style)
    axes.set_yticks(range(len(names)), [short(name, 14) for name in names])
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlim(0, min(100.0, 1.05 * highest))
    axes.set_title(heading, loc="left", size=8)
    axes.grid(True, axis="x", color=GRID)
    axes.tick_params(axis="y", length=0)


def _alt(drawn: Sequence[LetterCounts], labels: Mapping[str, str], of: int) -> str:
    which = f" for {MOST_MODELS} of {of} models" if of > MOST_MODELS else ""
    parts = []
    for one in drawn:
        right, chosen = _shares(one.gold), _shares(one.chosen)
        gaps = {name: chosen.get(name, 0.0) - right.get(name, 0.0) for name in dict.fromkeys((*right, *chosen))}
        widest = max(gaps, key=lambda name: (abs(gaps[name]), name))
        numbers = f"chosen {chosen.get(widest, 0.0):.1f} %, right {right.get(widest, 0.0):.1f} %"
        parts.append(f"{labels[one.model]} ({one.task}): widest gap at {short(widest, 14)}, {numbers}")
    return f"Bar charts{which} of how often each option is right and was chosen. {listed(parts)}."
