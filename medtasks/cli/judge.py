"""``medtasks judge``: get verdicts for a finished run, and replace its scores in one step."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medtasks.cli.console import write
from medtasks.cli.corrected_tables import show_agreement
from medtasks.cli.help import PlainCommand
from medtasks.cli.judge_progress import judge_progress
from medtasks.core.errors import MedtasksError, UsageError
from medtasks.core.garbage_collection import without_garbage_collection
from medtasks.core.text import counted

if TYPE_CHECKING:
    from medtasks.judge.judged import Judged
    from medtasks.judge.settings import JudgeConfig
    from medtasks.runs.manifest import RunManifest
    from medtasks.runs.samples import Sample

LONGEST_LINE = 2**26
"""Bytes of a line in an export."""


app = typer.Typer()


@app.command("judge", cls=PlainCommand)
def judge(
    results: Annotated[
        Path,
        typer.Argument(show_default=False, help="A result directory (…_medtasks), or its parent."),
    ],
    judges: Annotated[
        list[str],
        typer.Option(
            "--judge",
            show_default=False,
            help="A YAML file, or model=NAME,base_url=http://…/v1; can be repeated.",
        ),
    ],
    rubrics: Annotated[
        list[str] | None,
        typer.Option("--rubric", help="Rubric (default: each task's first); can be repeated."),
    ] = None,
    combine: Annotated[
        str | None,
        typer.Option(help="How to combine several judges by aspect: majority or mean."),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(help="Coverage below which a score is marked incomplete (0.99)."),
    ] = None,
    human: Annotated[
        Path | None,
        typer.Option(
            help="Human annotations to compare the judges with: a CSV file, a rating file or a "
            "folder of ratings."
        ),
    ] = None,
    max_requests: Annotated[
        int | None, typer.Option(min=0, help="Maximum number of requests to each judge.")
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(min=0, help="Maximum number of tokens for each judge, including prompts."),
    ] = None,
    store: Annotated[
        Path | None,
        typer.Option(help="Verdict store (default: in the user's cache directory)."),
    ] = None,
    again: Annotated[
        bool,
        typer.Option(
            help="Ask again where the stored answer is unusable: invalid, refused or cut off."
        ),
    ] = False,
    export: Annotated[
        Path | None,
        typer.Option(help="Write every verdict with prompt and raw answer to this JSONL file."),
    ] = None,
) -> None:
    """Judge a run's responses; stored verdicts are reused.

    Example:
        medtasks judge results/MODEL/TIME_medtasks
            --judge model=Qwen3-235B,base_url=http://127.0.0.1:8000/v1
    """
    from medtasks.core.locks import held
    from medtasks.judge.settings_sources import read_judges
    from medtasks.runs.find import one_run
    from medtasks.scoring.run_folder import as_data_error

    if export is not None:
        _require_place(export)
    if human is not None and len(rubrics or ()) != 1:
        raise UsageError("--human needs exactly one rubric; name it with --rubric.")
    names = tuple(rubrics) if rubrics else None
    config = read_judges(judges, combine=combine, threshold=threshold, store=store, rubrics=names)
    config = _limited(config, max_requests, max_tokens)
    folder = one_run(results)
    # held: the scores are read first and replaced at the end
    with held(folder, "judged"), as_data_error(folder):
        if human is None and export is None and _show_if_judged(folder, config):
            return
        judged = _judge_run(folder, config, human, export, again=again)
    if judged.error is not None:
        raise judged.error


def _show_if_judged(folder: Path, config: JudgeConfig) -> bool:
    """Print the scores of a run whose every response has a verdict of these judges; return whether
    it is such a run.
    """
    from medtasks.harness.results import renew_numbers
    from medtasks.judge.judge_run import is_judged
    from medtasks.leaderboard.verify.scored_run import scored_run
    from medtasks.scoring.run_cache import user_store
    from medtasks.scoring.run_folder import read_manifest
    from medtasks.scoring.summary import summary

    if not read_manifest(folder).judge:
        return False
    try:
        run = scored_run(folder, user_store(), own=True).record
    except MedtasksError:  # its verdicts cannot be read: they are made again
        return False
    if not is_judged(run, config):
        return False
    renew_numbers(folder, run)  # unless the last command did
    write(summary(run, folder))
    write("  nothing is left to ask: every response has a verdict of these judges")
    return True


def _judge_run(
    folder: Path, config: JudgeConfig, human: Path | None, export: Path | None, *, again: bool
) -> Judged:
    """Judge a run, export the verdicts, and replace the run's scores."""
    from medtasks.judge.verdict_export import export_verdicts
    from medtasks.scoring.kept_runs import is_known_as_scored
    from medtasks.scoring.run_cache import user_store

    as_scored = is_known_as_scored(folder, user_store())
    manifest, judged = _judged_samples(folder, config, human, again=again)
    if export is not None:
        lines = export_verdicts(judged, config, export)
        write(f"  {counted(lines, 'response')} exported, judged and unjudged: {export}")
    if judged.report:
        _replace_scores(folder, manifest, judged, keep=as_scored)
    return judged


