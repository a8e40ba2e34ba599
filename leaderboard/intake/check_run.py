"""The checks of one run: complete, covered, comparable, judged, verified, no leaked answers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from medtasks.catalog.board_layout import NOT_STATED
from medtasks.catalog.registry import get_benchmark
from medtasks.catalog.spec import leaf_tasks, load_spec
from medtasks.core.findings import Severity
from medtasks.core.text import counted, first_names
from medtasks.runs.manifest import TaskFacts
from medtasks.runs.protocol import filter_versions
from medtasks.runs.run_signatures import changed_options
from medtasks.runs.samples import lacks_texts
from medtasks.runs.training_record import FACT
from medtasks.scoring.local_documents import is_miniature
from medtasks.scoring.scores import COVERAGE
from medtasks.validate.leaks import leaks

from ..verify.coverage import release_coverage, released_share
from ..verify.protocols import protocols_today
from .check_scores import check_scores
from .rules import AS_WRITTEN, MOST
from .shown_layouts import is_withheld, layout_of
from .submission import Submission
from .submission_findings import SubmissionFinding, problem


def check_run(run: Submission, learned: bool) -> Iterator[SubmissionFinding]:
    """Findings about the run as a whole, and about each of its installed tasks.

    With ``learned``, learned metrics are computed again, which is the slowest part.
    """
    for name in sorted(run.manifest.tasks.keys() - run.tasks.keys()):
        yield problem("LB207", name, "no installed package has this task")
    yield from _unasked_parts(run)
    yield from _data_coverage(run)
    yield from _recorded_training(run)
    for name in run.tasks:
        yield from _changed_protocol(run, name)
        yield from _unshareable_rows(run, name)
        yield from _leaked_texts(run, name)
    yield from check_scores(run, learned)


def _unasked_parts(run: Submission) -> Iterator[SubmissionFinding]:
    """Documents that were not asked, and tasks without media, prompts or responses."""
    settings = run.manifest.settings
    limits = [option for option in ("limit", "offset") if settings.get(option)]
    for option in limits:
        observed = f"--{option} {settings[option]}".removesuffix(".0")
        fix = f"run again without --{option}"
        yield run.problem("LB201", run.name, observed, f"settings.{option}", fix=fix)
    subsets = {facts.subset for facts in run.tasks.values()}
    for subset in sorted(subsets - {""}):
        tasks = [name for name, facts in run.tasks.items() if facts.subset == subset]
        fix = "run again without MEDTASKS_SUBSET"
        yield run.in_tasks("LB201", f"the subset {subset}", tasks, "subset", fix=fix)
    for name, facts in run.tasks.items():
        if facts.failed:
            yield from _failed_requests(run, name, facts)
        if not run.scored.complete[name] and not limits:
            yield _incomplete_task(run, name, facts)
    for name in run.scored.record.groups:
        lacking = sorted({*leaf_tasks(name)} - {*run.manifest.groups[name]})
        if lacking:
            observed = f"the group lacks {first_names(lacking, MOST)}"
            yield run.problem("LB208", name, observed, f"groups.{name}")
    blind = [name for name, facts in run.tasks.items() if facts.blind]
    if blind:
        yield run.in_tasks("LB206", "prompts were sent without media", blind, "blind")
    yield from _stripped_tasks(run)


def _failed_requests(run: Submission, name: str, facts: TaskFacts) -> Iterator[SubmissionFinding]:
    """The finding about requests of a task without a response."""
    failed = sum(facts.failed.values())
    if not failed:
        return
    first = islice(facts.failed.items(), MOST)
    reasons = "; ".join(f"{count:,} × {reason}" for reason, count in first)
    observed = f"{failed:,} of {facts.attempted:,} requests have no response ({reasons})"
    # an error if a score over the others would be incomplete
    is_serious = facts.attempted - failed < COVERAGE * facts.attempted
    severity: Severity = "error" if is_serious else "warning"
    yield run.problem("LB210", name, observed, f"tasks.{name}.failed", severity=severity)


def _incomplete_task(run: Submission, name: str, facts: TaskFacts) -> SubmissionFinding:
    """The finding about a task of which not every document or round was asked."""
    total = run.scored.public.counts[name]["asked"]
    if facts.attempted == total:
        items = run.scored.entries[name].scores.incomplete
        observed = f"{items:,} streaming items lack some of their rounds"
    else:
        observed = f"{facts.attempted:,} of {total:,} documents were asked"
    return run.problem("LB201", name, observed, f"tasks.{name}.answered")


def _stripped_tasks(run: Submission) -> Iterator[SubmissionFinding]:
    """Tasks without prompts and responses, a note where these must not be shared."""
    may_be_shared, must_not_be_shared = [], []
    for name, facts in run.tasks.items():
        if not lacks_texts(run.samples[name]):
            continue
        if is_withheld(facts.benchmark):
            must_not_be_shared.append(name)
        else:
            may_be_shared.append(name)
    observed = "neither prompts nor responses"
    if may_be_shared:
        file = f"samples/{may_be_shared[0]}.jsonl"
        yield run.in_tasks("LB305", observed, may_be_shared, file=file)
    if must_not_be_shared:
        yield run.in_tasks(
            "LB305",
            observed,
            must_not_be_shared,
            file=f"samples/{must_not_be_shared[0]}.jsonl",
            severity="note",
            fix="nothing to fix, but its statistics cannot be checked",
        )


def _recorded_training(run: Submission) -> Iterator[SubmissionFinding]:
    """Benchmarks of the run whose scores the model was trained with, as its checkpoint records."""
    for benchmark, sentence in run.scored.public.trained_on.items():
        if benchmark in run.manifest.data:
            yield run.problem("LB216", benchmark, sentence, f"model.{FACT}")


def _data_coverage(run: Submission) -> Iterator[SubmissionFinding]:
    """Miniature data, and releases of which too little is prepared or was asked."""
    enough = f"{run.required.coverage:.0%} or more"
    for name in run.scored.public.data:  # not those of packages that are not installed
        facts = run.manifest.data[name]
        release = release_coverage(run.manifest, name)
        least = run.required.coverage * release.records
        is_small = not facts.mini and release.prepared < least
        if facts.mini or (is_small and is_miniature(name, facts)):
            if not run.required.demonstration:
                yield run.problem("LB202", name, "miniature data", f"data.{name}.mini")
        elif is_small:
            records = f"{release.prepared:,} of the release's {release.records:,} records"
            observed = f"{records} ({release.share:.1%})"
            yield run.problem("LB204", name, observed, f"data.{name}.coverage", expected=enough)
        else:
            yield from _few_items(run, name, enough)


def _few_items(run: Submission, benchmark: str, enough: str) -> Iterator[SubmissionFinding]:
    """Whole tasks and groups of a benchmark with fewer items than were published."""
    for name, entry in run.scored.entries.items():
        if entry.benchmark != benchmark or not run.scored.complete[name]:
            continue
        if any(run.tasks[task].subset for task in leaf_tasks(name)):
            continue
        share = released_share(entry)
        if share < run.required.coverage:
            items = counted(len(entry.items), "item")
            yield run.problem(
                "LB204",
                name,
                f"{items}, {share:.1%} of the published number",
                expected=enough,
                fix=AS_WRITTEN,
                file=f"samples/{name}.jsonl",
            )


def _changed_protocol(run: Submission, name: str) -> Iterator[SubmissionFinding]:
    """The finding about a task whose protocol is not that of today's task file."""
    facts = run.tasks[name]
    if facts.blind:
        return
    today = protocols_today(name)
    differing = _differing_settings(run, name, facts)
    if facts.protocol_hash in today and not differing:
        return
    reasons = "; ".join(differing) or "other filters, metrics or versions"
    yield run.problem(
        "LB203",
        name,
        f"{facts.protocol_hash} ({reasons})",
        f"tasks.{name}.protocol_hash",
        expected=f"{' or '.join(sorted(today))}, from the task files installed here",
    )


