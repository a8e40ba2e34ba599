"""``medtasks score``: scores of stored responses, and of predictions made elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from medtasks.cli.console import write, write_json
from medtasks.cli.corrected_tables import show_corrected
from medtasks.cli.help import PlainCommand
from medtasks.cli.latency_tables import show_latency
from medtasks.cli.options import Json
from medtasks.cli.score_tables import show_changes, show_diagnostics, show_level_gaps, show_paired
from medtasks.cli.stream_latency_tables import show_stream_latency
from medtasks.core.errors import MedtasksError, UsageError
from medtasks.core.garbage_collection import without_garbage_collection
from medtasks.core.text import counted, first_names, printable

if TYPE_CHECKING:
    from medtasks.importers.imported_run import PredictionFile
    from medtasks.runs.manifest import RubricFacts
    from medtasks.runs.times import Times
    from medtasks.scoring.comparisons import Paired
    from medtasks.scoring.run_cache import RunStore
    from medtasks.scoring.run_record import RunRecord

app = typer.Typer()


@app.command("score", cls=PlainCommand)
def score(
    results: Annotated[
        Path,
        typer.Argument(
            show_default=False,
            help="A run's directory (…_medtasks), or one that contains it, or a file of "
            "predictions made elsewhere.",
        ),
    ],
    layout: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="Layout of a prediction file: ms-swift, jsonl, json, csv, parquet, lmms-eval, "
            "vlmevalkit or inspect (default: recognised by its content).",
        ),
    ] = None,
    task: Annotated[
        str | None, typer.Option(help="Task or group that the predictions are for.")
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(help="FIELD=COLUMN, e.g. response=model_output; can be repeated."),
    ] = None,
    model: Annotated[
        str, typer.Option(help="Name of the model that made the predictions.")
    ] = "unknown",
    verdicts_of: Annotated[
        str | None,
        typer.Option(help="Import the verdicts in a prediction file, as those of this judge."),
    ] = None,
    epoch: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Score this epoch, in a log of Inspect or lmms-eval with several responses to a "
            "question.",
        ),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(help="Another run's directory, for a paired comparison."),
    ] = None,
    human: Annotated[
        Path | None,
        typer.Option(
            help="Ratings by people (`medtasks rate`, or a CSV file) that correct judged scores."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the scored run into this new directory.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Rescore a result directory, or score existing predictions, without a model.

    With --json, the content of scores.json, with the changes in a finished run, or the counts of
    predictions.

    Examples:
        medtasks score results/MODEL/TIME_medtasks
        medtasks score predictions.jsonl --from ms-swift --task kvasir_vqa_x1 --model NAME
            --out scored
    """
    if layout is None and (results.is_dir() or not results.exists()):
        for_predictions = (task, column or None, verdicts_of, epoch)
        if any(value is not None for value in for_predictions):
            _refuse_options_of_predictions(results)
        with without_garbage_collection():
            _score_again(results, against, human, out, as_json)
        return
    if human is not None:
        raise UsageError(
            "--human corrects a result directory; write the predictions' run with --out, and judge "
            "it first."
        )
    if against is not None:
        raise UsageError(
            "--against compares result directories; write the predictions' run with --out first."
        )
    from medtasks.importers.imported_run import PredictionFile

    layout = _layout_of(results, layout, quiet=as_json)
    task = task or _task_of(results, layout)
    columns = _columns(column or ())
    file = PredictionFile(results, layout, task, columns, model, verdicts_of, epoch)
    with without_garbage_collection():
        _score_file(file, out, as_json)


def _refuse_options_of_predictions(results: Path) -> NoReturn:
    """Say that the options are for prediction files, or that there is no such file."""
    if not results.exists():
        raise UsageError(f"{results}: no such file; give a file of predictions.")
    raise UsageError(
        "--task, --column, --verdicts-of and --epoch are for prediction files; leave them "
        "out for a run."
    )


# --- predictions ---


def _layout_of(path: Path, chosen: str | None, *, quiet: bool) -> str:
    """The layout of a prediction file: the chosen one, or the one that it is recognised as."""
    from medtasks.importers.prediction_files import LAYOUTS, recognise

    if chosen is None:
        recognised = recognise(path)
        if not quiet:
            write(f"{path.name}: read as {LAYOUTS[recognised]} (--from {recognised})")
        return recognised
    if chosen not in LAYOUTS:
        raise UsageError(f"--from {chosen}: unknown layout; choose from {', '.join(LAYOUTS)}.")
    return chosen


def _task_of(path: Path, layout: str) -> str:
    """The task that lmms-eval wrote into the name of its file."""
    from medtasks.importers.prediction_files import task_in_name

    task = task_in_name(path) if layout == "lmms-eval" else None
    if task is None:
        raise UsageError("--task is missing; give the task or group that the predictions are for.")
    return task


def _columns(entries: Sequence[str]) -> dict[str, str]:
    """The file's names of our columns, from ``FIELD=COLUMN``."""
    columns = {}
    for entry in entries:
        field, _, name = entry.partition("=")
        if not (field and name):
            raise UsageError(
                f"--column {entry}: expected FIELD=COLUMN, e.g. response=model_output."
            )
        columns[field] = name
    return columns


