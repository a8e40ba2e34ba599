"""A run's scores as plain text, printed at the end of a run."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from medtasks.catalog.spec import inner_groups, leaf_tasks, load_specs
from medtasks.catalog.statuses import ANSWERED, FAILED, MISSED, NO_FINAL_ANSWER, status_counts
from medtasks.core.text import first_names
from medtasks.metrics.facts import NOT_IN_SUMMARY
from medtasks.metrics.registry import facts_of, is_ours, unit_of
from medtasks.scoring.run_record import RunRecord
from medtasks.scoring.scores import MetricScore, Scores, ScoreState, coverage_text
from medtasks.scoring.summary_notes import summary_notes

NARROWEST, USUAL, WIDEST = 80, 100, 120
"""Columns: what the command line's texts are made for at least and at most, and without a
terminal.
"""
LINES = 40
"""Lines of the screen that a summary of saved results must fit."""


def format_score(metric: str, score: MetricScore) -> str:
    """A score with its 95 % interval, in its own unit; if there is none, a note instead."""
    if score.state is ScoreState.NOT_COMPUTED:
        return f"{score.state.value}"
    digits = 1 if unit_of(metric) == "points" else 3
    covered = coverage_text(score.samples, score.answered, score.judged)
    if score.bounds is not None and score.known != score.samples:
        low, high = score.bounds
        covered = f"{low:.{digits}f} to {high:.{digits}f}, {covered}"
    if score.value is None:
        return f"{score.state.value} ({covered})"
    text = f"{score.value:.{digits}f}"
    if score.interval is not None:
        low, high = score.interval
        text = f"{text} [{low:.{digits}f}, {high:.{digits}f}]"
    if score.bounds is None:
        return text
    if score.incomplete:
        covered = f"incomplete: {covered}"
    return f"{text} ({covered})"


def _floors(score: MetricScore) -> str:
    """What guessing and the best constant answer reach, in parentheses; empty without."""
    if score.chance is None:
        return ""
    constant = ""
    if score.constant is not None:
        constant = f", always {score.constant_answer} {score.constant:.3f}"
    return f"(chance {score.chance:.3f}{constant})"


def headline_scores(scores: Scores) -> dict[str, MetricScore]:
    """The scores of our metrics in the order of their headlines, then of those without a headline,
    then of all other packages.

    All scores if there are none of these.
    """
    placed: list[tuple[int, str]] = []
    without_place: list[str] = []
    theirs: list[str] = []
    for metric in scores.metrics:
        headline = facts_of(metric).headline
        if not is_ours(metric):
            theirs.append(metric)
        elif headline is None:
            without_place.append(metric)
        elif headline != NOT_IN_SUMMARY:
            placed.append((headline, metric))
    placed.sort(key=lambda headline_and_metric: headline_and_metric[0])
    names = [metric for _, metric in placed] + without_place + theirs or list(scores.metrics)
    return {name: scores.metrics[name] for name in names if scores.metrics[name].samples}


def summary(run: RunRecord, directory: Path | None, keep: str = "--output_path") -> str:
    """Scores with intervals by task and group, extraction failures, metrics not computed, and saved
    files.

    If the results are saved in ``directory``, this is one screen: groups go before their members,
    and what does not fit is counted. The path comes last.
    """
    screen = sys.maxsize
    saved = f"  nothing was saved: give {keep} to keep samples, scores and manifest"
    if directory is not None:
        screen = LINES
        saved = f"  samples, scores and manifest: {directory}"
    notes = _first_notes([f"  {note}" for note in summary_notes(run, directory)], screen // 3)
    title = ["", "medtasks: scores with 95 % confidence intervals"]
    room = screen - 4 - _height(*notes, saved)
    return "\n".join([*title, *_fitting_scores(run, room), *notes, saved])


def _first_notes(notes: Sequence[str], most: int) -> list[str]:
    """As many notes as fit into ``most`` lines, and how many more there are."""
    first: list[str] = []
    for note in notes:
        if _height(*first, note) > most:
            rest = len(notes) - len(first)
            return [*first, f"  and {rest} more notes: manifest.json and scores.json"]
        first.append(note)
    return first


def _fitting_scores(run: RunRecord, room: int) -> list[str]:
    """The scores of all tasks and groups; else of the outermost ones, as many as fit, and how many
    more there are.
    """
    names = in_order(run)
    lines = _score_lines(run, names)
    if len(lines) <= room:
        return lines
    names = _outermost(run, names)
    lines = _score_lines(run, names)
    while len(lines) > room:
        names = names[:-1]
        lines = _score_lines(run, names)
    hidden = len(run.groups) + len(run.tasks) - len(names)
    if hidden:
        lines.append(f"  and {hidden} more tasks and groups: scores.json in the directory below")
    return lines


def _outermost(run: RunRecord, names: Sequence[str]) -> list[str]:
    """The tasks and groups that are not within a larger group."""
    groups = {name: set(leaves) for name, leaves in run.manifest.groups.items()}
    outermost = []
    for name in names:
        leaves = groups.get(name, {name})
        if not any(leaves < larger for larger in groups.values()):
            outermost.append(name)
    return outermost


def _height(*lines: str) -> int:
    return sum(max(1, -(-len(line) // width())) for line in lines)


def width() -> int:
    """The columns of the terminal or, where the output is none, of the variable ``COLUMNS``; within
    limits.
    """
    return max(NARROWEST, min(shutil.get_terminal_size((USUAL, LINES)).columns, WIDEST))


def in_order(run: RunRecord) -> list[str]:
    """Groups before all tasks, both in the order of their groups' files."""
    order: dict[str, None] = {}
    tasks: dict[str, None] = {}
    for name in load_specs():
        if name in run.scores:
            order |= dict.fromkeys(inner_groups(name))
            tasks |= dict.fromkeys(leaf_tasks(name))
    order |= tasks
    order |= dict.fromkeys([*run.groups, *run.tasks])
    groups_in_order = [name for name in order if name in run.groups]
    tasks_in_order = [name for name in order if name in run.tasks]
    return groups_in_order + tasks_in_order


