"""Tables and charts of the overview, of benchmarks' and of models' pages: comparable models, their blind runs, the
others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from itertools import groupby, takewhile
from typing import Any, NamedTuple, TypeAlias

from medtasks.runs.scores import coverage_text

from ..board import board as schema
from ..board.numbers import UNIT_LABELS, finding, interval, shown_name
from ..board.rows import without_empty
from ..figures.plots import model_order

MOST_ROWS = 12
"""Models in a chart; the table below has all."""


class ColumnView(NamedTuple):
    """A column as a table shows it: ``sub`` distinguishes columns with equal labels, ``judge`` names the judges of all
    its scores. Its intervals are drawn on one ``scale``; ``best`` marks the best value. ``ranking`` is that by this
    score, ``of`` its benchmark's title."""

    column: schema.BoardColumn
    sub: str = ""
    judge: str = ""
    scale: tuple[float, float] | None = None
    best: float | None = None
    ranking: schema.Ranking | None = None
    of: str = ""

    def place(self, value: float) -> str:
        """The position of ``value`` on the scale, 0 to 100."""
        low, high = self.scale or (0.0, 1.0)
        return f"{100 * min(max((value - low) / (high - low), 0.0), 1.0):.3g}"


def column_view(
    column: schema.BoardColumn,
    *,
    judged: Iterable[schema.BoardRow] = (),
    drawn: Iterable[schema.BoardRow] = (),
    competing: Iterable[schema.BoardRow] = (),
    **more: Any,
) -> ColumnView:
    """The view of a column: its judge is that of the rows ``judged``, its scale spans the rows ``drawn`` and the chance
    level, and the best value is one of at least two complete ones of the rows ``competing``; signed columns have none.
    ``more`` are other fields."""
    scale, best = None, None
    ends = [end for one in _cells(column, drawn) for end in (one.value, one.low, one.high) if end is not None]
    if ends:
        ends += [] if column.chance is None else [column.chance]
        margin = 0.04 * (max(ends) - min(ends)) or 1.0
        scale = (min(ends) - margin, max(ends) + margin)
    known = [one.value for one in _cells(column, competing) if one.value is not None and not one.incomplete]
    if len(known) > 1 and not column.signed:
        best = max(known) if column.higher_is_better else min(known)
    return ColumnView(column, judge=shared_judge(_cells(column, judged)), scale=scale, best=best, **more)


def _cells(column: schema.BoardColumn, rows: Iterable[schema.BoardRow]) -> list[schema.Cell]:
    return [row.cells[column.key] for row in rows if column.key in row.cells]


def shared_judge(cells: Iterable[schema.Cell]) -> str:
    """The judges of all judged scores of a column; empty if they differ, or if none is judged."""
    names = {cell.judge for cell in cells if cell.judge}
    return names.pop() if len(names) == 1 else ""


def first_click(column: schema.BoardColumn) -> str:
    """How the first click on a column sorts: the best value on top, of a signed score the lowest."""
    return "down" if column.higher_is_better and not column.signed else "up"


def group_letters(ranking: schema.Ranking, model: str) -> str:
    """The letters of the model's groups in a ranking; empty if it is not ranked."""
    letters = next((one.letters for one in ranking.ranked if one.model == model), ())
    return ("" if all(len(letter) == 1 for letter in letters) else " ").join(letters)


def coverage_notes(cell: schema.Cell, column: schema.BoardColumn) -> tuple[str, ...]:
    """Notes on a score for which some items lack a response or a verdict."""
    if all(count in (None, cell.items) for count in (cell.answered, cell.judged)):
        return ()
    bounds = "" if cell.bounds is None else f"bounds: {interval(*cell.bounds, column.unit)}"
    notes = (coverage_text(cell.items, cell.answered, cell.judged), bounds, "incomplete" * cell.incomplete)
    return tuple(filter(None, notes))


def subtitles(columns: Sequence[schema.BoardColumn]) -> dict[str, str]:
    """By key, what distinguishes a column from others with the same label; empty for the only one with its label."""
    labels: dict[str, list[schema.BoardColumn]] = defaultdict(list)
    for column in columns:
        labels[column.label].append(column)
    tasks = {column.task for column in columns}
    same = ((column, labels[column.label]) for column in columns)
    return {column.key: distinguishing(column, of, tasks) if len(of) > 1 else "" for column, of in same}


