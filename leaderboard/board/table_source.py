"""What the tables of one benchmark are made from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from medtasks.catalog.board_layout import Column

from ..rank.comparability import ComparabilityGroups
from ..schema.score_tables import BoardColumn, BoardTable
from ..verify.scored_run import ScoredRun
from .columns import board_columns
from .tables import comparable_table


@dataclass(frozen=True)
class TableSource:
    """The runs of a board, their comparability groups, and the order of models in tables.

    ``model_ranks`` are the ranks of each model by the headline scores; models without any are last.
    """

    runs: Sequence[ScoredRun]
    groups: ComparabilityGroups
    model_ranks: Mapping[str, tuple[float, ...]]

    def columns(self, columns: Iterable[Column]) -> tuple[BoardColumn, ...]:
        """The columns of a layout as columns of a board, with the floors of their scores."""
        return board_columns(columns, self.runs, self.groups)

    def table(
        self, name: str, title: str, columns: Sequence[BoardColumn], note: str = ""
    ) -> BoardTable:
        """The table of all scores in ``columns``: comparable ones first, then the others."""
        return comparable_table(self.groups, self.model_ranks, name, title, columns, note)
