"""Our scores and samples in Weights & Biases, through lmms-eval's own logger (``--wandb_args``).

The logger knows scores without intervals, and its table of samples needs fields that the harness
has removed before (``arguments``, ``doc``), so it ends with an error for every task. Here each task
of ours gets tables of its own, with what the benchmark's terms allow; others keep the logger's.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from medtasks.benchmarks.documents import all_pictures
from medtasks.benchmarks.layouts import all_layouts
from medtasks.core.errors import first_line
from medtasks.runs.samples import Sample
from medtasks.scoring.run_record import RunRecord
from medtasks.scoring.scores import MetricScore

Shown = Literal["nothing", "text", "media"]
"""What may be shown of a sample (`medtasks.catalog.board_layout.BoardLayout.shows`)."""

SCORES = "medtasks_scores"
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
"""LoggedTable of pictures; a stream has hundreds of frames."""
_ROWS = 10_000
"""Rows of a table, of which W&B shows no more."""


@dataclass(frozen=True)
class LoggedTable:
    """A table: the names of its columns, and its rows."""

    names: tuple[str, ...]
    rows: Iterable[Sequence[Any]]


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


def log_to_wandb(run: RunRecord, tracker: Any) -> None:
    """Have the harness's W&B logger log this run's scores and samples with those of the harness.

    Args:
        run: the run, scored.
        tracker: the harness's writer of sample files, which removes fields that its logger needs
            for other tasks.
    """
    from lmms_eval.loggers.wandb_logger import WandbLogger

    WandbLogger.log_eval_result = _with_scores(_original(WandbLogger.log_eval_result), run)
    WandbLogger.log_eval_samples = _with_samples(_original(WandbLogger.log_eval_samples), run)
    if tracker is not None:
        _keep_fields(tracker)


def _with_scores(log_result: Callable[..., Any], run: RunRecord) -> Callable[..., Any]:
    """The logger's method for scores, which logs those of ``run`` as well."""

    @functools.wraps(log_result)
    def log_eval_result(self: Any) -> None:
        log_result(self)
        self.run.log({**score_values(run), SCORES: _wandb_table(score_table(run))})

    return log_eval_result


def _with_samples(log_samples: Callable[..., Any], run: RunRecord) -> Callable[..., Any]:
    """The logger's method for samples, which logs those of ``run`` in tables of ours."""

    @functools.wraps(log_samples)
    def log_eval_samples(self: Any, samples: Mapping[str, Any]) -> None:
        _log_our_samples(self.run, run)
        foreign = {name: entries for name, entries in samples.items() if name not in run.samples}
        if foreign:
            self.task_names = [name for name in self.task_names if name in foreign]
            log_samples(self, foreign)

    return log_eval_samples


def _log_our_samples(wandb_run: Any, run: RunRecord) -> None:
    """Log the samples of each task; a task whose table cannot be made is reported and left out."""
    for task, samples in run.samples.items():
        shows = shown_of(run.manifest.tasks[task].benchmark)
        try:
            _log_samples(wandb_run, task, sample_table(samples, shows))
        except Exception as error:  # the harness's report has a level that is not printed
            problem = f"medtasks: W&B has no samples of {task} ({first_line(error)})."
            print(problem, file=sys.stderr, flush=True)


def _original(method: Callable[..., Any]) -> Callable[..., Any]:
    """The logger's own method, also after an earlier run of the command."""
    own: Callable[..., Any] = getattr(method, "__wrapped__", method)
    return own


def _keep_fields(tracker: Any) -> None:
    """Have the tracker write copies of samples, because it removes fields of those it writes."""
    save = _original(tracker.save_results_samples)

    @functools.wraps(save)
    def save_results_samples(task_name: str, samples: Sequence[Mapping[str, Any]]) -> Any:
        return save(task_name=task_name, samples=[dict(sample) for sample in samples])

    tracker.save_results_samples = save_results_samples


def _log_samples(wandb_run: Any, task: str, table: LoggedTable) -> None:
    """Log a table in parts that W&B shows whole."""
    rows = iter(table.rows)
    for number in range(1, sys.maxsize):
        part = [*islice(rows, _ROWS)]
        if not part and number > 1:
            return
        name = f"{task}_eval_results" if number == 1 else f"{task}_eval_results_{number}"
        wandb_run.log({name: _wandb_table(LoggedTable(table.names, part))})


def _wandb_table(table: LoggedTable) -> Any:
    """The table as W&B's own, its pictures as W&B's images."""
    import wandb

    data: list[list[Any]] = []
    for row in table.rows:
        data.append([_wandb_cell(value) for value in row])
    return wandb.Table(columns=[*table.names], data=data, allow_mixed_types=True)


def _wandb_cell(value: Any) -> Any:
    """A value of a table as W&B takes it."""
    import wandb
    from PIL import Image

    if isinstance(value, Image.Image):
        return wandb.Image(value)
    return value
