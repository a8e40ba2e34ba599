"""A run's scores as plain text, printed at the end of a run."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from medtasks.catalog.benchmark import ANSWERED, FAILED, NO_FINAL_ANSWER
from medtasks.catalog.spec import inner_groups, leaf_tasks, load_specs
from medtasks.catalog.statuses import status_counts
from medtasks.core.text import counted, first_names
from medtasks.data.prepared import coverage_lines
from medtasks.metrics.registry import facts_of, get_metric, is_ours, unit_of
from medtasks.runs.decoding import decoding_warnings
from medtasks.runs.manifest import WARNED_SHARE, RunManifest
from medtasks.scoring.judged_scores import judges_of
from medtasks.scoring.run_record import RunRecord
from medtasks.scoring.scores import MetricScore, Scores, coverage_text
from medtasks.stats.paired import FEW_CLUSTERS

NARROWEST, USUAL, WIDEST = 80, 100, 120
"""Columns: what the command line's texts are made for at least and at most, and without a
terminal.
"""
LINES = 40
"""Lines of the screen that a summary of saved results must fit."""


def format_score(metric: str, score: MetricScore) -> str:
    """A score with its 95 % interval, in its own unit; if there is none, a note instead."""
    if score.value is None and score.bounds is None:
        return "not computed"
    digits = 1 if unit_of(metric) == "points" else 3
    covered = coverage_text(score.samples, score.answered, score.judged)
    if score.bounds is not None and score.known != score.samples:
        low, high = score.bounds
        covered = f"{low:.{digits}f} to {high:.{digits}f}, {covered}"
    if score.value is None:
        missing = "no response" if score.answered == 0 else "awaits a judge"
        return f"{missing} ({covered})"
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
    constant = (
        "" if score.constant is None else f", always {score.constant_answer} {score.constant:.3f}"
    )
    return f"(chance {score.chance:.3f}{constant})"


def headline_scores(scores: Scores) -> dict[str, MetricScore]:
    """The headline scores of our metrics, in their order, then those of all other packages.

    All scores if there are neither.
    """
    ours: list[tuple[int, str]] = []
    theirs: list[str] = []
    for metric in scores.metrics:
        if not is_ours(metric):
            theirs.append(metric)
        elif facts_of(metric).headline:
            ours.append((facts_of(metric).headline, metric))
    ours.sort(key=lambda placed: placed[0])
    names = [metric for _, metric in ours] + theirs or list(scores.metrics)
    return {name: scores.metrics[name] for name in names if scores.metrics[name].samples}


def summary(run: RunRecord, directory: Path | None, keep: str = "--output_path") -> str:
    """Scores with intervals by task and group, extraction failures, metrics not computed, and saved
    files.

    If the results are saved in ``directory``, this is one screen: groups go before their members,
    and what does not fit is counted. The path comes last.
    """
    names = in_order(run)
    notes = [f"  {note}" for note in _notes(run, directory)]
    title = ["", "medtasks: scores with 95 % confidence intervals"]
    most, saved = LINES, f"  samples, scores and manifest: {directory}"
    if directory is None:
        most, saved = (
            sys.maxsize,
            f"  nothing was saved: give {keep} to keep samples, scores and manifest",
        )
    shown: list[str] = []
    for note in notes:
        if _height(*shown, note) > most // 3:
            shown.append(
                f"  and {len(notes) - len(shown)} more notes: manifest.json and scores.json"
            )
            break
        shown.append(note)
    room = most - 4 - _height(*shown, saved)
    lines = _score_lines(run, names)
    if len(lines) > room:  # the outermost groups and tasks, as many as fit
        groups = {name: set(leaves) for name, leaves in run.manifest.groups.items()}
        names = [
            name
            for name in names
            if not any(groups.get(name, {name}) < leaves for leaves in groups.values())
        ]
        while len(lines := _score_lines(run, names)) > room:
            names = names[:-1]
        if hidden := len(run.groups) + len(run.tasks) - len(names):
            lines.append(
                f"  and {hidden} more tasks and groups: scores.json in the directory below"
            )
    return "\n".join([*title, *lines, *shown, saved])


def _height(*lines: str) -> int:
    return sum(max(1, -(-len(line) // width())) for line in lines)


def width() -> int:
    """The columns of the terminal or, where the output is none, of the variable ``COLUMNS``; within
    limits.
    """
    return max(NARROWEST, min(shutil.get_terminal_size((USUAL, LINES)).columns, WIDEST))


def in_order(run: RunRecord) -> list[str]:
    """Groups before all tasks, both in the order of their groups' files."""
    known = load_specs()
    named = [name for name in known if name in run.groups or name in run.tasks]
    groups = [inner for name in named for inner in inner_groups(name)]
    tasks = [leaf for name in named for leaf in leaf_tasks(name)]
    order = dict.fromkeys([*groups, *tasks, *run.groups, *run.tasks])
    return [name for part in (run.groups, run.tasks) for name in order if name in part]


