"""The check of submissions to a leaderboard's repository: each run, runs beside each other, and the
files in and beside
them: no other files, media, secrets or local paths.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from medtasks.catalog.spec import load_specs
from medtasks.core.errors import MachineError, MedtasksError, machine_fault
from medtasks.core.files import recover_directory
from medtasks.core.redaction import SECRETS
from medtasks.core.text import counted, first_names
from medtasks.runs.find import name_below
from medtasks.runs.unfinished import SUFFIX as UNFINISHED
from medtasks.scoring.run_record import read_run

from ..verify.conflicts import contradictions, same_responses
from ..verify.coverage import released_share
from ..verify.rejudging import AGREEMENT, Rejudged
from ..verify.scored_run import ScoredRun, scored_run
from .check_run import MOST, Submission, SubmissionFinding, check_run, problem
from .collect import LOG, LOGS, find_everything, submission_name
from .remove_rows import is_withheld

COVERAGE = 0.95
"""Share of a release's records that must be prepared, by default."""

Patterns = Mapping[str, re.Pattern[str]]

_VARIABLE = re.compile(r"_(API_KEY|TOKEN|SECRET|ACCESS_KEY|PASSWORD)$")
_SHORTEST = 8
"""Minimum length of the values that are searched for."""

_PATH = re.compile(
    r"""(?:^|(?<=[\s=,;"'(\[]))(?:~?/[\w.@+-]+/[^\s,;"')\]]*|~/[^\s,;"')\]]+|[A-Za-z]:[\\/][^\s,;"')\]]+|file://[^\s,;"')]+)"""
)
_OURS = ("sample_id", "cluster", "media", "task")
"""The fields of a sample that its machine writes; the others come from the release or the model."""

_MEDIA = {
    *(".avi", ".bmp", ".dcm", ".gif", ".gz", ".jpeg", ".jpg", ".mkv", ".mov", ".mp4"),
    *(".nii", ".png", ".tif", ".tiff", ".wav", ".webm", ".webp"),
}
_LOGS = re.compile(r".*_(?:samples_.+\.jsonl|results\.json)", re.I)
"""Files of lmms-eval beside a run's directory: whole documents, and the full command."""
_REPLIES = re.compile(r"(?P<task>.+)\.rank\d+\.jsonl")


@dataclass(frozen=True)
class CheckReport:
    """The directories that were checked, the names of the submissions, the findings
    (`medtasks.core.findings` formats them), and how far verdicts agree with those that were asked
    again.

    A submission's name is its path below the given root and its model. Files beside the results are
    named by the root.
    """

    folders: tuple[str, ...]
    submissions: tuple[str, ...]
    findings: tuple[SubmissionFinding, ...]
    rejudged: tuple[Rejudged, ...] = ()


def check_results(
    paths: Sequence[Path],
    *,
    coverage: float = COVERAGE,
    demonstration: bool = False,
    public: bool = True,
    rescore: bool = True,
    ask_again: Callable[[ScoredRun], Iterator[Rejudged]] | None = None,
    environment: Mapping[str, str] = os.environ,
    progress: Callable[[int, int], None] = lambda _, __: None,
) -> CheckReport:
    """Check the result directories in ``paths``; nothing is changed. ``docs/leaderboard.md`` lists
    what is checked.

    Args:
        coverage, demonstration, public: as of `Submission`.
        rescore: compute learned metrics again (the slowest part).
        ask_again: asks a judge again about some of a run's verdicts
        (`medtasks.leaderboard.verify.rejudging.rejudge`).
        environment: variables whose secrets are searched for.

    Raises:
        UsageError: a path is not a directory.
        MachineError: this machine is at fault, for example because its prepared data are damaged.
    """
    secrets = dict(SECRETS)
    for name, value in sorted(environment.items()):
        if _VARIABLE.search(name) and len(value.strip()) >= _SHORTEST:
            secrets[f"the value of ${name}"] = re.compile(re.escape(value.strip()))

    everything = find_everything(paths)
    folders = [run.directory for run in everything.runs]
    names = {run.directory: submission_name(run) for run in everything.runs}
    findings: list[SubmissionFinding] = []
    for path in dict.fromkeys(paths):
        if not any(folder.resolve().is_relative_to(path.resolve()) for folder in folders):
            empty = path.resolve().name
            findings.append(
                problem(
                    "LB101", empty, "it contains no result directory", file=path, submission=empty
                )
            )
    for path, (what, fix) in everything.unread.items():
        if (what, fix) != LOGS:  # logs are named below, whatever task they are of
            code, name = "LB104" if path.is_symlink() else "LB102", name_below(path, paths)
            findings.append(problem(code, name, what, fix=fix, file=path, submission=name))

    runs: dict[Path, ScoredRun] = {}
    tasks: dict[Path, Collection[str]] = {}
    rejudged: list[Rejudged] = []
    for number, folder in enumerate(folders):
        progress(number, len(folders))
        name = names[folder]
        tasks[folder.resolve()] = [path.stem for path in (folder / "samples").glob("*.jsonl")]
        recover_directory(folder)
        if not (folder / "scores.json").is_file():
            missing, fix = "scores.json is missing", "restore it, or run `medtasks score`"
            scores: dict[str, Any] = {
                "expected": "the scores of the run",
                "fix": fix,
                "submission": name,
            }
            findings.append(problem("LB102", name, missing, **scores))
        try:
            manifest, samples = read_run(folder)
            run = Submission(
                folder, name, manifest, samples, scored_run(folder), coverage, demonstration, public
            )
            tasks[folder.resolve()] = manifest.tasks
            findings += [replace(one, submission=name) for one in check_run(run, learned=rescore)]
        except Exception as error:  # untrusted input
            if (fault := machine_fault(error)) is not None:
                raise fault from error
            text = f"{type(error).__name__}: {error}".rstrip(".")
            unreadable = problem("LB102", name, text, file=folder, submission=name)
            if isinstance(error, MedtasksError):  # the message has what was expected, and the fix
                unreadable = replace(unreadable, message=str(error))
            findings.append(unreadable)
            continue
        runs[folder] = run.scored
        if ask_again is None:
            continue
        try:
            again = [*ask_again(scored_run(folder, whole=True))]
        except MachineError:
            raise
        except MedtasksError as error:
            findings.append(run.problem("LB214", name, str(error).rstrip("."), submission=name))
            continue
        rejudged += again
        for one in again:
            if one.equal < AGREEMENT * one.scores or not one.scores:
                findings.append(
                    run.problem("LB213", name, f"{one.rubric}: {one}", "judge", submission=name)
                )
    places = {folder.resolve(): name for folder, name in names.items()}
    beside = _files(paths, tasks, places, secrets, public=public, demonstration=demonstration)
    findings += [replace(one, submission=one.where) for one in beside]
    findings += _compared(runs, names)
    progress(len(folders), len(folders))
    checked = dict.fromkeys((*names.values(), *(one.submission for one in findings)))
    return CheckReport(tuple(map(str, folders)), tuple(checked), tuple(findings), tuple(rejudged))


