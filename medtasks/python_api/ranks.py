"""Models ranked by one score, as on a board."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from medtasks.benchmarks.layouts import all_layouts
from medtasks.catalog.board_layout import BoardLayout, Column
from medtasks.catalog.spec import load_spec
from medtasks.core.errors import UsageError
from medtasks.core.text import TextTable, first_names
from medtasks.leaderboard.board.findings import finding
from medtasks.leaderboard.rank.planning import default_metric
from medtasks.leaderboard.schema.board import Board
from medtasks.leaderboard.schema.model_rankings import Ranking
from medtasks.leaderboard.schema.numbers import column_note, interval, number
from medtasks.leaderboard.schema.score_tables import Cell
from medtasks.python_api.boards import AnyRuns, board


@dataclass(frozen=True)
class Ranks:
    """The models ranked by one score, best first, with the board's ``ranking``, and the ``finding``
    in a sentence.
    """

    ranking: Ranking
    finding: str
    table: TextTable

    def _repr_html_(self) -> str:
        return self.table._repr_html_()


def rank(
    runs: AnyRuns, task: str, metric: str | None = None, *, demonstration: bool | None = None
) -> Ranks:
    """The models of comparable runs ranked by one score, as on a board: values, rank intervals,
    groups, all pairs.

    Args:
        runs: runs, or directories that contain some.
        task: a task or group.
        metric: by default the first headline score.
        demonstration: rank runs on miniature data; by default if there are any.

    Raises:
        UsageError: there is no such task or metric, or no run to rank by it.
    """
    metric = metric or default_metric(task)
    label = _headline_label(task, metric)
    benchmark = load_spec(task).metadata.benchmark
    layout = BoardLayout(benchmark, headline=(Column(task, metric, label),))
    made = board(runs, demonstration=demonstration, published=False, layouts=[layout])
    ranked_pages = [page for page in made.benchmarks if page.rankings]
    if not ranked_pages:
        why = first_names(_reasons_against(made)) or "none has this score"
        raise UsageError(f"{task}, {metric}: no run can be ranked ({why}).")
    (page,) = ranked_pages  # the layout has one score
    (ranking,) = page.rankings
    cells = {row.model: row.cells[ranking.column.key] for row in page.tables[0].rows}
    notes = [finding(ranking, made.models, cells)]
    for model, reason in ranking.unranked.items():
        notes.append(f"not ranked: {made.models[model].name} ({reason})")
    columns = (
        "rank",
        "95 % interval",
        "model",
        f"{label} ({column_note(ranking.column)})",
        "95 % interval",
        "group",
    )
    rows = _rank_rows(ranking, made, cells)
    return Ranks(ranking, notes[0], TextTable(columns, rows, f"{task}, {metric}", notes))


def _reasons_against(made: Board) -> list[str]:
    """Why runs are not on a board, or not comparable."""
    reasons = [refused.reason for refused in made.refused]
    for page in made.benchmarks:
        for row in page.tables[0].apart:
            reasons += row.reasons
    return reasons


def _headline_label(task: str, metric: str) -> str:
    """What the board of the task's benchmark calls the score; its metric if it does not show it."""
    layout = all_layouts().get(load_spec(task).metadata.benchmark)
    if layout is not None:
        for column in layout.headline:
            if (column.task, column.metric) == (task, metric):
                return column.label
    return metric


def _rank_rows(
    ranking: Ranking, made: Board, cells: Mapping[str, Cell]
) -> list[tuple[str, str, str, str, str, str]]:
    """A row for each ranked model, best first."""
    unit = ranking.column.unit
    rows = []
    for ranked in ranking.ranked:
        cell = cells[ranked.model]
        rank_interval = "" if ranked.best is None else f"{ranked.best}–{ranked.worst}"
        value = "" if cell.value is None else number(cell.value, unit)
        name = made.models[ranked.model].name
        score_interval = interval(cell.low, cell.high, unit)
        letters = ", ".join(ranked.letters)
        rows.append((f"{ranked.rank}", rank_interval, name, value, score_interval, letters))
    return rows
