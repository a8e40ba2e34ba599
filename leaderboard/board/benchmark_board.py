"""One benchmark of the board: its layout, filled with the scores of the runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence

from medtasks.benchmarks.layouts import HEADLINE, columns_of
from medtasks.catalog.board_layout import BoardLayout, Column, LayoutTable, Plot
from medtasks.catalog.registry import benchmark_owner, get_benchmark
from medtasks.catalog.spec import load_spec
from medtasks.core.errors import DataError
from medtasks.core.redaction import shown
from medtasks.runs.scores import coverage_text
from medtasks.runs.usage import Usage

from ..rank.comparability import ComparabilityGroups, on_common_items
from ..rank.media_gain import media_gain
from ..rank.over_models import prompt_ranks
from ..rank.rankings import rank_models
from ..verify.scored_run import ScoredRun
from .board import (
    BenchmarkBoard,
    BoardColumn,
    BoardPlot,
    BoardTable,
    LetterCounts,
    ModelUsage,
    Ranking,
    Timeline,
)
from .columns import board_columns
from .confidence import confidence_section
from .reference import Reference, load_reference, place_of, published_rows
from .rows import Tables, held_chance, held_groups, is_incomplete, without_empty
from .usage import SECONDS, Prices, plotted, used_by


def is_shown(layout: BoardLayout, runs: Iterable[ScoredRun]) -> bool:
    """Whether any run has a score of the layout's benchmark, or of another track in its columns."""
    tasks = {column.task for column in columns_of(layout)}
    entries = (entry for run in runs for entry in run.entries.values())
    return any(entry.benchmark == layout.benchmark or entry.name in tasks for entry in entries)


def benchmark_board(
    layout: BoardLayout,
    runs: Sequence[ScoredRun],
    groups: ComparabilityGroups,
    *,
    published: bool,
    resamples: int,
    prices: Prices | None = None,
) -> BenchmarkBoard:
    """The benchmark's rankings, tables, plots, letters, timelines and published rows.

    Columns that neither a run nor a paper fills are left out, as are tables and plots with only such columns.
    """
    return _Filling(layout, runs, groups).board(published, resamples, prices or {})


