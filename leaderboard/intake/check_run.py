"""The rules of the submission check, each with a stable code, and the checks of one run: complete,
comparable, sufficiently covered, judged, verified, no leaked answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from medtasks.catalog.registry import get_benchmark
from medtasks.catalog.spec import leaf_tasks, load_spec
from medtasks.core.findings import Finding, Rule, Severity
from medtasks.core.text import counted, first_names
from medtasks.metrics.learned import LEARNED
from medtasks.runs.manifest import RunManifest, TaskFacts, filter_versions
from medtasks.runs.samples import Sample, lacks_texts
from medtasks.runs.signature import changed_options
from medtasks.scoring.run_record import Difference
from medtasks.scoring.scored_samples import with_learned_metrics
from medtasks.scoring.scores import COVERAGE, coverage_text
from medtasks.scoring.verification import is_miniature
from medtasks.validate.rendered import leaks

from ..verify.coverage import is_incomplete, release_coverage, released_share
from ..verify.protocols import protocols_today
from ..verify.rejudging import AGREEMENT
from ..verify.scored_run import ScoredRun
from .remove_rows import is_withheld, layout_of

MOST = 5
"""Maximum number of findings of one kind per task or file."""
_TOLERANCE = 1e-3
"""A learned score depends a little on the others in its batch."""


_AS_WRITTEN = "submit the directory as the run wrote it"
_SCORE_AGAIN = "score the directory again: `medtasks score DIR --out NEW_DIR`"
_OF_DATA = ("target", "cluster", "media", "document", "prompt_hash")
"""Fields of a sample that come from the data; the others are computed from the response, or are the
response.
"""
RULES: Mapping[str, Rule] = {rule.code: rule for rule in (
    Rule("LB101", "error", "no result directory", expected="at least one",
        fix="submit the directory …_medtasks that a run writes; `medtasks score --out` makes one of other logs"),
    Rule("LB102", "error", "result directory cannot be read", "restore it", "files and directories that can be read"),
    Rule("LB103", "error", "file does not belong to a result directory",
        "remove it; results never include media", "only manifest.json, scores.json and samples/<task>.jsonl"),
    Rule("LB104", "error", "link instead of a file", "copy what it points to", "a file"),
    Rule("LB106", "error", "learned metric differs from what its model gives",
        _SCORE_AGAIN, "the score computed here"),
    Rule("LB107", "warning", "metric cannot be computed here", "see `medtasks doctor`", "its score"),
    Rule("LB201", "error", "not every document was asked", "run the task to its end", "all documents"),
    Rule("LB202", "error", "miniature data",
        "prepare the release and run on it; for a rehearsal, check and build with --demonstration", "the release"),
    Rule("LB203", "error", "protocol differs from today's", expected="that of the task files installed here",
        fix="run with the unchanged task file, or score the directory again if only scoring changed"),
    Rule("LB204", "error", "too little of the release is covered",
        "obtain the missing media, prepare and run again", "the whole release"),
    Rule("LB205", "error", "responses are not judged", "run `medtasks judge DIR --judge FILE`", "all of them"),
    Rule("LB206", "warning", "blind run", "nothing to fix; it is shown beside the model, unranked", "media"),
    Rule("LB207", "warning", "task of no installed package", "install it to have the task shown", "one that has"),
    Rule("LB208", "warning", "part of the benchmark", "run the whole group to have it ranked", "all of its tasks"),
    Rule("LB209", "warning", "data differ from those of the other runs",
        "prepare the same release to be comparable", "the same data"),
    Rule("LB210", "error", "requests without a response",
        "repeat the command of the run: it sends only these again", "a response to each"),
    Rule("LB211", "warning", "newer run of a model",
        "make sure that both are from the same people, and remove one of them", "one run per model"),
    Rule("LB212", "warning", "responses of another model",
        "make sure that each model was asked", "responses of its own"),
    Rule("LB213", "warning", "verdicts differ from those given again", expected=f"{AGREEMENT:.0%} or more equal scores",
        fix="ask for the judge's settings, or judge the run yourself: `medtasks judge DIR --judge FILE`"),
    Rule("LB214", "error", "verdicts were not asked again", "correct the judge's settings", "an answer of the judge"),
    Rule("LB215", "warning", "runs contradict each other about their data",
        "prepare the data here, which decides", "equal documents under one fingerprint"),
    Rule("LB301", "error", "key or token", expected="no secret in any file",
        fix="remove it everywhere, revoke it, and run again with the key in an environment variable"),
    Rule("LB302", "error", "path of one machine",
        "replace it with a name that makes sense on other machines", "no path of one machine"),
    Rule("LB303", "error", "hidden text in a prompt",
        "run again with a template that does not show it", "nothing of it"),
    Rule("LB304", "error", "rows of data that must not be shared", expected="only ids, extracted options and scores",
        fix="publish what `medtasks leaderboard strip` leaves, or keep the repository private"),
    Rule("LB305", "error", "samples without prompts and responses", _AS_WRITTEN, "both"),
    Rule("LB401", "error", "samples are not of the data", _AS_WRITTEN, "the documents of the task"),
    Rule("LB402", "warning", "run cannot be verified here", "prepare the data of the run here", "the data of the run"),
    Rule("LB403", "error", "prompt differs from the template",
        _AS_WRITTEN, "the prompt that the task's template renders"),
    Rule("LB404", "error", "sample differs from the data", _SCORE_AGAIN, "the value in the data"),
    Rule("LB405", "error", "score or extracted answer differs from that computed here", _SCORE_AGAIN,
        "the value computed here from the response"),
)}  # fmt: skip
"""The rules by code; a code never changes its meaning."""


@dataclass(frozen=True)
class SubmissionFinding(Finding):
    """A finding about a submission, with its name: the path below the given root, and the model."""

    submission: str = ""


def problem(
    code: str,
    where: str,
    found: str,
    *,
    expected: str = "",
    fix: str = "",
    file: Path | None = None,
    **more: Any,
) -> SubmissionFinding:
    """A finding of rule ``code``: what was found and expected, and how to fix it; ``more`` are
    further fields.
    """
    rule = RULES[code]
    place = f"field `{more['field']}`: " if more.get("field") else ""
    message = f"{place}{found}, expected {expected or rule.expected}; {fix or rule.fix}."
    fields = {"severity": rule.severity, "file": str(file or ""), **more}
    return SubmissionFinding(check=rule.title, where=where, message=message, code=code, **fields)


@dataclass(frozen=True)
class Submission:
    """A run that could be read, as it was submitted and as it is scored here, its name, and what
    the repository requires.

    ``coverage`` is the share of a release's records that must be prepared, ``demonstration`` allows
    miniature data, and where the repository is not ``public``, rows that must not be shared are a
    warning.
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
        return {
            name: facts
            for name, facts in self.manifest.tasks.items()
            if name in self.scored.entries
        }

    def problem(
        self,
        code: str,
        where: str,
        found: str,
        field: str = "",
        file: str = "manifest.json",
        **more: Any,
    ) -> SubmissionFinding:
        """A finding about one of the run's files; ``more`` are further arguments of `problem`."""
        return problem(code, where, found, file=self.folder / file, field=field, **more)

    def in_tasks(
        self, code: str, found: str, tasks: Sequence[str], field: str = "", **more: Any
    ) -> SubmissionFinding:
        """A finding about all of the tasks, with their number; ``field`` is that of the first
        task's facts.
        """
        number = f" (in {len(tasks):,} tasks)" * (len(tasks) > 1)
        return self.problem(
            code, tasks[0], found + number, field and f"tasks.{tasks[0]}.{field}", **more
        )


