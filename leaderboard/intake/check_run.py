"""Whether a run can be ranked: complete, comparable, sufficiently covered, judged, verified, no leaked answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from medtasks.catalog.registry import get_benchmark
from medtasks.catalog.spec import leaf_tasks, load_spec
from medtasks.core.findings import Finding, Severity
from medtasks.core.text import counted, first_names
from medtasks.metrics.learned import LEARNED
from medtasks.runs.manifest import filter_versions
from medtasks.runs.samples import lacks_texts
from medtasks.runs.scored import with_learned_metrics
from medtasks.runs.scores import COVERAGE, coverage_text
from medtasks.runs.signature import changed_options
from medtasks.validate.rendered import leaks
from medtasks.verify.documents import is_miniature

from ..board.rows import is_incomplete
from ..rank.comparability import protocols_today, released_share
from ..verify.board_run import release_coverage
from .check_rules import MOST, Asked, Submission, problem
from .remove_rows import is_withheld, layout_of

_TOLERANCE = 1e-3
"""A learned score depends a little on the others in its batch."""


def check_run(run: Submission, asked: Asked) -> Iterator[Finding]:
    """Findings about the run as a whole, and about each of its installed tasks."""
    known = [name for name in run.manifest.tasks if name in run.scored.entries]
    for name in sorted(run.manifest.tasks.keys() - set(known)):
        yield problem("LB207", name, "no installed package has this task")
    yield from _complete(run, known)
    yield from _data(run, asked)
    yield from _whole_run(run, known)
    for name in known:
        yield from _comparable(run, name)
        yield from _prompts(run, name, asked)
    yield from _judged(run, known)
    yield from _verified(run)


def _complete(run: Submission, known: Sequence[str]) -> Iterator[Finding]:
    limited = {option: value for option in ("limit", "offset") if (value := run.manifest.settings.get(option))}
    for option, value in limited.items():
        found = f"--{option} {value}".removesuffix(".0")
        yield run.problem("LB201", run.folder.name, found, f"settings.{option}", fix=f"run again without --{option}")
    for subset, tasks in _grouped({name: run.manifest.tasks[name].subset for name in known}).items():
        found, fix = _in_tasks(f"the subset {subset}", tasks), "run again without MEDTASKS_SUBSET"
        yield run.problem("LB201", tasks[0], found, f"tasks.{tasks[0]}.subset", fix=fix)
    for name in known:
        facts = run.manifest.tasks[name]
        if failed := sum(facts.failed.values()):
            reasons = "; ".join(f"{count:,} × {reason}" for reason, count in list(facts.failed.items())[:MOST])
            found = f"{failed:,} of {facts.attempted:,} requests have no response ({reasons})"
            # an error if a score over the others would be incomplete
            severity = "error" if facts.answered < COVERAGE * facts.attempted else "warning"
            yield run.problem("LB210", name, found, f"tasks.{name}.failed", severity=severity)
        if run.scored.complete[name] or limited:
            continue
        total = run.scored.public.counts[name]["asked"]
        found = f"{facts.attempted:,} of {total:,} documents were asked"
        if facts.attempted == total:
            found = f"{run.scored.entries[name].scores.incomplete:,} streaming items lack some of their rounds"
        yield run.problem("LB201", name, found, f"tasks.{name}.answered")
    for name, members in run.manifest.groups.items():
        lacking = sorted(set(leaf_tasks(name)) - set(members)) if name in run.scored.entries else []
        if lacking:
            yield run.problem("LB208", name, f"the group lacks {first_names(lacking, MOST)}", f"groups.{name}")


def _grouped(texts: Mapping[str, str]) -> dict[str, list[str]]:
    """Tasks by the text that they have; those without one are left out."""
    tasks: dict[str, list[str]] = {}
    for task, text in texts.items():
        tasks.setdefault(text, []).append(task)
    return {text: tasks[text] for text in sorted(tasks.keys() - {""})}


def _in_tasks(found: str, tasks: Sequence[str]) -> str:
    """What was found in ``tasks``, with their number."""
    return found + f" (in {len(tasks):,} tasks)" * (len(tasks) > 1)


def _data(run: Submission, asked: Asked) -> Iterator[Finding]:
    enough = f"{asked.coverage:.0%} or more"
    for name in run.scored.public.data:  # not those of packages that are not installed
        facts = run.manifest.data[name]
        prepared, records = release_coverage(run.manifest, name)
        little = not facts.mini and prepared < asked.coverage * records
        if facts.mini or (little and is_miniature(name, facts)):
            if not asked.demonstration:
                yield run.problem("LB202", name, "miniature data", f"data.{name}.mini")
            continue
        if little:
            found = f"{prepared:,} of the release's {records:,} records ({prepared / records:.1%})"
            yield run.problem("LB204", name, found, f"data.{name}.coverage", expected=enough)
            continue
        for task, entry in run.scored.entries.items():
            share, subset = released_share(entry), any(run.manifest.tasks[leaf].subset for leaf in leaf_tasks(task))
            if entry.benchmark == name and run.scored.complete[task] and not subset and share < asked.coverage:
                found = f"{counted(len(entry.items), 'item')}, {share:.1%} of the published number"
                fix, file = "submit the directory as the run wrote it", f"samples/{task}.jsonl"
                yield run.problem("LB204", task, found, expected=enough, fix=fix, file=file)


def _whole_run(run: Submission, known: Sequence[str]) -> Iterator[Finding]:
    """Blind tasks, and tasks without prompts and responses, which is an error where these may be shared."""
    blind = [name for name in known if run.manifest.tasks[name].blind]
    if blind:
        found = _in_tasks("prompts were sent without media", blind)
        yield run.problem("LB206", blind[0], found, f"tasks.{blind[0]}.blind")
    stripped = [name for name in known if lacks_texts(run.samples[name])]
    for withheld in (False, True):
        if tasks := [name for name in stripped if is_withheld(run.manifest.tasks[name].benchmark) is withheld]:
            found, file = _in_tasks("neither prompts nor responses", tasks), f"samples/{tasks[0]}.jsonl"
            fix = "nothing to fix, but its statistics cannot be checked" if withheld else ""
            yield run.problem("LB305", tasks[0], found, fix=fix, file=file, severity="note" if withheld else None)


def _comparable(run: Submission, name: str) -> Iterator[Finding]:
    facts = run.manifest.tasks[name]
    today, spec = protocols_today(name), load_spec(name)
    pairs = {
        "task file": (facts.yaml_hash, spec.yaml_hash),
        "prompt": (facts.prompt_hash, spec.prompt_hash or ""),
        "task version": (facts.version, spec.metadata.version),
        "filters": (facts.filters, filter_versions(spec)),
        "generation settings": (facts.generation, spec.generation),
        "cap on frames": (facts.frames.get("cap"), None),
    }
    others = [f"{what} {here!r} instead of {there!r}" for what, (here, there) in pairs.items() if here != there]
    others += [f"--{option} {value!r}" for option, value in changed_options(run.manifest.settings).items()]
    others += [f"back-end's {what}: {value}" for what, value in facts.presentation.items()]
    if facts.blind or (facts.protocol_hash in today and not others):
        return
    found = f"{facts.protocol_hash} ({'; '.join(others) or 'other filters, metrics or versions'})"
    expected = f"{' or '.join(sorted(today))}, from the task files installed here"
    yield run.problem("LB203", name, found, f"tasks.{name}.protocol_hash", expected=expected)


def _prompts(run: Submission, name: str, asked: Asked) -> Iterator[Finding]:
    """Samples that must not be shared, but for miniature data, and prompts that show what the benchmark hides."""
    file, samples, benchmark = f"samples/{name}.jsonl", run.samples[name], run.manifest.tasks[name].benchmark
    if is_withheld(benchmark) and not run.manifest.data[benchmark].mini and not lacks_texts(samples):
        layout = layout_of(benchmark)
        why = layout.why if layout is not None and layout.why else "its package has no board layout that allows more"
        found = f"{counted(len(samples), 'sample')} with prompts, references and responses ({why.rstrip('.')})"
        yield run.problem("LB304", name, found, file=file, severity=None if asked.public else "warning")
    visible = get_benchmark(benchmark).visible_fields
    leaked = (
        (line, sample, field, text)
        for line, sample in enumerate(samples, start=1)
        for field, text in leaks(sample.whole_document(), visible, sample.prompt)
    )
    for line, sample, field, text in islice(leaked, MOST):
        where = f"{name}: {sample.sample_id}"
        yield run.problem("LB303", where, f"the prompt has {text[:60]!r}", file=file, line=line, field=field)


def _judged(run: Submission, known: Sequence[str]) -> Iterator[Finding]:
    """Scores that are not judged or have too few verdicts; an error for headline scores."""
    layouts = filter(None, map(layout_of, {run.manifest.tasks[name].benchmark for name in known}))
    headline = {(column.task, column.metric) for layout in layouts for column in layout.headline}
    for name, entry in run.scored.entries.items():
        lacking: dict[tuple[str, Severity], list[str]] = {}
        for metric, score in entry.scores.metrics.items():
            if score.judged is not None and score.samples and (score.value is None or is_incomplete(score)):
                severity: Severity = "error" if (name, metric) in headline else "warning"
                lacking.setdefault((coverage_text(score.samples, None, score.judged), severity), []).append(metric)
        for (found, severity), metrics in lacking.items():
            fix = f"run `medtasks judge {run.folder} --judge FILE`"
            field = ", ".join(metrics)
            yield run.problem("LB205", name, found, field, "scores.json", fix=fix, severity=severity)


def _verified(run: Submission) -> Iterator[Finding]:
    """What verification refused, and what it could not verify, other than stripped tasks."""
    unverifiable: dict[str, str] = {}
    for task, one in run.scored.verification.items():
        if one.outcome == "unverifiable" and not lacks_texts(run.samples[task]):
            unverifiable[task] = one.reason
        file, ids = f"samples/{task}.jsonl", [sample.sample_id for sample in run.samples[task]]
        for name in one.samples:
            line = ids.index(name) + 1
            yield run.problem("LB403", f"{task}: {name}", "another prompt", file=file, line=line, field="prompt")
        if one.outcome == "refused" and not one.samples:
            yield run.problem("LB401", task, one.reason, file=file)
    for why, tasks in _grouped(unverifiable).items():
        found = f"{first_names(tasks, MOST)} cannot be verified here ({why})"
        yield run.problem("LB402", run.folder.name, found)


def check_learned(run: Submission) -> Iterator[Finding]:
    """Compute the learned metrics of the run's responses again, and compare."""
    for task in run.scored.verification:
        spec, samples, file = load_spec(task), run.samples[task], f"samples/{task}.jsonl"
        if not spec.metadata.learned or lacks_texts(samples):
            continue
        problems: list[str] = []
        again = with_learned_metrics(spec, samples, problems)
        for text in problems:
            yield problem("LB107", task, text.rstrip("."))
        for name in spec.metadata.learned:
            field = f"scores.{name}"
            claimed = [(line, sample, sample.scores.get(name)) for line, sample in enumerate(samples, start=1)]
            given = [(line, sample, score) for line, sample, score in claimed if score is not None]
            if given and LEARNED[name].unavailable() is not None:
                found = f"{counted(len(given), 'sample')} with a score that cannot be computed here"
                yield run.problem("LB107", task, found, field, file, expected="what it needs")
                continue
            for line, sample, score in given:
                computed = again[line - 1].scores.get(name)
                if computed is not None and abs(score - computed) > _TOLERANCE:
                    where, expected = f"{task}: {sample.sample_id}", f"{computed:g} as computed here"
                    yield run.problem("LB106", where, f"{score:g}", field, file, expected=expected, line=line)
                    break
