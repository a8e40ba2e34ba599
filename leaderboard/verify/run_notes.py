"""What a reader must know about a run, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from medtasks.catalog.spec import load_spec
from medtasks.core.text import counted, first_names
from medtasks.runs.manifest import RunManifest, TaskFacts
from medtasks.runs.run_signatures import changed_options
from medtasks.scoring.scores import Scores

from .coverage import release_coverage


def run_notes(manifest: RunManifest, scores: Mapping[str, Scores]) -> Iterator[str]:
    """Sentences on where a run is from, its data, what was asked, and how it was judged.

    ``scores`` are those of its tasks and groups.
    """
    yield from _origin_notes(manifest)
    yield from _data_notes(manifest)
    for name, score in sorted(scores.items()):
        if score.without:
            lacking = first_names(score.without)
            yield f"{name}: scored without {lacking}, because the run has no samples"
    yield from _asked_notes(manifest)
    for task, facts in sorted(manifest.tasks.items()):
        yield from _response_notes(task, facts, manifest)
    yield from manifest.problems
    incomplete = sum(scores[task].incomplete for task in manifest.tasks if task in scores)
    if incomplete:
        yield (
            f"streaming items not scored because not all of their rounds were asked: {incomplete:,}"
        )
    for option, value in changed_options(manifest.settings).items():
        yield f"run with --{option} {value}"
    if manifest.settings.get("predict_only"):
        yield "run with --predict_only"
    yield from _judge_notes(manifest)


def _origin_notes(manifest: RunManifest) -> Iterator[str]:
    """Sentences on responses made elsewhere, scores of another version, and miniature data."""
    if manifest.has_unknown_prompts:
        layout = manifest.model.get("layout", "medtasks_replay")
        yield (
            f"responses made elsewhere ({layout}): prompts, generation settings and frames are "
            "unknown, so it is comparable only with other such runs"
        )
    if manifest.scored is not None:
        before = manifest.versions.get("medtasks", "?")
        now = manifest.scored.get("medtasks", "?")
        yield f"rescored: run with medtasks {before}, scored again with {now}"
    if manifest.miniature:
        names = ", ".join(sorted(manifest.miniature))
        yield f"miniature data ({names}): a demonstration, not a benchmark result"


def _data_notes(manifest: RunManifest) -> Iterator[str]:
    """Sentences on records that are missing or were excluded when the data were prepared."""
    for name, facts in sorted(manifest.data.items()):
        note = coverage_note(manifest, name)
        if note is not None:
            yield note
        for why, count in sorted(facts.excluded.items()):
            yield f"{name}: excluded when the data were prepared: {count:,} ({why})"


def coverage_note(manifest: RunManifest, benchmark: str) -> str | None:
    """The share of a release's records that were prepared; None if all were."""
    release = release_coverage(manifest, benchmark)
    if release.prepared >= release.records:
        return None
    records = f"{release.prepared:,} of the release's {release.records:,} records"
    return f"{benchmark}: coverage {release.share:.0%} ({records})"


def _asked_notes(manifest: RunManifest) -> Iterator[str]:
    """Sentences on what was asked: excluded documents, media, subsets and limits."""
    tasks = dict(sorted(manifest.tasks.items()))
    for task, facts in tasks.items():
        for why, count in sorted(facts.excluded.items()):
            yield f"{task}: documents excluded: {count:,} ({why})"
    blind = [task for task, facts in tasks.items() if facts.blind]
    if len(blind) == len(tasks) > 0:
        yield "blind: prompts without media"
    elif blind:
        yield f"blind: prompts without media ({', '.join(blind)})"
    subsets = {facts.subset for facts in tasks.values()}
    for subset in sorted(subsets - {""}):
        yield f"subset of the clusters ({subset}): comparable with runs of the same subset only"
    answered = sum(facts.answered + facts.missed for facts in tasks.values())
    asked = sum(facts.asked for facts in tasks.values())
    if manifest.settings.get("limit") is not None or manifest.settings.get("offset"):
        yield f"run with --limit: {answered:,} of {asked:,} documents"
    elif answered < asked:
        yield f"{answered:,} of {asked:,} documents were answered"


def _response_notes(task: str, facts: TaskFacts, manifest: RunManifest) -> Iterator[str]:
    """Sentences on a task's responses: failed, cut off, scored in part, or named by text."""
    if facts.pace:
        yield f"{task}: {facts.pace_text}"
    for why, count in sorted(facts.failed.items()):
        yield f"{task}: {counted(count, 'request')} without a response ({why})"
    if facts.cut_off:
        limit = "" if manifest.has_unknown_prompts else " at the token limit"
        yield f"{task}: {facts.cut_off_text} of the responses were cut off{limit}"
    if facts.scored_in_part:
        yield f"{task}: {facts.scored_in_part_text}"
    texts = facts.readings.get("text")
    if texts:
        options = texts + facts.readings.get("letter", 0)
        yield f"{task}: {texts:,} of {options:,} options were named by text, not by letter"


def _judge_notes(manifest: RunManifest) -> Iterator[str]:
    """Sentences on tasks and responses without a verdict, and warnings about judges."""
    judged: set[str] = set()
    for facts in manifest.judge.values():
        judged.update(facts.tasks)
    unjudged = []
    for task in sorted(manifest.tasks):
        if task not in judged and load_spec(task).metadata.rubrics:
            unjudged.append(task)
    if unjudged:
        yield f"not judged: {', '.join(unjudged)}"
    for name, facts in sorted(manifest.judge.items()):
        if facts.unjudged:
            counts = sorted(facts.unjudged.items())
            reasons = ", ".join(f"{why}: {count:,}" for why, count in counts)
            total = sum(facts.unjudged.values())
            yield f"{name}: {total:,} of {facts.asked:,} responses unjudged ({reasons})"
        for warning in facts.warnings:
            yield f"{name}: {warning}"
