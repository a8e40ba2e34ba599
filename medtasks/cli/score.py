"""``medtasks score``: score existing responses of a run, or of another tool, with the current filters and metrics."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from medtasks.cli.console import Json, table, write, write_json
from medtasks.core.errors import MedtasksError, UsageError
from medtasks.core.tables import grouped_notes, p_text, signed_interval
from medtasks.core.text import counted, first_names, printable

if TYPE_CHECKING:
    from medtasks.importers.layouts import Layout
    from medtasks.runs.comparisons import Paired
    from medtasks.runs.record import RunRecord

SHOWN = 20


def score(
    results: Annotated[Path, typer.Argument(show_default=False)],
    layout: Annotated[str | None, typer.Option("--from")] = None,
    task: str | None = None,
    column: list[str] | None = None,
    model: str = "unknown",
    verdicts_of: str | None = None,
    against: Path | None = None,
    out: Path | None = None,
    as_json: Json = False,
) -> None:
    """Score a result directory again, or predictions made elsewhere, without a model.

    With --json, the content of scores.json, with the changes in a finished run, or the counts of predictions.
    """
    from medtasks.runs.samples import without_garbage_collection

    with without_garbage_collection(afterwards=False):
        if layout is not None or (results.exists() and not results.is_dir()):
            if against is not None:
                raise UsageError("--against compares result directories; write the predictions' run with --out first.")
            _score_predictions(results, layout, task, column or [], model, verdicts_of, out, as_json)
            return
        if task is not None or column or verdicts_of is not None:
            if not results.exists():
                raise UsageError(f"{results}: no such file; give a file of predictions.")
            raise UsageError("--task, --column and --verdicts-of are for prediction files; leave them out for a run.")
        _rescore(results, against, out, as_json)


def _rescore(folder: Path, against: Path | None, out: Path | None, as_json: bool) -> None:
    from medtasks.leaderboard.verify.scored_run import scored_run
    from medtasks.runs.comparisons import comparisons, same_tasks
    from medtasks.runs.find import is_unfinished, one_run
    from medtasks.runs.folder import read_manifest, write_run
    from medtasks.runs.manifest import now
    from medtasks.runs.run import score_unfinished
    from medtasks.runs.summary import summary
    from medtasks.verify.scored import keep_written, user_store

    folder = one_run(folder)
    if is_unfinished(folder):
        if against is not None:
            raise UsageError("--against compares result directories; write the unfinished run with --out first.")
        run = score_unfinished(folder, created=now())
        if out is not None:
            write_run(out, run)
        if as_json:
            write_json(run.results)
        else:
            write(summary(run, out, keep="--out"))
        return
    store = user_store()
    again = scored_run(folder, store, own=True, whole=out is not None)
    for name, one in again.verification.items():
        if one.claimed:
            raise MedtasksError(f"{folder}: {name}: {one.reason}.")
    run = again.rescored
    if out is not None:
        if lacking := sorted(read_manifest(folder).tasks.keys() - run.manifest.tasks.keys()):
            raise UsageError(
                f"{folder}: no installed package has {first_names(lacking)}, which --out would leave out; install it."
            )
        write_run(out, run)
        keep_written(out, again, store)
    paired = run.comparisons
    if against is not None:
        other = scored_run(one_run(against), store, own=True).tables
        paired = {**comparisons(run.tables, other), **same_tasks(run.tables, other)}
    if as_json:
        run = replace(run, kept=(paired, run.level_gaps))
        write_json({**run.results, "changes": again.changes, "notes": again.notes})
        return
    write(summary(run, out, keep="--out"))
    write(*(f"  {printable(note)}" for note in again.notes))
    _show_diagnostics(run)
    _show_paired(paired)
    _show_changes(again)


def _show_diagnostics(run: RunRecord) -> None:
    from medtasks.runs.summary import in_order

    shares = {
        "not extracted": "extraction_failures",
        "by text": "read_by_text",
        "named in prose": "named_in_prose",
        "letter bias": "letter_bias",
        "null chosen wrongly": "false_abstention",
        "null missed": "false_commitment",
    }
    found = {name: run.diagnostics[name] for name in in_order(run)}
    columns = [name for name, field in shares.items() if any(getattr(one, field) is not None for one in found.values())]
    rows = []
    for name, one in found.items():
        values = [getattr(one, shares[column]) for column in columns]
        rows.append((name, f"{one.responses:,}", *("" if value is None else f"{value:.1%}" for value in values)))
    table(("task", "responses", *columns), rows, title="\nDiagnostics")
    if gaps := run.level_gaps:
        rows = [
            (*name.partition(":")[0].split(" - "), gap.metric, f"{gap.difference:+.3f}", signed_interval(gap.interval))
            for name, gap in gaps.items()
        ]
        table(("level", "against", "metric", "difference", "95 % interval"), rows, title="\nComplexity levels")
        write(*dict.fromkeys(f"  warning: {gap.warning}" for gap in gaps.values() if gap.warning is not None))


def _show_paired(paired: dict[str, Paired]) -> None:
    if apart := [f"{one.first} and {one.second}" for one in paired.values() if not one.items]:
        write(f"  not compared, because they share no item: {first_names(apart)}")
    rows = []
    notes: dict[tuple[str, str], None] = {}
    for name, one in paired.items():
        for metric, score in one.metrics.items():
            difference, ends = f"{score.difference:+.3f}", signed_interval(score.interval)
            rows.append((one.first, one.second, f"{score.items:,}", metric, difference, ends, p_text(score.p_value)))
            notes |= {(f"warning: {text}", name): None for text in (score.warning, score.reason) if text is not None}
    if rows:
        columns = ("run", "against", "items", "metric", "difference", "95 % interval", "p")
        table(columns, rows, title="\nThe same questions, answered in two ways")
        write("  p: cluster sign-flip test, uncorrected; `medtasks compare` corrects for the number of tests")
        write(*grouped_notes(notes))


def _show_changes(again: RunRecord) -> None:
    counts = Counter((change.task, change.what) for change in again.changes)
    if not counts:
        write("  no score has changed")
        return
    for (task, what), count in sorted(counts.items()):
        write(f"  {task}: {what} changed in {counted(count, 'sample')}")
    rows = [(one.task, one.sample_id, one.what, str(one.before), str(one.after)) for one in again.changes[:SHOWN]]
    table(("task", "sample", "what", "before", "now"), rows)
    if len(again.changes) > SHOWN:
        write(f"  and {len(again.changes) - SHOWN:,} more; --json prints all")


def _score_predictions(
    path: Path,
    layout: str | None,
    task: str | None,
    columns: list[str],
    model: str,
    verdicts_of: str | None,
    out: Path | None,
    as_json: bool,
) -> None:
    from medtasks.importers.layouts import LAYOUTS, recognise, task_in_name
    from medtasks.importers.run import PredictionFile, scored_predictions
    from medtasks.runs.summary import summary
    from medtasks.verify.scored import user_store

    if layout is None:
        layout = recognise(path)
        if not as_json:
            write(f"{path.name}: read as {LAYOUTS[layout]} (--from {layout})")
    if layout not in LAYOUTS:
        raise UsageError(f"--from {layout}: unknown layout; choose from {', '.join(LAYOUTS)}.")
    task = task or (task_in_name(path) if layout == "lmms-eval" else None)
    if task is None:
        raise UsageError("--task is missing; give the task or group that the predictions are for.")
    pairs = [entry.partition("=")[::2] for entry in columns]
    if wrong := [entry for entry, pair in zip(columns, pairs, strict=True) if not all(pair)]:
        raise UsageError(f"--column {wrong[0]}: expected FIELD=COLUMN, e.g. response=model_output.")
    file = PredictionFile(path, cast("Layout", layout), task, dict(pairs), model, verdicts_of)
    scored = scored_predictions(file, user_store(), out)
    if as_json:
        counts = {what: count for what, count in scored.predictions.items() if what != "with_verdict"}
        write_json({**scored.results, "predictions": counts})
        return
    write(summary(scored, out, keep="--out"))
    write(*(f"  {printable(note)}" for note in scored.notes))
    if verdicts_of is None and (judged := scored.predictions["with_verdict"]):
        write(f"  with a judge's verdict: {counted(judged, 'prediction')}; import with --verdicts-of JUDGE")
    for facts in scored.manifest.judge.values():
        verdicts = f"{facts.judged:,} of {facts.asked:,} responses have a verdict of {verdicts_of}"
        write(f"  {verdicts}, imported from the file")
        write(*(f"  unjudged: {count:,} ({reason})" for reason, count in facts.unjudged.items()))
        write(*(f"  warning: {warning}" for warning in facts.warnings))
