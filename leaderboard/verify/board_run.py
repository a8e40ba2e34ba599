"""The facts of a run as the board shows them: strings, without local paths and secrets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from medtasks.catalog.registry import get_benchmark
from medtasks.catalog.spec import load_spec
from medtasks.core.redaction import shown, shown_facts
from medtasks.core.text import counted
from medtasks.runs.manifest import RunManifest, created_at
from medtasks.runs.scores import Scores
from medtasks.runs.signature import changed_options
from medtasks.runs.verdicts import judge_names

from ..board.board import BoardRun
from ..board.commands import commands
from ..board.models import model_arguments, model_key, model_name


def board_run(manifest: RunManifest, folder: str, digest: str, notes: Sequence[str]) -> BoardRun:
    """The facts of the run in the directory called ``folder``, with the content ``digest``."""
    model = {key: value for key, value in model_arguments(manifest).items() if key != "processes"}
    return BoardRun(
        key=f"run-{digest[:12]}",
        folder=shown(folder),
        digest=digest,
        created=created_at(manifest),
        model=model_key(manifest),
        versions={
            **shown_facts(manifest.versions),
            **{f"{name} (scored)": shown(one) for name, one in sorted((manifest.scored or {}).items())},
        },
        model_facts={**shown_facts(model), "name": model_name(manifest)},
        settings={**shown_facts(manifest.settings), "processes": str(manifest.processes)},
        generation={task: shown(one.generation) for task, one in sorted(manifest.tasks.items())},
        protocols={task: one.protocol_hash for task, one in sorted(manifest.tasks.items())},
        prompts={task: one.prompt_hash for task, one in sorted(manifest.tasks.items())},
        data={name: one.fingerprint for name, one in sorted(manifest.data.items())},
        judges={
            name: f"{', '.join(shown(one) for one in facts.judges)} (rubric {facts.rubric_hash}, judge "
            f"{facts.judge_hash}{f', {facts.combine}' if len(facts.judges) > 1 else ''})"
            for name, facts in sorted(manifest.judge.items())
        },
        judged_by={task: shown(names) for task, names in judge_names(manifest).items()},
        counts={
            task: {
                "asked": one.asked,
                "answered": one.answered,
                **{f"status {key}": n for key, n in one.status.items()},
                **{f"finish {key}": n for key, n in one.finish.items()},
            }
            for task, one in sorted(manifest.tasks.items())
        },
        commands=commands(manifest, folder),
        mini=any(one.mini for one in manifest.data.values()),
        notes=tuple(shown(note) for note in notes),
        usage=manifest.usage,
    )


def release_coverage(manifest: RunManifest, benchmark: str) -> tuple[int, int]:
    """The number of prepared records, and the number in the release.

    They are those of the run's tasks if the data count records by task. If the source had fewer records than were
    published, whatever it counted, all prepared records are compared with the published number, which says nothing
    about tasks whose rows it does not count (`Benchmark.apart`).
    """
    facts = manifest.data[benchmark]
    known = get_benchmark(benchmark)
    own = [task for task, one in manifest.tasks.items() if one.benchmark == benchmark]
    counted = [task for task in own if known.apart is None or known.apart not in task]
    published = known.published.get("rows", 0) if counted else 0
    excluded = sum(facts.excluded.values())
    source = sum(entry.records for entry in facts.coverage) or facts.records
    if not facts.mini and source + excluded < published:
        return facts.records, published
    if not facts.coverage:
        return facts.records, facts.records + excluded
    tasks = {task for task, one in manifest.tasks.items() if one.benchmark == benchmark}
    entries = [entry for entry in facts.coverage if entry.task in tasks]
    return sum(one.prepared for one in entries), sum(one.records for one in entries)


def run_notes(manifest: RunManifest, scores: Mapping[str, Scores]) -> Iterator[str]:
    """What a reader must know about a run and the ``scores`` of its tasks and groups, a sentence each: where it comes
    from, its data, what was asked, and how it was judged."""
    if "layout" in manifest.model:
        yield (
            f"predictions from elsewhere ({manifest.model['layout']}): prompt, generation settings and frames are "
            "unknown, so it is comparable with no other run"
        )
    if manifest.scored is not None:
        before, now = manifest.versions.get("medtasks", "?"), manifest.scored.get("medtasks", "?")
        yield f"rescored: run with medtasks {before}, scored again with {now}"
    if manifest.miniature:
        yield f"miniature data ({', '.join(sorted(manifest.miniature))}): a demonstration, not a benchmark result"
    for name, facts in sorted(manifest.data.items()):
        prepared, records = release_coverage(manifest, name)
        if prepared < records:
            yield f"{name}: coverage {prepared / records:.0%} ({prepared:,} of the release's {records:,} records)"
        for why, count in sorted(facts.excluded.items()):
            yield f"{name}: excluded when the data were prepared: {count:,} ({why})"
    tasks = dict(sorted(manifest.tasks.items()))
    for task, one in tasks.items():
        for why, count in sorted(one.excluded.items()):
            yield f"{task}: documents excluded: {count:,} ({why})"
    if blind := [task for task, one in tasks.items() if one.blind]:
        yield "blind: prompts without media" + ("" if len(blind) == len(tasks) else f" ({', '.join(blind)})")
    for subset in sorted({one.subset for one in tasks.values()} - {""}):
        yield f"subset of the clusters ({subset}): comparable with runs of the same subset only"
    yield from _answers(manifest, scores)
    judged = {task for facts in manifest.judge.values() for task in facts.tasks}
    if unjudged := [task for task in tasks if task not in judged and load_spec(task).metadata.rubrics]:
        yield f"not judged: {', '.join(unjudged)}"
    for name, rubric in sorted(manifest.judge.items()):
        if rubric.unjudged:
            reasons = ", ".join(f"{why}: {count:,}" for why, count in sorted(rubric.unjudged.items()))
            yield f"{name}: {sum(rubric.unjudged.values()):,} of {rubric.asked:,} responses unjudged ({reasons})"
        yield from (f"{name}: {warning}" for warning in rubric.warnings)


def _answers(manifest: RunManifest, scores: Mapping[str, Scores]) -> Iterator[str]:
    answered = sum(one.answered for one in manifest.tasks.values())
    asked = sum(one.asked for one in manifest.tasks.values())
    limit, offset = manifest.settings.get("limit"), manifest.settings.get("offset")
    if limit is not None or offset:
        yield f"run with --limit: {answered:,} of {asked:,} documents"
    elif answered < asked:
        yield f"{answered:,} of {asked:,} documents were answered"
    for task, one in sorted(manifest.tasks.items()):
        for why, count in sorted(one.failed.items()):
            yield f"{task}: {counted(count, 'request')} without a response ({why})"
        if share := one.cut_off:
            yield f"{task}: {share:.0%} of the responses were cut off at the token limit"
        if texts := one.readings.get("text"):
            options = texts + one.readings.get("letter", 0)
            yield f"{task}: {texts:,} of {options:,} options were named by text, not by letter"
    yield from manifest.problems
    incomplete = sum(scores[task].incomplete for task in manifest.tasks if task in scores)
    if incomplete:
        yield f"streaming items not scored because not all of their rounds were asked: {incomplete:,}"
    for option, value in changed_options(manifest.settings).items():
        yield f"run with --{option} {value}"
    if manifest.settings.get("predict_only"):
        yield "run with --predict_only"
