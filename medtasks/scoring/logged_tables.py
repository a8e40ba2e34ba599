"""Scores and samples of a run as plain tables for experiment trackers, with what may be shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import Any, Literal

from medtasks.benchmarks.documents import all_pictures
from medtasks.benchmarks.layouts import all_layouts
from medtasks.runs.samples import Sample
from medtasks.scoring.run_record import RunRecord
from medtasks.scoring.scores import MetricScore

Shown = Literal["nothing", "text", "media"]
"""What may be shown of a sample (`medtasks.catalog.board_layout.BoardLayout.shows`)."""

_SCORE_COLUMNS = (
    "task",
    "metric",
    "value",
    "low",
    "high",
    "items",
    "answered",
    "judged",
    "coverage",
    "reason",
)
_PICTURES = 4
"""Pictures of a sample in a table; a stream has hundreds of frames."""
ROWS = 10_000
"""Rows of a table that is logged at once: W&B shows no more."""


@dataclass(frozen=True)
class LoggedTable:
    """A table: the names of its columns, and its rows."""

    names: tuple[str, ...]
    rows: Iterable[Sequence[Any]]

    def parts(self, name: str) -> Iterator[tuple[str, LoggedTable]]:
        """The table in parts of at most `ROWS` rows, at least one, with their names."""
        rows = iter(self.rows)
        for number in count(1):
            part = [*islice(rows, ROWS)]
            if not part and number > 1:
                return
            part_name = name if number == 1 else f"{name}_{number}"
            yield part_name, LoggedTable(self.names, part)


def score_table(run: RunRecord) -> LoggedTable:
    """Every score of the run's tasks and groups, a row each, with 95 % interval and coverage."""
    rows: list[tuple[Any, ...]] = []
    for name, scores in run.scores.items():
        for metric, score in scores.metrics.items():
            rows.append(_score_row(name, metric, score))
    return LoggedTable(_SCORE_COLUMNS, rows)


def _score_row(name: str, metric: str, score: MetricScore) -> tuple[Any, ...]:
    """The cells of a score in the columns of :func:`score_table`."""
    low, high = score.interval or (None, None)
    counts = (score.samples, score.answered, score.judged, _coverage(score))
    return (name, metric, score.value, low, high, *counts, score.reason or "")


def _coverage(score: MetricScore) -> float | None:
    """The share of items whose value is known; None without items."""
    return score.known / score.samples if score.samples else None


def score_values(run: RunRecord) -> dict[str, float]:
    """The ends of each interval, and each coverage, as far as they exist.

    Their keys are ``<task>/<metric>_low``, ``_high`` and ``_coverage``.
    """
    values: dict[str, float] = {}
    for name, scores in run.scores.items():
        for metric, score in scores.metrics.items():
            key = f"{name}/{metric}"
            if score.interval is not None:
                values[f"{key}_low"], values[f"{key}_high"] = score.interval
            coverage = _coverage(score)
            if coverage is not None:
                values[f"{key}_coverage"] = coverage
    return values


def sample_table(samples: Sequence[Sample], shows: Shown) -> LoggedTable:
    """The samples of a task, a row each.

    Args:
        samples: those of one task.
        shows: ``nothing``: ids, extracted options, status and scores; ``text``: also prompt,
            reference and responses; ``media``: also the first pictures, as PIL images.
    """
    metrics = sorted(set().union(*(sample.scores for sample in samples)))
    pictures = 0
    if shows == "media":
        most = max((_picture_count(sample) for sample in samples), default=0)
        pictures = min(most, _PICTURES)
    names = ["sample"]
    if shows != "nothing":
        names += ["prompt", "reference", "responses"]
    names += [f"picture {number}" for number in range(1, pictures + 1)]
    names += ["extracted", "status", *metrics]
    # rows are made when they are written: their pictures are large
    rows = (_sample_row(sample, shows, pictures, metrics) for sample in samples)
    return LoggedTable(tuple(names), rows)


def _picture_count(sample: Sample) -> int:
    """The number of frames or pictures that the sample shows."""
    return len(sample.document.get("frames") or sample.media)


def _sample_row(sample: Sample, shows: Shown, pictures: int, metrics: Sequence[str]) -> list[Any]:
    """The cells of a sample in the columns of :func:`sample_table`."""
    row: list[Any] = [sample.sample_id]
    if shows != "nothing":
        row += [sample.prompt, sample.target, "\n\n".join(sample.responses)]
    if pictures:
        opened = all_pictures(sample.whole_document())[:pictures]
        row += [*opened, *[None] * (pictures - len(opened))]
    is_option = "choices" in sample.document
    row += [sample.filtered if is_option or shows != "nothing" else "", sample.status]
    return row + [sample.scores.get(metric) for metric in metrics]


def shown_of(benchmark: str) -> Shown:
    """The part of a benchmark's samples that may be shown; ``nothing`` without a board layout."""
    layout = all_layouts().get(benchmark)
    return "nothing" if layout is None else layout.shows
