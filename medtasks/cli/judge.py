"""``medtasks judge``: get verdicts for a finished run, and replace its scores in one step."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medtasks.cli.console import bars, table, write
from medtasks.core.errors import MedtasksError, UsageError
from medtasks.core.text import counted

if TYPE_CHECKING:
    from medtasks.judge.client import Spent
    from medtasks.judge.judge_run import Judged
    from medtasks.judge.judging_report import Progress
    from medtasks.judge.settings import JudgeConfig
    from medtasks.runs.manifest import RunManifest

LONGEST_LINE = 2**26  # bytes of a line in an export


def judge(
    results: Annotated[Path, typer.Argument(show_default=False)],
    judges: Annotated[list[str], typer.Option("--judge", show_default=False)],
    rubrics: Annotated[list[str] | None, typer.Option("--rubric")] = None,
    combine: str | None = None,
    threshold: float | None = None,
    human: Path | None = None,
    max_requests: Annotated[int | None, typer.Option(min=0)] = None,
    max_tokens: Annotated[int | None, typer.Option(min=0)] = None,
    store: Path | None = None,
    again: bool = False,
    export: Path | None = None,
) -> None:
    """Judge a run's responses; stored verdicts are not asked for again."""
    from medtasks.core.files import held
    from medtasks.harness.results import renew_numbers
    from medtasks.judge.judge_run import is_judged, judge_all
    from medtasks.judge.settings import read_judges
    from medtasks.judge.verdict_export import export_verdicts
    from medtasks.leaderboard.verify.scored_run import scored_run
    from medtasks.runs.find import one_run
    from medtasks.runs.samples import without_garbage_collection
    from medtasks.scoring.run_cache import user_store
    from medtasks.scoring.run_record import as_data_error, read_manifest, read_run
    from medtasks.scoring.summary import summary
    from medtasks.scoring.verified_runs import is_known_as_scored, with_documents_of_data

    if export is not None:
        _require_place(export)
    if human is not None and len(rubrics or ()) != 1:
        raise UsageError("--human needs exactly one rubric; name it with --rubric.")
    named = tuple(rubrics) if rubrics else None
    config = read_judges(judges, combine=combine, threshold=threshold, store=store, rubrics=named)
    config = _limited(config, max_requests, max_tokens)
    results = one_run(results)
    with (
        held(results, "judged"),
        as_data_error(results),
    ):  # the scores are read first and replaced at the end
        known = None
        if read_manifest(results).judge and not human and not export:
            with suppress(MedtasksError):  # its verdicts cannot be read: they are made again
                known = scored_run(results, user_store(), own=True)
        if known is not None and is_judged(known, config):
            renew_numbers(results, known)  # unless the last command did
            write(summary(known, results))
            write("  nothing is left to ask: every response has a verdict of these judges")
            return
        as_scored = is_known_as_scored(results, user_store())
        with without_garbage_collection(afterwards=False):
            manifest, submitted = read_run(results)
            samples = with_documents_of_data(manifest, submitted)
            del submitted
        with _progress(config) as progress:
            judged = judge_all(
                samples, config, manifest, human=human, again=again, progress=progress
            )
        del samples  # `judged` has copies of them
        if export is not None:
            lines = export_verdicts(judged, config, export)
            write(f"  {counted(lines, 'response')} exported, judged and unjudged: {export}")
        if judged.report:
            _replace_scores(results, manifest, judged, keep=as_scored)
    if judged.error is not None:
        raise judged.error


def _require_place(export: Path) -> None:
    """Refuse a file that is not an export of verdicts, and a directory that cannot be written."""
    if export.exists() and not _is_export(export):
        raise UsageError(
            f"{export}: exists and is not an export of verdicts; choose another file for --export."
        )
    if not (export.parent.is_dir() and os.access(export.parent, os.W_OK)):
        raise UsageError(
            f"{export}: its directory does not exist or is not writable; choose another file for --export."
        )


