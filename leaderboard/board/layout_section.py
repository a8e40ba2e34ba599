"""What the layout of a benchmark's board asks for, filled with scores and published figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from medtasks.benchmarks.layout_parts import HEADLINE
from medtasks.catalog.board_layout import BoardLayout, LayoutTable
from medtasks.metrics.timelines import Timeline

from ..schema.plot_data import BoardPlot, LetterCounts
from ..schema.published_figures import Published
from ..schema.reference import Reference, place_of, published_figures
from ..schema.score_tables import BoardRow, BoardTable
from .answer_plots import letter_counts, timelines
from .plots import board_plot
from .table_source import TableSource
from .tables import without_empty


@dataclass(frozen=True)
class PlottedAnswers:
    """What is plotted of answers instead of scores."""

    letters: tuple[LetterCounts, ...]
    timelines: tuple[Timeline, ...]

    def tasks(self, kind: str) -> set[str] | None:
        """The tasks with data for a kind of plot; None if it shows scores."""
        if kind == "letters":
            return {counts.task for counts in self.letters}
        if kind == "timeline":
            return {timeline.task for timeline in self.timelines}
        return None


@dataclass(frozen=True)
class LayoutSection:
    """What a layout asks for, filled: its tables and plots, and the published figures in them.

    ``headline_rows`` are the rows of the headline table, before empty columns were left out.
    """

    tables: list[BoardTable]
    plots: list[BoardPlot]
    figures: tuple[Published, ...]
    answers: PlottedAnswers
    headline_rows: tuple[BoardRow, ...]


def layout_section(layout: BoardLayout, source: TableSource, reference: Reference) -> LayoutSection:
    """The tables and plots of a layout for which there are scores or published figures."""
    complete_tables = _layout_tables(layout, source)
    figures = _figures_in_columns(reference, complete_tables)
    tables = _filled_tables(complete_tables, figures)
    letters = letter_counts(layout, source.groups)
    rounds = timelines(layout, source.groups)
    answers = PlottedAnswers(tuple(letters), tuple(rounds))
    plots: list[BoardPlot] = []
    for layout_plot in layout.plots:
        data_tasks = answers.tasks(layout_plot.kind)
        filled = board_plot(layout_plot, data_tasks, source, tables)
        if filled is None:
            continue
        plots.append(filled.plot)
        if filled.own_table is not None:
            tables.append(filled.own_table)
    return LayoutSection(tables, plots, figures, answers, complete_tables[0].rows)


def _layout_tables(layout: BoardLayout, source: TableSource) -> list[BoardTable]:
    """The tables of a layout, the one of headline scores first."""
    headline = LayoutTable(name=HEADLINE, title="Headline scores", columns=layout.headline)
    tables = []
    for table in (headline, *layout.tables):
        columns = source.columns(table.columns)
        tables.append(source.table(table.name, table.title, columns, table.note))
    return tables


def _figures_in_columns(
    reference: Reference, tables: Sequence[BoardTable]
) -> tuple[Published, ...]:
    """The published figures, in the columns of the tables."""
    keys = {}
    for table in tables:
        for column in table.columns:
            keys[place_of(column)] = column.key
    return published_figures(reference, keys)


def _filled_tables(tables: Sequence[BoardTable], figures: Sequence[Published]) -> list[BoardTable]:
    """The tables without empty columns; the headline table even if it has no other."""
    with_figures = {figure.column for figure in figures}
    filled = []
    for complete_table in tables:
        table = without_empty(complete_table, with_figures)
        if table.columns or table.name == HEADLINE:
            filled.append(table)
    return filled