def check_run(run: Submission, learned: bool) -> Iterator[SubmissionFinding]:
    """Findings about the run as a whole, and about each of its installed tasks; ``learned`` metrics
    are computed again if asked for, the slowest part.
    """
    for name in sorted(run.manifest.tasks.keys() - run.tasks.keys()):
        yield problem("LB207", name, "no installed package has this task")
    for check in (_asked, _data, _comparable, _judged, _verified, _differences):
        yield from check(run)
    if learned:
        yield from _learned(run)


def _asked(run: Submission) -> Iterator[SubmissionFinding]:
    """Documents that were not asked, failed or asked without media, and tasks without prompts and
    responses.
    """
    settings = run.manifest.settings
    limited = [option for option in ("limit", "offset") if settings.get(option)]
    for option in limited:
        found = f"--{option} {settings[option]}".removesuffix(".0")
        yield run.problem(
            "LB201", run.name, found, f"settings.{option}", fix=f"run again without --{option}"
        )
    for subset in sorted({facts.subset for facts in run.tasks.values()} - {""}):
        tasks = [name for name, facts in run.tasks.items() if facts.subset == subset]
        yield run.in_tasks(
            "LB201",
            f"the subset {subset}",
            tasks,
            "subset",
            fix="run again without MEDTASKS_SUBSET",
        )
    for name, facts in run.tasks.items():
        if failed := sum(facts.failed.values()):
            reasons = "; ".join(
                f"{count:,} × {reason}" for reason, count in list(facts.failed.items())[:MOST]
            )
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
    for name in run.scored.groups:
        if lacking := sorted({*leaf_tasks(name)} - {*run.manifest.groups[name]}):
            yield run.problem(
                "LB208", name, f"the group lacks {first_names(lacking, MOST)}", f"groups.{name}"
            )
    if blind := [name for name, facts in run.tasks.items() if facts.blind]:
        yield run.in_tasks("LB206", "prompts were sent without media", blind, "blind")
    stripped = [name for name in run.tasks if lacks_texts(run.samples[name])]
    more: dict[str, Any] = {
        "severity": "note",
        "fix": "nothing to fix, but its statistics cannot be checked",
    }
    for withheld, how in ((False, {}), (True, more)):
        if tasks := [
            name for name in stripped if is_withheld(run.tasks[name].benchmark) is withheld
        ]:
            file = f"samples/{tasks[0]}.jsonl"
            yield run.in_tasks("LB305", "neither prompts nor responses", tasks, file=file, **how)