def distinguishing(
    column: schema.BoardColumn, others: Sequence[schema.BoardColumn], tasks: Collection[str] = ()
) -> str:
    """How ``column`` differs from ``others``: task (without the words that all tasks share), metric, breakdown."""
    every = {*tasks, *(one.task for one in others)}
    shared = leading_words(every, "_") + "_" if len(every) > 1 else ""
    task = "all" if f"{column.task}_" == shared else column.task.removeprefix(shared)
    parts = {
        task: len({one.task for one in others}) > 1,
        column.metric: len({one.metric for one in others}) > 1,
        column.breakdown or "all": len({one.breakdown for one in others}) > 1,
    }
    return ", ".join(part for part, differs in parts.items() if differs and part)


def leading_words(texts: Collection[str], separator: str) -> str:
    """The words with which all texts begin."""
    by_place = zip(*(text.split(separator) for text in texts), strict=False)
    return separator.join(words[0] for words in takewhile(lambda words: len({*words}) == 1, by_place))


def benchmark_tables(board: schema.Board, benchmark: schema.BenchmarkBoard) -> list[dict[str, Any]]:
    """The first table of ``benchmark``, with ranks and letters beside its scores, and all others with results. Each has
    its ``content``, ``columns``, the ``rows`` of ranked models, best first, and ``apart`` those that are not
    comparable. ``beside`` has by ranked model its blind runs, ``missing`` the models with empty cells and their columns
    by reason; ``rankings`` are those of the headline table, in which alone intervals are drawn. Columns that have only
    published figures are left out, except in the first table."""
    order = model_order(benchmark)
    first, *others = benchmark.tables
    found = []
    for table in (first, *(without_empty(table) for table in others if table.every_row)):
        rankings = {one.column.key: one for one in benchmark.rankings} if table is first else {}
        rows = sorted(table.rows, key=lambda row: order[row.model])
        ranked = {row.model for row in rows}
        beside: dict[str, list[schema.BoardRow]] = defaultdict(list)
        apart: list[schema.BoardRow] = []
        for row in sorted(table.apart, key=lambda row: order[row.model]):
            (beside[row.model] if row.blind and row.model in ranked else apart).append(row)
        subs = subtitles(table.columns)
        columns = [
            column_view(
                column,
                judged=table.every_row,
                drawn=table.every_row if rankings else (),
                competing=rows,
                sub=", ".join(filter(None, (subs[column.key], column.remark))),
                ranking=rankings.get(column.key),
            )
            for column in table.columns
        ]

        missing: dict[str, list[str]] = defaultdict(list)
        for row in table.every_row:
            empty: dict[str, list[str]] = defaultdict(list)
            for column in table.columns:
                cell = row.cells.get(column.key)
                if cell is None or cell.value is None:
                    empty["not run" if cell is None else cell.reason or "no value"].append(column.label)
            for reason, labels in empty.items():
                where = "all columns" if len(labels) == len(table.columns) > 1 else ", ".join(labels)
                missing[reason].append(f"{shown_name(board, row.model, row.blind)}: {where}")
        shown = {"content": table, "columns": columns, "rows": rows, "beside": beside, "apart": apart}
        found.append({**shown, "missing": dict(sorted(missing.items())), "rankings": [*rankings.values()]})
    return found


class Chart(NamedTuple):
    """The models of a ranking, best first, each with its score and, below it, its blind run, which is not ranked;
    ``more`` counts the models left out."""

    benchmark: schema.BenchmarkBoard
    ranking: schema.Ranking
    view: ColumnView
    rows: tuple[schema.BoardRow, ...] = ()
    more: int = 0
    finding: str = "No model is ranked."


def charts(board: schema.Board, benchmark: schema.BenchmarkBoard) -> Iterator[Chart]:
    """A chart for each ranking with a ranked model."""
    table = benchmark.tables[0]
    beside = [row for row in table.apart if is_beside_its_model(table, row)]
    for ranking in benchmark.rankings:
        if not ranking.ranked:
            continue
        column = ranking.column
        seeing, blind = ({row.model: row for row in rows if column.key in row.cells} for rows in (table.rows, beside))
        shown = [one.model for one in ranking.ranked[:MOST_ROWS]]
        rows = tuple(rows[model] for model in shown for rows in (seeing, blind) if model in rows)
        view = column_view(column, judged=(*seeing.values(), *blind.values()), drawn=rows)
        cells = {model: row.cells[column.key] for model, row in seeing.items()}
        more = len(ranking.ranked) - len(shown)
        yield Chart(benchmark, ranking, view, rows, more, finding(ranking, board.models, cells))


