"""How long the models that a benchmark ranks took to answer, and the plots of a score against it.

Seconds depend on the machine and on how many requests it answers at once, so there is a table for
each setup, and models are compared within it alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from medtasks.core.text import counted, first_names
from medtasks.runs.signature import changed_signature
from medtasks.scoring.latency import Latency
from medtasks.scoring.stream_latency import StreamLatency

from ..rank.comparability import ComparabilityGroups
from ..rank.latency_setups import LatencySetup
from ..schema.board import BoardModel
from ..schema.plot_data import BoardPlot
from ..schema.score_tables import BoardColumn, BoardRow, BoardTable, Cell
from ..verify.scored_run import ScoredRun
from .cells import FilledCell
from .latency_measures import LATENCY, MEASURES, MEDIAN, LatencyMeasure, measure_column
from .tables import made_table

_ALONE = "latency-alone"
"""The name of the table of models that share their setup with no other."""
_NOTE = (
    "Seconds from sending a request until its whole answer was there, as the run measured them; "
    "nobody can check them afterwards. They depend on the hardware and on how many requests it "
    "answers at once, so only runs with the same setup are compared."
)
_NOTE_BATCHED = "Requests of a batch have the seconds of the whole batch."
_NOTE_STREAMS = (
    "Real-time factor: seconds of computing by the seconds until the next round is due; above 1, a "
    "model falls behind. In time: rounds answered before the next one is due. Scores by stream "
    "time count no computing, as in the paper; with computing, its seconds are added to the time "
    "of each answer. Both are over the streams whose seconds are known, and change no other score."
)
_NOTE_UNKNOWN = (
    "Behind an API or a function, the hardware is not known, and the seconds include the network "
    "and the load of the provider at that time, so no value is marked as the best."
)
_NOTE_ALONE = "No other run shares the setup of these, so they are not compared:"


@dataclass(frozen=True)
class LatencySection:
    """The tables of latencies by setup, and the plots of a score against the median."""

    tables: list[BoardTable] = field(default_factory=list)
    plots: list[BoardPlot] = field(default_factory=list)


@dataclass(frozen=True)
class _MeasuredModel:
    """A ranked model with its score, and the latency of its run."""

    model: str
    run: ScoredRun
    score: Cell
    latency: Latency
    setup: LatencySetup

    @property
    def order(self) -> tuple[float, str]:
        """The place in a table: the lowest median first."""
        assert self.latency.median is not None
        return self.latency.median.value, self.model


def latency_section(
    headline: Sequence[BoardColumn],
    rows: Sequence[BoardRow],
    groups: ComparabilityGroups,
    models: Mapping[str, BoardModel],
    plots: Sequence[BoardPlot],
) -> LatencySection:
    """The latency of the runs that are ranked by the first headline score that is not signed.

    Args:
        headline: the headline columns.
        rows: the rows of the headline table.
        groups: the comparable runs.
        models: the models by slug.
        plots: the other plots of the board, whose names are taken.
    """
    for column in headline:
        if not column.signed:
            scores = {row.model: row.cells.get(column.key) for row in rows}
            return _section(column, scores, groups, models, plots)
    return LatencySection()


def _section(
    column: BoardColumn,
    scores: Mapping[str, Cell | None],
    groups: ComparabilityGroups,
    models: Mapping[str, BoardModel],
    plots: Sequence[BoardPlot],
) -> LatencySection:
    """The latency of the runs that are ranked by a column."""
    by_setup: dict[LatencySetup, list[_MeasuredModel]] = {}
    lacking: dict[str, list[str]] = {}
    for model, run in groups.of(column.task, column.metric).ranked.items():
        score = scores.get(model)
        latency = run.latency.entries.get(column.task)
        if score is None:
            continue
        if latency is None or latency.median is None:
            reason = run.latency.reason or f"no seconds of {column.task}"
            lacking.setdefault(reason, []).append(models[model].name)
            continue
        setup = LatencySetup.of(latency, run.latency.processes)
        measured = _MeasuredModel(model, run, score, latency, setup)
        by_setup.setdefault(setup, []).append(measured)

    section = LatencySection()
    taken = {plot.name for plot in plots}
    for number, (setup, measured_models) in enumerate(_shared(by_setup), start=1):
        name = LATENCY if number == 1 else f"{LATENCY}-{number}"
        notes = _notes([_NOTE], measured_models, models)
        table = _table(column, name, f"Latency: {setup}", measured_models, notes)
        section.tables.append(table.model_copy(update={"compared": setup.is_known}))
        section.plots.append(_plot(column, table, taken))
    alone = _alone(by_setup)
    if alone:
        names = [f"{models[entry.model].name} ({entry.setup})" for entry in alone]
        setup_names = f"{_NOTE_ALONE} {'; '.join(names)}."
        notes = _notes([_NOTE, setup_names], alone, models)
        table = _table(column, _ALONE, "Latency: setups of a single run", alone, notes)
        section.tables.append(table.model_copy(update={"compared": False}))
    return _with_lacking(section, lacking)


def _shared(
    by_setup: Mapping[LatencySetup, list[_MeasuredModel]],
) -> list[tuple[LatencySetup, list[_MeasuredModel]]]:
    """The setups of several models, those with most models first."""
    shared = [(setup, models) for setup, models in by_setup.items() if len(models) > 1]
    return sorted(shared, key=lambda entry: (-len(entry[1]), entry[0]))


def _alone(by_setup: Mapping[LatencySetup, list[_MeasuredModel]]) -> list[_MeasuredModel]:
    """The models whose setup no other has."""
    alone: list[_MeasuredModel] = []
    for models in by_setup.values():
        if len(models) == 1:
            alone += models
    return alone


def _notes(
    first: Sequence[str],
    measured_models: Sequence[_MeasuredModel],
    models: Mapping[str, BoardModel],
) -> list[str]:
    """The ``first`` sentences, then what a reader must know of these models' seconds."""
    notes = [*first]
    if any(entry.setup.batched != "none" for entry in measured_models):
        notes.append(_NOTE_BATCHED)
    if not all(entry.setup.is_known for entry in measured_models):
        notes.append(_NOTE_UNKNOWN)
    if any(entry.latency.stream is not None for entry in measured_models):
        notes.append(_NOTE_STREAMS)
    return [*notes, *_missing_notes(measured_models, models)]


