"""The figures of a board."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from medtasks.core.errors import UsageError
from medtasks.core.extras import needs
from medtasks.core.replacement import replaced
from medtasks.core.text import first_names
from medtasks.leaderboard.figures.figure import Figure
from medtasks.leaderboard.figures.plots import figures_of
from medtasks.leaderboard.schema.board import Board
from medtasks.leaderboard.schema.plot_data import FORMATS


@dataclass(frozen=True)
class Picture:
    """A figure of a board: its ``name`` there, and ``alt``, what it shows in words."""

    name: str
    alt: str
    _board: Board = field(repr=False)
    _figure: Figure = field(repr=False)

    def draw(self, kind: str) -> bytes:
        """The content of a file in a format: svg, png or pdf."""
        with needs("figures", "drawing figures as files"):
            from medtasks.leaderboard.figures.draw import (
                draw,  # matplotlib takes a second to import
            )

        content: bytes = draw(self._board, self._figure, (kind,))[kind]
        return content

    def save(self, path: str | Path) -> Path:
        """Write the figure as SVG, PNG or PDF, by the file's suffix.

        Raises:
            UsageError: the suffix is another.
        """
        target = Path(path)
        kind = target.suffix.removeprefix(".")
        if kind not in FORMATS:
            wrong = kind or "a file without a suffix"
            raise UsageError(f"a figure is written as {', '.join(FORMATS)}, not as {wrong}.")
        content = self.draw(kind)
        with replaced(target) as partial:
            partial.write_bytes(content)
        return target

    def _repr_svg_(self) -> str:
        return self.draw("svg").decode()


def plot(board: Board, name: str | None = None, benchmark: str | None = None) -> Picture:
    """One figure of a board, such as bars of scores or a score against its cost.

    Args:
        board: made by :func:`board`.
        name: of the figure; by default the first.
        benchmark: by default the first that has the figure.

    Raises:
        UsageError: there is no such figure; the message lists those of the board.
    """
    fitting: list[Figure] = []
    names: list[str] = []
    names_of_benchmark: list[str] = []
    for page in board.benchmarks:
        for plot_name, figure in figures_of(board, page).items():
            names.append(f"{plot_name} of {page.name}")
            if page.name == benchmark:
                names_of_benchmark.append(names[-1])
            if benchmark in (None, page.name) and name in (None, plot_name):
                fitting.append(figure)
    if not fitting:
        plots = first_names(names_of_benchmark or names, 12) or "none"
        raise UsageError(
            f"plot {name or ''} of {benchmark or 'any benchmark'}: not on this board, which has "
            f"{plots}."
        )
    figure = fitting[0]
    return Picture(figure.plot.name, figure.alt, board, figure)