def _score_lines(run: RunRecord, names: Sequence[str]) -> list[str]:
    """The scores of some tasks and groups, wrapped between metrics."""
    longest = max(map(len, names), default=0)
    indent = " " * (2 + longest)
    columns = width()
    lines = []
    for name in names:
        scores = run.scores[name]
        responses = sum(scores.status.values())  # repeats included
        line = f"  {name:<{longest}}  n={scores.items:<5}"
        if responses != scores.items:
            line += f" ({responses} responses)"
        gap = " "
        for part in [*_score_parts(scores), *_remarks(run, name, scores)]:
            if len(line) + len(gap) + len(part) > columns and line.strip():
                lines.append(line)
                line = indent
                gap = "  "
            line += gap + part
            gap = "  "
        lines.append(line)
    return lines


def _score_parts(scores: Scores) -> Iterator[str]:
    """Each headline score, followed by its floors if it has any."""
    for metric, score in headline_scores(scores).items():
        yield f"{metric} {format_score(metric, score)}"
        floors = _floors(score)
        if floors:
            yield floors


def _remarks(run: RunRecord, name: str, scores: Scores) -> Iterator[str]:
    """What a reader of the scores of a task or group must know, each in a few words."""
    yield from _coverage_remark(run, name)
    if scores.without:
        yield f"(without {first_names(scores.without)})"
    yield from _status_remarks(scores)
    readings = run.readings(name)
    if readings["text"]:
        yield f"({readings['text']:,} read by the option's text)"
    if readings["named"]:
        yield f"({readings['named']:,} not read, but with one option's text)"


def _coverage_remark(run: RunRecord, name: str) -> Iterator[str]:
    """The share of the release's records that are prepared, if media may be missing."""
    tasks = run.manifest.groups.get(name, (name,))
    records = prepared = 0
    for data in run.manifest.data.values():
        for coverage in data.coverage:
            if coverage.task in tasks:
                records += coverage.records
                prepared += coverage.prepared
    if records:
        yield f"coverage {prepared:,} of {records:,} records"


def _status_remarks(scores: Scores) -> Iterator[str]:
    """How many requests failed or were missed, and how many responses have no answer or no final
    one.
    """
    if scores.status.get(FAILED):
        yield f"({scores.status[FAILED]:,} failed)"
    if scores.status.get(MISSED):
        rounds = sum(scores.status.values())
        yield f"({scores.status[MISSED]:,} of {rounds:,} rounds missed)"
    unread = dict(scores.status)
    for status in (FAILED, MISSED, *ANSWERED):
        unread.pop(status, None)
    if unread:
        yield f"(no answer extracted: {status_counts(unread)})"
    undecided = scores.status.get(NO_FINAL_ANSWER)
    if undecided:
        yield f"({status_counts({NO_FINAL_ANSWER: undecided})})"
