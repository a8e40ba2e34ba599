"""What a methods section is made of: the headline scores of a benchmark, and their runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from medtasks.core.errors import UsageError
from medtasks.runs.signature import parse_signature

from ..schema.board import BenchmarkBoard, Board, BoardColumn, BoardRun, Cell, Ranking


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
        table = benchmark.tables[0]
        rankings = {ranking.column.key: ranking for ranking in benchmark.rankings}
        scores = []
        for column in table.columns:
            cells = [row.cells[column.key] for row in table.rows if column.key in row.cells]
            valued = [cell for cell in cells if cell.value is not None]
            for signature in dict.fromkeys(cell.signature for cell in valued):
                alike = tuple(cell for cell in valued if cell.signature == signature)
                scores.append(ReportedScore(column, signature, alike, rankings.get(column.key)))
        keys = dict.fromkeys(key for row in table.rows for key in row.runs)
        runs = tuple(board.runs[key] for key in keys if key in board.runs)
        return cls(board, benchmark, tuple(scores), runs)

    @property
    def scopes(self) -> dict[str, ReportedScore]:
        """The first score of each task or group."""
        found: dict[str, ReportedScore] = {}
        for score in self.scores:
            found.setdefault(score.scope, score)
        return found

    def values(self, part: str) -> list[str]:
        """The values of one part of the signatures, each once."""
        return [*dict.fromkeys(score.parts[part] for score in self.scores if part in score.parts)]

    def by_value(self, facts: Callable[[BoardRun], Mapping[str, str]]) -> dict[str, list[str]]:
        """The tasks by what the runs state of them; only tasks of the headline scores count."""
        members = dict.fromkeys(task for tasks in self.benchmark.members.values() for task in tasks)
        found: dict[str, dict[str, None]] = {}
        for run in self.runs:
            stated = facts(run)
            for task in members or stated:
                if task in stated:
                    found.setdefault(stated[task], {})[task] = None
        return {value: [*tasks] for value, tasks in found.items()}