def _limited(config: JudgeConfig, max_requests: int | None, max_tokens: int | None) -> JudgeConfig:
    """The panel with these limits in the budget of every judge."""
    limits = {"max_requests": max_requests, "max_tokens": max_tokens}
    limits = {name: limit for name, limit in limits.items() if limit is not None}
    judges = {}
    for name, settings in config.judges.items():
        budget = settings.budget.model_copy(update=limits)
        judges[name] = settings.model_copy(update={"budget": budget})
    return config.model_copy(update={"judges": judges})


def _replace_scores(results: Path, manifest: RunManifest, judged: Judged, *, keep: bool) -> None:
    """Replace the run by the judged one, and print its scores, what was asked, and how far raters
    agree. Unless ``keep``, its other scores are the directory's, and nothing is put into the
    cache."""
    from medtasks.harness.results import renew_numbers
    from medtasks.judge.agreement import COLUMNS, rows
    from medtasks.runs.samples import without_garbage_collection
    from medtasks.scoring.run_cache import user_store
    from medtasks.scoring.run_record import RunRecord, replace_run
    from medtasks.scoring.summary import summary
    from medtasks.scoring.verified_runs import keep_finished

    with without_garbage_collection(afterwards=False):
        run = RunRecord.scored(manifest.model_copy(update={"judge": judged.facts}), judged.samples)
        replace_run(results, run)
        if keep:
            keep_finished(results, run, user_store())
        renewed = renew_numbers(results, run)
    write(summary(run, results))
    if renewed is not None:
        write(f"  the harness's results file has the same scores: {renewed}")
    write("\n".join(judged.report))
    for name, facts in judged.facts.items():
        if facts.agreement is not None:
            # measures of raters without common units are only in the manifest
            shown = [row for row in rows(facts.agreement) if row[COLUMNS.index("units")] != "0"]
            if shown:
                table(COLUMNS, shown, title=f"\n{name}: agreement")


def _is_export(path: Path) -> bool:
    with path.open("rb") as stream:
        first = stream.readline(LONGEST_LINE)
    try:
        return not first or {"rubric", "judge", "answers"} <= set(json.loads(first))
    except (ValueError, TypeError, RecursionError):
        return False


@contextmanager
def _progress(config: JudgeConfig) -> Iterator[Progress]:
    """A progress bar per rubric and judge on standard error, with rate, tokens, cost and remaining
    time.

    Plain lines if that is not a terminal. Both show why a judge does not answer.
    """
    from rich.progress import TaskID, TextColumn

    from medtasks.judge.judging_report import plain_progress

    plain, shown = (
        plain_progress(),
        bars(TextColumn("{task.fields[rate]}"), TextColumn("{task.fields[tokens]}")),
    )
    tasks: dict[tuple[str, str], TaskID] = {}

    def update(
        rubric: str, judge: str, done: int, total: int, spent: Spent, trouble: str | None
    ) -> None:
        if trouble is not None:
            plain(rubric, judge, done, total, spent, trouble)  # above the bars
        if (rubric, judge) not in tasks:
            tasks[rubric, judge] = shown.add_task(
                f"{rubric}, {judge}", total=total, rate="", tokens=""
            )
        task = tasks[rubric, judge]
        speed = shown.tasks[shown.task_ids.index(task)].speed
        tokens = ""
        if spent.answered:
            share = (total - done) / spent.answered
            tokens = f"{spent.tokens:,} tokens, about {round(spent.tokens * share):,} more"
            cost = config.judges[judge].cost(spent.prompt_tokens, spent.completion_tokens)
            tokens += "" if cost is None else f"; cost {cost:,.2f}, about {cost * share:,.2f} more"
        rate = "waiting" if trouble is not None else "" if speed is None else f"{speed:.0f}/s"
        shown.update(task, completed=done, total=total, rate=rate, tokens=tokens)

    with shown:
        yield plain if shown.disable else update
