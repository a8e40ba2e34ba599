"""Whether a run can be ranked: complete, comparable, sufficiently covered, judged, no leaked answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from medtasks.registry import get_benchmark
from medtasks.results.manifest import filter_versions
from medtasks.results.scores import COVERAGE, coverage_text
from medtasks.results.signature import changed_options
from medtasks.spec import leaf_tasks, load_spec
from medtasks.text import first_names
from medtasks.validation.findings import Finding, Severity
from medtasks.validation.rendered import leaks

from .check_rules import MOST, Submission, problem
from .facts import release_coverage
from .local_data import document_of, is_miniature
from .standings import protocols_today, released_share
from .strip import card_of, is_stripped, is_withheld
from .tables import is_incomplete


@dataclass(frozen=True)
class Asked:
    """A repository's requirements; see `medtasks.leaderboard.check.check_results`."""

    coverage: float
    demonstration: bool
    public: bool


def check_run(run: Submission, asked: Asked) -> Iterator[Finding]:
    """Findings about the run as a whole, and about each of its installed tasks."""
    known = [name for name in run.manifest.tasks if name in run.digest.entries]
    for name in sorted(run.manifest.tasks.keys() - set(known)):
        found, expected = "no installed package has this task", "one that has"
        yield problem("LB207", name, found, expected, "install it to have the task shown")
    yield from _complete(run, known)
    yield from _data(run, asked)
    yield from _blind(run, known)
    yield from _stripped(run, known)
    for name in known:
        yield from _comparable(run, name)
        yield from _shareable(run, name, asked)
        yield from _hidden(run, name)
    yield from _judged(run, known)


def _complete(run: Submission, known: list[str]) -> Iterator[Finding]:
    path = run.manifest_file
    limited = {option: value for option in ("limit", "offset") if (value := run.manifest.settings.get(option))}
    for option, value in limited.items():
        found, fix, field = (
            f"--{option} {value}".removesuffix(".0"),
            f"run again without --{option}",
            f"settings.{option}",
        )
        yield problem("LB201", run.folder.name, found, "all documents", fix, file=path, field=field)
    of_subset: dict[str, list[str]] = {}
    for name in known:
        of_subset.setdefault(run.manifest.tasks[name].subset, []).append(name)
    for subset in sorted(of_subset.keys() - {""}):
        tasks = of_subset[subset]
        found, fix = _in_tasks(f"the subset {subset}", tasks), "run again without MEDTASKS_SUBSET"
        yield problem("LB201", tasks[0], found, "all documents", fix, file=path, field=f"tasks.{tasks[0]}.subset")
    for name in known:
        yield from _failed(run, name)
        if run.digest.complete[name] or limited:
            continue
        attempted, asked = run.manifest.tasks[name].attempted, run.digest.facts.counts[name]["asked"]
        found = f"{attempted:,} of {asked:,} documents were asked"
        if attempted == asked:
            found = f"{run.digest.entries[name].scores.incomplete:,} streaming items lack some of their rounds"
        fix, field = "run the task to its end", f"tasks.{name}.answered"
        yield problem("LB201", name, found, "all documents", fix, file=path, field=field)
    for name, members in run.manifest.groups.items():
        lacking = sorted(set(leaf_tasks(name)) - set(members)) if name in run.digest.entries else []
        if lacking:
            found, fix = f"the group lacks {first_names(lacking, MOST)}", "run the whole group to have it ranked"
            yield problem("LB208", name, found, "all of its tasks", fix, file=path, field=f"groups.{name}")


def _in_tasks(found: str, tasks: list[str]) -> str:
    """What was found in ``tasks``, with their number."""
    return found + f" (in {len(tasks):,} tasks)" * (len(tasks) > 1)


def _failed(run: Submission, name: str) -> Iterator[Finding]:
    """Requests without a response: an error if a score over the others would be incomplete."""
    facts, path = run.manifest.tasks[name], run.manifest_file
    failed = sum(facts.failed.values())
    if not failed:
        return
    reasons = "; ".join(f"{count:,} × {reason}" for reason, count in list(facts.failed.items())[:MOST])
    found = f"{failed:,} of {facts.attempted:,} requests have no response ({reasons})"
    fix = "repeat the command of the run: it sends only these again"
    severity: Severity = "error" if facts.answered < COVERAGE * facts.attempted else "warning"
    yield problem(
        "LB210", name, found, "a response to each", fix, file=path, field=f"tasks.{name}.failed", severity=severity
    )


def _data(run: Submission, asked: Asked) -> Iterator[Finding]:
    path = run.manifest_file
    for name in run.digest.facts.data:  # not those of packages that are not installed
        facts = run.manifest.data[name]
        prepared, records = release_coverage(run.manifest, name)
        little = not facts.mini and prepared < asked.coverage * records
        if facts.mini or (little and is_miniature(name, facts)):
            if not asked.demonstration:
                fix, field = "prepare the release and run on it", f"data.{name}.mini"
                yield problem("LB202", name, "miniature data", "the release", fix, file=path, field=field)
        elif little:
            found = f"{prepared:,} of the release's {records:,} records ({prepared / records:.1%})"
            expected, fix = f"{asked.coverage:.0%} or more", "obtain the missing media, prepare and run again"
            yield problem("LB204", name, found, expected, fix, file=path, field=f"data.{name}.coverage")
        else:
            yield from _items(run, name, asked)


