"""What a methods section is made of: the headline scores of a benchmark, and their runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from medtasks.core.errors import UsageError
from medtasks.runs.signature import parse_signature

from ..schema.board import BenchmarkBoard, Board, BoardRun
from ..schema.model_rankings import Ranking
from ..schema.score_tables import BoardColumn, Cell


@dataclass(frozen=True)
class ReportedScore:
    """One column of the headline table under one signature, with the cells that have it."""

    column: BoardColumn
    signature: str
    cells: tuple[Cell, ...]
    ranking: Ranking | None

    @cached_property
    def parts(self) -> dict[str, str]:
        """The parts of the signature; all of it as the metric if it cannot be read."""
        try:
            return parse_signature(self.signature)
        except UsageError:
            return {"metric": self.signature}

    @property
    def scope(self) -> str:
        """The task or group whose items are scored."""
        return self.parts.get("group") or self.parts.get("task") or self.column.task


@dataclass(frozen=True)
class MethodsSource:
    """The scores of the headline table, and the runs that they come from."""

    board: Board
    benchmark: BenchmarkBoard
    scores: tuple[ReportedScore, ...]
    runs: tuple[BoardRun, ...]

    @classmethod
    def of(cls, board: Board, benchmark: BenchmarkBoard) -> MethodsSource:
        """The scores and runs of a benchmark's comparable rows."""
        scores: list[ReportedScore] = []
        run_keys: dict[str, None] = {}
        for column in benchmark.tables[0].columns:
            scores += _reported_scores(benchmark, column)
        for row in benchmark.tables[0].rows:
            run_keys |= dict.fromkeys(row.runs)
        runs = [board.runs[key] for key in run_keys if key in board.runs]
        return cls(board, benchmark, tuple(scores), tuple(runs))

    @property
    def scopes(self) -> dict[str, ReportedScore]:
        """The first score of each task or group."""
        scopes: dict[str, ReportedScore] = {}
        for score in self.scores:
            scopes.setdefault(score.scope, score)
        return scopes

    def values(self, part: str) -> list[str]:
        """The values of one part of the signatures, each once."""
        values: dict[str, None] = {}
        for score in self.scores:
            if part in score.parts:
                values[score.parts[part]] = None
        return list(values)

    def by_value(self, facts: Callable[[BoardRun], Mapping[str, str]]) -> dict[str, list[str]]:
        """The tasks by what the runs state about them; only tasks of the headline scores count."""
        members: dict[str, None] = {}
        for tasks in self.benchmark.members.values():
            members |= dict.fromkeys(tasks)
        tasks_by_value: dict[str, dict[str, None]] = {}
        for run in self.runs:
            stated = facts(run)
            for task in members or stated:
                if task in stated:
                    tasks_by_value.setdefault(stated[task], {})[task] = None
        return {value: list(tasks) for value, tasks in tasks_by_value.items()}


def _reported_scores(benchmark: BenchmarkBoard, column: BoardColumn) -> Iterator[ReportedScore]:
    """The scores of a column of the headline table, by signature."""
    cells: dict[str, list[Cell]] = {}
    for row in benchmark.tables[0].rows:
        cell = row.cells.get(column.key)
        if cell is not None and cell.value is not None:
            cells.setdefault(cell.signature, []).append(cell)
    rankings = {ranking.column.key: ranking for ranking in benchmark.rankings}
    for signature, alike in cells.items():
        yield ReportedScore(column, signature, tuple(alike), rankings.get(column.key))