def _data(run: Submission) -> Iterator[SubmissionFinding]:
    enough = f"{run.coverage:.0%} or more"
    for name in run.scored.public.data:  # not those of packages that are not installed
        facts = run.manifest.data[name]
        prepared, records = release_coverage(run.manifest, name)
        little = not facts.mini and prepared < run.coverage * records
        if facts.mini or (little and is_miniature(name, facts)):
            if not run.demonstration:
                yield run.problem("LB202", name, "miniature data", f"data.{name}.mini")
        elif little:
            found = f"{prepared:,} of the release's {records:,} records ({prepared / records:.1%})"
            yield run.problem("LB204", name, found, f"data.{name}.coverage", expected=enough)
        else:
            for task, entry in run.scored.entries.items():
                whole = run.scored.complete[task] and not any(
                    run.tasks[leaf].subset for leaf in leaf_tasks(task)
                )
                share = released_share(entry)
                if entry.benchmark == name and whole and share < run.coverage:
                    found = (
                        f"{counted(len(entry.items), 'item')}, {share:.1%} of the published number"
                    )
                    file = f"samples/{task}.jsonl"
                    yield run.problem(
                        "LB204", task, found, expected=enough, fix=_AS_WRITTEN, file=file
                    )


def _comparable(run: Submission) -> Iterator[SubmissionFinding]:
    """Other protocols than today's, samples that must not be shared, and prompts that show what a
    benchmark hides.
    """
    for name, facts in run.tasks.items():
        today, spec = protocols_today(name), load_spec(name)
        pairs = {
            "task file": (facts.yaml_hash, spec.yaml_hash),
            "prompt": (facts.prompt_hash, spec.prompt_hash or ""),
            "task version": (facts.version, spec.metadata.version),
            "filters": (facts.filters, filter_versions(spec)),
            "generation settings": (facts.generation, spec.generation),
            "cap on frames": (facts.frames.get("cap"), None),
        }
        others = [
            f"{what} {here!r} instead of {there!r}"
            for what, (here, there) in pairs.items()
            if here != there
        ]
        options = changed_options(run.manifest.settings)
        others += [f"--{option} {value!r}" for option, value in options.items()]
        by_back_end = {
            what: value for what, value in facts.presentation.items() if what not in options
        }
        others += [f"back-end's {what}: {value}" for what, value in by_back_end.items()]
        if not facts.blind and (others or facts.protocol_hash not in today):
            found = f"{facts.protocol_hash} ({'; '.join(others) or 'other filters, metrics or versions'})"
            expected = f"{' or '.join(sorted(today))}, from the task files installed here"
            yield run.problem(
                "LB203", name, found, f"tasks.{name}.protocol_hash", expected=expected
            )
        file, samples, benchmark = f"samples/{name}.jsonl", run.samples[name], facts.benchmark
        if (
            is_withheld(benchmark)
            and not run.manifest.data[benchmark].mini
            and not lacks_texts(samples)
        ):
            why = layout_of(benchmark).why or "its package has no board layout that allows more"
            found = f"{counted(len(samples), 'sample')} with prompts, references and responses ({why.rstrip('.')})"
            yield run.problem(
                "LB304", name, found, file=file, severity="error" if run.public else "warning"
            )
        visible = get_benchmark(benchmark).visible_fields
        leaked = (
            (line, sample, field, text)
            for line, sample in enumerate(samples, start=1)
            for field, text in leaks(sample.whole_document(), visible, sample.prompt)
        )
        for line, sample, field, text in islice(leaked, MOST):
            where = f"{name}: {sample.sample_id}"
            yield run.problem(
                "LB303", where, f"the prompt has {text[:60]!r}", file=file, line=line, field=field
            )


