"""The board of one benchmark: its layout, filled with scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

from medtasks.benchmarks.layout_parts import HEADLINE
from medtasks.catalog.benchmark import Benchmark
from medtasks.catalog.board_layout import BoardLayout, LayoutTable
from medtasks.catalog.registry import benchmark_owner, get_benchmark
from medtasks.catalog.spec import leaf_tasks
from medtasks.metrics.timelines import Timeline

from ..rank.comparability import ComparabilityGroups
from ..schema.board import BenchmarkBoard, BoardModel
from ..schema.model_rankings import Ranking
from ..schema.plot_data import BoardPlot, LetterCounts, ModelUsage
from ..schema.published_figures import Published
from ..schema.reference import Reference, place_of, published_figures
from ..schema.score_tables import BoardColumn, BoardRow, BoardTable
from ..verify.scored_run import ScoredRun
from .answer_plots import letter_counts, timelines
from .column_ranking import column_ranking
from .columns import board_columns
from .confidences import confidence_section
from .costs import cost_plot, model_usage
from .media_gain import media_gain
from .model_traits import size_and_type
from .paper_files import PaperFiles, read_paper_files
from .plots import board_plot
from .prompt_ranks import prompt_ranks
from .tables import comparable_table, without_empty
from .usage import Prices

ComparableTable = Callable[..., BoardTable]
"""Makes a table of comparable scores of its name, title, columns and note."""


def benchmark_board(
    layout: BoardLayout,
    runs: Sequence[ScoredRun],
    groups: ComparabilityGroups,
    models: Mapping[str, BoardModel],
    prices: Prices,
    *,
    published: bool,
) -> BenchmarkBoard:
    """A benchmark's layout, filled with scores.

    What neither a run nor, if ``published``, a paper fills is left out.
    """
    benchmark = get_benchmark(layout.benchmark)
    papers = read_paper_files(benchmark, with_figures=published)
    headline = board_columns(layout.headline, runs, groups)
    rankings = _rankings(headline, groups)
    comparable = partial(comparable_table, groups, _model_ranks(rankings))

    section = _layout_section(layout, runs, groups, comparable, papers.reference)
    columns = list(chain.from_iterable(table.columns for table in section.tables))
    gains = media_gain(benchmark, headline, columns, groups)
    prompt_tables, prompt_order = prompt_ranks(columns, partial(column_ranking, groups))
    confidences = confidence_section(headline, runs, groups, comparable)
    tables = [*section.tables, *gains.tables, *prompt_tables, *confidences.tables]
    plots = [*section.plots, *gains.plots, *confidences.plots]

    usage: list[ModelUsage] = []
    cost_column = _cost_column(headline)
    if cost_column is not None:
        usage = model_usage(cost_column, section.headline_rows, groups, prices)
        plots += cost_plot(cost_column, usage, plots)
    correlations, means = size_and_type(tables, section.figures, models)
    return BenchmarkBoard(
        **_description(benchmark, layout),
        **_paper_fields(papers),
        members={column.task: leaf_tasks(column.task) for column in headline},
        rankings=tuple(rankings),
        tables=tuple(tables),
        plots=tuple(plots),
        letters=section.answers.letters,
        reliability=tuple(confidences.reliability),
        timelines=section.answers.timelines,
        usage=tuple(usage),
        text_only=gains.text_only,
        prompt_order=prompt_order,
        published=section.figures,
        size_correlations=correlations,
        type_means=means,
    )


def _paper_fields(papers: PaperFiles) -> dict[str, Any]:
    """The fields of a board that its paper fills, apart from the figures."""
    return {
        "bibtex": papers.bibtex,
        "published_notes": papers.reference.notes,
        "published_gaps": papers.reference.gaps,
        "published_problem": papers.problem,
    }


def _description(benchmark: Benchmark, layout: BoardLayout) -> dict[str, Any]:
    """The fields of a board that describe the benchmark."""
    publication = benchmark.publication
    return {
        "name": benchmark.name,
        "title": benchmark.title,
        "paper": publication.paper,
        "source": publication.source,
        "licence": publication.licence,
        "language": publication.language,
        "intended_use": publication.intended_use,
        "owner": benchmark_owner(benchmark.name).owner,
        "shows": layout.shows,
        "why": layout.why,
    }


def _rankings(columns: Sequence[BoardColumn], groups: ComparabilityGroups) -> list[Ranking]:
    """The rankings by those of the columns that rank models."""
    rankings = []
    for column in columns:
        ranking = column_ranking(groups, column)
        if ranking is not None:
            rankings.append(ranking)
    return rankings


def _model_ranks(rankings: Sequence[Ranking]) -> dict[str, tuple[float, ...]]:
    """The ranks of each model by all headline scores; infinite where it has none."""
    ranks_by_model: dict[str, list[float]] = {}
    for number, ranking in enumerate(rankings):
        for ranked in ranking.ranked:
            ranks = ranks_by_model.setdefault(ranked.model, [math.inf] * len(rankings))
            ranks[number] = float(ranked.rank)
    return {model: tuple(ranks) for model, ranks in ranks_by_model.items()}


@dataclass(frozen=True)
class _LayoutSection:
    """What a layout asks for, filled: its tables and plots, and the published figures in them.

    ``headline_rows`` are those of the complete table of headline scores.
    """

    tables: list[BoardTable]
    plots: list[BoardPlot]
    figures: tuple[Published, ...]
    answers: _PlottedAnswers
    headline_rows: tuple[BoardRow, ...]


def _layout_section(
    layout: BoardLayout,
    runs: Sequence[ScoredRun],
    groups: ComparabilityGroups,
    comparable: ComparableTable,
    reference: Reference,
) -> _LayoutSection:
    """The tables and plots of a layout for which there are scores or published figures."""
    complete_tables = _layout_tables(layout, runs, groups, comparable)
    figures = _figures_in_columns(reference, complete_tables)
    tables = _filled_tables(complete_tables, figures)
    answers = _PlottedAnswers(
        tuple(letter_counts(layout, groups)), tuple(timelines(layout, groups))
    )
    plots = _layout_plots(layout, answers, runs, groups, tables, comparable)
    return _LayoutSection(tables, plots, figures, answers, complete_tables[0].rows)


def _layout_tables(
    layout: BoardLayout,
    runs: Sequence[ScoredRun],
    groups: ComparabilityGroups,
    comparable: ComparableTable,
) -> list[BoardTable]:
    """The tables of a layout, the one of headline scores first."""
    headline = LayoutTable(name=HEADLINE, title="Headline scores", columns=layout.headline)
    tables = []
    for table in (headline, *layout.tables):
        columns = board_columns(table.columns, runs, groups)
        tables.append(comparable(table.name, table.title, columns, table.note))
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


@dataclass(frozen=True)
class _PlottedAnswers:
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


def _layout_plots(
    layout: BoardLayout,
    answers: _PlottedAnswers,
    runs: Sequence[ScoredRun],
    groups: ComparabilityGroups,
    tables: list[BoardTable],
    comparable: ComparableTable,
) -> list[BoardPlot]:
    """The plots of a layout for which there are data.

    A plot whose columns no table has adds one to ``tables``.
    """
    plots = []
    for layout_plot in layout.plots:
        tasks = answers.tasks(layout_plot.kind)
        plot = board_plot(layout_plot, tasks, runs, groups, tables, comparable)
        if plot is not None:
            plots.append(plot)
    return plots


def _cost_column(headline: Sequence[BoardColumn]) -> BoardColumn | None:
    """The headline score that is shown against costs: the first that is not signed."""
    for column in headline:
        if not column.signed:
            return column
    return None