def _compared(
    runs: Mapping[Path, ScoredRun], names: Mapping[Path, str]
) -> Iterator[SubmissionFinding]:
    """Runs on other data than those with most of the release, or that most runs have; runs that
    would replace an older one of the same model (whoever submits a run chooses its model's name);
    runs with another model's responses; and runs that claim the same data, but have other questions
    or gold answers.
    """
    by_data: dict[str, dict[str, list[tuple[float, Path]]]] = defaultdict(lambda: defaultdict(list))
    for folder, run in runs.items():
        for benchmark, fingerprint in run.public.data.items():
            shares = [
                released_share(entry)
                for entry in run.entries.values()
                if entry.benchmark == benchmark
            ]
            by_data[benchmark][fingerprint].append((max(shares, default=0.0), folder))
    for benchmark, held in sorted(by_data.items()):
        usual = min(held, key=lambda one: (-max(held[one])[0], -len(held[one]), one))
        expected = f"{usual[:16]} as {len(held[usual])} of {sum(map(len, held.values()))} runs have"
        for other in sorted(held.keys() - {usual}):
            for _, folder in held[other]:
                field, file = f"data.{benchmark}.fingerprint", folder / "manifest.json"
                more: dict[str, Any] = {
                    "expected": expected,
                    "field": field,
                    "submission": names[folder],
                }
                yield problem("LB209", benchmark, other[:16], file=file, **more)
    signatures = {
        folder: {
            signature for entry in run.entries.values() for signature in entry.signatures.values()
        }
        for folder, run in runs.items()
    }
    for folder, run in runs.items():
        older = [
            names[other]
            for other, one in runs.items()
            if one.model == run.model
            and one.public.digest != run.public.digest
            and (one.public.created, one.public.key) < (run.public.created, run.public.key)
            and signatures[other] & signatures[folder]  # they are comparable
        ]
        if older:
            found = f"a newer run of the model of {first_names(sorted(older), MOST)}, which it would replace"
            yield problem(
                "LB211",
                names[folder],
                found,
                file=folder / "manifest.json",
                submission=names[folder],
            )
    folders = {run.public.key: folder for folder, run in runs.items()}
    for key, copies in same_responses(runs.values()).items():
        for other, tasks in copies.items():
            folder, name = folders[key], names[folders[key]]
            found = f"the responses of {first_names(tasks, MOST)} are those of {names[folders[other]]}, another model"
            yield problem("LB212", name, found, file=folder / "manifest.json", submission=name)
    for key, others in contradictions(runs.values()).items():
        for other, tasks in others.items():
            folder, name = folders[key], names[folders[key]]
            found = f"the documents of {first_names(tasks, MOST)} differ from those of {names[folders[other]]}"
            yield problem("LB215", name, found, file=folder / "manifest.json", submission=name)


