"""The checks of one run: complete, comparable, covered, judged, verified, no leaked answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path

from medtasks.catalog.registry import get_benchmark
from medtasks.catalog.spec import leaf_tasks, load_spec
from medtasks.core.findings import Severity
from medtasks.core.text import counted, first_names
from medtasks.metrics.learned import LEARNED
from medtasks.runs.manifest import RunManifest, TaskFacts, filter_versions
from medtasks.runs.samples import Sample, lacks_texts
from medtasks.runs.signature import changed_options
from medtasks.scoring.run_record import Difference
from medtasks.scoring.scored_samples import with_learned_metrics
from medtasks.scoring.scores import COVERAGE, MetricScore, coverage_text
from medtasks.scoring.verification import is_miniature
from medtasks.validate.rendered import leaks

from ..verify.coverage import is_incomplete, release_coverage, released_share
from ..verify.protocols import protocols_today
from ..verify.scored_run import ScoredRun
from .remove_rows import is_withheld, layout_of
from .rules import AS_WRITTEN, MOST, OF_DATA, RULES, SubmissionFinding, problem

_TOLERANCE = 1e-3
"""A learned score depends a little on the others in its batch."""


@dataclass(frozen=True)
class Submission:
    """A run that could be read, as it was submitted and as it is scored here, and what is required.

    ``name`` is that of the submission. ``coverage`` is the share of a release's records that must
    be prepared, ``demonstration`` allows miniature data, and where the repository is not
    ``public``, rows that must not be shared are a warning.
    """

    folder: Path
    name: str
    manifest: RunManifest
    samples: Mapping[str, Sequence[Sample]]
    scored: ScoredRun
    coverage: float
    demonstration: bool
    public: bool

    @cached_property
    def tasks(self) -> dict[str, TaskFacts]:
        """The facts of the tasks that are installed, as they were submitted."""
        installed = self.scored.entries
        return {name: facts for name, facts in self.manifest.tasks.items() if name in installed}

    def problem(
        self,
        code: str,
        where: str,
        found: str,
        field: str = "",
        file: str = "manifest.json",
        *,
        expected: str = "",
        fix: str = "",
        severity: Severity | None = None,
        line: int | None = None,
        submission: str = "",
    ) -> SubmissionFinding:
        """A finding about one of the run's files; the other arguments are those of `problem`."""
        return problem(
            code,
            where,
            found,
            expected=expected,
            fix=fix,
            severity=severity,
            file=self.folder / file,
            line=line,
            field=field,
            submission=submission,
        )

    def in_tasks(
        self,
        code: str,
        found: str,
        tasks: Sequence[str],
        field: str = "",
        *,
        fix: str = "",
        severity: Severity | None = None,
        file: str = "manifest.json",
    ) -> SubmissionFinding:
        """A finding about all of the tasks, with their number.

        ``field`` is that of the first task's facts.
        """
        first = tasks[0]
        if len(tasks) > 1:
            found += f" (in {len(tasks):,} tasks)"
        place = f"tasks.{first}.{field}" if field else ""
        return self.problem(code, first, found, place, file, fix=fix, severity=severity)


def check_run(run: Submission, learned: bool) -> Iterator[SubmissionFinding]:
    """Findings about the run as a whole, and about each of its installed tasks.

    With ``learned``, learned metrics are computed again, which is the slowest part.
    """
    for name in sorted(run.manifest.tasks.keys() - run.tasks.keys()):
        yield problem("LB207", name, "no installed package has this task")
    yield from _asked(run)
    yield from _data(run)
    for name in run.tasks:
        yield from _protocol(run, name)
        yield from _shared_rows(run, name)
        yield from _leaked_texts(run, name)
    yield from _judged(run)
    yield from _verified(run)
    yield from _differences(run)
    if learned:
        yield from _learned(run)


