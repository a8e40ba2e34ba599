"""The board from scored runs: comparable runs are ranked, all others listed with the reasons."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import medtasks
from medtasks.benchmarks.layouts import HEADLINE, all_layouts, columns_of
from medtasks.catalog.benchmark import Benchmark, BoardLayout, Column, LayoutTable, Plot
from medtasks.catalog.registry import benchmark_owner, get_benchmark
from medtasks.catalog.spec import leaf_tasks
from medtasks.core.errors import DataError
from medtasks.core.redaction import shown
from medtasks.core.text import first_names
from medtasks.data.sources import content_of, decoded
from medtasks.runs.replies import Usage
from medtasks.scoring.scores import coverage_text
from medtasks.stats.bootstrap import CONFIDENCE

from ..rank.comparability import ComparabilityGroups, on_common_items
from ..rank.rankings import RESAMPLES, SEED, media_gain, prompt_ranks, rank_models, size_and_type
from ..schema import board as schema
from ..schema.reference import Reference, load_reference, place_of, published_figures
from ..verify.conflicts import contradictions, same_responses
from ..verify.coverage import is_incomplete
from ..verify.entries import Entry
from ..verify.rejudging import Rejudged
from ..verify.scored_run import ScoredRun
from .bibliography import entry_key
from .models import Models, distinct_names, model_facts
from .rows import board_columns, comparable_table, confidence_section, held_chance, without_empty
from .usage import SECONDS, Prices, cost_of, plotted, used_by


def build_board(
    runs: Iterable[ScoredRun],
    refused: Iterable[schema.Refused] = (),
    *,
    title: str,
    models: Models | None = None,
    demonstration: bool = False,
    published: bool = True,
    prices: Prices | None = None,
    rejudged: Sequence[Rejudged] = (),
    layouts: Iterable[BoardLayout] | None = None,
) -> schema.Board:
    """The leaderboard of the runs; their order makes no difference, and duplicates are ignored.

    ``refused`` are directories that could not be read, and why; ``models`` and ``prices`` are the
    organiser's (`medtasks.leaderboard.board.models.read_by_model`); ``rejudged`` says how far
    verdicts agree with those asked again, of any runs. All else is as in `medtasks.board`.
    """
    by_key = {
        run.public.key: run
        for run in sorted(runs, key=lambda run: (run.public.key, run.public.folder))
    }
    runs = sorted(by_key.values(), key=lambda run: (run.public.created, run.public.key))
    groups = ComparabilityGroups(runs, demonstration=demonstration)

    known: dict[str, schema.BoardModel] = {}
    for run in runs:  # facts are from the newest run, training data from all
        facts = model_facts(run.public, models)
        trained = (
            {**known[facts.slug].trained, **facts.trained} if facts.slug in known else facts.trained
        )
        known[facts.slug] = facts.model_copy(update={"trained": trained})
    model_facts_of = {run.public.model: run.public.model_facts for run in runs}
    names = distinct_names({slug: facts.name for slug, facts in known.items()}, model_facts_of)
    known = {
        slug: facts.model_copy(update={"name": names[slug]})
        for slug, facts in sorted(known.items())
    }

    boards = []
    entries = [entry for run in runs for entry in run.entries.values()]
    for layout in all_layouts().values() if layouts is None else layouts:
        tasks = {column.task for column in columns_of(layout)}  # its own, or of another track
        if any(entry.benchmark == layout.benchmark or entry.name in tasks for entry in entries):
            boards.append(_filled(layout, runs, groups, known, prices or {}, published=published))
    return schema.Board(
        title=title,
        medtasks=medtasks.__version__,
        latest=max((run.public.created for run in runs), default=None),
        confidence=CONFIDENCE,
        resamples=RESAMPLES,
        seed=SEED,
        demonstration=demonstration,
        models=known,
        runs={facts.key: facts for facts in _runs(runs, groups, boards, prices or {}, rejudged)},
        benchmarks=tuple(boards),
        refused=tuple(sorted(refused, key=lambda one: (one.folder, one.reason))),
    )


def _runs(
    runs: Sequence[ScoredRun],
    groups: ComparabilityGroups,
    boards: Sequence[schema.BenchmarkBoard],
    prices: Prices,
    rejudged: Sequence[Rejudged],
) -> Iterator[schema.BoardRun]:
    """Every run, sorted, with its cost and notes on what is not shown."""
    tables = [table for board in boards for table in board.tables]
    on_board = {key for table in tables for row in table.every_row for key in row.runs}
    instead: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for task, metric in {
        (column.task, column.metric) for table in tables for column in table.columns
    }:
        for old, new in groups.of(task, metric).replaced.items():
            instead[old][new].add(task)
    copies, contradicted = same_responses(runs), contradictions(runs)
    for facts in sorted((run.public for run in runs), key=lambda facts: facts.key):
        newer = sorted(instead[facts.key].items())
        notes = [f"superseded by {new} in {', '.join(sorted(tasks))}" for new, tasks in newer]
        if not notes and facts.key not in on_board:
            notes.append("none of its scores is on this board: no page shows its tasks")
        for other, same in sorted(copies.get(facts.key, {}).items()):
            notes.append(f"same responses as {other}, a run of another model, in {', '.join(same)}")
        for other, tasks in sorted(contradicted.get(facts.key, {}).items()):
            named = first_names(tasks)
            notes.append(
                f"other questions or gold answers than {other}, which claims the same data, in {named}"
            )
        again = {one.rubric: str(one) for one in rejudged if one.run == facts.digest}
        cost = cost_of(prices, facts, facts.usage)
        yield facts.model_copy(
            update={"notes": (*facts.notes, *notes), "cost": cost, "rejudged": again}
        )


def _filled(
    layout: BoardLayout,
    runs: Sequence[ScoredRun],
    groups: ComparabilityGroups,
    models: Mapping[str, schema.BoardModel],
    prices: Prices,
    *,
    published: bool,
) -> schema.BenchmarkBoard:
    """A benchmark's layout, filled with scores; what neither a run nor a paper fills is left
    out.
    """
    benchmark = get_benchmark(layout.benchmark)
    reference, unpublished = Reference(), ""
    try:
        reference = load_reference(benchmark.name) if published else reference
    except DataError as error:  # one package's file must not cost the other benchmarks
        unpublished = shown(str(error))
    bibtex = ""
    try:
        bibtex = _bibtex(benchmark)
    except DataError as error:
        unpublished = unpublished or shown(str(error))

    headline = board_columns(layout.headline, runs, groups)
    ranked = partial(_ranking, groups)
    rankings = tuple(filter(None, map(ranked, headline)))
    places = [{one.model: float(one.rank) for one in ranking.ranked} for ranking in rankings]
    on_top = {model for by_model in places for model in by_model}
    order = {
        model: tuple(by_model.get(model, float("inf")) for by_model in places) for model in on_top
    }
    table = partial(comparable_table, groups, order)
    first = LayoutTable(name=HEADLINE, title="Headline scores", columns=layout.headline)
    tables = [
        table(one.name, one.title, board_columns(one.columns, runs, groups), one.note)
        for one in (first, *layout.tables)
    ]
    figures = published_figures(
        reference, {place_of(column): column.key for one in tables for column in one.columns}
    )
    shown_tables = [without_empty(one, {figure.column for figure in figures}) for one in tables]
    shown_tables = [one for one in shown_tables if one.columns or one.name == HEADLINE]
    letters = [
        schema.LetterCounts(
            task=entry.name,
            model=model,
            **held.model_dump(include={"gold", "chosen", "preference"}),
        )
        for model, entry in _entries("letters", layout, groups)
        if (held := entry.scores.letters) is not None
    ]
    timelines = [
        one for _, entry in _entries("timeline", layout, groups) for one in entry.timelines
    ]
    beside: dict[str, Sequence[Any]] = {"letters": letters, "timeline": timelines}
    plots = [
        one
        for plot in layout.plots
        for one in _plots(plot, beside.get(plot.kind), runs, groups, shown_tables, table)
    ]
    columns = [column for one in shown_tables for column in one.columns]
    gains, bars, text_only = media_gain(benchmark, headline, columns, groups)
    ranks, prompt_order = prompt_ranks(columns, ranked)
    confidences, curves, reliability = confidence_section(headline, runs, groups, table)
    shown_tables += [*gains, *ranks, *confidences]
    plots += [*bars, *curves]

    usage: list[schema.ModelUsage] = []
    for column in [column for column in headline if not column.signed][:1]:
        scores = {row.model: row.cells.get(column.key) for row in tables[0].rows}
        for model, run in groups.of(column.task, column.metric).ranked.items():
            used, cost = used_by(run, prices, column.task)
            if (cell := scores.get(model)) is not None and used != Usage():
                usage.append(
                    schema.ModelUsage(
                        model=model, run=run.public.key, score=cell, usage=used, cost=cost
                    )
                )
        if measure := plotted([(one.usage, one.cost) for one in usage]):
            taken = {plot.name for plot in plots}
            against = schema.BoardPlot(
                name=next(
                    one
                    for one in ("cost", "score-against-cost", "cost-of-answers")
                    if one not in taken
                ),
                title=f"{column.label} against {measure.label.lower()}",
                kind="cost",
                table=HEADLINE,
                columns=(column.key,),
                note="Times depend on the machine." if measure is SECONDS else "",
            )
            plots.append(against)
    correlations, means = size_and_type(shown_tables, figures, models)
    own = ("name", "title", "paper", "source", "licence", "language", "intended_use")
    return schema.BenchmarkBoard(
        **{name: getattr(benchmark, name) for name in own},
        bibtex=bibtex,
        members={
            task: leaf_tasks(task) for task in dict.fromkeys(column.task for column in headline)
        },
        owner=benchmark_owner(benchmark.name).owner,
        shows=layout.shows,
        why=layout.why,
        rankings=rankings,
        tables=tuple(shown_tables),
        plots=tuple(plots),
        letters=tuple(letters),
        reliability=reliability,
        timelines=tuple(timelines),
        usage=tuple(usage),
        text_only=text_only,
        prompt_order=prompt_order,
        published=figures,
        published_notes=reference.notes,
        published_gaps=reference.gaps,
        published_problem=unpublished,
        size_correlations=correlations,
        type_means=means,
    )


def _bibtex(benchmark: Benchmark) -> str:
    """The BibTeX entry of the benchmark's paper; empty if its package has none.

    Raises:
        DataError: the file cannot be read, or is not one entry.
    """
    path = benchmark.bibliography
    if path is None:
        return ""
    text = decoded(content_of(path), path.name).strip()
    if entry_key(text) is None:
        raise DataError(
            f"{path.name}: expected one BibTeX entry, such as @misc{{key, title = {{…}}}}; fix the file."
        )
    return text


def _ranking(groups: ComparabilityGroups, column: schema.BoardColumn) -> schema.Ranking | None:
    group = groups.of(column.task, column.metric)
    if column.signed or not (group.ranked or group.waiting):
        return None
    entries: dict[str, Entry] = {}
    unranked: dict[str, str] = {}
    for model, run in {**group.waiting, **group.ranked}.items():
        entry = run.entries[column.task]
        score = entry.scores.metrics[column.metric]
        if model in group.waiting:
            unranked[model] = score.reason or "no value"
        elif is_incomplete(score):  # too few responses or verdicts for a rank
            unranked[model] = (
                f"incomplete: {coverage_text(score.samples, score.answered, score.judged)}"
            )
        else:
            entries[model] = entry
    tables, clusters = on_common_items(entries, column.metric) if entries else ({}, ())
    return rank_models(column, tables, clusters, signature=group.signature, unranked=unranked)


def _entries(
    kind: str, layout: BoardLayout, groups: ComparabilityGroups
) -> Iterator[tuple[str, Entry]]:
    """The ranked entries, with their models, of the tasks in plots of this kind."""
    columns = [column for plot in layout.plots if plot.kind == kind for column in plot.columns]
    for task, metric in {column.task: column.metric for column in columns}.items():
        for model, run in groups.of(task, metric).ranked.items():
            yield model, run.entries[task]


def _plots(
    plot: Plot,
    beside: Sequence[Any] | None,
    runs: Sequence[ScoredRun],
    groups: ComparabilityGroups,
    tables: list[schema.BoardTable],
    made: Callable[..., schema.BoardTable],
) -> Iterator[schema.BoardPlot]:
    """The plot, if there are data for it (``beside``: other than scores); a table for its columns
    is added if none has them. Columns have a value in some row (ranks: in two), those of a paired
    plot on both sides.
    """
    columns, against = (board_columns(one, runs, groups) for one in (plot.columns, plot.against))
    if beside is not None:
        tasks = {one.task for one in beside}
        columns = tuple(one for one in columns if one.task in tasks)
    else:
        rows = made(plot.name, plot.title, (*columns, *against)).rows
        values = Counter(
            key for row in rows for key, cell in row.cells.items() if cell.value is not None
        )
        valued = {
            key for key, count in values.items() if count > plot.ranks
        }  # a rank is one among several
        sides = [
            one
            for one in zip(columns, against or columns, strict=True)
            if {side.key for side in one} <= valued
        ]
        columns = tuple(one for one, _ in sides)
        against = tuple(other for _, other in sides) if against else ()
    if not columns:
        return
    keys = {column.key for column in (*columns, *against)}
    table = next((one for one in tables if keys <= {column.key for column in one.columns}), None)
    if table is None:
        name = plot.name
        while name in {one.name for one in tables}:
            name = f"{name}-numbers"
        table = made(name, plot.title, (*columns, *against))
        tables.append(table)
    yield schema.BoardPlot(
        **{name: getattr(plot, name) for name in ("name", "title", "kind", "ranks", "note")},
        table=table.name,
        columns=tuple(column.key for column in columns),
        against=tuple(column.key for column in against),
        chance=held_chance(runs, Column(columns[0].task, "accuracy", "")) if plot.chance else None,
    )
