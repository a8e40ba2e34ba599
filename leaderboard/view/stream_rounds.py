"""The rounds of a streaming item, as the page of one of them shows them on a time axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from medtasks.benchmarks.variants import joined_items
from medtasks.catalog.spec import load_spec
from medtasks.metrics.timelines import Timeline, timelines
from medtasks.runs.samples import Sample

from ..figures.axes import Axis, time_axis
from .answers import samples_where
from .selection import Selection


@dataclass(frozen=True)
class ViewedStream:
    """The timelines of an item by the labels of runs, the own run first, on one axis.

    ``ids`` are those of the own rounds; ``here`` is the number of the page's round, from 0.
    """

    axis: Axis
    lines: Sequence[tuple[str, Timeline]]
    ids: Sequence[str]
    here: int


def stream_of(selection: Selection, sample: Sample) -> ViewedStream | None:
    """The rounds of the sample's item; None if it is not a stream, or if the own run lacks a
    round.
    """
    benchmark = load_spec(sample.task).benchmark
    item = str(sample.document.get("item_id") or "")
    if benchmark.stream.timeline is None or not item:
        return None
    lines: list[tuple[str, Timeline]] = []
    ids: list[str] = []
    for run, rounds in samples_where(selection, sample.task, "item", item).items():
        views = [scored.sample.view() for scored in rounds]
        items = joined_items(benchmark, views).items
        run_lines = timelines(sample.task, items, benchmark.stream.timeline)
        if run is selection.run:
            if not run_lines:
                return None
            ids = [scored.sample.sample_id for scored in rounds]
        if run_lines:
            lines.append((run.label, run_lines[0]))
    axis = time_axis([line for _, line in lines], _window_times(sample.document))
    return ViewedStream(axis, lines, ids, ids.index(sample.sample_id))


def _window_times(document: Mapping[str, Any]) -> list[float]:
    """The ends of the round's window, and the times of its frames, as far as they are stated."""
    times = [document.get("window_start"), document.get("window_end")]
    times += document.get("times") or ()
    return [float(time) for time in times if time is not None]
