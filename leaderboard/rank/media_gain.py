"""What the media add: each model's score minus that of its blind run, on the same items.

Chen et al. 2024 (MMStar) call the difference multi-modal gain. Here it is paired, with a cluster-jackknife interval.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

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
Twins = Mapping[str, tuple[ScoredRun, ScoredRun]]
"""By model, its run and its blind run."""


def media_gain(
    benchmark: Benchmark, headline: Sequence[BoardColumn], others: Iterable[BoardColumn], groups: ComparabilityGroups
) -> tuple[list[BoardTable], list[BoardPlot], TextOnly | None]:
    """The table of a benchmark's gains, with a row for each model that has a blind run, and its bars: of the headline
    columns, and of the first one's metric in ``others``: in other tasks, and by the first breakdown among them.

    Without such a model there are none. Last are the items of the first headline column that every blind run answers;
    None without a score per answer.
    """
    known = {one.key: one for one in headline if not one.signed and _twins(one, groups)}
    first = next(iter(known.values()), None)
    if first is None:
        return [], [], None
    parts: dict[str, BoardColumn] = {}
    for one in others:
        if one.metric == first.metric and one.key not in known:
            parts.setdefault(one.key, one)  # a later table may call it "all classes"
    grouped = [one.breakdown for one in parts.values() if one.task == first.task and one.breakdown is not None]
    parts = {
        key: one
        for key, one in parts.items()
        if one.breakdown is None or (one.task == first.task and one.breakdown == grouped[0])
    }
    rows: dict[str, dict[str, Cell]] = {}
    runs: dict[str, set[str]] = {}
    columns: dict[str, BoardColumn] = {}
    for column in (*known.values(), *parts.values()):
        key = f"{column.key}.gain"
        for model, (seeing, blind) in _twins(column, groups).items():
            cell = _cell(benchmark, seeing, blind, column)
            if cell is not None:
                rows.setdefault(model, {})[key] = cell
                runs.setdefault(model, set()).update((seeing.public.key, blind.public.key))
                # a model that does not use the media gains 0
                update = {"key": key, "metric": f"{column.metric}.gain", "chance": None}
                columns[key] = column.model_copy(update=update)
    if not rows:
        return [], [], _text_only(first, _twins(first, groups))
    table = BoardTable(
        name=NAME,
        title=TITLE,
        note=NOTE,
        columns=tuple(columns.values()),
        rows=tuple(
            BoardRow(model=model, cells=cells, runs=tuple(sorted(runs[model]))) for model, cells in sorted(rows.items())
        ),
    )
    headings = tuple(key for key in columns if key.removesuffix(".gain") in known)
    rest = tuple(key for key in columns if key not in headings)
    plots = [
        BoardPlot(name=name, title=title, kind="bars", table=NAME, columns=keys)
        for name, title, keys in ((NAME, TITLE, headings), (f"{NAME}-parts", f"{TITLE}, in parts", rest))
        if keys
    ]
    return [table], plots, _text_only(first, _twins(first, groups))


def _twins(column: BoardColumn, groups: ComparabilityGroups) -> Twins:
    blind = groups.blind_twins(column.task, column.metric)
    ranked = groups.of(column.task, column.metric).ranked
    return {model: (ranked[model], one) for model, one in blind.items()}


def _text_only(column: BoardColumn, twins: Twins) -> TextOnly | None:
    entries = {model: blind.entries[column.task] for model, (_, blind) in sorted(twins.items())}
    items = next(iter(entries.values())).items
    entries = {model: entry for model, entry in entries.items() if entry.items == items}
    tables = [entry.statistics[column.metric] for entry in entries.values()]
    if tables[0].shape[1] != 2:  # not a mean over answers
        return None
    full = np.all([(table[:, 0] == table[:, 1]) & ~without_value(table) for table in tables], axis=0)
    counted = np.any([~without_value(table) for table in tables], axis=0)
    return TextOnly(
        task=column.task,
        metric=column.metric,
        models=tuple(entries),
        items=int(counted.sum()),
        expected=None if column.chance is None else column.chance ** len(entries),
        answered=tuple(items[row] for row in np.flatnonzero(full).tolist()),
    )


def _cell(benchmark: Benchmark, seeing: ScoredRun, blind: ScoredRun, column: BoardColumn) -> Cell | None:
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
    part = column.group if column.breakdown == benchmark.parts else None  # items are judged by parts
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
