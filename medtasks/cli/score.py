"""``medtasks score``: scores of stored responses, and of predictions made elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medtasks.cli.console import Json, table, write, write_json
from medtasks.core.errors import MedtasksError, UsageError
from medtasks.core.text import (
    counted,
    first_names,
    grouped_notes,
    p_text,
    printable,
    signed_interval,
)

if TYPE_CHECKING:
    from medtasks.importers.imported_run import PredictionFile
    from medtasks.leaderboard.verify.scored_run import ScoredRun
    from medtasks.runs.manifest import RubricFacts
    from medtasks.scoring.comparisons import Paired
    from medtasks.scoring.run_record import Change, RunRecord

MOST_CHANGES = 20
"""The number of changed samples that are listed."""
_SHARES = {
    "not extracted": "extraction_failures",
    "by text": "read_by_text",
    "named in prose": "named_in_prose",
    "letter bias": "letter_bias",
    "null chosen wrongly": "false_abstention",
    "null missed": "false_commitment",
}
"""Fields of a task's diagnostics by the heading of their column."""


def score(
    results: Annotated[Path, typer.Argument(show_default=False)],
    layout: Annotated[str | None, typer.Option("--from")] = None,
    task: str | None = None,
    column: list[str] | None = None,
    model: str = "unknown",
    verdicts_of: str | None = None,
    epoch: Annotated[int | None, typer.Option(min=1)] = None,
    against: Path | None = None,
    out: Path | None = None,
    as_json: Json = False,
) -> None:
    """Score a result directory again, or predictions made elsewhere, without a model.

    With --json, the content of scores.json, with the changes in a finished run, or the counts of
    predictions.
    """
    from medtasks.runs.samples import without_garbage_collection

    if layout is None and (results.is_dir() or not results.exists()):
        if task is not None or column or verdicts_of is not None or epoch is not None:
            if not results.exists():
                raise UsageError(f"{results}: no such file; give a file of predictions.")
            raise UsageError(
                "--task, --column, --verdicts-of and --epoch are for prediction files; leave them "
                "out for a run."
            )
        with without_garbage_collection(afterwards=False):
            _score_again(results, against, out, as_json)
        return
    if against is not None:
        raise UsageError(
            "--against compares result directories; write the predictions' run with --out first."
        )
    from medtasks.importers.imported_run import PredictionFile

    layout = _layout_of(results, layout, quiet=as_json)
    task = task or _task_of(results, layout)
    columns = _columns(column or ())
    file = PredictionFile(results, layout, task, columns, model, verdicts_of, epoch)
    with without_garbage_collection(afterwards=False):
        _score_file(file, out, as_json)


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
    write(
        f"  {facts.judged:,} of {facts.asked:,} responses have a verdict of {judge}, imported "
        "from the file"
    )
    for reason, count in facts.unjudged.items():
        write(f"  unjudged: {count:,} ({reason})")
    for warning in facts.warnings:
        write(f"  warning: {warning}")


# --- runs ---


def _score_again(folder: Path, against: Path | None, out: Path | None, as_json: bool) -> None:
    from medtasks.leaderboard.verify.scored_run import scored_run
    from medtasks.runs.find import is_unfinished, one_run
    from medtasks.scoring.comparisons import comparisons, same_tasks
    from medtasks.scoring.run_cache import user_store
    from medtasks.scoring.run_record import read_manifest, write_run
    from medtasks.scoring.summary import summary
    from medtasks.scoring.verified_runs import keep_written

    folder = one_run(folder)
    if is_unfinished(folder):
        if against is not None:
            raise UsageError(
                "--against compares result directories; write the unfinished run with --out first."
            )
        _score_unfinished(folder, out, as_json)
        return
    store = user_store()
    again = scored_run(folder, store, own=True, whole=out is not None)
    for name, verification in again.verification.items():
        if verification.claimed:
            raise MedtasksError(f"{folder}: {name}: {verification.reason}.")
    run = again.rescored
    if out is not None:
        lacking = sorted(read_manifest(folder).tasks.keys() - run.manifest.tasks.keys())
        if lacking:
            raise UsageError(
                f"{folder}: no installed package has {first_names(lacking)}, which --out would "
                "leave out; install it."
            )
        write_run(out, run)
        keep_written(out, again, store)
    paired = run.comparisons
    if against is not None:
        tables = scored_run(one_run(against), store, own=True).tables
        paired = {**comparisons(run.tables, tables), **same_tasks(run.tables, tables)}
    if as_json:
        run = replace(run, kept=(paired, run.level_gaps))
        write_json({**run.results, "changes": again.changes, "notes": again.notes})
        return
    write(summary(run, out, keep="--out"))
    write(*(f"  {printable(note)}" for note in again.notes))
    _show_diagnostics(run)
    _show_level_gaps(run)
    _show_paired(paired)
    _show_changes(again)