def _judged(run: Submission) -> Iterator[SubmissionFinding]:
    """Scores that are not judged or have too few verdicts; an error for headline scores."""
    layouts = map(layout_of, {facts.benchmark for facts in run.tasks.values()})
    headline = {(column.task, column.metric) for layout in layouts for column in layout.headline}
    fix = f"run `medtasks judge {run.folder} --judge FILE`"
    for name, entry in run.scored.entries.items():
        lacking: dict[tuple[str, Severity], list[str]] = {}
        for metric, score in entry.scores.metrics.items():
            if (
                score.judged is not None
                and score.samples
                and (score.value is None or is_incomplete(score))
            ):
                severity: Severity = "error" if (name, metric) in headline else "warning"
                lacking.setdefault(
                    (coverage_text(score.samples, None, score.judged), severity), []
                ).append(metric)
        for (found, severity), metrics in lacking.items():
            yield run.problem(
                "LB205", name, found, ", ".join(metrics), "scores.json", fix=fix, severity=severity
            )


def _verified(run: Submission) -> Iterator[SubmissionFinding]:
    """What verification refused, and what it could not verify, other than stripped tasks."""
    unverifiable: dict[str, list[str]] = {}
    for task, one in run.scored.verification.items():
        samples, file = run.samples[task], f"samples/{task}.jsonl"
        if one.outcome == "unverifiable" and not lacks_texts(samples):
            unverifiable.setdefault(one.reason, []).append(task)
        named = one.other_prompts[:MOST]
        for line, sample in enumerate(samples, start=1):
            if sample.sample_id in named:
                where = f"{task}: {sample.sample_id}"
                yield run.problem(
                    "LB403", where, "another prompt", file=file, line=line, field="prompt"
                )
        if one.outcome == "refused" and one.strangers:
            yield run.problem("LB401", task, one.reason, file=file)
    for why, tasks in sorted(unverifiable.items()):
        found = f"{first_names(tasks, MOST)} cannot be verified here ({why})"
        yield run.problem("LB402", run.name, found)


def _differences(run: Submission) -> Iterator[SubmissionFinding]:
    """Fields of samples that are not what is computed here; nothing reads them, but whoever opens
    the files does.
    """
    by_field: dict[str, list[Difference]] = {}
    for difference in run.scored.differences:
        by_field.setdefault(difference.field, []).append(difference)
    for field, several in by_field.items():
        first = several[0]
        lines = (
            line
            for line, one in enumerate(run.samples[first.task], start=1)
            if one.sample_id == first.first
        )
        code = "LB404" if field.partition(".")[0] in _OF_DATA else "LB405"
        found = first.found or "nothing"
        samples = sum(difference.samples for difference in several)
        if samples > 1:
            found += f" (of {samples:,} samples that differ, in {counted(len(several), 'task')})"
        yield run.problem(
            code,
            f"{first.task}: {first.first}",
            found,
            field,
            f"samples/{first.task}.jsonl",
            line=next(lines),
            expected=f"{first.expected or 'nothing'}, {RULES[code].expected}",
        )


def _learned(run: Submission) -> Iterator[SubmissionFinding]:
    """The learned metrics of the run's responses, computed again and compared."""
    for task in run.scored.verification:
        spec, samples, file = load_spec(task), run.samples[task], f"samples/{task}.jsonl"
        if not spec.metadata.learned or lacks_texts(samples):
            continue
        problems: list[str] = []
        again = with_learned_metrics(spec, samples, problems)
        for text in problems:
            yield problem("LB107", task, text.rstrip("."))
        for name in spec.metadata.learned:
            scores = [
                (one.scores.get(name), other.scores.get(name))
                for one, other in zip(samples, again, strict=True)
            ]
            given = sum(score is not None for score, _ in scores)
            if given and LEARNED[name].unavailable() is not None:
                found = f"{counted(given, 'sample')} with a score that cannot be computed here"
                yield run.problem(
                    "LB107", task, found, f"scores.{name}", file, expected="what it needs"
                )
                continue
            for line, (score, computed) in enumerate(scores, start=1):
                if (
                    score is not None
                    and computed is not None
                    and abs(score - computed) > _TOLERANCE
                ):
                    where, expected = (
                        f"{task}: {samples[line - 1].sample_id}",
                        f"{computed:g} as computed here",
                    )
                    more: dict[str, Any] = {"expected": expected, "line": line}
                    yield run.problem("LB106", where, f"{score:g}", f"scores.{name}", file, **more)
                    break
