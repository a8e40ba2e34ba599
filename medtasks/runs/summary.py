"""A run's scores as plain text, printed at the end of a run."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from medtasks.catalog.benchmark import FAILED
from medtasks.catalog.spec import inner_groups, leaf_tasks, load_specs
from medtasks.core.text import counted, first_names
from medtasks.data.prepared import coverage_lines
from medtasks.metrics.registry import get_metric, is_ours
from medtasks.runs.record import RunRecord
from medtasks.runs.scores import MetricScore, Scores, coverage_text
from medtasks.runs.verdicts import judges_of
from medtasks.stats.paired import FEW_CLUSTERS

_HEADLINE = (
    "accuracy",
    "accuracy_dimension_mean",
    "circular_accuracy",
    "rotation_consistency",
    "letter_preference",
    "worst_prompt",
    "best_prompt",
    "prompt_spread",
    "prompt_agreement",
    "open_total",
    "medreason_total",
    "judged_accuracy",
    "exact_match",
    "rougeL",
    "chrf",
    "content",
    "content_fallback",
    "content_closed",
    "content_closed_fallback",
    "content_open",
    "responsiveness",
    "stability",
    "overall",
    "overall_table4",
    "ece",
    "confidence_given",
)


def format_score(score: MetricScore) -> str:
    """A score with its 95 % interval, in its own unit; if there is none, a note instead."""
    digits = 1 if score.signature.startswith("chrf") or "|scale:0-100" in score.signature else 3
    if score.value is None and score.bounds is None:
        return "not computed"
    if score.value is None:
        return f"{'no response' if score.answered == 0 else 'awaits a judge'} ({_covered_items(score, digits)})"
    text = f"{score.value:.{digits}f}"
    if score.interval is not None:
        low, high = score.interval
        text = f"{text} [{low:.{digits}f}, {high:.{digits}f}]"
    if score.bounds is None:
        return text
    return f"{text} ({'incomplete: ' * score.incomplete}{_covered_items(score, digits)})"


def _covered_items(score: MetricScore, digits: int) -> str:
    """How many items have a response and a verdict, and the range that the others leave open."""
    covered = coverage_text(score.samples, score.answered, score.judged)
    if score.bounds is None or score.known == score.samples:
        return covered
    low, high = score.bounds
    return f"{low:.{digits}f} to {high:.{digits}f}, {covered}"


NARROWEST, USUAL, WIDEST = 80, 100, 120
"""Columns: what the command line's texts are made for at least and at most, and without a terminal."""
LINES = 40
"""Lines of the screen that a summary of saved results must fit."""


