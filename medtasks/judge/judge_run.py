"""Judging a run under one or several rubrics, by one or several judges, and scoring it again."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from medtasks.catalog.prompts import template_hash
from medtasks.catalog.rubric import Rubric
from medtasks.catalog.rubric_files import load_rubric
from medtasks.catalog.spec import load_spec
from medtasks.catalog.task_model import Metadata
from medtasks.core.errors import UsageError
from medtasks.core.settings import using
from medtasks.core.text import printable
from medtasks.judge.families import warnings_on_run
from medtasks.judge.judged import Judged, Samples
from medtasks.judge.judging_report import Progress
from medtasks.judge.panel import Panel, identities_under, see_images
from medtasks.judge.settings import JudgeConfig
from medtasks.judge.store import VerdictStore
from medtasks.runs.manifest import RunManifest
from medtasks.scoring.judge_identity import judge_hash
from medtasks.scoring.run_record import RunRecord
from medtasks.scoring.scores import MetricScore


def is_judged(run: RunRecord, config: JudgeConfig) -> bool:
    """Whether the scored run has this panel's verdicts on all responses.

    False, too, if judges see images, which are compared with the prepared data first.
    """
    warnings = warnings_on_run(config, run.manifest)
    for rubric, tasks in _tasks_by_rubric(run.manifest.tasks, config.rubrics):
        facts = run.manifest.judge.get(rubric.name)
        identities = identities_under(rubric, config)
        if facts is None or see_images(identities):
            return False
        if (facts.threshold, facts.warnings) != (config.threshold, warnings):
            return False
        panel = judge_hash(rubric, template_hash(rubric.template), identities, config.combine)
        if facts.judge_hash != panel or set(facts.tasks) != set(tasks):
            return False
        if facts.judged != facts.asked:
            return False
        for task in tasks:
            for metric in rubric.metrics:
                if not _is_all_judged(run.tasks[task].metrics[metric]):
                    return False
    return True


def _is_all_judged(score: MetricScore) -> bool:
    return score.judged is not None and score.judged == (score.answered or score.samples)


def judge_all(
    samples: Samples,
    config: JudgeConfig,
    manifest: RunManifest,
    *,
    human: Path | None = None,
    again: bool = False,
    progress: Progress | None = None,
) -> Judged:
    """Judge ``samples`` under one rubric after another, asking all judges concurrently.

    The rubrics are those in ``config``, by default the first one of each task; tasks that none
    applies to are unchanged, and scores of rubrics judged before are kept. ``human`` has
    human annotations (`medtasks.judge.human_labels.read_labels`) to compare the judges with.
    ``again`` asks again where the stored answer is not a verdict.

    Raises:
        UsageError: a rubric is unknown or applies to no task of the run, or no task of the run is
            judged.
        MedtasksError: the verdict store or the annotations cannot be read.
    """
    tasks_by_rubric = _tasks_by_rubric(samples, config.rubrics)
    judged = Judged(dict(samples), dict(manifest.judge))
    with using(miniature=manifest.miniature), VerdictStore(config.store) as store:
        panel = Panel(config, manifest, store, human, progress, again=again)
        for rubric, tasks in tasks_by_rubric:
            panel.judge(rubric, tasks, judged)
    if judged.failed and judged.report:
        judged.report.append("")
        for error in judged.failed.values():
            judged.report.append(printable(f"not judged: {error}"))
    return judged


def _tasks_by_rubric(
    tasks: Collection[str], requested: Sequence[str]
) -> list[tuple[Rubric, tuple[str, ...]]]:
    """The rubrics to judge under, each with its tasks.

    A requested rubric has the tasks that name it, and those that it names itself or by their
    benchmark. If none is requested, the first rubric of each task is used.
    """
    metadata = {task: load_spec(task).metadata for task in tasks}
    names = list(requested)
    if not requested:
        for facts in metadata.values():
            names += facts.rubrics[:1]
    if not names:
        raise UsageError(
            f"no task of this run is judged ({', '.join(tasks)}); its scores are complete without."
        )
    tasks_by_rubric = []
    for name in dict.fromkeys(names):
        rubric = load_rubric(name)
        members = _tasks_under(rubric, metadata, is_requested=bool(requested))
        if not members:
            raise UsageError(
                f"rubric {rubric.name} is for no task of this run ({', '.join(tasks)}); a task "
                "names its rubrics in its metadata."
            )
        tasks_by_rubric.append((rubric, tuple(members)))
    return tasks_by_rubric


def _tasks_under(
    rubric: Rubric, metadata: Mapping[str, Metadata], *, is_requested: bool
) -> list[str]:
    """The tasks that are judged under the rubric."""
    members = []
    for task, facts in metadata.items():
        if is_requested:
            applies = (
                rubric.name in facts.rubrics
                or task in rubric.tasks
                or facts.benchmark in rubric.benchmarks
            )
        else:
            applies = rubric.name in facts.rubrics[:1]
        if applies:
            members.append(task)
    return members
