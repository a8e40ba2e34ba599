"""The board of one benchmark: its layout, filled with scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from medtasks.benchmarks.layout_parts import HEADLINE
from medtasks.catalog.benchmark import Benchmark
from medtasks.catalog.board_layout import BoardLayout, LayoutTable
from medtasks.catalog.registry import benchmark_owner, get_benchmark
from medtasks.catalog.spec import leaf_tasks
from medtasks.core.errors import DataError
from medtasks.core.redaction import shown
from medtasks.data.sources import content_of, decoded
from medtasks.runs.usage import Usage
from medtasks.scoring.scores import coverage_text

from ..rank.common_items import on_common_items
from ..rank.comparability import ComparabilityGroups
from ..rank.rankings import rank_models
from ..schema.board import (
    BenchmarkBoard,
    BoardColumn,
    BoardModel,
    BoardPlot,
    BoardRow,
    BoardTable,
    LetterCounts,
    ModelUsage,
    Ranking,
    Timeline,
)
from ..schema.reference import Reference, load_reference, place_of, published_figures
from ..verify.coverage import is_incomplete
from ..verify.entries import Entry
from ..verify.scored_run import ScoredRun
from .bibliography import entry_key
from .columns import board_columns
from .confidences import confidence_section
from .media_gain import media_gain
from .model_traits import size_and_type
from .plots import board_plot
from .prompt_ranks import prompt_ranks
from .tables import comparable_table, without_empty
from .usage import SECONDS, Prices, plotted, used_by

_COST_PLOT_NAMES = ("cost", "score-against-cost", "cost-of-answers")
"""Names of the plot of costs; the first one that no other plot has is taken."""


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
    reference, reference_problem = _reference(benchmark) if published else (Reference(), "")
    bibtex, bibtex_problem = _bibtex(benchmark)

    headline = board_columns(layout.headline, runs, groups)
    ranking_of = partial(_ranking, groups)
    rankings = tuple(filter(None, map(ranking_of, headline)))
    comparable = partial(comparable_table, groups, _model_order(rankings))
    tables = _layout_tables(layout, runs, groups, comparable)
    headline_rows = tables[0].rows
    keys = {place_of(column): column.key for table in tables for column in table.columns}
    figures = published_figures(reference, keys)
    with_figures = {figure.column for figure in figures}
    tables = [without_empty(table, with_figures) for table in tables]
    tables = [table for table in tables if table.columns or table.name == HEADLINE]

    letters = list(_letter_counts(layout, groups))
    timelines = list(_timelines(layout, groups))
    plots: list[BoardPlot] = []
    data_tasks = {
        "letters": {counts.task for counts in letters},
        "timeline": {timeline.task for timeline in timelines},
    }
    for layout_plot in layout.plots:
        tasks = data_tasks.get(layout_plot.kind)
        plot = board_plot(layout_plot, tasks, runs, groups, tables, comparable)
        if plot is not None:
            plots.append(plot)
    all_columns = [column for table in tables for column in table.columns]
    gain_tables, gain_plots, text_only = media_gain(benchmark, headline, all_columns, groups)
    prompt_tables, prompt_order = prompt_ranks(all_columns, ranking_of)
    confidences = confidence_section(headline, runs, groups, comparable)
    tables += [*gain_tables, *prompt_tables, *confidences.tables]
    plots += [*gain_plots, *confidences.plots]

    usage: list[ModelUsage] = []
    cost_column = next((column for column in headline if not column.signed), None)
    if cost_column is not None:
        usage = _model_usage(cost_column, headline_rows, groups, prices)
        plots += _cost_plot(cost_column, usage, plots)
    correlations, means = size_and_type(tables, figures, models)
    return BenchmarkBoard(
        name=benchmark.name,
        title=benchmark.title,
        paper=benchmark.publication.paper,
        source=benchmark.publication.source,
        licence=benchmark.publication.licence,
        language=benchmark.publication.language,
        intended_use=benchmark.publication.intended_use,
        bibtex=bibtex,
        members={column.task: leaf_tasks(column.task) for column in headline},
        owner=benchmark_owner(benchmark.name).owner,
        shows=layout.shows,
        why=layout.why,
        rankings=rankings,
        tables=tuple(tables),
        plots=tuple(plots),
        letters=tuple(letters),
        reliability=tuple(confidences.reliability),
        timelines=tuple(timelines),
        usage=tuple(usage),
        text_only=text_only,
        prompt_order=prompt_order,
        published=figures,
        published_notes=reference.notes,
        published_gaps=reference.gaps,
        published_problem=reference_problem or bibtex_problem,
        size_correlations=correlations,
        type_means=means,
    )


def _layout_tables(
    layout: BoardLayout,
    runs: Sequence[ScoredRun],
    groups: ComparabilityGroups,
    comparable: Callable[[str, str, Sequence[BoardColumn], str], BoardTable],
) -> list[BoardTable]:
    """The tables of a layout, the one of headline scores first."""
    headline = LayoutTable(name=HEADLINE, title="Headline scores", columns=layout.headline)
    tables = []
    for table in (headline, *layout.tables):
        columns = board_columns(table.columns, runs, groups)
        tables.append(comparable(table.name, table.title, columns, table.note))
    return tables


def _reference(benchmark: Benchmark) -> tuple[Reference, str]:
    """The benchmark's published figures, and why they cannot be read."""
    try:
        return load_reference(benchmark.name), ""
    except DataError as error:  # one package's file must not cost the other benchmarks
        return Reference(), shown(str(error))


