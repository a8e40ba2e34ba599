"""The tables that ``medtasks score`` prints below the scores of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from medtasks.cli.console import table, write
from medtasks.core.text import counted, first_names, grouped_notes, p_text, signed_interval

if TYPE_CHECKING:
    from medtasks.scoring.comparisons import Paired
    from medtasks.scoring.diagnostics import Diagnostics
    from medtasks.scoring.run_record import Change, RunRecord

MOST_CHANGES = 20
"""The number of changed samples that are listed."""


def show_diagnostics(run: RunRecord) -> None:
    """A row for each task and group: how responses were read, and which answers a model favours."""
    from medtasks.scoring.summary import in_order

    names = list(in_order(run))
    columns: dict[str, list[float | None]] = {}
    for name in names:
        for heading, share in _shares(run.diagnostics[name]).items():
            columns.setdefault(heading, []).append(share)
    for heading, shares in list(columns.items()):
        if all(share is None for share in shares):
            del columns[heading]
    rows = []
    for number, name in enumerate(names):
        row = [name, f"{run.diagnostics[name].responses:,}"]
        for shares in columns.values():
            share = shares[number]
            row.append("" if share is None else f"{share:.1%}")
        rows.append(row)
    table(("task", "responses", *columns), rows, title="\nDiagnostics")


def _shares(diagnostics: Diagnostics) -> dict[str, float | None]:
    """The shares of a task by the headings of their columns."""
    return {
        "not extracted": diagnostics.extraction_failures,
        "by text": diagnostics.read_by_text,
        "named in prose": diagnostics.named_in_prose,
        "letter bias": diagnostics.letter_bias,
        "null chosen wrongly": diagnostics.false_abstention,
        "null missed": diagnostics.false_commitment,
    }


def show_level_gaps(run: RunRecord) -> None:
    """The differences between levels of complexity, with intervals and warnings."""
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


def show_paired(paired: Mapping[str, Paired]) -> None:
    """The differences between runs or tasks with the same questions."""
    disjoint = [f"{pair.first} and {pair.second}" for pair in paired.values() if not pair.items]
    if disjoint:
        write(f"  not compared, because they share no item: {first_names(disjoint)}")
    rows = []
    notes: dict[tuple[str, str], None] = {}
    for name, pair in paired.items():
        for metric, difference in pair.metrics.items():
            rows.append(
                (
                    pair.first,
                    pair.second,
                    f"{difference.items:,}",
                    metric,
                    f"{difference.difference:+.3f}",
                    signed_interval(difference.interval),
                    p_text(difference.p_value),
                )
            )
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


def show_changes(run: RunRecord) -> None:
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
