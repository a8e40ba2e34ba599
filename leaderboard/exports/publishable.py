"""Which headline scores of runs may be published as results of a model, and why the others may
not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from medtasks.benchmarks.layouts import all_layouts
from medtasks.catalog.board_layout import Column
from medtasks.core.cache import cache_root
from medtasks.core.errors import MedtasksError, UsageError
from medtasks.core.text import counted, first_names
from medtasks.metrics.registry import facts_of
from medtasks.runs.manifest import TaskFacts
from medtasks.scoring.scores import MetricScore

from ..intake.collect import collect
from ..rank.comparability import ComparabilityGroups
from ..schema.numbers import column_key
from ..verify.coverage import is_incomplete
from ..verify.scored_run import RunStore, ScoredRun


@dataclass(frozen=True)
class Headline:
    """A headline score of a run."""

    run: ScoredRun
    benchmark: str
    column: Column
    score: MetricScore

    @property
    def task_id(self) -> str:
        """The name of the score outside: task and metric."""
        return column_key(self.column)

    @property
    def tasks(self) -> dict[str, TaskFacts]:
        """The tasks of a group; a task itself."""
        manifest = self.run.manifest
        names = manifest.groups.get(self.column.task, (self.column.task,))
        return {name: manifest.tasks[name] for name in names}

    @property
    def signature(self) -> str:
        return self.run.entries[self.column.task].signatures[self.column.metric]


def headline_columns(benchmark: str) -> list[Column]:
    """The headline scores of a benchmark over all items; signed ones have no best value and are
    left out.
    """
    layout = all_layouts().get(benchmark)
    if layout is None:
        return []
    columns = []
    for column in layout.headline:
        if column.breakdown is None and not facts_of(column.metric).is_signed:
            columns.append(column)
    return columns


def publishable(results: Sequence[Path], model: str) -> tuple[list[Headline], list[str]]:
    """The headline scores in ``results`` that may be published as those of ``model``, and why
    others may not.

    Scores of the oldest run are first. The model is named as on the hub, owner/name.
    """
    if not all(model.split("/")) or model.count("/") != 1:
        raise UsageError(
            f"--model {model}: expected owner/name, the model's repository on the hub; fix it."
        )
    headlines: list[Headline] = []
    notes: dict[str, None] = {}
    for run in _runs_of_one_model(results):
        groups = ComparabilityGroups([run], demonstration=False)
        for headline in _headline_scores(run):
            reason = next(_reasons_against(headline, groups), None)
            if reason is None:
                headlines.append(headline)
            else:
                name = f"{headline.task_id} of {run.public.folder}"
                notes[f"not exported: {name} ({reason})"] = None
    if not headlines:
        raise no_score(notes)
    return headlines, list(notes)


def _runs_of_one_model(results: Sequence[Path]) -> list[ScoredRun]:
    """The runs in ``results``, the oldest first; an error unless all are of one model."""
    runs, refused = collect(results, RunStore(cache_root() / "scores"))
    if refused:
        raise MedtasksError(f"{refused[0].folder}: {refused[0].reason.rstrip('.')}.")
    names = {run.model: str(run.public.model_facts.get("name", run.model)) for run in runs}
    if len(names) > 1:
        raise UsageError(
            f"the runs are of several models ({first_names(names.values())}); give those of one."
        )
    return sorted(runs, key=lambda run: str(run.public.created))


def _headline_scores(run: ScoredRun) -> Iterator[Headline]:
    """The headline scores of all benchmarks that the run has samples for."""
    for benchmark in all_layouts():
        for column in headline_columns(benchmark):
            entry = run.entries.get(column.task)
            score = None if entry is None else entry.scores.metrics.get(column.metric)
            if score is not None and score.samples:
                yield Headline(run, benchmark, column, score)


def _reasons_against(headline: Headline, groups: ComparabilityGroups) -> Iterator[str]:
    """Why the score may not be published."""
    group = groups.of(headline.column.task, headline.column.metric)
    tasks = headline.tasks.values()
    score = headline.score
    for apart in group.apart:
        yield from apart.reasons
    if any(task.subset for task in tasks):
        yield "only a subset of the clusters was asked"
    failed = sum(sum(task.failed.values()) for task in tasks)
    if failed:
        yield f"{counted(failed, 'request')} without a response"
    if score.value is None:
        yield score.reason or "it has no value"
    elif is_incomplete(score):
        yield "too many items lack a response or a verdict"
    if not group.ranked:
        yield "it is not comparable"


def no_score(notes: Iterable[str]) -> UsageError:
    """The error that no score may be published, for these reasons."""
    reasons = first_names(notes, 3, "; ") or "the runs have no headline score"
    return UsageError(f"no score may be published: {reasons.rstrip('.')}.")