def _judged_samples(
    folder: Path, config: JudgeConfig, human: Path | None, *, again: bool
) -> tuple[RunManifest, Judged]:
    """The manifest of a run, and its samples with their verdicts."""
    from medtasks.judge.judge_run import judge_all

    manifest, samples = _samples_to_judge(folder)
    with judge_progress(config) as progress:
        judged = judge_all(samples, config, manifest, human=human, again=again, progress=progress)
    return manifest, judged


@without_garbage_collection()
def _samples_to_judge(folder: Path) -> tuple[RunManifest, dict[str, list[Sample]]]:
    """The manifest of a run, and its samples with the references of the data prepared here."""
    from medtasks.scoring.run_folder import read_run
    from medtasks.scoring.verified_runs import with_documents_of_data

    manifest, submitted = read_run(folder)
    return manifest, with_documents_of_data(manifest, submitted)


def _require_place(export: Path) -> None:
    """Refuse a file that is not an export of verdicts, and a directory that cannot be written."""
    if export.exists() and not _is_export(export):
        raise UsageError(
            f"{export}: exists and is not an export of verdicts; choose another file for --export."
        )
    if not (export.parent.is_dir() and os.access(export.parent, os.W_OK)):
        raise UsageError(
            f"{export}: its directory does not exist or is not writable; choose another file "
            "for --export."
        )


def _limited(config: JudgeConfig, max_requests: int | None, max_tokens: int | None) -> JudgeConfig:
    """The panel with these limits in the budget of every judge."""
    limits: dict[str, int] = {}
    if max_requests is not None:
        limits["max_requests"] = max_requests
    if max_tokens is not None:
        limits["max_tokens"] = max_tokens
    judges = {}
    for name, settings in config.judges.items():
        budget = settings.budget.model_copy(update=limits)
        judges[name] = settings.model_copy(update={"budget": budget})
    return config.model_copy(update={"judges": judges})


def _replace_scores(results: Path, manifest: RunManifest, judged: Judged, *, keep: bool) -> None:
    """Replace the run by the judged one, and print its scores, what was asked, and how far raters
    agree. Unless ``keep``, its other scores are the directory's, and nothing is put into the
    cache.
    """
    from medtasks.harness.results import renew_numbers
    from medtasks.scoring.kept_runs import keep_finished
    from medtasks.scoring.run_cache import user_store
    from medtasks.scoring.run_folder import replace_run
    from medtasks.scoring.run_record import RunRecord
    from medtasks.scoring.summary import summary

    with without_garbage_collection():
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
            show_agreement(name, facts.agreement)


def _is_export(path: Path) -> bool:
    """Whether a file is empty, or its first line has the fields of an export."""
    with path.open("rb") as stream:
        line = stream.readline(LONGEST_LINE)
    if not line:
        return True
    try:
        return {"rubric", "judge", "answers"} <= set(json.loads(line))
    except (ValueError, TypeError, RecursionError):
        return False