def _bibtex(benchmark: Benchmark) -> tuple[str, str]:
    """The BibTeX entry of the benchmark's paper, and why it cannot be read.

    The entry is empty if the benchmark's package has none.
    """
    path = benchmark.publication.bibliography
    if path is None:
        return "", ""
    try:
        text = decoded(content_of(path), path.name).strip()
    except DataError as error:
        return "", shown(str(error))
    if entry_key(text) is None:
        problem = (
            f"{path.name}: expected one BibTeX entry, such as @misc{{key, title = {{…}}}}; "
            "fix the file."
        )
        return "", shown(problem)
    return text, ""


def _ranking(groups: ComparabilityGroups, column: BoardColumn) -> Ranking | None:
    """The ranking of all comparable models by a column; None without any, or if it is signed."""
    group = groups.of(column.task, column.metric)
    if column.signed or not (group.ranked or group.waiting):
        return None
    entries: dict[str, Entry] = {}
    unranked: dict[str, str] = {}
    for model, run in group.waiting.items():
        score = run.entries[column.task].scores.metrics[column.metric]
        unranked[model] = score.reason or "no value"
    for model, run in group.ranked.items():
        entry = run.entries[column.task]
        score = entry.scores.metrics[column.metric]
        if is_incomplete(score):
            # too few responses or verdicts for a rank
            coverage = coverage_text(score.samples, score.answered, score.judged)
            unranked[model] = f"incomplete: {coverage}"
        else:
            entries[model] = entry
    tables, clusters = on_common_items(entries, column.metric) if entries else ({}, ())
    return rank_models(column, tables, clusters, signature=group.signature, unranked=unranked)


def _model_order(rankings: Sequence[Ranking]) -> dict[str, tuple[float, ...]]:
    """The ranks of each model by all headline scores; infinite where it has none."""
    ranks_of: dict[str, list[float]] = {}
    for number, ranking in enumerate(rankings):
        for ranked in ranking.ranked:
            ranks = ranks_of.setdefault(ranked.model, [float("inf")] * len(rankings))
            ranks[number] = float(ranked.rank)
    return {model: tuple(ranks) for model, ranks in ranks_of.items()}


def _plotted_entries(
    kind: str, layout: BoardLayout, groups: ComparabilityGroups
) -> Iterator[tuple[str, Entry]]:
    """The ranked entries, with their models, of the tasks in plots of this kind."""
    metric_of: dict[str, str] = {}
    for plot in layout.plots:
        if plot.kind == kind:
            metric_of.update({column.task: column.metric for column in plot.columns})
    for task, metric in metric_of.items():
        for model, run in groups.of(task, metric).ranked.items():
            yield model, run.entries[task]


def _letter_counts(layout: BoardLayout, groups: ComparabilityGroups) -> Iterator[LetterCounts]:
    """How often each model chose each letter, for the plots of letters."""
    for model, entry in _plotted_entries("letters", layout, groups):
        letters = entry.scores.letters
        if letters is not None:
            yield LetterCounts(
                task=entry.name,
                model=model,
                gold=letters.gold,
                chosen=letters.chosen,
                preference=letters.preference or {},
            )


def _timelines(layout: BoardLayout, groups: ComparabilityGroups) -> Iterator[Timeline]:
    """Each model's streaming items, for the plots of timelines."""
    for _, entry in _plotted_entries("timeline", layout, groups):
        yield from entry.timelines


def _model_usage(
    column: BoardColumn,
    rows: Sequence[BoardRow],
    groups: ComparabilityGroups,
    prices: Prices,
) -> list[ModelUsage]:
    """What the runs that are ranked by a headline score used and cost, if they report it."""
    scores = {row.model: row.cells.get(column.key) for row in rows}
    reported = []
    for model, run in groups.of(column.task, column.metric).ranked.items():
        usage, cost = used_by(run, prices, column.task)
        score = scores.get(model)
        if score is not None and usage != Usage():
            reported.append(
                ModelUsage(model=model, run=run.public.key, score=score, usage=usage, cost=cost)
            )
    return reported


def _cost_plot(
    column: BoardColumn, usage: Sequence[ModelUsage], plots: Sequence[BoardPlot]
) -> Iterator[BoardPlot]:
    """The plot of a score against cost, time or tokens, if any run reports them."""
    measure = plotted([(model.usage, model.cost) for model in usage])
    if measure is None:
        return
    taken = {plot.name for plot in plots}
    yield BoardPlot(
        name=next(name for name in _COST_PLOT_NAMES if name not in taken),
        title=f"{column.label} against {measure.label.lower()}",
        kind="cost",
        table=HEADLINE,
        columns=(column.key,),
        note="Times depend on the machine." if measure is SECONDS else "",
    )