def _score_lines(run: RunRecord, names: Sequence[str]) -> list[str]:
    """The scores of some tasks and groups, wrapped between metrics, with what a reader of them must
    know: the share of the release's records if media may be missing, failed requests, responses
    without an answer by status, and how options were named.
    """
    entries = {**run.groups, **run.tasks}
    longest, columns = max(map(len, names), default=0), width()
    lines = []
    for name in names:
        scores = entries[name]
        parts: list[str] = []
        for metric, score in headline_scores(scores).items():
            parts.append(f"{metric} {format_score(metric, score)}")
            if floors := _floors(score):
                parts.append(floors)
        tasks = run.manifest.groups.get(name, (name,))
        covered = [
            one
            for facts in run.manifest.data.values()
            for one in facts.coverage
            if one.task in tasks
        ]
        if records := sum(one.records for one in covered):
            parts.append(
                f"coverage {sum(one.prepared for one in covered):,} of {records:,} records"
            )
        if scores.without:
            parts.append(f"(without {first_names(scores.without)})")
        if failed := scores.status.get(FAILED):
            parts.append(f"({failed:,} failed)")
        unread = {
            status: count
            for status, count in scores.status.items()
            if status not in (FAILED, *ANSWERED)
        }
        if unread:
            parts.append(f"(no answer extracted: {status_counts(unread)})")
        if undecided := scores.status.get(NO_FINAL_ANSWER):
            parts.append(f"({status_counts({NO_FINAL_ANSWER: undecided})})")
        readings = run.readings(name)
        if by_text := readings["text"]:
            parts.append(f"({by_text:,} read by the option's text)")
        if named := readings["named"]:
            parts.append(f"({named:,} not read, but with one option's text)")

        rounds = f" ({scores.samples} responses)" if scores.samples != scores.items else ""
        line, gap = f"  {name:<{longest}}  n={scores.items:<5}{rounds}", " "
        for part in parts:
            if len(line) + len(gap) + len(part) > columns and line.strip():
                lines.append(line)
                line, gap = " " * (2 + longest), "  "
            line, gap = line + gap + part, "  "
        lines.append(line)
    return lines


