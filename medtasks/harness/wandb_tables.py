"""Our scores and samples in Weights & Biases, through lmms-eval's own logger (``--wandb_args``).

The logger knows scores without intervals, and its table of samples needs fields that the harness
has removed before (``arguments``, ``doc``), so it ends with an error for every task. Here each task
of ours gets tables of its own, with what the benchmark's terms allow; others keep the logger's.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from medtasks.core.errors import first_line
from medtasks.scoring.logged_tables import (
    LoggedTable,
    sample_table,
    score_table,
    score_values,
    shown_of,
)
from medtasks.scoring.run_record import RunRecord

SCORES = "medtasks_scores"


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
    for name, part in table.parts(f"{task}_eval_results"):
        wandb_run.log({name: _wandb_table(part)})


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