def _asked(run: Submission) -> Iterator[SubmissionFinding]:
    """Documents that were not asked, and tasks without media, prompts or responses."""
    settings = run.manifest.settings
    limits = [option for option in ("limit", "offset") if settings.get(option)]
    for option in limits:
        found = f"--{option} {settings[option]}".removesuffix(".0")
        fix = f"run again without --{option}"
        yield run.problem("LB201", run.name, found, f"settings.{option}", fix=fix)
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
    for name in run.scored.groups:
        lacking = sorted({*leaf_tasks(name)} - {*run.manifest.groups[name]})
        if lacking:
            found = f"the group lacks {first_names(lacking, MOST)}"
            yield run.problem("LB208", name, found, f"groups.{name}")
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
    found = f"{failed:,} of {facts.attempted:,} requests have no response ({reasons})"
    # an error if a score over the others would be incomplete
    is_serious = facts.answered < COVERAGE * facts.attempted
    severity: Severity = "error" if is_serious else "warning"
    yield run.problem("LB210", name, found, f"tasks.{name}.failed", severity=severity)


def _incomplete_task(run: Submission, name: str, facts: TaskFacts) -> SubmissionFinding:
    """The finding about a task of which not every document or round was asked."""
    total = run.scored.public.counts[name]["asked"]
    if facts.attempted == total:
        items = run.scored.entries[name].scores.incomplete
        found = f"{items:,} streaming items lack some of their rounds"
    else:
        found = f"{facts.attempted:,} of {total:,} documents were asked"
    return run.problem("LB201", name, found, f"tasks.{name}.answered")


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
    found = "neither prompts nor responses"
    if may_be_shared:
        file = f"samples/{may_be_shared[0]}.jsonl"
        yield run.in_tasks("LB305", found, may_be_shared, file=file)
    if must_not_be_shared:
        yield run.in_tasks(
            "LB305",
            found,
            must_not_be_shared,
            file=f"samples/{must_not_be_shared[0]}.jsonl",
            severity="note",
            fix="nothing to fix, but its statistics cannot be checked",
        )


def _data(run: Submission) -> Iterator[SubmissionFinding]:
    """Miniature data, and releases of which too little is prepared or was asked."""
    enough = f"{run.coverage:.0%} or more"
    for name in run.scored.public.data:  # not those of packages that are not installed
        facts = run.manifest.data[name]
        prepared, records = release_coverage(run.manifest, name)
        is_small = not facts.mini and prepared < run.coverage * records
        if facts.mini or (is_small and is_miniature(name, facts)):
            if not run.demonstration:
                yield run.problem("LB202", name, "miniature data", f"data.{name}.mini")
        elif is_small:
            share = f"{prepared / records:.1%}"
            found = f"{prepared:,} of the release's {records:,} records ({share})"
            yield run.problem("LB204", name, found, f"data.{name}.coverage", expected=enough)
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
        if share < run.coverage:
            items = counted(len(entry.items), "item")
            yield run.problem(
                "LB204",
                name,
                f"{items}, {share:.1%} of the published number",
                expected=enough,
                fix=AS_WRITTEN,
                file=f"samples/{name}.jsonl",
            )


def _protocol(run: Submission, name: str) -> Iterator[SubmissionFinding]:
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


