"""``medtasks score``: scores of stored responses, and of predictions made elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from medtasks.cli.console import write, write_json
from medtasks.cli.help import PlainCommand
from medtasks.cli.options import Json
from medtasks.cli.rescored_runs import score_again
from medtasks.core.errors import UsageError
from medtasks.core.garbage_collection import without_garbage_collection
from medtasks.core.text import counted, printable

if TYPE_CHECKING:
    from medtasks.importers.imported_run import PredictionFile
    from medtasks.runs.manifest import RubricFacts

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
            score_again(results, against, human, out, as_json)
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
