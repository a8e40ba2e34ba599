"""What the media add: each model's score minus that of its blind run, on the same items.

Chen et al. 2024 (MMStar) call the difference multi-modal gain. Here it is paired, with a cluster-jackknife interval.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np

from medtasks.catalog.benchmark import Benchmark
from medtasks.runs.comparisons import compare_statistics
from medtasks.runs.signature import format_signature, parse_signature
from medtasks.runs.table import without_value

from ..board.board import BoardColumn, BoardPlot, BoardRow, BoardTable, Cell, TextOnly
from ..board.rows import cell_of
from ..verify.scored_run import ScoredRun
from .comparability import ComparabilityGroups

NAME = "media-gain"
TITLE = "What the media add"
NOTE = (
    "Score of the run minus score of the same model's blind run (prompts without media), on the same items. 0: the "
    "media change nothing. Lines are 95 % intervals of the paired difference."
)


class MediaGain:
    """The gains of one benchmark.

    Args:
        benchmark: the benchmark.
        headline: its headline columns.
        columns: those of its other tables.
        groups: of all runs.
    """

    def __init__(
        self,
        benchmark: Benchmark,
        headline: Sequence[BoardColumn],
        columns: Iterable[BoardColumn],
        groups: ComparabilityGroups,
    ) -> None:
        self._benchmark = benchmark
        self._groups = groups
        self._headline = [one for one in headline if not one.signed and self._twins(one)]
        self._columns = [*self._headline, *self._further(columns)]

    def _twins(self, column: BoardColumn) -> dict[str, tuple[ScoredRun, ScoredRun]]:
        """By model, its run and its blind run."""
        blind = self._groups.blind_twins(column.task, column.metric)
        ranked = self._groups.of(column.task, column.metric).ranked
        return {model: (ranked[model], one) for model, one in blind.items()}

    def _further(self, columns: Iterable[BoardColumn]) -> list[BoardColumn]:
        """The first headline score's metric in other tasks, and by the first breakdown that the layout shows."""
        if not self._headline:
            return []
        first = self._headline[0]
        taken = {one.key for one in self._headline}
        others: dict[str, BoardColumn] = {}
        for one in columns:
            if one.metric == first.metric and one.key not in taken:
                others.setdefault(one.key, one)  # a later table may call it "all classes"
        grouped = [one.breakdown for one in others.values() if one.task == first.task and one.breakdown is not None]
        return [
            one
            for one in others.values()
            if (one.breakdown is None or (one.task == first.task and one.breakdown == grouped[0])) and self._twins(one)
        ]

    @cached_property
    def table(self) -> BoardTable | None:
        """A row for each model with a blind run; None without any."""
        rows: dict[str, dict[str, Cell]] = {}
        runs: dict[str, set[str]] = {}
        for column in self._columns:
            for model, (seeing, blind) in self._twins(column).items():
                cell = self._cell(seeing, blind, column)
                if cell is not None:
                    rows.setdefault(model, {})[f"{column.key}.gain"] = cell
                    runs.setdefault(model, set()).update((seeing.public.key, blind.public.key))
        if not rows:
            return None
        filled = {key for cells in rows.values() for key in cells}
        # a model that does not use the media gains 0
        columns = [
            one.model_copy(update={"key": f"{one.key}.gain", "metric": f"{one.metric}.gain", "chance": None})
            for one in self._columns
            if f"{one.key}.gain" in filled
        ]
        return BoardTable(
            name=NAME,
            title=TITLE,
            note=NOTE,
            columns=tuple(columns),
            rows=tuple(
                BoardRow(model=model, cells=cells, runs=tuple(sorted(runs[model])))
                for model, cells in sorted(rows.items())
            ),
        )

    @property
    def plots(self) -> list[BoardPlot]:
        """Bars of the headline gains, and of those by task or group."""
        if self.table is None:
            return []
        headline = {f"{one.key}.gain" for one in self._headline}
        keys = [column.key for column in self.table.columns]
        named = {
            NAME: (TITLE, [key for key in keys if key in headline]),
            f"{NAME}-parts": (f"{TITLE}, in parts", [key for key in keys if key not in headline]),
        }
        return [
            BoardPlot(name=name, title=title, kind="bars", table=NAME, columns=tuple(chosen))
            for name, (title, chosen) in named.items()
            if chosen
        ]

    @property
    def text_only(self) -> TextOnly | None:
        """The items of the first headline score that every blind run answers; None without a score per answer."""
        for column in self._headline[:1]:
            entries = {model: blind.entries[column.task] for model, (_, blind) in sorted(self._twins(column).items())}
            first = next(iter(entries.values()))
            entries = {model: entry for model, entry in entries.items() if entry.items == first.items}
            tables = [entry.statistics[column.metric] for entry in entries.values()]
            if tables[0].shape[1] != 2:  # not a mean over answers
                return None
            full = np.all([(table[:, 0] == table[:, 1]) & ~without_value(table) for table in tables], axis=0)
            counted = np.any([~without_value(table) for table in tables], axis=0)
            items = first.items
            return TextOnly(
                task=column.task,
                metric=column.metric,
                models=tuple(entries),
                items=int(counted.sum()),
                expected=None if column.chance is None else column.chance ** len(entries),
                answered=tuple(items[row] for row in np.flatnonzero(full).tolist()),
            )
        return None

    def _cell(self, seeing: ScoredRun, blind: ScoredRun, column: BoardColumn) -> Cell | None:
        first, second = cell_of(seeing, column), cell_of(blind, column)
        if first is None or second is None:
            return None
        cell = Cell(
            value=None,
            items=first.items,
            incomplete=first.incomplete or second.incomplete,
            signature=format_signature({**parse_signature(first.signature), "minus": "blind"}),
        )
        for which, side in (("", first), ("blind run: ", second)):
            if side.value is None:
                return cell.model_copy(update={"reason": f"{which}{side.reason or 'no value'}"})
        entries = [run.entries[column.task] for run in (seeing, blind)]
        part = column.group if column.breakdown == self._benchmark.parts else None  # items are judged by parts
        one, other = (entry.part(column.metric, part or "") for entry in entries)
        rows = np.arange(len(entries[0].items))
        if column.breakdown is not None:
            rows = np.flatnonzero([column.group in keys for keys in entries[0].groups[column.breakdown]])
        clusters = [entries[0].clusters[row] for row in rows.tolist()]
        found = compare_statistics(column.metric, one[rows], other[rows], clusters)
        if found is None:
            return cell.model_copy(update={"reason": "no item has a value from both runs"})
        update = {"value": found.difference, "low": found.low, "high": found.high, "items": found.items}
        return cell.model_copy(update=update)
