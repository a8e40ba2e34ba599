"""What plots of answers show: letters chosen, and the rounds of streaming items."""

from __future__ import annotations

from collections.abc import Iterator

from medtasks.catalog.board_layout import BoardLayout
from medtasks.metrics.timelines import Timeline

from ..rank.comparability import ComparabilityGroups
from ..schema.plot_data import LetterCounts
from ..verify.entries import Entry


def letter_counts(layout: BoardLayout, groups: ComparabilityGroups) -> Iterator[LetterCounts]:
    """How often each model chose each letter, for the plots of letters."""
    for model, entry in _plotted_entries("letters", layout, groups):
        letters = entry.scores.letters
        if letters is not None:
            yield LetterCounts(
                task=entry.name,
                model=model,
                gold=letters.gold,
                chosen=letters.chosen,
                preference=letters.preference or {},
            )


def timelines(layout: BoardLayout, groups: ComparabilityGroups) -> Iterator[Timeline]:
    """Each model's streaming items, for the plots of timelines."""
    for _, entry in _plotted_entries("timeline", layout, groups):
        yield from entry.timelines


def _plotted_entries(
    kind: str, layout: BoardLayout, groups: ComparabilityGroups
) -> Iterator[tuple[str, Entry]]:
    """The ranked entries, with their models, of the tasks in plots of this kind."""
    metric_by_task: dict[str, str] = {}
    for plot in layout.plots:
        if plot.kind == kind:
            metric_by_task.update({column.task: column.metric for column in plot.columns})
    for task, metric in metric_by_task.items():
        for model, run in groups.of(task, metric).ranked.items():
            yield model, run.entries[task]
