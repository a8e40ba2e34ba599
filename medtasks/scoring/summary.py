"""A run's scores as plain text, printed at the end of a run."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from medtasks.catalog.spec import inner_groups, leaf_tasks, load_specs
from medtasks.catalog.statuses import ANSWERED, FAILED, NO_FINAL_ANSWER, status_counts
from medtasks.core.text import counted, first_names
from medtasks.data.prepared import coverage_lines
from medtasks.metrics.registry import facts_of, get_metric, is_ours, unit_of
from medtasks.runs.decoding import decoding_warnings
from medtasks.runs.manifest import WARNED_SHARE, RunManifest
from medtasks.scoring.judged_scores import judges_of
from medtasks.scoring.run_record import RunRecord
from medtasks.scoring.scores import MetricScore, Scores, ScoreState, coverage_text
from medtasks.stats.cautions import FEW_CLUSTERS

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
        responses = ""
        if scores.samples != scores.items:
            responses = f" ({scores.samples} responses)"
        line = f"  {name:<{longest}}  n={scores.items:<5}{responses}"
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
    for metric, score in headline_scores(scores).items():
        yield f"{metric} {format_score(metric, score)}"
        floors = _floors(score)
        if floors:
            yield floors


def _remarks(run: RunRecord, name: str, scores: Scores) -> Iterator[str]:
    """What a reader of the scores must know.

    It is the share of the release's records if media may be missing, failed requests, responses
    without an answer by status, and how options were named.
    """
    tasks = run.manifest.groups.get(name, (name,))
    records = prepared = 0
    for data in run.manifest.data.values():
        for coverage in data.coverage:
            if coverage.task in tasks:
                records += coverage.records
                prepared += coverage.prepared
    if records:
        yield f"coverage {prepared:,} of {records:,} records"
    if scores.without:
        yield f"(without {first_names(scores.without)})"
    if scores.status.get(FAILED):
        yield f"({scores.status[FAILED]:,} failed)"
    unread = dict(scores.status)
    for status in (FAILED, *ANSWERED):
        unread.pop(status, None)
    if unread:
        yield f"(no answer extracted: {status_counts(unread)})"
    undecided = scores.status.get(NO_FINAL_ANSWER)
    if undecided:
        yield f"({status_counts({NO_FINAL_ANSWER: undecided})})"
    readings = run.readings(name)
    if readings["text"]:
        yield f"({readings['text']:,} read by the option's text)"
    if readings["named"]:
        yield f"({readings['named']:,} not read, but with one option's text)"


def _notes(run: RunRecord, directory: Path | None) -> Iterator[str]:
    """What a reader of all scores must know, a line each."""
    if _awaits_judge(run):
        place = directory or "DIRECTORY"
        yield f"to judge: medtasks judge {place} --judge model=NAME,base_url=ADDRESS"
    yield from run.manifest.problems
    yield from decoding_warnings(run.manifest)
    yield from _notes_on_ends(run.manifest)
    yield from _notes_on_protocol(run.manifest)
    yield from _notes_on_metrics(run)
    yield from _notes_on_items(run)
    yield from _notes_on_rows(run)


def _awaits_judge(run: RunRecord) -> bool:
    for scores in run.tasks.values():
        if any(score.state is ScoreState.AWAITS_JUDGE for score in scores.metrics.values()):
            return True
    return False


def _notes_on_protocol(manifest: RunManifest) -> Iterator[str]:
    tasks = manifest.tasks
    for name, task in tasks.items():
        if task.scored_in_part:
            yield f"{name}: {task.scored_in_part_text} (`scored_in_part` in its samples)"
    for rubric, judging in sorted(manifest.judge.items()):
        yield f"{rubric}: judged by {judges_of(judging)}"
    if manifest.miniature:
        benchmarks = ", ".join(sorted(manifest.miniature))
        yield f"Miniature data ({benchmarks}): a demonstration, not a benchmark result."
    subsets = sorted({task.subset for task in tasks.values()} - {""})
    if subsets:
        yield (
            f"Subset of the clusters ({', '.join(subsets)}): "
            "comparable with runs of the same subset only."
        )
    if manifest.has_unknown_prompts:
        yield "Prompts unknown: comparable with other responses made elsewhere only."
    if any(task.blind for task in tasks.values()):
        yield "Blind run: prompts without their images or frames."


def _notes_on_metrics(run: RunRecord) -> Iterator[str]:
    """Which metrics were not computed and why, and the notes of the others."""
    names_by_problem: dict[tuple[str, str], list[str]] = {}
    computed: set[str] = set()
    for name, scores in {**run.groups, **run.tasks}.items():
        for metric, score in scores.metrics.items():
            if score.state is ScoreState.COMPUTED:
                computed.add(metric)
            elif score.state is ScoreState.NOT_COMPUTED and score.samples:
                names_by_problem.setdefault((metric, str(score.reason)), []).append(name)
    for (metric, reason), names in sorted(names_by_problem.items()):
        where = f" in {first_names(names)}" if metric in computed else ""
        yield f"{metric}: not computed{where}, because {reason}"
    for metric in sorted(computed):
        note = getattr(get_metric(metric), "note", None)
        text = None if note is None else note()
        if text is not None:
            yield text


def _notes_on_items(run: RunRecord) -> Iterator[str]:
    """Tasks and groups with few clusters, and items that are not scored."""
    few = []
    for name, scores in {**run.groups, **run.tasks}.items():
        if scores.clusters < FEW_CLUSTERS:
            few.append(name)
    if few:
        yield (
            f"fewer than {FEW_CLUSTERS} clusters: "
            f"only large differences are detected ({first_names(few)})"
        )
    incomplete = sum(scores.incomplete for scores in run.tasks.values())
    if incomplete:
        items = "item is" if incomplete == 1 else "items are"
        yield (
            f"{incomplete} {items} not scored: "
            "not all rounds, rotations or prompts were asked (--limit)"
        )


def _notes_on_rows(run: RunRecord) -> Iterator[str]:
    """Rows and records of the data that no task has."""
    counts_by_reason: dict[str, dict[str, int]] = {}
    for name, task in run.manifest.tasks.items():
        for reason, count in task.excluded.items():
            counts_by_reason.setdefault(reason, {})[name] = count
    for reason, counts in counts_by_reason.items():
        rows = counted(sum(counts.values()), "row")
        yield f"{rows} left out ({reason}): {first_names(counts)}"
    for data in run.manifest.data.values():
        yield from coverage_lines([entry for entry in data.coverage if entry.task in run.tasks])
        for reason, count in data.excluded.items():
            yield f"excluded when prepared: {counted(count, 'record')} ({reason})"


def _notes_on_ends(manifest: RunManifest) -> Iterator[str]:
    """How many responses were cut off, and by how much the limit should be raised."""
    tasks = manifest.tasks
    cut: dict[str, float] = {}
    unknown: list[str] = []
    for name, task in tasks.items():
        if task.cut_off:
            cut[name] = task.cut_off
        if task.finish.get("unknown"):
            unknown.append(name)
    limit = "" if manifest.has_unknown_prompts else " at the token limit"
    if cut:
        worst_first = sorted(cut, key=lambda name: -cut[name])
        shares = [f"{tasks[name].cut_off_text} of {name}" for name in worst_first]
        yield f"cut off{limit}: {first_names(shares)}"
    if max(cut.values(), default=0) > WARNED_SHARE:
        yield f"warning: {_advice_on_limits(manifest, [*cut])}"
    if unknown:
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
