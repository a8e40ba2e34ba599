"""Whether a run that could be read may stand in a ranking: complete, comparable, covered, judged, nothing hidden."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from medtasks.registry import get_benchmark
from medtasks.results.manifest import RunManifest, TaskFacts
from medtasks.results.samples import Sample
from medtasks.results.scoring import COVERAGE, coverage_text
from medtasks.spec import leaf_tasks, load_spec
from medtasks.validation.findings import Finding, Severity
from medtasks.validation.rendered import leaks

from .check_rules import problem
from .digest import Digest
from .documents import document_of
from .standings import protocols_today
from .strip import card_of, is_stripped, is_withheld
from .tables import is_incomplete

__all__ = ["Asked", "check_run"]

_MOST = 5
"""Findings of one kind in one task."""


@dataclass(frozen=True)
class Asked:
    """What a repository asks of its submissions: `medtasks.leaderboard.check.check_results` explains each."""

    coverage: float
    demonstration: bool
    public: bool


def check_run(
    folder: Path, manifest: RunManifest, samples: Mapping[str, Sequence[Sample]], digest: Digest, asked: Asked
) -> Iterator[Finding]:
    """Findings about a run whose folder holds ``manifest`` and ``samples``, and of which ``digest`` was made."""
    known = {name: facts for name, facts in manifest.tasks.items() if name in digest.entries}
    for name in sorted(manifest.tasks.keys() - known.keys()):
        told, wanted = "no installed package has this task", "one that has"
        yield problem("LB207", name, told, wanted, "install it to have the task shown")
    yield from _complete(folder, manifest, digest, known)
    yield from _data(folder, manifest, asked)
    for name, facts in known.items():
        mini = manifest.data[facts.benchmark].mini
        yield from _comparable(folder, name, facts)
        yield from _shareable(folder, name, facts, samples[name], asked.public and not mini, mini)
        yield from _hidden(folder, name, facts, samples[name])
    yield from _judged(folder, digest, known)


def _complete(folder: Path, manifest: RunManifest, digest: Digest, known: Mapping[str, TaskFacts]) -> Iterator[Finding]:
    path = folder / "manifest.json"
    for option in ("limit", "offset"):
        if value := manifest.settings.get(option):
            told, fix = f"--{option} {value}", f"run again without --{option}"
            yield problem("LB201", folder.name, told, "all documents", fix, file=path, field=f"settings.{option}")
    for name, facts in known.items():
        yield from _failed(path, name, facts)
        if digest.complete[name]:
            continue
        told = f"{facts.attempted:,} of {facts.asked:,} documents were asked"
        if facts.attempted == facts.asked:
            told = f"{digest.entries[name].scores.incomplete:,} streaming items lack some of their rounds"
        fix, field = "run the task to its end", f"tasks.{name}.answered"
        yield problem("LB201", name, told, "all documents", fix, file=path, field=field)
    for name, members in manifest.groups.items():
        lacking = sorted(set(leaf_tasks(name)) - set(members)) if name in digest.entries else []
        if lacking:
            told, fix = f"the group lacks {', '.join(lacking[:_MOST])}", "run the whole group to have it ranked"
            yield problem("LB208", name, told, "all of its tasks", fix, file=path, field=f"groups.{name}")


def _failed(path: Path, name: str, facts: TaskFacts) -> Iterator[Finding]:
    """Requests that got no response: refused where a score over the others would be marked incomplete."""
    failed = sum(facts.failed.values())
    if not failed:
        return
    reasons = "; ".join(f"{count:,} × {reason}" for reason, count in list(facts.failed.items())[:_MOST])
    told = f"{failed:,} of {facts.attempted:,} requests have no response ({reasons})"
    fix = "give the command of the run once more: it asks only for these"
    severity: Severity = "error" if facts.answered < COVERAGE * facts.attempted else "warning"
    yield problem(
        "LB210", name, told, "a response to each", fix, file=path, field=f"tasks.{name}.failed", severity=severity
    )


def _data(folder: Path, manifest: RunManifest, asked: Asked) -> Iterator[Finding]:
    path = folder / "manifest.json"
    for name, facts in manifest.data.items():
        if facts.mini:
            if not asked.demonstration:
                fix, field = "prepare the release and run on it", f"data.{name}.mini"
                yield problem("LB202", name, "miniature data", "the release", fix, file=path, field=field)
            continue
        tasks = {task for task, one in manifest.tasks.items() if one.benchmark == name}
        entries = [entry for entry in facts.coverage if entry.task in tasks]
        prepared, records = sum(one.prepared for one in entries), sum(one.records for one in entries)
        if prepared < asked.coverage * records:
            told = f"{prepared:,} of the release's {records:,} records ({prepared / records:.1%})"
            wanted, fix = f"{asked.coverage:.0%} or more", "obtain the missing media, prepare and run again"
            yield problem("LB204", name, told, wanted, fix, file=path, field=f"data.{name}.coverage")


def _comparable(folder: Path, name: str, facts: TaskFacts) -> Iterator[Finding]:
    path = folder / "manifest.json"
    if facts.blind:
        told, fix = "prompts went without their media", "nothing to fix; it stands apart, beside the model"
        yield problem("LB206", name, told, "media", fix, file=path, field=f"tasks.{name}.blind")
        return
    today, spec = protocols_today(name), load_spec(name)
    pairs = {
        "task file": (facts.yaml_hash, spec.yaml_hash),
        "prompt": (facts.prompt_hash, spec.prompt_hash or ""),
        "generation settings": (facts.generation, spec.generation),
        "cap on frames": (facts.frames.get("cap"), None),
    }
    others = [f"{what} {here!r} instead of {there!r}" for what, (here, there) in pairs.items() if here != there]
    others += [f"back-end's {what}: {value}" for what, value in facts.presentation.items()]
    if facts.protocol_hash in today and not others:
        return
    told = f"{facts.protocol_hash} ({'; '.join(others) or 'other filters, metrics or versions'})"
    wanted = f"{' or '.join(sorted(today))}, as the task files installed here give"
    fix = "run by the task file alone, or score the folder again where only scoring changed"
    yield problem("LB203", name, told, wanted, fix, file=path, field=f"tasks.{name}.protocol_hash")


def _shareable(
    folder: Path, name: str, facts: TaskFacts, samples: Sequence[Sample], public: bool, mini: bool
) -> Iterator[Finding]:
    """Nothing in the samples that must not be shared; the rows of miniature data are nobody's."""
    path = folder / "samples" / f"{name}.jsonl"
    withheld = is_withheld(facts.benchmark)
    if is_stripped(samples):
        fix = "submit the folder as the run wrote it"
        if withheld:
            fix = "nothing to fix; its statistics can only be trusted"
        severity: Severity | None = "note" if withheld else None
        yield problem("LB305", name, "neither prompts nor responses", "both", fix, file=path, severity=severity)
    elif withheld and not mini:
        card = card_of(facts.benchmark)
        why = card.why if card is not None and card.why else "no card allows more"
        told = f"{len(samples):,} samples with prompts, references and responses ({why.rstrip('.')})"
        fix = "publish what `medtasks leaderboard strip` leaves, or keep the repository private"
        wanted, severity = "ids, extracted options and scores alone", None if public else "warning"
        yield problem("LB304", name, told, wanted, fix, file=path, severity=severity)