def _differing_settings(run: Submission, name: str, facts: TaskFacts) -> list[str]:
    """What differs from the task file that is installed here, and from the usual options."""
    spec = load_spec(name)
    settings = {
        "task file": (facts.yaml_hash, spec.yaml_hash),
        "prompt": (facts.prompt_hash, spec.prompt_hash or ""),
        "task version": (facts.version, spec.metadata.version),
        "filters": (facts.filters, filter_versions(spec)),
        "generation settings": (facts.generation, spec.generation),
        "cap on frames": (facts.frames.get("cap"), None),
        "pace of streams": (facts.pace, ""),
    }
    differing = []
    for what, (submitted, today) in settings.items():
        if submitted != today:
            differing.append(f"{what} {submitted!r} instead of {today!r}")
    options = changed_options(run.manifest.settings)
    for option, value in options.items():
        differing.append(f"--{option} {value!r}")
    for what, presentation in facts.presentation.items():
        if what not in options:
            differing.append(f"back-end's {what}: {presentation}")
    return differing


def _unshareable_rows(run: Submission, name: str) -> Iterator[SubmissionFinding]:
    """The finding about samples of a task with texts that must not be shared."""
    samples = run.samples[name]
    benchmark = run.tasks[name].benchmark
    is_mini = run.manifest.data[benchmark].mini
    if not is_withheld(benchmark) or is_mini or lacks_texts(samples):
        return
    why = layout_of(benchmark).why or NOT_STATED
    number = counted(len(samples), "sample")
    yield run.problem(
        "LB304",
        name,
        f"{number} with prompts, references and responses ({why.rstrip('.')})",
        file=f"samples/{name}.jsonl",
        severity="error" if run.required.public else "warning",
    )


def _leaked_texts(run: Submission, name: str) -> Iterator[SubmissionFinding]:
    """The first findings about prompts of a task that show what the benchmark hides."""
    visible = get_benchmark(run.tasks[name].benchmark).visible_fields
    findings = 0
    for line, sample in enumerate(run.samples[name], start=1):
        for field, text in leaks(sample.whole_document(), visible, sample.prompt):
            yield run.problem(
                "LB303",
                f"{name}: {sample.sample_id}",
                f"the prompt has {text[:60]!r}",
                file=f"samples/{name}.jsonl",
                line=line,
                field=field,
            )
            findings += 1
            if findings == MOST:
                return