def _shared_rows(run: Submission, name: str) -> Iterator[SubmissionFinding]:
    """The finding about samples of a task with texts that must not be shared."""
    samples = run.samples[name]
    benchmark = run.tasks[name].benchmark
    is_mini = run.manifest.data[benchmark].mini
    if not is_withheld(benchmark) or is_mini or lacks_texts(samples):
        return
    why = layout_of(benchmark).why or "its package has no board layout that allows more"
    number = counted(len(samples), "sample")
    yield run.problem(
        "LB304",
        name,
        f"{number} with prompts, references and responses ({why.rstrip('.')})",
        file=f"samples/{name}.jsonl",
        severity="error" if run.public else "warning",
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


def _judged(run: Submission) -> Iterator[SubmissionFinding]:
    """Scores that are not judged or have too few verdicts; an error for headline scores."""
    headline: set[tuple[str, str]] = set()
    for facts in run.tasks.values():
        layout = layout_of(facts.benchmark)
        headline.update((column.task, column.metric) for column in layout.headline)
    for name, entry in run.scored.entries.items():
        lacking: dict[tuple[str, Severity], list[str]] = {}
        for metric, score in entry.scores.metrics.items():
            if not _lacks_verdicts(score):
                continue
            severity: Severity = "error" if (name, metric) in headline else "warning"
            coverage = coverage_text(score.samples, None, score.judged)
            lacking.setdefault((coverage, severity), []).append(metric)
        for (coverage, severity), metrics in lacking.items():
            yield run.problem(
                "LB205",
                name,
                coverage,
                ", ".join(metrics),
                "scores.json",
                fix=f"run `medtasks judge {run.folder} --judge FILE`",
                severity=severity,
            )


def _lacks_verdicts(score: MetricScore) -> bool:
    """Whether a judged score has no value, or too few verdicts."""
    if score.judged is None or not score.samples:
        return False
    return score.value is None or is_incomplete(score)


def _verified(run: Submission) -> Iterator[SubmissionFinding]:
    """What verification refused, and what it could not verify, other than stripped tasks."""
    unverifiable: dict[str, list[str]] = {}
    for task, verification in run.scored.verification.items():
        samples, file = run.samples[task], f"samples/{task}.jsonl"
        if verification.outcome == "unverifiable" and not lacks_texts(samples):
            unverifiable.setdefault(verification.reason, []).append(task)
        named = verification.other_prompts[:MOST]
        for line, sample in enumerate(samples, start=1):
            if sample.sample_id in named:
                where = f"{task}: {sample.sample_id}"
                yield run.problem(
                    "LB403", where, "another prompt", file=file, line=line, field="prompt"
                )
        if verification.outcome == "refused" and verification.strangers:
            yield run.problem("LB401", task, verification.reason, file=file)
    for why, tasks in sorted(unverifiable.items()):
        found = f"{first_names(tasks, MOST)} cannot be verified here ({why})"
        yield run.problem("LB402", run.name, found)


def _differences(run: Submission) -> Iterator[SubmissionFinding]:
    """Fields of samples that are not what is computed here.

    No code reads them, but whoever opens the files does.
    """
    by_field: dict[str, list[Difference]] = {}
    for difference in run.scored.differences:
        by_field.setdefault(difference.field, []).append(difference)
    for field, differences in by_field.items():
        first = differences[0]
        code = "LB404" if field.partition(".")[0] in OF_DATA else "LB405"
        found = first.found or "nothing"
        samples = sum(difference.samples for difference in differences)
        if samples > 1:
            tasks = counted(len(differences), "task")
            found += f" (of {samples:,} samples that differ, in {tasks})"
        yield run.problem(
            code,
            f"{first.task}: {first.first}",
            found,
            field,
            f"samples/{first.task}.jsonl",
            line=_line_of(run.samples[first.task], first.first),
            expected=f"{first.expected or 'nothing'}, {RULES[code].expected}",
        )


def _line_of(samples: Sequence[Sample], sample_id: str) -> int:
    """The number of the sample's line, from 1."""
    for line, sample in enumerate(samples, start=1):
        if sample.sample_id == sample_id:
            return line
    raise LookupError(sample_id)


def _learned(run: Submission) -> Iterator[SubmissionFinding]:
    """The learned metrics of the run's responses, computed again and compared."""
    for task in run.scored.verification:
        spec, samples = load_spec(task), run.samples[task]
        if not spec.metadata.learned or lacks_texts(samples):
            continue
        problems: list[str] = []
        again = with_learned_metrics(spec, samples, problems)
        for text in problems:
            yield problem("LB107", task, text.rstrip("."))
        for metric in spec.metadata.learned:
            yield from _learned_metric(run, task, metric, again)


def _learned_metric(
    run: Submission, task: str, metric: str, again: Sequence[Sample]
) -> Iterator[SubmissionFinding]:
    """The finding about a learned metric that cannot be computed here, or differs."""
    samples, file = run.samples[task], f"samples/{task}.jsonl"
    submitted = [sample.scores.get(metric) for sample in samples]
    count = sum(score is not None for score in submitted)
    if count and LEARNED[metric].unavailable() is not None:
        found = f"{counted(count, 'sample')} with a score that cannot be computed here"
        yield run.problem("LB107", task, found, f"scores.{metric}", file, expected="what it needs")
        return
    pairs = zip(samples, again, strict=True)
    for line, (sample, rescored) in enumerate(pairs, start=1):
        score, computed = sample.scores.get(metric), rescored.scores.get(metric)
        if score is None or computed is None:
            continue
        if abs(score - computed) > _TOLERANCE:
            yield run.problem(
                "LB106",
                f"{task}: {sample.sample_id}",
                f"{score:g}",
                f"scores.{metric}",
                file,
                expected=f"{computed:g} as computed here",
                line=line,
            )
            return