def _score_file(file: PredictionFile, out: Path | None, as_json: bool) -> None:
    """Print the scores of predictions, and what became of them."""
    from medtasks.importers.imported_run import scored_predictions
    from medtasks.scoring.run_cache import user_store
    from medtasks.scoring.summary import summary

    run = scored_predictions(file, user_store(), out)
    with_verdict = run.predictions["with_verdict"]
    if as_json:
        counts = {name: count for name, count in run.predictions.items() if name != "with_verdict"}
        write_json({**run.results, "predictions": counts, "notes": run.notes})
        return
    write(summary(run, out, keep="--out"))
    write(*(f"  {printable(note)}" for note in run.notes))
    if file.verdicts_of is None and with_verdict:
        write(
            f"  with a judge's verdict: {counted(with_verdict, 'prediction')}; import with "
            "--verdicts-of JUDGE"
        )
    for facts in run.manifest.judge.values():
        _show_imported_verdicts(facts, file.verdicts_of)


def _show_imported_verdicts(facts: RubricFacts, judge: str | None) -> None:
    """How many responses have an imported verdict, and why the others have none."""
    write(
        f"  {facts.judged:,} of {facts.asked:,} responses have a verdict of {judge}, imported "
        "from the file"
    )
    for reason, count in facts.unjudged.items():
        write(f"  unjudged: {count:,} ({reason})")
    for warning in facts.warnings:
        write(f"  warning: {warning}")


# --- runs ---


def _score_again(
    folder: Path, against: Path | None, human: Path | None, out: Path | None, as_json: bool
) -> None:
    """Print the scores of a run as they are now, with comparisons, corrected scores and changes."""
    from medtasks.judge.corrected_scores import corrected_run
    from medtasks.runs.find import is_unfinished, one_run
    from medtasks.runs.times import FoundTimes
    from medtasks.scoring.latency import run_latency
    from medtasks.scoring.run_cache import user_store
    from medtasks.scoring.summary import summary

    folder = one_run(folder)
    if is_unfinished(folder):
        if against is not None or human is not None:
            raise UsageError(
                "--against and --human need a finished run; write the unfinished run with --out "
                "first."
            )
        _score_unfinished(folder, out, as_json)
        return
    store = user_store()
    again = _scored_again(folder, store, whole=out is not None or human is not None)
    corrected = None if human is None else corrected_run(again, human)
    run = again.rescored
    stored = FoundTimes.of(folder)
    if out is not None:
        _write_whole_run(folder, again, out, stored.times)
    latency = run_latency(run, stored.times, folder)
    paired = run.comparisons
    if against is not None:
        paired = _compared_with(run, against, store)
    if as_json:
        run = replace(run, kept=(paired, run.level_gaps))
        notes = [*again.notes, *filter(None, [stored.problem])]
        results = {**run.results, "changes": again.changes, "notes": notes}
        results["latency"] = latency.model_dump(mode="json")
        if corrected is not None:
            results["corrected"] = corrected.json()
        write_json(results)
        return
    write(summary(run, out, keep="--out"))
    write(*(f"  {printable(note)}" for note in again.notes))
    show_diagnostics(run)
    show_level_gaps(run)
    show_paired(paired)
    if corrected is not None:
        show_corrected(corrected)
    show_latency(latency)
    show_stream_latency(latency)
    if stored.problem is not None:
        write(f"  {printable(stored.problem)}")
    show_changes(again)


def _scored_again(folder: Path, store: RunStore, *, whole: bool) -> RunRecord:
    """A run, scored again; an error if some of its scores can only be taken from its files."""
    from medtasks.leaderboard.verify.scored_run import scored_run

    again = scored_run(folder, store, own=True, whole=whole).record
    for name, verification in again.verification.items():
        if verification.claimed:
            raise MedtasksError(f"{folder}: {name}: {verification.reason}.")
    return again


def _compared_with(run: RunRecord, against: Path, store: RunStore) -> dict[str, Paired]:
    """The paired differences within a run, and between its tasks and those of another run."""
    from medtasks.leaderboard.verify.scored_run import scored_run
    from medtasks.runs.find import one_run
    from medtasks.scoring.comparisons import comparisons, same_tasks

    tables = scored_run(one_run(against), store, own=True).record.tables
    return {**comparisons(run.tables, tables), **same_tasks(run.tables, tables)}


def _write_whole_run(folder: Path, again: RunRecord, out: Path, times: Times) -> None:
    """Write the scored run and its times into a new directory, unless it lacks tasks of the run in
    ``folder``.
    """
    from medtasks.scoring.kept_runs import keep_written
    from medtasks.scoring.run_cache import user_store
    from medtasks.scoring.run_folder import read_manifest, write_run

    scored_tasks = again.rescored.manifest.tasks
    lacking = sorted(read_manifest(folder).tasks.keys() - scored_tasks.keys())
    if lacking:
        raise UsageError(
            f"{folder}: no installed package has {first_names(lacking)}, which --out would "
            "leave out; install it."
        )
    write_run(out, again.rescored, times)
    keep_written(out, again, user_store())


def _score_unfinished(folder: Path, out: Path | None, as_json: bool) -> None:
    """Print the scores of the replies that a run has so far."""
    from medtasks.runs.manifest import now
    from medtasks.scoring.finished_run import score_unfinished, unfinished_times
    from medtasks.scoring.latency import run_latency
    from medtasks.scoring.run_folder import write_run
    from medtasks.scoring.summary import summary

    run = score_unfinished(folder, created=now())
    times = unfinished_times(folder)
    latency = run_latency(run, times)
    if out is not None:
        write_run(out, run, times)
    if as_json:
        write_json({**run.results, "latency": latency.model_dump(mode="json")})
    else:
        write(summary(run, out, keep="--out"))
        show_latency(latency)
        show_stream_latency(latency)
