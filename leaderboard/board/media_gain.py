"""What the media add: each model's score minus that of its blind run.

Chen et al. 2024 (MMStar) call that difference multi-modal gain. Here it is paired, with a
cluster-jackknife interval.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from medtasks.catalog.benchmark import Benchmark
from medtasks.runs.signature import changed_signature
from medtasks.scoring.columns import Rows, without_value
from medtasks.scoring.comparisons import compare_statistics
from medtasks.stats.paired import PairedDifference

from ..rank.comparability import BlindTwin, ComparabilityGroups
from ..schema.model_findings import TextOnly
from ..schema.plot_data import BoardPlot
from ..schema.score_tables import BoardColumn, BoardTable, Cell
from ..verify.entries import Entry
from .cells import FilledCell, cell_of
from .floors import NO_FLOORS
from .tables import made_table

GAINS = "media-gain"
GAINS_TITLE = "What the media add"
_GAINS_NOTE = (
    "Score of the run minus score of the same model's blind run (prompts without media), on the "
    "same items. 0: the media change nothing. Lines are 95 % intervals of the paired difference."
)


@dataclass
class MediaGain:
    """What a benchmark's board shows of the gains from media.

    ``text_only`` are the items that every blind run answers, by the first headline score.
    """

    tables: list[BoardTable] = field(default_factory=list)
    plots: list[BoardPlot] = field(default_factory=list)
    text_only: TextOnly | None = None


def media_gain(
    benchmark: Benchmark,
    headline: Sequence[BoardColumn],
    columns: Iterable[BoardColumn],
    groups: ComparabilityGroups,
) -> MediaGain:
    """The table of a benchmark's gains, its bars, and the items that every blind run answers.

    The table has a row for each model that has a blind run. Its columns are the headline scores,
    and of ``columns`` those with the first one's metric: in other tasks, and by the first breakdown
    among them.
    """
    headline_columns = _columns_with_blind_runs(headline, groups)
    if not headline_columns:
        return MediaGain()
    first = headline_columns[0]
    headline_keys = {column.key for column in headline_columns}
    further_columns = [column for column in columns if column.key not in headline_keys]
    part_columns = _part_columns(first, further_columns)

    headline_cells = _gain_cells(benchmark, headline_columns, groups)
    part_cells = _gain_cells(benchmark, part_columns, groups)
    headline_gains = _columns_of(headline_cells)
    part_gains = _columns_of(part_cells)
    cells = sorted([*headline_cells, *part_cells], key=lambda cell: cell.model)
    table = made_table(GAINS, GAINS_TITLE, _GAINS_NOTE, cells, (*headline_gains, *part_gains))
    plots = []
    if headline_gains:
        plots.append(_gain_bars(GAINS, GAINS_TITLE, headline_gains))
    if part_gains:
        plots.append(_gain_bars(f"{GAINS}-parts", f"{GAINS_TITLE}, in parts", part_gains))
    return MediaGain([table], plots, _text_only(first, groups))


def _columns_with_blind_runs(
    columns: Sequence[BoardColumn], groups: ComparabilityGroups
) -> list[BoardColumn]:
    """The columns in which a ranked model has a blind run, too; not signed scores."""
    compared = []
    for column in columns:
        if not column.signed and groups.blind_twins(column.task, column.metric):
            compared.append(column)
    return compared


def _part_columns(first: BoardColumn, columns: Iterable[BoardColumn]) -> list[BoardColumn]:
    """The columns of the first one's metric: in other tasks, and by its first breakdown."""
    same_metric = [column for column in columns if column.metric == first.metric]
    breakdown = _first_breakdown(first.task, same_metric)
    parts: dict[str, BoardColumn] = {}
    for column in same_metric:
        is_part = column.task == first.task and column.breakdown == breakdown
        if column.breakdown is None or is_part:
            # a later table may call it "all classes"
            parts.setdefault(column.key, column)
    return list(parts.values())


def _first_breakdown(task: str, columns: Iterable[BoardColumn]) -> str | None:
    """The first breakdown of a task's score among the columns, if there is one."""
    for column in columns:
        if column.task == task and column.breakdown is not None:
            return column.breakdown
    return None


def _gain_cells(
    benchmark: Benchmark, columns: Sequence[BoardColumn], groups: ComparabilityGroups
) -> list[FilledCell]:
    """Each model's gain in each of the columns."""
    cells = []
    for column in columns:
        gain_column = _gain_column(column)
        twins = groups.blind_twins(column.task, column.metric)
        for model, twin in twins.items():
            cell = _gain(benchmark, twin, column)
            if cell is not None:
                runs = (twin.seeing.public.key, twin.blind.public.key)
                cells.append(FilledCell(model, gain_column, cell, runs))
    return cells


