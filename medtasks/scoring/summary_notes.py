"""Notes below a run's scores: what a reader must know to interpret them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from medtasks.core.text import counted, first_names
from medtasks.data.prepared import coverage_lines
from medtasks.metrics.registry import get_metric
from medtasks.runs.decoding import decoding_warnings
from medtasks.runs.manifest import WARNED_SHARE, RunManifest
from medtasks.scoring.judge_identity import judges_of
from medtasks.scoring.run_record import RunRecord
from medtasks.scoring.scores import ScoreState
from medtasks.stats.cautions import FEW_CLUSTERS


def summary_notes(run: RunRecord, directory: Path | None) -> Iterator[str]:
    """What a reader of all scores must know, a line each."""
    if _awaits_judge(run):
        place = directory or "DIRECTORY"
        yield f"to judge: medtasks judge {place} --judge model=NAME,base_url=ADDRESS"
    yield from run.manifest.problems
    yield from decoding_warnings(run.manifest)
    yield from _notes_on_ends(run.manifest)
    yield from _notes_on_scoring(run.manifest)
    yield from _notes_on_protocol(run.manifest)
    yield from _notes_on_metrics(run)
    yield from _notes_on_items(run)
    yield from _notes_on_rows(run)


def _awaits_judge(run: RunRecord) -> bool:
    """Whether a task has a metric without verdicts."""
    for scores in run.tasks.values():
        if any(score.state is ScoreState.AWAITS_JUDGE for score in scores.metrics.values()):
            return True
    return False


def _notes_on_scoring(manifest: RunManifest) -> Iterator[str]:
    """Which responses were scored in part, and who judged under each rubric."""
    for name, task in manifest.tasks.items():
        if task.scored_in_part:
            yield f"{name}: {task.scored_in_part_text} (`scored_in_part` in its samples)"
    for rubric, judging in sorted(manifest.judge.items()):
        yield f"{rubric}: judged by {judges_of(judging)}"


def _notes_on_protocol(manifest: RunManifest) -> Iterator[str]:
    """How the run deviates from a full run of the prompts that the task files declare."""
    if manifest.miniature:
        benchmarks = ", ".join(sorted(manifest.miniature))
        yield f"Miniature data ({benchmarks}): a demonstration, not a benchmark result."
    subsets = sorted({task.subset for task in manifest.tasks.values()} - {""})
    if subsets:
        yield (
            f"Subset of the clusters ({', '.join(subsets)}): "
            "comparable with runs of the same subset only."
        )
    if manifest.has_unknown_prompts:
        yield "Prompts unknown: comparable with other responses made elsewhere only."
    if any(task.blind for task in manifest.tasks.values()):
        yield "Blind run: prompts without their images or frames."
    for name, task in manifest.tasks.items():
        if task.pace:
            yield f"{name}: {task.pace_text}"


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
    """Which option raises the token limit at which responses of the tasks in ``cut`` ended."""
    if manifest.has_unknown_prompts:
        return "answers after the cut are lost; raise the limit where the predictions are made"
    option = "max_new_tokens in --model_args"
    limits = {str(manifest.model.get("max_new_tokens"))}
    if not manifest.model.get("max_new_tokens"):
        option = "--gen_kwargs max_new_tokens"
        limits = {str(manifest.tasks[name].generation.get("max_new_tokens")) for name in cut}
    tokens = first_names(sorted(limits))
    return f"answers after the limit of {tokens} tokens are lost; raise {option}"