def _hidden(folder: Path, name: str, facts: TaskFacts, samples: Sequence[Sample]) -> Iterator[Finding]:
    """Prompts that show what the benchmark hides (the answer, the evidence, a description of the image)."""
    path = folder / "samples" / f"{name}.jsonl"
    visible = get_benchmark(facts.benchmark).visible_fields
    found = 0
    for line, sample in enumerate(samples, start=1):
        for field, text in _leaks(sample, visible):
            found += 1
            if found <= _MOST:
                told, fix = f"the prompt holds {text[:60]!r}", "run again with a template that does not show it"
                where = f"{name}: {sample.sample_id}"
                yield problem("LB303", where, told, "nothing of it", fix, file=path, line=line, field=field)


def _leaks(sample: Sample, visible: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Hidden fields, and their text in the prompt as it was asked; the same rule as for templates."""
    yield from leaks(document_of(sample), visible, sample.prompt)


def _judged(folder: Path, digest: Digest, known: Mapping[str, TaskFacts]) -> Iterator[Finding]:
    """Scores that await a judge, or rest on too few verdicts; an error where the benchmark's headline has them."""
    cards = [card for name in {facts.benchmark for facts in known.values()} if (card := card_of(name)) is not None]
    headline = {(column.task, column.metric) for card in cards for column in card.headline}
    for name, entry in digest.entries.items():
        for metric, score in entry.scores.metrics.items():
            if score.judged is None or not score.samples or not (score.value is None or is_incomplete(score)):
                continue
            told = f"{coverage_text(score.samples, None, score.judged)}"
            fix, path = f"run `medtasks judge {folder.name} --judge FILE`", folder / "scores.json"
            severity: Severity = "error" if (name, metric) in headline else "warning"
            yield problem("LB205", name, told, "all of them", fix, file=path, field=metric, severity=severity)