def _items(run: Submission, benchmark: str, asked: Asked) -> Iterator[Finding]:
    """Whole tasks and groups with fewer items than were published, although the data are said to have them."""
    for name, entry in run.digest.entries.items():
        share = released_share(entry)
        whole = run.digest.complete[name] and not any(run.manifest.tasks[leaf].subset for leaf in leaf_tasks(name))
        if entry.benchmark != benchmark or run.manifest.data[benchmark].mini or not whole:
            continue
        if share < asked.coverage:
            found = f"{len(entry.items):,} items, {share:.1%} of the published number"
            expected, fix = f"{asked.coverage:.0%} or more", "submit the directory as the run wrote it"
            yield problem("LB204", name, found, expected, fix, file=run.samples_file(name))


def _blind(run: Submission, known: list[str]) -> Iterator[Finding]:
    blind = [name for name in known if run.manifest.tasks[name].blind]
    if blind:
        found, fix = "prompts were sent without media", "nothing to fix; it is shown beside the model, unranked"
        field = f"tasks.{blind[0]}.blind"
        yield problem("LB206", blind[0], _in_tasks(found, blind), "media", fix, file=run.manifest_file, field=field)


def _stripped(run: Submission, known: list[str]) -> Iterator[Finding]:
    """Tasks without prompts and responses: an error where these may be shared."""
    benchmarks = {name: run.manifest.tasks[name].benchmark for name in known if is_stripped(run.samples[name])}
    for withheld in (False, True):
        tasks = [name for name, benchmark in benchmarks.items() if is_withheld(benchmark) is withheld]
        if tasks:
            severity: Severity = "note" if withheld else "error"
            fix = "submit the directory as the run wrote it"
            if withheld:
                fix = "nothing to fix, but its statistics cannot be checked"
            found, path = _in_tasks("neither prompts nor responses", tasks), run.samples_file(tasks[0])
            yield problem("LB305", tasks[0], found, "both", fix, file=path, severity=severity)


def _comparable(run: Submission, name: str) -> Iterator[Finding]:
    path, facts = run.manifest_file, run.manifest.tasks[name]
    if facts.blind:
        return
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
    if facts.protocol_hash in today and not others:
        return
    found = f"{facts.protocol_hash} ({'; '.join(others) or 'other filters, metrics or versions'})"
    expected = f"{' or '.join(sorted(today))}, from the task files installed here"
    fix = "run with the unchanged task file, or score the directory again if only scoring changed"
    yield problem("LB203", name, found, expected, fix, file=path, field=f"tasks.{name}.protocol_hash")


def _shareable(run: Submission, name: str, asked: Asked) -> Iterator[Finding]:
    """Samples that must not be shared; miniature data may be."""
    path, samples, facts = run.samples_file(name), run.samples[name], run.manifest.tasks[name]
    mini = run.manifest.data[facts.benchmark].mini
    if is_withheld(facts.benchmark) and not mini and not is_stripped(samples):
        card = card_of(facts.benchmark)
        why = card.why if card is not None and card.why else "its package has no board layout that allows more"
        found = f"{len(samples):,} samples with prompts, references and responses ({why.rstrip('.')})"
        fix = "publish what `medtasks leaderboard strip` leaves, or keep the repository private"
        expected = "only ids, extracted options and scores"
        severity: Severity = "error" if asked.public else "warning"
        yield problem("LB304", name, found, expected, fix, file=path, severity=severity)


def _hidden(run: Submission, name: str) -> Iterator[Finding]:
    """Prompts that show what the benchmark hides (the answer, the evidence, a description of the image)."""
    path = run.samples_file(name)
    visible = get_benchmark(run.manifest.tasks[name].benchmark).visible_fields
    leaked = (
        (line, sample, field, text)
        for line, sample in enumerate(run.samples[name], start=1)
        for field, text in leaks(document_of(sample), visible, sample.prompt)
    )
    for line, sample, field, text in islice(leaked, MOST):
        found, fix = f"the prompt has {text[:60]!r}", "run again with a template that does not show it"
        where = f"{name}: {sample.sample_id}"
        yield problem("LB303", where, found, "nothing of it", fix, file=path, line=line, field=field)


def _judged(run: Submission, known: list[str]) -> Iterator[Finding]:
    """Scores that are not judged or have too few verdicts; an error for headline scores."""
    benchmarks = {run.manifest.tasks[name].benchmark for name in known}
    cards = [card for name in benchmarks if (card := card_of(name)) is not None]
    headline = {(column.task, column.metric) for card in cards for column in card.headline}
    for name, entry in run.digest.entries.items():
        for metric, score in entry.scores.metrics.items():
            if score.judged is None or not score.samples or not (score.value is None or is_incomplete(score)):
                continue
            found = coverage_text(score.samples, None, score.judged)
            fix, path = f"run `medtasks judge {run.folder.name} --judge FILE`", run.folder / "scores.json"
            severity: Severity = "error" if (name, metric) in headline else "warning"
            yield problem("LB205", name, found, "all of them", fix, file=path, field=metric, severity=severity)
