"""Tables of a board: each model's comparable scores, then those that are not, with the reasons."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from medtasks.runs.signature import has_unknown_prompts
from medtasks.scoring.verification_outcome import unverified_note

from ..rank.apart import task_coverage_note
from ..rank.candidates import VerificationLevel
from ..rank.comparability import ComparabilityGroup, ComparabilityGroups
from ..schema.score_tables import BoardColumn, BoardRow, BoardTable, Cell
from ..verify.scored_run import ScoredRun
from .cells import FilledCell, cell_of

_VARYING = re.compile(
    r"\b[0-9a-f]{8}…|[\d,]+ of [\d,]+(?= documents)|[\d,]+ samples? instead of [\d,]+"
)
"""Parts of reasons that differ between tasks: hashes and counts."""
_LAST = (float("inf"),)
"""The place of models without a rank."""


def made_table(
    name: str,
    title: str,
    note: str,
    cells: Iterable[FilledCell],
    columns: Iterable[BoardColumn] = (),
    apart: Iterable[BoardRow] = (),
) -> BoardTable:
    """A table with the ``cells``, whose rows, and columns unless given, are in their order.

    ``apart`` are the rows that are not comparable.
    """
    used_columns: dict[str, BoardColumn] = {}
    cells_by_model: dict[str, dict[str, Cell]] = defaultdict(dict)
    runs_by_model: dict[str, set[str]] = defaultdict(set)
    for filled in cells:
        used_columns[filled.column.key] = filled.column
        cells_by_model[filled.model][filled.column.key] = filled.cell
        runs_by_model[filled.model].update(filled.runs)
    rows = []
    for model, row in cells_by_model.items():
        rows.append(BoardRow(model=model, cells=row, runs=tuple(sorted(runs_by_model[model]))))
    return BoardTable(
        name=name,
        title=title,
        note=note,
        columns=tuple(columns) or tuple(used_columns.values()),
        rows=tuple(rows),
        apart=tuple(apart),
    )


def comparable_table(
    groups: ComparabilityGroups,
    order: Mapping[str, tuple[float, ...]],
    name: str,
    title: str,
    columns: Sequence[BoardColumn],
    note: str = "",
) -> BoardTable:
    """The table of the columns, with models in this ``order``.

    A row may combine several runs of a model; a row that is not comparable has one.
    """
    cells: list[FilledCell] = []
    for column in columns:
        group = groups.of(column.task, column.metric)
        for model, run in {**group.waiting, **group.ranked}.items():
            cell = cell_of(run, column)
            if cell is not None:
                cells.append(FilledCell(model, column, cell, (run.public.key,)))
    cells.sort(key=lambda cell: (order.get(cell.model, _LAST), cell.model))
    notes = [note, *_table_notes(columns, groups)]
    text = " ".join(filter(None, notes))
    return made_table(name, title, text, cells, columns, _rows_apart(columns, groups))


@dataclass
class _RowApart:
    """A run that is not comparable in some columns, with its cells there and the reasons."""

    run: ScoredRun
    cells: dict[str, Cell] = field(default_factory=dict)
    reasons: dict[str, None] = field(default_factory=dict)


def _rows_apart(columns: Iterable[BoardColumn], groups: ComparabilityGroups) -> Iterator[BoardRow]:
    """The rows of runs that are not comparable, by model, oldest first."""
    rows: dict[tuple[str, str, str], _RowApart] = {}
    for column in columns:
        for apart in groups.of(column.task, column.metric).apart:
            cell = cell_of(apart.run, column)
            if cell is None:
                continue
            place = (apart.run.model, apart.run.public.created, apart.run.public.key)
            row = rows.setdefault(place, _RowApart(apart.run))
            row.cells[column.key] = cell
            row.reasons.update(dict.fromkeys(apart.reasons))
    for _, row in sorted(rows.items(), key=lambda entry: entry[0]):
        yield BoardRow(
            model=row.run.model,
            cells=row.cells,
            runs=(row.run.public.key,),
            blind=row.run.blind,
            reasons=tuple(_shortened(row.reasons)),
        )


@dataclass
class _NotableTasks:
    """Tasks and groups whose comparable runs need a note."""

    unknown_prompts: set[str] = field(default_factory=set)
    unusual: set[str] = field(default_factory=set)
    unverified: set[str] = field(default_factory=set)
    claimed: set[str] = field(default_factory=set)
    coverage_notes: set[str] = field(default_factory=set)

    def add(self, task: str, group: ComparabilityGroup) -> None:
        """Note what a reader must know of the group of one of the task's metrics."""
        if has_unknown_prompts(group.signature):
            self.unknown_prompts.add(task)
        if not group.usual:
            self.unusual.add(task)
        if group.ranked and group.level == VerificationLevel.SUBMITTED_DOCUMENTS:
            self.unverified.add(task)
        if group.ranked and group.level == VerificationLevel.SUBMITTED_SCORES:
            self.claimed.add(task)
        for run in group.ranked.values():
            note = task_coverage_note(run, task)
            if note is not None:
                self.coverage_notes.add(note)


def _table_notes(columns: Iterable[BoardColumn], groups: ComparabilityGroups) -> Iterator[str]:
    """What a reader must know of the comparable runs in a table."""
    tasks = _NotableTasks()
    for task, metric in dict.fromkeys((column.task, column.metric) for column in columns):
        tasks.add(task, groups.of(task, metric))
    unusual = tasks.unusual - tasks.unknown_prompts
    if unusual:
        yield (
            f"No run of {', '.join(sorted(unusual))} follows today's task files; "
            "these runs agree with each other."
        )
    if tasks.unknown_prompts:
        yield (
            f"The responses of {', '.join(sorted(tasks.unknown_prompts))} were made elsewhere with "
            "unknown prompts. These runs are comparable only if their models were given the same "
            "prompts."
        )
    yield from sorted(f"{note}." for note in tasks.coverage_notes)
    if tasks.unverified:
        yield unverified_note(sorted(tasks.unverified))
    if tasks.claimed:
        yield (
            f"Scores of {', '.join(sorted(tasks.claimed))} are claimed: "
            "they cannot be computed from responses here."
        )


def without_empty(table: BoardTable, printed: Collection[str] = ()) -> BoardTable:
    """The table without columns that have neither cells nor published figures.

    ``printed`` are the keys of columns with published figures.
    """
    filled = set(printed)
    for row in table.every_row:
        filled.update(row.cells)
    columns = tuple(column for column in table.columns if column.key in filled)
    return table.model_copy(update={"columns": columns})


def _shortened(reasons: Iterable[str]) -> Iterator[str]:
    """The reasons; those that differ only in hashes or counts (one per task) are combined."""
    same_text: dict[str, list[str]] = {}
    for reason in reasons:
        same_text.setdefault(_VARYING.sub("", reason), []).append(reason)
    for alike in same_text.values():
        if len(alike) > 1:
            yield f"{alike[0]} (and {len(alike) - 1} more of other tasks)"
        else:
            yield alike[0]