def overview_charts(board: schema.Board) -> list[Chart]:
    """For each benchmark with a ranking, its first one in which a model is ranked; if there is none, an empty chart."""
    return [
        next(charts(board, one), Chart(one, ranking, ColumnView(ranking.column)))
        for one in board.benchmarks
        for ranking in one.rankings[:1]
    ]


def all_models(board: schema.Board) -> tuple[list[ColumnView], list[schema.BoardRow]]:
    """Each benchmark's first headline score, and a row for every model that a benchmark compares."""
    found: dict[str, schema.BoardRow] = {}
    for row in (row for benchmark in board.benchmarks for row in benchmark.tables[0].rows):
        known = found.get(row.model, row)
        found[row.model] = row.model_copy(update={"cells": {**known.cells, **row.cells}})
    rows = [*found.values()]
    first = [(one.title, ranking) for one in board.benchmarks for ranking in one.rankings[:1]]
    columns = [
        column_view(ranking.column, judged=rows, drawn=rows, competing=rows, of=title, ranking=ranking)
        for title, ranking in first
    ]
    ranks = [{one.model: one.rank for one in ranking.ranked} for _, ranking in first]

    def place(row: schema.BoardRow) -> tuple[list[int], str, str]:
        return [one.get(row.model, len(board.models) + 1) for one in ranks], board.models[row.model].name, row.model

    return columns, sorted(rows, key=place)


class NotComparable(NamedTuple):
    """A model's results on a benchmark that are not comparable: on how many of its tables, and why (for the headline
    scores, if they are among them)."""

    model: schema.BoardModel
    blind: bool
    benchmark: schema.BenchmarkBoard
    tables: int
    reasons: Sequence[str]


def is_beside_its_model(table: schema.BoardTable, apart: schema.BoardRow) -> bool:
    """Whether a row that is not comparable is just a ranked model's blind run: every page shows it below that model."""
    is_alone = len(apart.reasons) == 1  # that it is blind
    return apart.blind and is_alone and any(row.model == apart.model for row in table.rows)