def _missing_notes(
    measured_models: Sequence[_MeasuredModel], models: Mapping[str, BoardModel]
) -> Iterator[str]:
    """Which models have requests without seconds, and why."""
    for entry in measured_models:
        latency = entry.latency
        missing = latency.requests - latency.measured
        if missing:
            reasons = [f"{reason} {count:,}" for reason, count in latency.without.items()]
            requests = counted(latency.requests, "request")
            name = models[entry.model].name
            yield f"{name}: {missing:,} of {requests} without seconds ({', '.join(reasons)})."
        yield from _stream_notes(models[entry.model].name, latency.stream)


def _stream_notes(name: str, stream: StreamLatency | None) -> Iterator[str]:
    """Of which streams there are no figures, and how many rounds a paced run missed."""
    if stream is None:
        return
    missing = stream.streams - stream.measured
    if missing:
        reasons = [f"{reason} {count:,}" for reason, count in stream.without.items()]
        streams = counted(stream.streams, "stream")
        yield f"{name}: {missing:,} of {streams} without the seconds ({', '.join(reasons)})."
    if stream.missed:
        rounds = counted(stream.rounds, "round")
        yield f"{name}: {stream.missed:,} of {rounds} missed."


def _with_lacking(section: LatencySection, lacking: Mapping[str, list[str]]) -> LatencySection:
    """The section, whose first table names the models without seconds."""
    if not section.tables or not lacking:
        return section
    sentences = []
    for reason, names in sorted(lacking.items()):
        sentences.append(f"{first_names(sorted(names), 8)}: {reason}.")
    first, *further = section.tables
    noted = first.model_copy(update={"note": " ".join([first.note, *sentences])})
    return LatencySection([noted, *further], section.plots)


def _table(
    column: BoardColumn,
    name: str,
    title: str,
    measured_models: Sequence[_MeasuredModel],
    notes: Sequence[str],
) -> BoardTable:
    """The scores and latencies of models, the lowest median first."""
    cells: list[FilledCell] = []
    ordered = sorted(measured_models, key=lambda entry: entry.order)
    for entry in ordered:
        runs = (entry.run.public.key,)
        cells.append(FilledCell(entry.model, column, entry.score, runs))
    columns = [column]
    for measure in MEASURES:
        if any(measure.of(entry.latency) is not None for entry in ordered):
            measured_column = measure_column(column, measure, name)
            columns.append(measured_column)
            cells += [_measure_cell(measured_column, measure, entry) for entry in ordered]
    return made_table(name, title, " ".join(notes), cells, columns)


def _measure_cell(
    column: BoardColumn, measure: LatencyMeasure, entry: _MeasuredModel
) -> FilledCell:
    """A model's figure with its interval, or why it is not known."""
    figure = measure.of(entry.latency)
    low, high = (None, None) if figure is None else figure.interval
    cell = Cell(
        value=None if figure is None else figure.value,
        low=low,
        high=high,
        items=measure.items(entry.latency),
        reason=measure.why_unknown if figure is None else None,
        signature=changed_signature(
            entry.score.signature, metric=column.metric, setup=str(entry.setup)
        ),
    )
    return FilledCell(entry.model, column, cell, (entry.run.public.key,))


def _plot(column: BoardColumn, table: BoardTable, taken: set[str]) -> BoardPlot:
    """The plot of the score against the median in a table; its name is added to those taken."""
    names = (table.name, f"score-against-{table.name}", f"{table.name}-of-answers")
    name = next(name for name in names if name not in taken)
    taken.add(name)
    median = measure_column(column, MEDIAN, table.name)
    return BoardPlot(
        name=name,
        title=f"{column.label} against median latency",
        kind="latency",
        table=table.name,
        columns=(column.key, median.key),
    )