def summary(run: RunRecord, directory: Path | None, keep: str = "--output_path") -> str:
    """Scores with intervals by task and group, extraction failures, metrics not computed, and saved files.

    If the results are saved in ``directory``, this is one screen: groups go before their members, and what does not fit
    is counted. The path comes last.
    """
    notes = [*_awaiting(run, directory), *_all_notes(run)]
    if directory is None:
        saved = f"  nothing was saved: give {keep} to keep samples, scores and manifest"
        shown = in_order(run)
    else:
        saved = f"  samples, scores and manifest: {directory}"
        notes = _fitting(notes, LINES // 3)
        shown = _shown(run, LINES - 4 - sum(map(_height, [*notes, saved])))
    lines = ["", "medtasks: scores with 95 % cluster-bootstrap intervals", *_score_lines(run, shown)]
    hidden = len(run.groups) + len(run.tasks) - len(shown)
    if hidden:
        lines.append(f"  and {hidden} more tasks and groups: scores.json in the directory below")
    return "\n".join([*lines, *notes, saved])


def width() -> int:
    """The columns of the terminal or, where the output is none, of the variable ``COLUMNS``; within limits."""
    return max(NARROWEST, min(shutil.get_terminal_size((USUAL, LINES)).columns, WIDEST))


def in_order(run: RunRecord) -> list[str]:
    """Groups before all tasks, both in the order of their groups' files."""
    known = load_specs()
    named = [name for name in known if name in run.groups or name in run.tasks]
    groups = [inner for name in named for inner in inner_groups(name)]
    tasks = [leaf for name in named for leaf in leaf_tasks(name)]
    order = dict.fromkeys([*groups, *tasks, *run.groups, *run.tasks])
    return [name for part in (run.groups, run.tasks) for name in order if name in part]


def _awaiting(run: RunRecord, directory: Path | None) -> list[str]:
    """The command that judges what awaits a judge."""
    scores = [score for entry in run.tasks.values() for score in entry.metrics.values()]
    if not any(score.value is None and score.bounds is not None and score.answered != 0 for score in scores):
        return []
    return [f"  to judge: medtasks judge {directory or 'DIRECTORY'} --judge model=NAME,base_url=ADDRESS"]


def _score_lines(run: RunRecord, names: Sequence[str]) -> list[str]:
    """The scores of some tasks and groups, wrapped between metrics."""
    entries = {**run.groups, **run.tasks}
    longest, columns = max(map(len, names), default=0), width()
    lines = []
    for name in names:
        scores = entries[name]
        rounds = f" ({scores.samples} responses)" if scores.samples != scores.items else ""
        parts = [
            *(f"{metric} {format_score(score)}" for metric, score in headline_scores(scores).items()),
            *_beside(run, name, scores),
        ]
        line, gap = f"  {name:<{longest}}  n={scores.items:<5}{rounds}", " "
        for part in parts:
            if len(line) + len(gap) + len(part) > columns and line.strip():
                lines.append(line)
                line, gap = " " * (2 + longest), "  "
            line, gap = line + gap + part, "  "
        lines.append(line)
    return lines


def _shown(run: RunRecord, room: int) -> list[str]:
    """All tasks and groups if they fit ``room`` lines; else the outermost ones, as many as fit."""
    names = in_order(run)
    inner = {
        name
        for group, leaves in run.manifest.groups.items()
        for name in names
        if name != group and set(run.manifest.groups.get(name, (name,))) < set(leaves)
    }
    for chosen in (names, [name for name in names if name not in inner]):
        if len(_score_lines(run, chosen)) <= room:
            return chosen
    while len(_score_lines(run, chosen)) > room:
        chosen = chosen[:-1]
    return chosen


def _fitting(notes: Sequence[str], room: int) -> list[str]:
    """The first of ``notes`` that fit ``room`` lines, and how many do not."""
    kept: list[str] = []
    for note in notes:
        if sum(map(_height, [*kept, note])) > room:
            return [*kept, f"  and {len(notes) - len(kept)} more notes: manifest.json and scores.json"]
        kept.append(note)
    return kept


def _height(line: str) -> int:
    return max(1, -(-len(line) // width()))


def _all_notes(run: RunRecord) -> list[str]:
    """What limits the scores: metrics not computed, problems, few clusters, excluded rows, miniature data."""
    entries = {**run.groups, **run.tasks}
    lines = [f"  {problem}" for problem in (*run.manifest.problems, *_cut_off(run))]
    lines += [f"  {rubric}: judged by {judges_of(facts)}" for rubric, facts in sorted(run.manifest.judge.items())]
    mini = sorted(name for name, facts in run.manifest.data.items() if facts.mini)
    if mini:
        lines.append(f"  Miniature data ({', '.join(mini)}): a demonstration, not a benchmark result.")
    if subsets := sorted({task.subset for task in run.manifest.tasks.values()} - {""}):
        lines.append(f"  Subset of the clusters ({', '.join(subsets)}): comparable with runs of the same subset only.")
    if any(task.blind for task in run.manifest.tasks.values()):
        lines.append("  Blind run: prompts without their images or frames.")
    lines += [f"  {line}" for line in _not_computed(entries)]
    lines += [f"  {note}" for note in _notes(entries.values())]
    few = [name for name, scores in entries.items() if scores.clusters < FEW_CLUSTERS]
    if few:
        lines.append(f"  fewer than {FEW_CLUSTERS} clusters: intervals are too narrow ({first_names(few)})")
    incomplete = sum(scores.incomplete for scores in run.tasks.values())
    if incomplete:
        lines.append(
            f"  {incomplete} {'item is' if incomplete == 1 else 'items are'} not scored: not all rounds, rotations or "
            "prompts were asked (--limit)"
        )
    lines += [f"  {line}" for line in _left_out(run)]
    for facts in run.manifest.data.values():
        covered = [entry for entry in facts.coverage if entry.task in run.tasks]
        lines += [f"  {line}" for line in coverage_lines(covered)]
        lines += [
            f"  excluded when prepared: {counted(count, 'record')} ({why})" for why, count in facts.excluded.items()
        ]
    return lines


def _not_computed(entries: Mapping[str, Scores]) -> list[str]:
    """Each metric without a value, why, and in which tasks and groups if others have one."""
    without: dict[tuple[str, str], list[str]] = {}
    computed = set()
    for name, scores in entries.items():
        for metric, score in scores.metrics.items():
            if score.value is None and score.bounds is None and score.samples:
                without.setdefault((metric, str(score.reason)), []).append(name)
            elif score.value is not None:
                computed.add(metric)
    return [
        f"{metric}: not computed{f' in {first_names(names)}' * (metric in computed)}, because {reason}"
        for (metric, reason), names in sorted(without.items())
    ]


CUT_OFF = 0.01
"""The largest share of responses that may be cut off without a warning."""


def _cut_off(run: RunRecord) -> Iterator[str]:
    """How many responses the token limit cut off, with the option that raises it if they are too many."""
    tasks = run.manifest.tasks
    cut = {name: share for name, task in tasks.items() if (share := task.cut_off)}
    if cut:
        worst_first = sorted(cut.items(), key=lambda one: -one[1])
        shares = [f"{share:.{1 if share < CUT_OFF else 0}%} of {name}" for name, share in worst_first]
        yield f"cut off at the token limit: {first_names(shares)}"
    if max(cut.values(), default=0) > CUT_OFF:
        own = run.manifest.model.get("max_new_tokens")
        option = "max_new_tokens in --model_args" if own else "--gen_kwargs max_new_tokens"
        limits = sorted({str(own or tasks[name].generation.get("max_new_tokens")) for name in cut})
        yield f"warning: answers after the limit of {first_names(limits)} tokens are lost; raise {option}"
    unknown = [name for name, task in tasks.items() if task.finish.get("unknown")]
    if unknown:
        yield f"cut off at the token limit: unknown, the back-end does not say ({first_names(unknown)})"


def _left_out(run: RunRecord) -> Iterator[str]:
    """How many rows the tasks leave out, by reason."""
    of_reason: dict[str, dict[str, int]] = {}
    for name, task in run.manifest.tasks.items():
        for why, count in task.excluded.items():
            of_reason.setdefault(why, {})[name] = count
    for why, counts in of_reason.items():
        total = sum(counts.values())
        yield f"{total:,} {'row' if total == 1 else 'rows'} left out ({why}): {first_names([*counts])}"


def _notes(entries: Iterable[Scores]) -> list[str]:
    """Notes from the metrics with a score, about this machine."""
    names = {name for scores in entries for name, score in scores.metrics.items() if score.value is not None}
    notes = (getattr(get_metric(name), "note", None) for name in sorted(names))
    return [text for note in notes if note is not None and (text := note()) is not None]


def headline_scores(scores: Scores) -> dict[str, MetricScore]:
    """The main ones of our metrics, and all metrics of other packages and of rubrics."""
    theirs = [name for name in scores.metrics if not is_ours(name)]
    shown = {name: scores.metrics[name] for name in (*_HEADLINE, *theirs) if name in scores.metrics}
    return {name: score for name, score in (shown or scores.metrics).items() if score.samples}


def _beside(run: RunRecord, name: str, scores: Scores) -> Iterator[str]:
    """What a reader of the scores must know: the share of the release's records if media may be missing, failed
    requests, responses without an answer by status, and how options were named."""
    tasks = {name} if name in run.tasks else {*run.manifest.groups[name]}
    entries = [one for facts in run.manifest.data.values() for one in facts.coverage if one.task in tasks]
    if records := sum(one.records for one in entries):
        yield f"coverage {sum(one.prepared for one in entries):,} of {records:,} records"
    if failed := scores.status.get(FAILED):
        yield f"({failed:,} failed)"
    shown = {FAILED, "ok", "unanswerable"}
    if unread := [f"{status} {count}" for status, count in scores.status.items() if status not in shown]:
        yield f"(no answer extracted: {', '.join(unread)})"
    readings = run.readings(name)
    if by_text := readings["text"]:
        yield f"({by_text:,} read by the option's text)"
    if named := readings["named"]:
        yield f"({named:,} not read, but with one option's text)"
