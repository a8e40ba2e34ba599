"""``medtasks judge``: verdicts for a finished run, wherever it was made; its numbers are replaced in one step."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medtasks.cli.console import table, write

if TYPE_CHECKING:
    from medtasks.judge.client import Spent
    from medtasks.judge.config import JudgeConfig
    from medtasks.judge.settings import JudgeSettings
    from medtasks.results.adjudication import Judged, Progress

__all__ = ["bars", "judge"]

LONGEST_LINE = 2**26  # bytes; of a file that may be an earlier export


def judge(
    results: Annotated[
        Path, typer.Argument(help="A run's folder (…_medtasks), or one that holds it.", show_default=False)
    ],
    judges: Annotated[
        list[str],
        typer.Option(
            "--judge",
            help="A YAML file, or model=NAME,base_url=http://…/v1; repeat it for several judges.",
            show_default=False,
        ),
    ],
    rubrics: Annotated[
        list[str] | None, typer.Option("--rubric", help="Rubric; repeat it. Without: the first one of every task.")
    ] = None,
    combine: Annotated[
        str | None, typer.Option("--combine", help="How several judges become one: majority or mean, by aspect.")
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option("--threshold", help="Share of verdicts below which a score is marked incomplete (0.99)."),
    ] = None,
    human: Annotated[
        Path | None, typer.Option("--human", help="CSV of people's labels, to compare the judges with.")
    ] = None,
    families: Annotated[
        Path | None, typer.Option("--families", help="YAML table of model families in place of ours.")
    ] = None,
    max_requests: Annotated[
        int | None, typer.Option("--max-requests", min=0, help="Stop after so many requests to each judge.")
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option("--max-tokens", min=0, help="Stop after so many tokens of each judge, prompts included."),
    ] = None,
    store: Annotated[
        Path | None, typer.Option("--store", help="File that keeps verdicts (default: in the user's cache folder).")
    ] = None,
    export: Annotated[
        Path | None, typer.Option("--export", help="Write every verdict with prompt and raw answer to this JSONL file.")
    ] = None,
) -> None:
    """Judge a run's responses; what was judged before is not asked again."""
    from medtasks.errors import UsageError
    from medtasks.harness.numbers import renew_numbers
    from medtasks.judge.agreement import COLUMNS, rows
    from medtasks.judge.config import read_judges
    from medtasks.results.adjudication import judge_run
    from medtasks.results.find import one_run
    from medtasks.results.folder import read_run, replace_run
    from medtasks.results.judge_report import report_lines
    from medtasks.results.summary import summary

    if export is not None and export.exists() and not _is_export(export):
        raise UsageError(f"{export}: exists and is not an export of verdicts; choose another file for --export.")
    if export is not None and not (export.parent.is_dir() and os.access(export.parent, os.W_OK)):
        raise UsageError(f"{export}: its folder does not exist or cannot be written; choose another file for --export.")
    if human is not None and len(rubrics or ()) != 1:
        raise UsageError("--human holds labels under one rubric; name it with one --rubric.")
    config = _limited(
        read_judges(
            judges,
            combine=combine,
            threshold=threshold,
            store=store,
            families=families,
            rubrics=tuple(rubrics) if rubrics else None,
        ),
        max_requests,
        max_tokens,
    )
    results = one_run(results)
    manifest, samples = read_run(results)
    with bars(config) as progress:
        run, judged = judge_run(manifest, samples, config, human=human, progress=progress)
    if export is not None:
        _export(judged, config, export)
    if judged.spent:
        replace_run(results, run)
        renewed = renew_numbers(results, run)
        write(summary(run, results))
        if renewed is not None:
            write(f"  the harness's numbers agree: {renewed}")
        write("\n".join(report_lines(judged, config)))
        for name, facts in judged.facts.items():
            if facts.agreement is not None:
                # measures of raters with nothing in common are in the manifest alone
                shown = [row for row in rows(facts.agreement) if row[COLUMNS.index("units")] != "0"]
                table(COLUMNS, shown, title=f"\n{name}: agreement")
    if judged.error is not None:
        raise judged.error


def _limited(config: JudgeConfig, max_requests: int | None, max_tokens: int | None) -> JudgeConfig:
    """The same judges, each with a budget."""
    from medtasks.judge.settings import Budget

    if max_requests is None and max_tokens is None:
        return config
    limited = {
        name: one.model_copy(
            update={
                "budget": Budget(
                    max_requests=one.budget.max_requests if max_requests is None else max_requests,
                    max_tokens=one.budget.max_tokens if max_tokens is None else max_tokens,
                )
            }
        )
        for name, one in config.judges.items()
    }
    return config.model_copy(update={"judges": limited})


def _export(judged: Judged, config: JudgeConfig, path: Path) -> None:
    from medtasks.files import replaced
    from medtasks.judge.config import default_store
    from medtasks.judge.store import VerdictStore
    from medtasks.results.adjudication import exported

    with (
        VerdictStore(config.store or default_store()) as store,
        replaced(path) as partial,
        partial.open("w", encoding="utf-8") as stream,
    ):
        lines = sum(stream.write(line + "\n") > 0 for line in exported(judged, store))
    write(f"  {lines:,} judged or unjudged responses exported: {path}")


def _is_export(path: Path) -> bool:
    """Whether the file is an earlier export, which may be replaced."""
    with path.open("rb") as stream:
        first = stream.readline(LONGEST_LINE)
    try:
        return not first or {"rubric", "judge", "answers"} <= set(json.loads(first))
    except (ValueError, TypeError, RecursionError):
        return False


@contextmanager
def bars(config: JudgeConfig) -> Iterator[Progress]:
    """A progress bar per rubric and judge on standard error: rate, tokens and cost so far and to come, time left.

    Plain lines instead if that is not a terminal. Why a judge does not answer is shown in both cases.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

    from medtasks.results.judge_report import PlainProgress

    console, plain = Console(stderr=True), PlainProgress()
    if not console.is_terminal:
        yield plain
        return
    shown = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TextColumn("{task.fields[tokens]}"),
        TimeRemainingColumn(),
        console=console,
    )
    tasks: dict[tuple[str, str], TaskID] = {}

    def update(rubric: str, judge: str, done: int, total: int, spent: Spent, trouble: str | None) -> None:
        if trouble is not None:
            plain(rubric, judge, done, total, spent, trouble)  # above the bars
        if (rubric, judge) not in tasks:
            tasks[rubric, judge] = shown.add_task(f"{rubric}, {judge}", total=total, rate="", tokens="")
        task = tasks[rubric, judge]
        speed = shown.tasks[shown.task_ids.index(task)].speed
        shown.update(
            task,
            completed=done,
            total=total,
            rate="waiting" if trouble is not None else "" if speed is None else f"{speed:.0f}/s",
            tokens=_so_far(spent, total - done, config.judges[judge]),
        )

    with shown:
        yield update


def _so_far(spent: Spent, left: int, settings: JudgeSettings) -> str:
    """Tokens of this run, their cost where prices are known, and what the rest takes if it goes on like that."""
    if not spent.answered:
        return ""
    share = left / spent.answered
    text = f"{spent.tokens:,} tokens, about {round(spent.tokens * share):,} to go"
    cost = settings.cost(spent.prompt_tokens, spent.completion_tokens)
    return text if cost is None else f"{text}; cost {cost:,.2f}, about {cost * share:,.2f} to go"