def _notes(run: RunRecord, directory: Path | None) -> Iterator[str]:
    every = [score for entry in run.tasks.values() for score in entry.metrics.values()]
    if any(
        score.value is None and score.bounds is not None and score.answered != 0 for score in every
    ):
        yield f"to judge: medtasks judge {directory or 'DIRECTORY'} --judge model=NAME,base_url=ADDRESS"
    manifest, tasks = run.manifest, run.manifest.tasks
    yield from manifest.problems
    yield from decoding_warnings(manifest)
    yield from _notes_on_ends(manifest)
    for name, task in tasks.items():
        if task.scored_in_part:
            yield f"{name}: {task.scored_in_part_text} (`scored_in_part` in its samples)"
    for rubric, judging in sorted(manifest.judge.items()):
        yield f"{rubric}: judged by {judges_of(judging)}"
    if manifest.miniature:
        yield f"Miniature data ({', '.join(sorted(manifest.miniature))}): a demonstration, not a benchmark result."
    if subsets := sorted({task.subset for task in tasks.values()} - {""}):
        yield f"Subset of the clusters ({', '.join(subsets)}): comparable with runs of the same subset only."
    if manifest.has_unknown_prompts:
        yield "Prompts unknown: comparable with other responses made elsewhere only."
    if any(task.blind for task in tasks.values()):
        yield "Blind run: prompts without their images or frames."

    entries = {**run.groups, **run.tasks}
    without: dict[tuple[str, str], list[str]] = {}
    computed = set()
    for name, scores in entries.items():
        for metric, score in scores.metrics.items():
            if score.value is not None:
                computed.add(metric)
            elif score.bounds is None and score.samples:
                without.setdefault((metric, str(score.reason)), []).append(name)
    for (metric, reason), names in sorted(without.items()):
        yield f"{metric}: not computed{f' in {first_names(names)}' * (metric in computed)}, because {reason}"
    for metric in sorted(computed):
        note = getattr(get_metric(metric), "note", None)
        if note is not None and (text := note()) is not None:
            yield text
    if few := [name for name, scores in entries.items() if scores.clusters < FEW_CLUSTERS]:
        yield f"fewer than {FEW_CLUSTERS} clusters: only large differences are detected ({first_names(few)})"
    if incomplete := sum(scores.incomplete for scores in run.tasks.values()):
        items = "item is" if incomplete == 1 else "items are"
        yield f"{incomplete} {items} not scored: not all rounds, rotations or prompts were asked (--limit)"

    of_reason: dict[str, dict[str, int]] = {}
    for name, task in tasks.items():
        for why, count in task.excluded.items():
            of_reason.setdefault(why, {})[name] = count
    for why, counts in of_reason.items():
        yield f"{counted(sum(counts.values()), 'row')} left out ({why}): {first_names([*counts])}"
    for facts in run.manifest.data.values():
        yield from coverage_lines([entry for entry in facts.coverage if entry.task in run.tasks])
        for why, count in facts.excluded.items():
            yield f"excluded when prepared: {counted(count, 'record')} ({why})"


def _notes_on_ends(manifest: RunManifest) -> Iterator[str]:
    """How many responses were cut off, and by how much the limit should be raised."""
    tasks = manifest.tasks
    cut = {name: share for name, task in tasks.items() if (share := task.cut_off)}
    limit = "" if manifest.has_unknown_prompts else " at the token limit"
    if cut:
        worst_first = sorted(cut, key=lambda name: -cut[name])
        shares = [f"{tasks[name].cut_off_text} of {name}" for name in worst_first]
        yield f"cut off{limit}: {first_names(shares)}"
    if max(cut.values(), default=0) > WARNED_SHARE:
        yield f"warning: {_advice_on_limits(manifest, [*cut])}"
    if unknown := [name for name, task in tasks.items() if task.finish.get("unknown")]:
        who = "file" if manifest.has_unknown_prompts else "back-end"
        yield f"cut off{limit}: unknown, the {who} does not say ({first_names(unknown)})"


def _advice_on_limits(manifest: RunManifest, cut: Sequence[str]) -> str:
    if manifest.has_unknown_prompts:
        return "answers after the cut are lost; raise the limit where the predictions are made"
    own = manifest.model.get("max_new_tokens")
    option = "max_new_tokens in --model_args" if own else "--gen_kwargs max_new_tokens"
    limits = sorted(
        {str(own or manifest.tasks[name].generation.get("max_new_tokens")) for name in cut}
    )
    return f"answers after the limit of {first_names(limits)} tokens are lost; raise {option}"