def _texts_in(path: Path, where: str, secrets: Patterns) -> Iterator[SubmissionFinding]:
    """Findings about secrets in any file, and paths of one machine in a manifest or in what it
    writes of a sample.
    """
    if not path.is_file():
        return
    counts: Counter[str] = Counter()
    try:
        with path.open(encoding="utf-8", errors="replace", newline="\n") as lines:
            for number, line in enumerate(lines, start=1):
                found = [
                    (kind, match[0]) for kind, of in secrets.items() for match in of.finditer(line)
                ]
                masked = [f"{kind} ({text[:4]}…, {len(text)} characters)" for kind, text in found]
                findings = [
                    problem("LB301", where, text, file=path, line=number) for text in masked
                ]
                for one in (
                    *findings,
                    *(_paths(line, where, path, number) if path.suffix == ".jsonl" else ()),
                ):
                    counts[one.code] += 1
                    if counts[one.code] <= MOST:
                        yield one
        if path.name == "manifest.json":
            yield from _paths(path.read_text(encoding="utf-8", errors="replace"), where, path)
    except OSError as error:
        text, fix = f"{path.name} cannot be read ({error.strerror})", "restore it, or remove it"
        yield problem("LB102", where, text, fix=fix, file=path)


def _paths(
    text: str, where: str, path: Path, line: int | None = None
) -> Iterator[SubmissionFinding]:
    try:
        content = json.loads(text)
        if line is not None and isinstance(content, dict):
            content = {key: content[key] for key in _OURS if key in content}
        texts = [*_texts_of(content)]
    except (ValueError, RecursionError):
        return  # reported when the directory is read
    for field, value in texts:
        for match in _PATH.finditer(value):
            yield problem(
                "LB302", where, f"the path {match[0][:60]!r}", file=path, line=line, field=field
            )


def _texts_of(value: Any, field: str = "") -> Iterator[tuple[str, str]]:
    """All texts in a JSON value, keys included, each with its field."""
    if isinstance(value, str):
        yield field, value
    elif isinstance(value, list):
        for one in value:
            yield from _texts_of(one, field)
    elif isinstance(value, dict):
        for key, one in value.items():
            yield field, key
            yield from _texts_of(one, f"{field}.{key}".removeprefix("."))


def _files(
    paths: Sequence[Path],
    runs: Mapping[Path, Collection[str]],
    names: Mapping[Path, str],
    secrets: Patterns,
    *,
    public: bool,
    demonstration: bool,
) -> Iterator[SubmissionFinding]:
    """Findings about the files of ``runs``, whose manifests name these tasks, and about those
    beside them: logs and unfinished runs may stay there, unless they have rows that must not be
    shared. ``names`` are those of the runs.
    """
    held: dict[tuple[Path, str], list[Path]] = {}
    lonely: dict[Path, Path] = {}  # directories with logs, but no run
    files = {
        file.parent.resolve() / file.name: (path, file)
        for path in paths
        for file in sorted(path.rglob("*"))
    }
    for place, (path, file) in files.items():
        folder = next((one for one in place.parents if one in runs), None)
        if (file.is_dir() and not file.is_symlink()) or (
            folder is None and ".git" in file.relative_to(path).parts
        ):
            continue
        where = path.resolve().name if folder is None else names[folder]
        text = f"{file.name} is beside the results"
        if folder is not None:
            name = place.relative_to(folder).as_posix()
            if file.is_symlink():
                yield problem("LB104", where, f"{name} is a link", file=file)
            elif name not in (
                "manifest.json",
                "scores.json",
                *(f"samples/{task}.jsonl" for task in runs[folder]),
            ):
                kind = f"a {file.suffix} file" if file.suffix else "a file"
                yield problem(
                    "LB103", where, f"{name} is {kind} of {file.stat().st_size:,} bytes", file=file
                )
        elif file.suffix.lower() in _MEDIA:
            yield problem("LB103", where, text, expected="no media", fix="remove it", file=file)
        else:  # logs and replies have prompts, logs also references
            unfinished = file.parent.name.endswith(UNFINISHED)
            named = LOG.fullmatch(file.name) or (
                _REPLIES.fullmatch(file.name) if unfinished else None
            )
            if _LOGS.fullmatch(file.name) and not any(run.parent == place.parent for run in runs):
                lonely.setdefault(place.parent, file)
            spec = None if named is None else load_specs().get(named["task"])
            if spec is not None and is_withheld(spec.metadata.benchmark) and not demonstration:
                held.setdefault((file.parent, spec.metadata.benchmark), []).append(file)
        if folder is not None or not file.is_symlink():
            yield from _texts_in(file, where, secrets)
    for folder, file in lonely.items():
        text = f"{file.name} is there without a result directory"
        where, fix = name_below(folder, paths), f"remove it, or {LOGS[1]}"
        yield problem("LB103", where, text, expected="a run beside it", fix=fix, file=file)
    severity = "error" if public else "warning"
    for (beside, benchmark), several in held.items():
        text = f"beside the results: {counted(len(several), 'file')} with prompts of {benchmark} ({several[0].name})"
        expected, fix = (
            "nothing that must not be shared",
            "remove this, or keep the repository private",
        )
        where = name_below(beside, paths)
        yield problem(
            "LB304", where, text, expected=expected, fix=fix, file=several[0], severity=severity
        )
