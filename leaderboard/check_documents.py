"""Whether a run's samples have the documents of the data that it claims, and prompts of the installed templates."""

from __future__ import annotations

from collections.abc import Iterator

from medtasks.errors import MedtasksError
from medtasks.text import first_names
from medtasks.validation.findings import Finding

from .check_rules import MOST, Submission, problem
from .documents import document_of, hashes_of, seen, split
from .doubts import other_prompts
from .releases import Releases, match_of, release_of

_RUN_AGAIN = "submit the directory as the run wrote it"


def check_documents(run: Submission, releases: Releases) -> Iterator[Finding]:
    """Compare documents with those of the available ``releases``, and prompts with those of the templates.

    Tasks of packages that are not installed are left out, as in the digest.
    """
    absent: dict[str, list[str]] = {}
    for task in run.digest.documents:
        match = match_of(run.digest, task, releases)
        if match.absent is not None:
            absent.setdefault(match.absent, []).append(task)
        if match.strange:
            yield from _strange(run, task, releases)
        if match.missing and run.digest.complete[task]:
            found = f"{len(run.samples[task]):,} samples; {match.missing:,} documents of the data have none"
            expected = "one for each document of the data"
            yield problem("LB201", task, found, expected, _RUN_AGAIN, file=run.samples_file(task))
        yield from _prompts(run, task)
    for why, tasks in absent.items():
        found = f"the documents of {first_names(tasks, MOST)} could not be compared ({why})"
        fix = "prepare that release here, or give --documents FILE of `medtasks leaderboard digest`"
        yield problem(
            "LB402", run.folder.name, found, "the data of the run, or their hashes", fix, file=run.manifest_file
        )


def _strange(run: Submission, task: str, releases: Releases) -> Iterator[Finding]:
    """The samples whose documents are not the task's, with the fields that differ if the data are available."""
    path, view = run.samples_file(task), run.digest.documents[task].view
    release = release_of(run.digest, task)
    known = releases.known(task, release, view)
    ours = {one for hashes in known for one in split(hashes)} if not isinstance(known, str) else set()
    strange = [
        (line, sample)
        for line, sample in enumerate(run.samples[task], start=1)
        if not split(hashes_of(task, [document_of(sample)], view)) <= ours
    ]
    try:
        theirs = {one["sample_id"]: one for one in releases.documents(task, release, view.cap, view.subset)}
    except MedtasksError:
        theirs = None
    for line, sample in strange[:MOST]:
        found = "its document is not one of the task's"
        if theirs is not None and sample.sample_id not in theirs:
            found = "the task has no document with this id"
        elif theirs is not None:
            here, there = (seen(task, one, view) for one in (document_of(sample), theirs[sample.sample_id]))
            changed = sorted(name for name in {*here, *there} if here.get(name) != there.get(name))
            # only the names of fields: values may be confidential, and reports are public
            found = f"{first_names((f'`{name}`' for name in changed), MOST)} changed"
        where = f"{task}: {sample.sample_id}"
        yield problem("LB401", where, found, "a document of the data", _RUN_AGAIN, file=path, line=line)
    if len(strange) > MOST:
        found = f"{len(strange) - MOST:,} more samples have documents that are not the task's"
        yield problem("LB401", task, found, "documents of the data", _RUN_AGAIN, file=path)


def _prompts(run: Submission, task: str) -> Iterator[Finding]:
    path = run.samples_file(task)
    others = list(other_prompts(task, run.manifest, run.manifest.tasks[task], run.samples[task]))
    for line, sample in others[:MOST]:
        where, expected = f"{task}: {sample.sample_id}", "the prompt that the task's template renders"
        yield problem("LB403", where, "another prompt", expected, _RUN_AGAIN, file=path, line=line, field="prompt")
    if len(others) > MOST:
        found = f"{len(others) - MOST:,} more prompts are not the template's"
        yield problem("LB403", task, found, "the template's", _RUN_AGAIN, file=path, field="prompt")
