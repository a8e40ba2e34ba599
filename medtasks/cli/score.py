"""``medtasks score``, ``compare`` and ``plan``: scores of responses, differences of runs, and what
can be detected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medtasks.cli.console import Json, Prices, progress, table, write, write_json
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
    from medtasks.leaderboard.verify.scored_run import ScoredRun
    from medtasks.scoring.comparisons import Paired
    from medtasks.scoring.run_record import RunRecord

SHOWN = 20


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
                "--task, --column, --verdicts-of and --epoch are for prediction files; leave them out for a run."
            )
        with without_garbage_collection(afterwards=False):
            _rescore(results, against, out, as_json)
        return
    if against is not None:
        raise UsageError(
            "--against compares result directories; write the predictions' run with --out first."
        )
    from medtasks.importers.imported_run import PredictionFile, scored_predictions
    from medtasks.importers.prediction_files import LAYOUTS, recognise, task_in_name
    from medtasks.scoring.run_cache import user_store
    from medtasks.scoring.summary import summary

    if layout is None:
        layout = recognise(results)
        if not as_json:
            write(f"{results.name}: read as {LAYOUTS[layout]} (--from {layout})")
    if layout not in LAYOUTS:
        raise UsageError(f"--from {layout}: unknown layout; choose from {', '.join(LAYOUTS)}.")
    task = task or (task_in_name(results) if layout == "lmms-eval" else None)
    if task is None:
        raise UsageError("--task is missing; give the task or group that the predictions are for.")
    columns = {}
    for entry in column or ():
        field, _, name = entry.partition("=")
        if not (field and name):
            raise UsageError(
                f"--column {entry}: expected FIELD=COLUMN, e.g. response=model_output."
            )
        columns[field] = name
    with without_garbage_collection(afterwards=False):
        file = PredictionFile(results, layout, task, columns, model, verdicts_of, epoch)
        scored = scored_predictions(file, user_store(), out)
    if as_json:
        counts = {
            what: count for what, count in scored.predictions.items() if what != "with_verdict"
        }
        write_json({**scored.results, "predictions": counts, "notes": scored.notes})
        return
    write(summary(scored, out, keep="--out"))
    write(*(f"  {printable(note)}" for note in scored.notes))
    if verdicts_of is None and (judged := scored.predictions["with_verdict"]):
        write(
            f"  with a judge's verdict: {counted(judged, 'prediction')}; import with --verdicts-of JUDGE"
        )
    for facts in scored.manifest.judge.values():
        verdicts = f"{facts.judged:,} of {facts.asked:,} responses have a verdict of {verdicts_of}"
        write(f"  {verdicts}, imported from the file")
        write(*(f"  unjudged: {count:,} ({reason})" for reason, count in facts.unjudged.items()))
        write(*(f"  warning: {warning}" for warning in facts.warnings))


def _rescore(folder: Path, against: Path | None, out: Path | None, as_json: bool) -> None:
    from medtasks.leaderboard.verify.scored_run import scored_run
    from medtasks.runs.find import is_unfinished, one_run
    from medtasks.runs.manifest import now
    from medtasks.scoring.comparisons import comparisons, same_tasks
    from medtasks.scoring.finished_run import score_unfinished
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
    counts = Counter((change.task, change.what) for change in again.changes)
    for (task, what), count in sorted(counts.items()):
        write(f"  {task}: {what} changed in {counted(count, 'sample')}")
    if not counts:
        write("  no score has changed")
        return
    rows = [
        (one.task, one.sample_id, one.what, str(one.before), str(one.after))
        for one in again.changes[:SHOWN]
    ]
    table(("task", "sample", "what", "before", "now"), rows)
    if len(again.changes) > SHOWN:
        write(f"  and {len(again.changes) - SHOWN:,} more; --json prints all")


def _show_diagnostics(run: RunRecord) -> None:
    from medtasks.scoring.summary import in_order

    shares = {
        "not extracted": "extraction_failures",
        "by text": "read_by_text",
        "named in prose": "named_in_prose",
        "letter bias": "letter_bias",
        "null chosen wrongly": "false_abstention",
        "null missed": "false_commitment",
    }
    found = {name: run.diagnostics[name] for name in in_order(run)}
    columns = [
        name
        for name, field in shares.items()
        if any(getattr(one, field) is not None for one in found.values())
    ]
    rows = []
    for name, one in found.items():
        values = [getattr(one, shares[column]) for column in columns]
        rows.append(
            (
                name,
                f"{one.responses:,}",
                *("" if value is None else f"{value:.1%}" for value in values),
            )
        )
    table(("task", "responses", *columns), rows, title="\nDiagnostics")
    if gaps := run.level_gaps:
        rows = [
            (
                *name.partition(":")[0].split(" - "),
                gap.metric,
                f"{gap.difference:+.3f}",
                signed_interval(gap.interval),
            )
            for name, gap in gaps.items()
        ]
        table(
            ("level", "against", "metric", "difference", "95 % interval"),
            rows,
            title="\nComplexity levels",
        )
        write(
            *dict.fromkeys(
                f"  warning: {gap.warning}" for gap in gaps.values() if gap.warning is not None
            )
        )


def _show_paired(paired: dict[str, Paired]) -> None:
    if apart := [f"{one.first} and {one.second}" for one in paired.values() if not one.items]:
        write(f"  not compared, because they share no item: {first_names(apart)}")
    rows = []
    notes: dict[tuple[str, str], None] = {}
    for name, one in paired.items():
        for metric, score in one.metrics.items():
            difference, ends = f"{score.difference:+.3f}", signed_interval(score.interval)
            rows.append(
                (
                    one.first,
                    one.second,
                    f"{score.items:,}",
                    metric,
                    difference,
                    ends,
                    p_text(score.p_value),
                )
            )
            notes |= {
                (f"warning: {text}", name): None
                for text in (score.warning, score.reason)
                if text is not None
            }
    if rows:
        columns = ("run", "against", "items", "metric", "difference", "95 % interval", "p")
        table(columns, rows, title="\nThe same questions, answered in two ways")
        write(
            "  p: cluster sign-flip test, uncorrected; `medtasks compare` corrects for the number of tests"
        )
        write(*grouped_notes(notes))


def compare(
    first: Annotated[Path | None, typer.Argument(show_default=False)] = None,
    second: Annotated[Path | None, typer.Argument(show_default=False)] = None,
    pairs: Annotated[list[str] | None, typer.Option(metavar="BASE:TUNED")] = None,
    task: str | None = None,
    metric: str | None = None,
    prices: Prices = None,
    as_json: Json = False,
) -> None:
    """Compare two runs: differences item by item, 95 % intervals, corrected tests, and what both
    used.
    """
    from medtasks.leaderboard.board.models import read_by_model
    from medtasks.leaderboard.board.usage import Price, amount, measured, used_by
    from medtasks.python_api.results import compare as compare_two

    if pairs:
        if first is not None or prices is not None:
            raise UsageError(
                "--pairs takes the place of two directories, and of --prices; leave them out."
            )
        _compare_pairs(pairs, task, metric, as_json=as_json)
        return
    if first is None or second is None:
        raise UsageError("expected two directories of runs, or --pairs BASE:TUNED; give them.")
    known = {} if prices is None else read_by_model(prices, Price)
    runs = _read_runs((first, second))
    with progress("comparing") as bar:
        found = compare_two(*runs, task=task, metric=metric, progress=bar)
    used = [used_by(one, known, task) for one in runs]
    if as_json:
        usage = [
            {**usage.model_dump(mode="json"), **({} if cost is None else {"cost": cost})}
            for usage, cost in used
        ]
        write_json({**vars(found), "usage": dict(zip(("first", "second"), usage, strict=True))})
        return
    names = [
        f"{one.public.model_facts.get('name', one.model)} ({one.public.folder})" for one in runs
    ]
    write(f"A: {printable(names[0])}\nB: {printable(names[1])}\n")
    table(found.table.columns, found.table.rows)
    write("\n".join(found.table.notes))
    if usage_rows := [
        (one.label, one.unit, *map(amount, values)) for one, values in measured(used)
    ]:
        write("")
        table(("usage", "unit", "A", "B"), usage_rows)


def _compare_pairs(
    pairs: Sequence[str], group: str | None, metric: str | None, *, as_json: bool
) -> None:
    from medtasks.leaderboard.rank.comparison import signed_number
    from medtasks.leaderboard.rank.several_pairs import compare_pairs

    folders = [one.split(":") for one in pairs]
    for given, parts in zip(pairs, folders, strict=True):
        if len(parts) != 2 or not all(parts):
            raise UsageError(
                f"--pairs {given}: expected BASE:TUNED, two directories of runs without a colon; fix it."
            )
    names = list(dict.fromkeys(folder for parts in folders for folder in parts))
    read = dict(zip(names, _read_runs(map(Path, names)), strict=True))
    with progress("comparing") as bar:
        tests = compare_pairs(
            [(read[base], read[tuned]) for base, tuned in folders],
            group=group,
            metric=metric,
            progress=bar,
        )
    if as_json:
        write_json({"tests": tests})
        return
    differences, signs, reasons = [], [], []
    for test in tests:
        head = test.group, test.metric
        for one in test.differences:
            shown = signed_number(one.difference, test.unit, "+")
            differences.append((*head, one.base, one.tuned, one.task, shown))
            place = f"{one.tuned} - {one.base} {one.task} {test.metric}"
            if one.reason:
                reasons.append((f"no difference: {one.reason}", place))
            reasons += [(f"not comparable: {reason}", place) for reason in one.unlike]
        compared = sum(one.difference is not None for one in test.differences)
        equal = compared - test.better - test.worse
        p_values = map(p_text, (test.sign_p, test.wilcoxon_p, test.least_p))
        signs.append(
            (*head, f"{len(pairs)}", f"{test.better}", f"{test.worse}", f"{equal}", *p_values)
        )
    table(("group", "metric", "base", "tuned", "task", "tuned - base"), differences)
    write("")
    columns = (
        "group",
        "metric",
        "pairs",
        "better",
        "worse",
        "equal",
        "sign p",
        "Wilcoxon p",
        "lowest possible p",
    )
    table(columns, signs)
    write(
        "  One difference per pair and task, over the items with a value in both runs; p is two-sided, not corrected.",
        "  A task with few items counts as much as one with many; differences of one pair are not independent.",
    )
    write(*grouped_notes(reasons))


def _read_runs(folders: Iterable[Path]) -> list[ScoredRun]:
    from medtasks.leaderboard.verify.scored_run import scored_run
    from medtasks.runs.find import finished_run
    from medtasks.scoring.run_cache import user_store

    with progress("reading results"):
        return [scored_run(finished_run(folder), user_store()) for folder in folders]


def plan(
    task: Annotated[str, typer.Argument(show_default=False)],
    pilot: list[Path] | None = None,
    metric: str | None = None,
    score: Annotated[float | None, typer.Option(min=0, max=1)] = None,
    icc: Annotated[float, typer.Option(min=0, max=1)] = 0.1,
    difference: Annotated[float | None, typer.Option(min=0)] = None,
    share: list[float] | None = None,
    as_json: Json = False,
) -> None:
    """Show the minimum detectable differences of subsets, before inference is paid for."""
    from medtasks.leaderboard.rank.planning import SHARES, plan_task

    runs = _read_runs(pilot) if pilot else []
    found = plan_task(
        task, metric, runs, score=score, icc=icc, difference=difference, shares=share or SHARES
    )
    if as_json:
        needed = (
            None if difference is None else {"difference": difference, "clusters": found.needed}
        )
        fields = {
            name: getattr(found, name)
            for name in ("task", "metric", "unit", "basis", "left_out", "subsets")
        }
        write_json({**fields, "needed": needed})
        return
    write(*(f"left out: {printable(reason)}" for reason in found.left_out))
    write(f"{found.table.title}\n")
    table(found.table.columns, found.table.rows)
    write("\n" + "\n".join(found.table.notes))