def _score_unfinished(folder: Path, out: Path | None, as_json: bool) -> None:
    from medtasks.runs.manifest import now
    from medtasks.scoring.finished_run import score_unfinished
    from medtasks.scoring.run_record import write_run
    from medtasks.scoring.summary import summary

    run = score_unfinished(folder, created=now())
    if out is not None:
        write_run(out, run)
    if as_json:
        write_json(run.results)
    else:
        write(summary(run, out, keep="--out"))


def _show_diagnostics(run: RunRecord) -> None:
    from medtasks.scoring.summary import in_order

    names = list(in_order(run))
    columns = []
    for heading, field in _SHARES.items():
        if any(getattr(run.diagnostics[name], field) is not None for name in names):
            columns.append(heading)
    rows = []
    for name in names:
        diagnostics = run.diagnostics[name]
        row = [name, f"{diagnostics.responses:,}"]
        for heading in columns:
            share = getattr(diagnostics, _SHARES[heading])
            row.append("" if share is None else f"{share:.1%}")
        rows.append(tuple(row))
    table(("task", "responses", *columns), rows, title="\nDiagnostics")


def _show_level_gaps(run: RunRecord) -> None:
    if not run.level_gaps:
        return
    rows = []
    warnings: dict[str, None] = {}
    for name, gap in run.level_gaps.items():
        level, against = name.partition(":")[0].split(" - ")
        ends = signed_interval(gap.interval)
        rows.append((level, against, gap.metric, f"{gap.difference:+.3f}", ends))
        if gap.warning is not None:
            warnings[f"  warning: {gap.warning}"] = None
    columns = ("level", "against", "metric", "difference", "95 % interval")
    table(columns, rows, title="\nComplexity levels")
    write(*warnings)


def _show_paired(paired: Mapping[str, Paired]) -> None:
    disjoint = [f"{pair.first} and {pair.second}" for pair in paired.values() if not pair.items]
    if disjoint:
        write(f"  not compared, because they share no item: {first_names(disjoint)}")
    rows = []
    notes: dict[tuple[str, str], None] = {}
    for name, pair in paired.items():
        for metric, difference in pair.metrics.items():
            row = (
                pair.first,
                pair.second,
                f"{difference.items:,}",
                metric,
                f"{difference.difference:+.3f}",
                signed_interval(difference.interval),
                p_text(difference.p_value),
            )
            rows.append(row)
            for text in (difference.warning, difference.reason):
                if text is not None:
                    notes[f"warning: {text}", name] = None
    if rows:
        columns = ("run", "against", "items", "metric", "difference", "95 % interval", "p")
        table(columns, rows, title="\nThe same questions, answered in two ways")
        write(
            "  p: cluster sign-flip test, uncorrected; `medtasks compare` corrects for the number "
            "of tests"
        )
        write(*grouped_notes(notes))


def _show_changes(run: ScoredRun) -> None:
    """What differs from the scores in the directory."""
    changes: Sequence[Change] = run.changes
    if not changes:
        write("  no score has changed")
        return
    counts = Counter((change.task, change.what) for change in changes)
    for (task, what), count in sorted(counts.items()):
        write(f"  {task}: {what} changed in {counted(count, 'sample')}")
    rows = []
    for change in changes[:MOST_CHANGES]:
        before, after = str(change.before), str(change.after)
        rows.append((change.task, change.sample_id, change.what, before, after))
    table(("task", "sample", "what", "before", "now"), rows)
    if len(changes) > MOST_CHANGES:
        write(f"  and {len(changes) - MOST_CHANGES:,} more; --json prints all")