class _Filling:
    def __init__(self, layout: BoardLayout, runs: Sequence[ScoredRun], groups: ComparabilityGroups) -> None:
        self._layout = layout
        self._runs = runs
        self._groups = groups

    def board(self, published: bool, resamples: int, prices: Prices) -> BenchmarkBoard:
        benchmark = get_benchmark(self._layout.benchmark)
        reference, unpublished = Reference(notes=(), figures=(), gaps=()), ""
        if published and benchmark.figures is not None:
            try:
                reference = load_reference(benchmark.name)
            except DataError as error:  # one package's file must not cost the other benchmarks
                unpublished = shown(str(error))
        headline = self._columns(self._layout.headline)
        rankings = tuple(filter(None, (self._ranking(column, resamples) for column in headline)))
        tables = Tables(self._runs, self._groups, _order(rankings))
        first = LayoutTable(name=HEADLINE, title="Headline scores", columns=self._layout.headline)
        every = [
            tables.table(one.name, one.title, self._columns(one.columns), one.note)
            for one in (first, *self._layout.tables)
        ]
        keys = {place_of(column): column.key for table in every for column in table.columns}
        rows = published_rows(reference, keys)
        printed = {cell.column for row in rows for cell in row.cells}
        filled = [without_empty(table, printed) for table in every]
        kept = [table for table in filled if table.columns or table.name == HEADLINE]
        plots = self._plots(kept, tables)
        others = (column for table in kept for column in table.columns)
        gains, bars, text_only = media_gain(benchmark, headline, others, self._groups)
        kept += gains
        plots += bars
        paraphrased = prompt_ranks(
            [column for table in kept for column in table.columns], lambda column: self._ranking(column, resamples)
        )
        kept += [] if paraphrased is None else [paraphrased[0]]
        confidences, curves, reliability = confidence_section(headline, self._runs, self._groups, tables)
        kept += confidences
        plots += curves
        ordering = [column for column in headline if not column.signed][:1]
        usage = tuple(self._usage(ordering, every[0], prices))
        plots += _cost_plot(ordering, usage, {plot.name for plot in plots})
        own = ("name", "title", "paper", "source", "licence", "language", "intended_use")
        return BenchmarkBoard(
            **{name: getattr(benchmark, name) for name in own},
            owner=benchmark_owner(benchmark.name).owner,
            shows=self._layout.shows,
            why=self._layout.why,
            rankings=rankings,
            tables=tuple(kept),
            plots=tuple(plots),
            letters=tuple(one for column in self._of_kind("letters") for one in self._letters_of(column)),
            reliability=reliability,
            timelines=tuple(one for column in self._of_kind("timeline") for one in self._timelines_of(column)),
            usage=usage,
            text_only=text_only,
            prompt_order=None if paraphrased is None else paraphrased[1],
            published=rows,
            published_notes=reference.notes,
            published_gaps=reference.gaps,
            published_problem=unpublished,
        )

    def _columns(self, columns: Iterable[Column]) -> tuple[BoardColumn, ...]:
        return board_columns(
            columns,
            lambda task, breakdown: held_groups(self._runs, task, breakdown),
            lambda column: held_chance(self._runs, column),
        )

    def _ranking(self, column: BoardColumn, resamples: int) -> Ranking | None:
        """The ranking by one headline column; None for a signed score, or if no run is comparable."""
        group = self._groups.of(column.task, column.metric)
        if column.signed or not (group.ranked or group.waiting):
            return None
        scores = {
            model: run.entries[column.task].scores.metrics[column.metric]
            for model, run in {**group.waiting, **group.ranked}.items()
        }
        unranked = {model: scores[model].reason or "no value" for model in group.waiting}
        for model in group.ranked:
            if is_incomplete(score := scores[model]):  # too few responses or verdicts for a rank
                unranked[model] = f"incomplete: {coverage_text(score.samples, score.answered, score.judged)}"
        entries = {model: run.entries[column.task] for model, run in group.ranked.items() if model not in unranked}
        some = next(iter((*group.ranked.values(), *group.waiting.values()))).entries[column.task]
        tables, clusters = on_common_items(entries or {"": some}, column.metric)
        return rank_models(
            column,
            {model: table for model, table in tables.items() if model},
            clusters,
            cluster=load_spec(column.task).benchmark.cluster,
            signature=group.signature,
            unranked=unranked,
            resamples=resamples,
        )

    def _usage(self, headline: Iterable[BoardColumn], table: BoardTable, prices: Prices) -> Iterator[ModelUsage]:
        """What the runs ranked by the first headline score used."""
        for column in headline:
            cells = {row.model: row.cells.get(column.key) for row in table.rows if not row.blind}
            for model, run in self._groups.of(column.task, column.metric).ranked.items():
                usage, cost = used_by(run, prices, column.task)
                cell = cells.get(model)
                if cell is not None and usage != Usage():
                    yield ModelUsage(model=model, run=run.public.key, score=cell, usage=usage, cost=cost)

    def _plots(self, shown: list[BoardTable], tables: Tables) -> list[BoardPlot]:
        """The plots with data; if no table in ``shown`` has a plot's columns, one is added."""
        found = []
        for plot in self._layout.plots:
            columns, against = self._drawn(plot, tables)
            if not columns:
                continue
            keys = [column.key for column in (*columns, *against)]
            table = next((one for one in shown if {*keys} <= {column.key for column in one.columns}), None)
            if table is None:
                name = plot.name
                while name in {one.name for one in shown}:
                    name = f"{name}-numbers"
                table = tables.table(name, plot.title, (*columns, *against))
                shown.append(table)
            found.append(
                BoardPlot(
                    name=plot.name,
                    title=plot.title,
                    kind=plot.kind,
                    table=table.name,
                    columns=tuple(column.key for column in columns),
                    against=tuple(column.key for column in against),
                    ranks=plot.ranks,
                    chance=held_chance(self._runs, Column(columns[0].task, "accuracy", "")) if plot.chance else None,
                    note=plot.note,
                )
            )
        return found

    def _drawn(self, plot: Plot, tables: Tables) -> tuple[tuple[BoardColumn, ...], tuple[BoardColumn, ...]]:
        """The plot's columns with a value in some row (ranks: in two); for a paired plot, with values on both sides."""
        columns = self._columns(plot.columns)
        if plot.kind == "letters":
            return tuple(one for one in columns if any(self._letters_of(one))), ()
        if plot.kind == "timeline":
            return tuple(one for one in columns if any(self._timelines_of(one))), ()
        against = self._columns(plot.against)
        rows = tables.table(plot.name, plot.title, (*columns, *against)).rows
        values = Counter(key for row in rows for key, cell in row.cells.items() if cell.value is not None)
        valued = {key for key, count in values.items() if count > plot.ranks}  # a rank is one among several models
        if not plot.against:
            return tuple(one for one in columns if one.key in valued), ()
        both = [(one, two) for one, two in zip(columns, against, strict=True) if {one.key, two.key} <= valued]
        return tuple(one for one, _ in both), tuple(two for _, two in both)

    def _of_kind(self, kind: str) -> list[BoardColumn]:
        """The columns of all plots of a kind, one per task."""
        plotted = self._columns(column for plot in self._layout.plots if plot.kind == kind for column in plot.columns)
        return list({column.task: column for column in plotted}.values())

    def _letters_of(self, column: BoardColumn) -> Iterable[LetterCounts]:
        for model, run in self._groups.of(column.task, column.metric).ranked.items():
            letters = run.entries[column.task].scores.letters
            if letters is not None:
                yield LetterCounts(
                    task=column.task,
                    model=model,
                    gold=letters.gold,
                    chosen=letters.chosen,
                    preference=getattr(letters, "preference", {}),
                )

    def _timelines_of(self, column: BoardColumn) -> Iterable[Timeline]:
        for run in self._groups.of(column.task, column.metric).ranked.values():
            yield from run.entries[column.task].timelines


def _cost_plot(
    headline: Iterable[BoardColumn], usage: Sequence[ModelUsage], taken: Container[str]
) -> Iterator[BoardPlot]:
    """The first headline score against what a sample took, if anything is known of that."""
    measure = plotted([(one.usage, one.cost) for one in usage])
    for column in headline:
        if measure is None:
            return
        yield BoardPlot(
            name=next(one for one in ("cost", "score-against-cost", "cost-of-answers") if one not in taken),
            title=f"{column.label} against {measure.label.lower()}",
            kind="cost",
            table=HEADLINE,
            columns=(column.key,),
            note="Times depend on the machine." if measure is SECONDS else "",
        )


def _order(rankings: Sequence[Ranking]) -> dict[str, tuple[float, ...]]:
    """Each model's sort key: its rank in the first ranking, then in the next."""
    models = {one.model for ranking in rankings for one in ranking.ranked}
    ranks = [{one.model: float(one.rank) for one in ranking.ranked} for ranking in rankings]
    return {model: tuple(one.get(model, float("inf")) for one in ranks) for model in models}