def _gain_column(column: BoardColumn) -> BoardColumn:
    """The column of gains in a column's score; it has no floors, because 0 is no gain."""
    update = {"key": f"{column.key}.gain", "metric": f"{column.metric}.gain", **NO_FLOORS}
    return column.model_copy(update=update)


def _columns_of(cells: Sequence[FilledCell]) -> list[BoardColumn]:
    """The columns of the cells, each once, in the order of their first cells."""
    columns = {cell.column.key: cell.column for cell in cells}
    return list(columns.values())


def _gain_bars(name: str, title: str, columns: Sequence[BoardColumn]) -> BoardPlot:
    keys = tuple(column.key for column in columns)
    return BoardPlot(name=name, title=title, kind="bars", table=GAINS, columns=keys)


def _gain(benchmark: Benchmark, twin: BlindTwin, column: BoardColumn) -> Cell | None:
    """A model's gain in a column; None if one of its runs has no score there."""
    with_media = cell_of(twin.seeing, column)
    without_media = cell_of(twin.blind, column)
    if with_media is None or without_media is None:
        return None
    incomplete = with_media.incomplete or without_media.incomplete
    signature = changed_signature(with_media.signature, minus="blind")
    reason = _missing_value(with_media, without_media)
    difference = None
    if not reason:
        difference = _paired_difference(benchmark, twin, column)
    if difference is None:
        return Cell(
            value=None,
            items=with_media.items,
            reason=reason or "no item has a value from both runs",
            incomplete=incomplete,
            signature=signature,
        )
    return Cell(
        value=difference.difference,
        low=difference.low,
        high=difference.high,
        items=difference.items,
        incomplete=incomplete,
        signature=signature,
    )


def _missing_value(with_media: Cell, without_media: Cell) -> str:
    """Why one of the two scores has no value; empty if both have one."""
    if with_media.value is None:
        return with_media.reason or "no value"
    if without_media.value is None:
        return f"blind run: {without_media.reason or 'no value'}"
    return ""


def _paired_difference(
    benchmark: Benchmark, twin: BlindTwin, column: BoardColumn
) -> PairedDifference | None:
    """The difference of two runs on the items of a column; None if none has a value from both."""
    seeing = twin.seeing.entries[column.task]
    blind = twin.blind.entries[column.task]
    part = ""
    if column.breakdown == benchmark.scoring.parts and column.group is not None:
        part = column.group  # items are judged by parts
    rows = _rows_in_group(seeing, column)
    return compare_statistics(
        column.metric,
        seeing.statistics(column.metric, part)[rows],
        blind.statistics(column.metric, part)[rows],
        seeing.table.codes[rows],
    )


def _rows_in_group(entry: Entry, column: BoardColumn) -> Rows:
    """The rows of the items in the column's group; all rows without a breakdown."""
    count = len(entry.items)
    if column.breakdown is None:
        return np.arange(count)
    groups = entry.table.groups[column.breakdown][:count]
    return np.flatnonzero([column.group in keys for keys in groups])


def _text_only(column: BoardColumn, groups: ComparabilityGroups) -> TextOnly | None:
    """The items that every run without media gets right, by the column's score.

    None if the score is not a mean of points over possible points. At least one model must have a
    run without media. Only runs on the same items as that of the first model by name are used.
    """
    twins = groups.blind_twins(column.task, column.metric)
    models = sorted(twins)
    items = twins[models[0]].blind.entries[column.task].items
    statistics = {}
    for model in models:
        entry = twins[model].blind.entries[column.task]
        if entry.items == items:
            statistics[model] = entry.statistics(column.metric)

    by_model = np.array(list(statistics.values()))  # models × items × statistics of the metric
    if by_model.shape[2] != 2:
        return None
    points, possible_points = by_model[..., 0], by_model[..., 1]
    has_value = np.array([~without_value(rows) for rows in by_model])
    is_right = has_value & (points == possible_points)
    answered = np.flatnonzero(is_right.all(axis=0))
    return TextOnly(
        task=column.task,
        metric=column.metric,
        models=tuple(statistics),
        items=int(has_value.any(axis=0).sum()),
        expected=None if column.chance is None else column.chance ** len(statistics),
        answered=tuple(items[row] for row in answered.tolist()),
    )
