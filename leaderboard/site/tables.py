"""Tables and charts of the overview and of models' pages: comparable models, their blind runs, the
others. Those of benchmarks' pages are in `benchmark_tables`."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cached_property
from itertools import groupby, takewhile
from typing import Any, NamedTuple

from medtasks.scoring.scores import coverage_text

from ..board.findings import finding
from ..board.floors import Floor, column_floors, highest_floor
from ..schema import board as schema
from ..schema.numbers import interval

MOST_ROWS = 12
"""Models in a chart; the table below has all."""

_COUNT = re.compile(r"\d[\d,]*")


@dataclass(frozen=True, eq=False)
class ColumnView:
    """A column as a table shows it; ``sub`` distinguishes columns with equal labels, ``ranking`` is
    that by this score, ``of`` its benchmark's title. Each property is about the rows in the field
    before it.
    """

    column: schema.BoardColumn
    judged: Sequence[schema.BoardRow] = ()
    drawn: Sequence[schema.BoardRow] = ()
    competing: Sequence[schema.BoardRow] = ()
    sub: str = ""
    ranking: schema.Ranking | None = None
    of: str = ""

    def _cells(self, rows: Iterable[schema.BoardRow]) -> list[schema.Cell]:
        return [row.cells[self.column.key] for row in rows if self.column.key in row.cells]

    @cached_property
    def judge(self) -> str:
        """The judges of all scores of the rows ``judged``; empty if they differ, or if none is
        judged.
        """
        names = {cell.judge for cell in self._cells(self.judged) if cell.judge}
        return names.pop() if len(names) == 1 else ""

    @cached_property
    def scale(self) -> tuple[float, float] | None:
        """The ends of the axis of the intervals of the rows ``drawn`` and the floors."""
        values = [end for one in self._cells(self.drawn) for end in (one.value, one.low, one.high)]
        floors = [floor.level for floor in column_floors(self.column)] if values else []
        ends = [end for end in (*values, *floors) if end is not None]
        if not ends:
            return None
        margin = 0.04 * (max(ends) - min(ends)) or 1.0
        return min(ends) - margin, max(ends) + margin

    @cached_property
    def floor(self) -> Floor | None:
        """The floor that is hardest to exceed."""
        return highest_floor(self.column)

    @cached_property
    def best(self) -> float | None:
        """The best of at least two complete scores of the rows ``competing``; None for signed
        columns.
        """
        cells = self._cells(self.competing)
        known = [one.value for one in cells if one.value is not None and not one.incomplete]
        if len(known) < 2 or self.column.signed:
            return None
        return max(known) if self.column.higher_is_better else min(known)

    def place(self, value: float) -> str:
        """The position of ``value`` on the scale, 0 to 100."""
        low, high = self.scale or (0.0, 1.0)
        return f"{100 * min(max((value - low) / (high - low), 0.0), 1.0):.3g}"


def first_click(column: schema.BoardColumn) -> str:
    """How the first click on a column sorts: the best value on top, of a signed score the
    lowest.
    """
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
    notes = (
        coverage_text(cell.items, cell.answered, cell.judged),
        bounds,
        "incomplete" * cell.incomplete,
    )
    return tuple(filter(None, notes))


def why_none(cells: Iterable[schema.Cell | None]) -> str:
    """The distinct reasons for which cells have no value. Those that differ only in their counts
    are one reason, that of the cell with the most items. A cell that is None was not run."""
    by_text: dict[str, str] = {}
    for cell in sorted(cells, key=lambda cell: 0 if cell is None else -cell.items):
        reason = "not run" if cell is None else cell.reason or "no value"
        by_text.setdefault(_COUNT.sub("", reason), reason)
    return "; ".join(by_text.values())


def subtitles(columns: Sequence[schema.BoardColumn]) -> dict[str, str]:
    """By key, how a column differs from others with the same label: task (without the words with
    which all tasks begin), metric, breakdown.
    """
    labels: dict[str, list[schema.BoardColumn]] = defaultdict(list)
    for column in columns:
        labels[column.label].append(column)
    tasks = {column.task for column in columns}
    shared = _leading(task.split("_") for task in tasks) if len(tasks) > 1 else 0
    found = {}
    for same in labels.values():
        differing = [
            name
            for name in ("task", "metric", "breakdown")
            if len({getattr(one, name) for one in same}) > 1
        ]
        for one in same:
            task = "_".join(one.task.split("_")[shared:]) or "all"
            parts = {"task": task, "metric": one.metric, "breakdown": one.breakdown or "all"}
            found[one.key] = ", ".join(parts[name] for name in differing)
    return found


class Chart(NamedTuple):
    """The models of a ranking, best first, each with its score and, below it, its blind run, which
    is not ranked; ``more`` counts the models left out.
    """

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
        seeing, blind = (
            {row.model: row for row in rows if column.key in row.cells}
            for rows in (table.rows, beside)
        )
        shown = [one.model for one in ranking.ranked[:MOST_ROWS]]
        rows = tuple(rows[model] for model in shown for rows in (seeing, blind) if model in rows)
        view = ColumnView(column, judged=(*seeing.values(), *blind.values()), drawn=rows)
        cells = {model: row.cells[column.key] for model, row in seeing.items()}
        more = len(ranking.ranked) - len(shown)
        yield Chart(benchmark, ranking, view, rows, more, finding(ranking, board.models, cells))


def overview_charts(board: schema.Board) -> list[Chart]:
    """For each benchmark with a ranking, its first one in which a model is ranked; if there is
    none, an empty chart.
    """
    return [
        next(charts(board, one), Chart(one, ranking, ColumnView(ranking.column)))
        for one in board.benchmarks
        for ranking in one.rankings[:1]
    ]


def all_models(board: schema.Board) -> tuple[list[ColumnView], list[schema.BoardRow]]:
    """Each benchmark's first headline score, and a row for every model that a benchmark
    compares.
    """
    found: dict[str, schema.BoardRow] = {}
    for row in (row for benchmark in board.benchmarks for row in benchmark.tables[0].rows):
        known = found.get(row.model, row)
        found[row.model] = row.model_copy(update={"cells": {**known.cells, **row.cells}})
    rows = [*found.values()]
    first = [(one.title, ranking) for one in board.benchmarks for ranking in one.rankings[:1]]
    columns = [
        ColumnView(
            ranking.column, judged=rows, drawn=rows, competing=rows, of=title, ranking=ranking
        )
        for title, ranking in first
    ]
    ranks = [{one.model: one.rank for one in ranking.ranked} for _, ranking in first]

    def place(row: schema.BoardRow) -> tuple[list[int], str, str]:
        return (
            [one.get(row.model, len(board.models) + 1) for one in ranks],
            board.models[row.model].name,
            row.model,
        )

    return columns, sorted(rows, key=place)


class NotComparable(NamedTuple):
    """A model's results on a benchmark that are not comparable: on how many of its tables, and why
    (for the headline scores, if they are among them).
    """

    model: schema.BoardModel
    blind: bool
    benchmark: schema.BenchmarkBoard
    tables: int
    reasons: Sequence[str]


def is_beside_its_model(table: schema.BoardTable, apart: schema.BoardRow) -> bool:
    """Whether a row that is not comparable is just a ranked model's blind run: every page shows it
    below that model.
    """
    is_alone = len(apart.reasons) == 1  # that it is blind
    return apart.blind and is_alone and any(row.model == apart.model for row in table.rows)


def not_comparable(board: schema.Board) -> list[NotComparable]:
    """The rows of tables that are not comparable, once for each model and benchmark."""
    found = []
    for benchmark in board.benchmarks:
        reasons: dict[tuple[str, bool], dict[str, list[str]]] = defaultdict(
            lambda: defaultdict(list)
        )
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
    """The published rows of ``benchmark``, table by table, in printed order. Each table has its
    ``rows`` and ``figures``, and ``columns``, those of the board by key; None for other figures.
    ``notes`` are all notes, numbered from 1; ``not_comparable`` are the reasons why figures cannot
    be compared with ours, each with the columns it is about.
    """
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
        return cell.printed is None or Decimal(cell.printed.strip(" %")) == Decimal(
            text.replace("−", "-")
        )
    except InvalidOperation:
        return False


class OfModel(NamedTuple):
    """A table of one model, whose row is ``row``: a line for each of its ``columns``. With
    ``headings``, one for each task and metric, it is a matrix: ``lines`` have the label of a group,
    and by heading its column, None if that has no items of the group.
    """

    title: str
    row: schema.BoardRow
    columns: Sequence[schema.BoardColumn]
    headings: Sequence[ColumnView] = ()
    lines: Sequence[tuple[str, Sequence[schema.BoardColumn | None]]] = ()

    def has_value(self, columns: Sequence[schema.BoardColumn | None]) -> bool:
        """Whether the model has a score in one of the columns; pages fold lines without any."""
        return any(
            column is not None and self.row.cells[column.key].value is not None
            for column in columns
        )

    def why_none(self, columns: Sequence[schema.BoardColumn | None]) -> str:
        """Why there is no score in any of the columns: the distinct reasons."""
        cells = [self.row.cells[column.key] for column in columns if column is not None]
        return why_none(cells) or "no items"


def _breakdown(table: OfModel) -> tuple[str, frozenset[str]] | None:
    """Breakdown and metrics of a table of one breakdown's groups, which may end with all items;
    else None.
    """
    breakdowns = {column.breakdown for column in table.columns} - {None}
    metrics = frozenset(column.metric for column in table.columns if column.group is not None)
    if len(breakdowns) != 1 or not metrics >= {column.metric for column in table.columns}:
        return None
    return str(breakdowns.pop()), metrics


def _joined(tables: Iterable[OfModel]) -> Iterator[OfModel]:
    """The tables; consecutive ones that break the same metrics down by the same groups make one
    matrix.
    """
    for (*_, breakdown), bundle in groupby(
        tables, key=lambda one: (one.row.runs, one.row.blind, _breakdown(one))
    ):
        members = list(bundle)
        columns = {
            (one.task, one.metric, one.group): one for member in members for one in member.columns
        }
        groups = {
            group: one.label if group is None else group for (_, _, group), one in columns.items()
        }
        heads = [
            *{
                (task, metric): one
                for (task, metric, group), one in columns.items()
                if group is not None
            }.values()
        ]
        if breakdown is None or len(heads) < 2 or len(groups) < 2:
            yield from members
            continue
        cells = {key: cell for one in members for key, cell in one.row.cells.items()}
        reasons = tuple(dict.fromkeys(reason for one in members for reason in one.row.reasons))
        row = members[0].row.model_copy(update={"cells": cells, "reasons": reasons})
        subs = subtitles([head.model_copy(update={"label": ""}) for head in heads])
        headings = []
        for head in heads:
            same = [
                one
                for one in columns.values()
                if (one.task, one.metric) == (head.task, head.metric)
            ]
            judged = [row.model_copy(update={"cells": {head.key: cells[one.key]}}) for one in same]
            headings.append(ColumnView(head, judged=judged, sub=subs[head.key]))
        lines = []
        for group, label in sorted(groups.items(), key=lambda one: (one[0] is None, one[1])):
            lines.append((label, [columns.get((head.task, head.metric, group)) for head in heads]))
        words = _leading([one.title.split(" ") for one in members])
        title = " ".join(members[0].title.split(" ")[:words]).rstrip(",;: ") or members[0].title
        yield OfModel(title, row, (), headings, lines)


def _leading(several: Iterable[Sequence[str]]) -> int:
    """With how many words all of them begin."""
    by_place = zip(*several, strict=False)
    return len([*takewhile(lambda words: len({*words}) == 1, by_place)])


def model_parts(board: schema.Board, slug: str) -> list[dict[str, Any]]:
    """The benchmarks that have results of the model ``slug``. Each has its ``benchmark``,
    ``places`` (a headline column, its ranking, and the model's score), ``tables`` (`OfModel`),
    those that are not comparable as ``apart``, and in ``runs`` keys of `Board.runs`.
    """
    parts = []
    for benchmark in board.benchmarks:
        rows = [
            OfModel(
                table.title, row, [column for column in table.columns if column.key in row.cells]
            )
            for table in benchmark.tables
            for row in table.every_row
            if row.model == slug
        ]
        if not rows:
            continue
        headline = benchmark.tables[0].rows
        places = [
            (ColumnView(ranking.column, drawn=headline), ranking, row.cells[ranking.column.key])
            for ranking in benchmark.rankings
            for row in headline
            if row.model == slug and ranking.column.key in row.cells
        ]
        tables, apart = (
            [one for one in rows if not one.row.reasons],
            [one for one in rows if one.row.reasons],
        )
        order = [one.row.runs for one in apart]
        apart.sort(key=lambda one: (one.row.blind, order.index(one.row.runs)))
        runs = {key for one in rows for key in one.row.runs}
        shown = {"tables": [*_joined(tables)], "apart": [*_joined(apart)]}
        parts.append({"benchmark": benchmark, "places": places, "runs": runs, **shown})
    return parts