def not_comparable(board: schema.Board) -> list[NotComparable]:
    """The rows of tables that are not comparable, once for each model and benchmark."""
    found = []
    for benchmark in board.benchmarks:
        reasons: dict[tuple[str, bool], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for table in benchmark.tables:
            for row in table.apart:
                if not is_beside_its_model(table, row):
                    reasons[row.model, row.blind][table.name] += row.reasons
        for (model, blind), by_table in reasons.items():
            headline = by_table.get(benchmark.tables[0].name)
            counted = [headline] if headline is not None else by_table.values()
            once = list(dict.fromkeys(reason for each in counted for reason in each))
            found.append(NotComparable(board.models[model], blind, benchmark, len(by_table), once))
    return sorted(found, key=lambda one: (one.model.name.casefold(), one.model.slug, one.blind))


def published_tables(benchmark: schema.BenchmarkBoard) -> list[dict[str, Any]]:
    """The published rows of ``benchmark``, table by table, in printed order. Each table has its ``rows`` and
    ``figures``, and ``columns``, those of the board by key; None for other figures. ``notes`` are all notes, numbered
    from 1; ``not_comparable`` are the reasons why figures cannot be compared with ours, each with the columns it is
    about."""
    tables: dict[tuple[str, str, str], list[dict[str, schema.Published]]] = defaultdict(list)
    for row in benchmark.published_rows:
        first = next(iter(row.values()))
        tables[first.paper, first.table, first.source].append(row)
    known = {column.key: column for table in benchmark.tables for column in table.columns}
    found = []
    for rows in tables.values():
        columns: dict[str, schema.BoardColumn | None] = {}
        notes: dict[str, int] = {}
        reasons: dict[str, dict[str, None]] = defaultdict(dict)
        figures = [figure for row in rows for figure in row.values()]
        for figure in figures:
            column = columns.setdefault(figure.column, known.get(figure.column))
            if figure.why:
                reasons[figure.why][figure.column if column is None else column.label] = None
            for note in (*figure.row_notes, *figure.notes):
                notes.setdefault(note, len(notes) + 1)
        shown = {"rows": rows, "figures": figures, "columns": columns}
        found.append({**shown, "notes": notes, "not_comparable": reasons})
    return found


def is_printed_so(cell: schema.Published, text: str) -> bool:
    """Whether the paper prints the number ``text``, apart from trailing zeros."""
    try:
        return cell.printed is None or Decimal(cell.printed.strip(" %")) == Decimal(text.replace("−", "-"))
    except InvalidOperation:
        return False


Line: TypeAlias = tuple[str, str, list[tuple[ColumnView, schema.Cell | None]]]
"""Label, what distinguishes it, and cells: a column of the benchmark's table or, in a matrix, a group with one cell for
each heading, None if that has no items of the group."""


class Matrix(NamedTuple):
    """A table of one model; without ``headings`` each line is one score."""

    title: str
    headings: Sequence[ColumnView]
    rows: Sequence[Line]
    blind: bool
    reasons: Sequence[str]


class _OfModel(NamedTuple):
    title: str
    row: schema.BoardRow
    columns: Sequence[schema.BoardColumn]


def model_parts(board: schema.Board, slug: str) -> list[dict[str, Any]]:
    """The benchmarks that have results of the model ``slug``. Each has its ``benchmark``, ``places`` (a headline
    column, its ranking, and the model's score), ``matrices``, those that are not comparable as ``apart``, and in
    ``runs`` keys of `Board.runs`."""
    parts = []
    for benchmark in board.benchmarks:
        rows = [
            _OfModel(table.title, row, [column for column in table.columns if column.key in row.cells])
            for table in benchmark.tables
            for row in table.every_row
            if row.model == slug
        ]
        if not rows:
            continue
        others = [one for one in rows if one.row.reasons]
        first = {one.row.runs: place for place, one in reversed(list(enumerate(others)))}
        others.sort(key=lambda one: (one.row.blind, first[one.row.runs]))
        headline = benchmark.tables[0].rows
        places = [
            (column_view(ranking.column, drawn=headline), ranking, row.cells[ranking.column.key])
            for ranking in benchmark.rankings
            for row in headline
            if row.model == slug and ranking.column.key in row.cells
        ]
        matrices, apart = [*_matrices(one for one in rows if not one.row.reasons)], [*_matrices(others)]
        runs = {key for one in rows for key in one.row.runs}
        parts.append({"benchmark": benchmark, "places": places, "matrices": matrices, "apart": apart, "runs": runs})
    return parts


def _breakdown(one: _OfModel) -> tuple[str, frozenset[str]] | None:
    """Breakdown and metrics of a table of one breakdown's groups, which may end with all items; else None."""
    breakdowns = {column.breakdown for column in one.columns} - {None}
    grouped = {column.metric for column in one.columns if column.group is not None}
    if len(breakdowns) != 1 or not grouped >= {column.metric for column in one.columns}:
        return None
    return str(breakdowns.pop()), frozenset(grouped)


def _matrices(rows: Iterable[_OfModel]) -> Iterator[Matrix]:
    """Consecutive tables that break the same metrics down by the same groups make one matrix: a heading for each task
    and metric, a row for each group."""
    for (_, blind, breakdown), bundle in groupby(rows, key=lambda one: (one.row.runs, one.row.blind, _breakdown(one))):
        members = list(bundle)
        columns = {(one.task, one.metric, one.group): one for member in members for one in member.columns}
        groups = {group: one.label if group is None else group for (_, _, group), one in columns.items()}
        across = {(one.task, one.metric) for one in columns.values()}
        lines: list[Line] = []
        if breakdown is None or len(across) < 2 or len(groups) < 2:
            for one in members:
                subs, lines = subtitles(one.columns), []
                for column in one.columns:
                    sub = f"{subs[column.key]} {UNIT_LABELS[column.unit]}"
                    lines.append((column.label, sub, [(ColumnView(column), one.row.cells[column.key])]))
                yield Matrix(one.title, (), lines, blind, one.row.reasons)
            continue
        titles = [one.title for one in members]
        reasons = list(dict.fromkeys(reason for one in members for reason in one.row.reasons))
        cells = {key: cell for one in members for key, cell in one.row.cells.items()}
        firsts = list({(one.task, one.metric): one for one in columns.values() if one.group is not None}.values())
        headings = []
        for head in firsts:
            same = [cells[one.key] for one in columns.values() if (one.task, one.metric) == (head.task, head.metric)]
            headings.append(ColumnView(head, sub=distinguishing(head, firsts), judge=shared_judge(same)))
        for group, label in sorted(groups.items(), key=lambda one: (one[0] is None, one[1])):
            in_row = [columns.get((head.task, head.metric, group)) for head in firsts]
            scores = [None if one is None else cells[one.key] for one in in_row]
            lines.append((label, "", list(zip(headings, scores, strict=True))))
        yield Matrix(leading_words(titles, " ").rstrip(",;: ") or titles[0], headings, lines, blind, reasons)
