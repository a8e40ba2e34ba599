"""Whether the samples of a run answer the documents of the data that it claims, asked by the installed templates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from medtasks.errors import MedtasksError
from medtasks.results.manifest import RunManifest
from medtasks.results.samples import Sample
from medtasks.spec import load_spec
from medtasks.validation.findings import Finding

from .check_rules import problem
from .digest import Digest
from .documents import document_of, hashes_of, seen, split
from .doubts import other_prompts
from .releases import Release, Releases
from .verified import match_of

__all__ = ["check_documents"]

_MOST = 5
"""Findings of one kind in one task."""
_RUN_AGAIN = "submit the folder as the run wrote it"


def check_documents(
    folder: Path,
    manifest: RunManifest,
    samples: Mapping[str, Sequence[Sample]],
    digest: Digest,
    releases: Releases,
) -> Iterator[Finding]:
    """Compare documents with those of the ``releases`` at hand, and prompts with what the templates give.

    Tasks that the ``digest`` leaves out, since no installed package has them, are left out.
    """
    absent: dict[str, list[str]] = {}
    for task in digest.documents:
        path = folder / "samples" / f"{task}.jsonl"
        match = match_of(digest, task, releases)
        if match.absent is not None:
            absent.setdefault(match.absent, []).append(task)
        if match.strange:
            yield from _strange(path, manifest, task, samples[task], digest, releases)
        if match.missing and digest.complete[task]:
            told = f"{len(samples[task]):,} samples; {match.missing:,} documents of the data have none"
            yield problem("LB201", task, told, "one for each document of the data", _RUN_AGAIN, file=path)
        yield from _prompts(path, manifest, task, samples[task])
    for why, tasks in absent.items():
        told = f"the documents of {_listed(tasks)} were compared with nothing ({why})"
        fix = "prepare that release here, or give --documents FILE of `medtasks leaderboard digest`"
        yield problem(
            "LB402", folder.name, told, "the data of the run, or their hashes", fix, file=folder / "manifest.json"
        )


def _strange(
    path: Path, manifest: RunManifest, task: str, samples: Sequence[Sample], digest: Digest, releases: Releases
) -> Iterator[Finding]:
    """The samples whose documents are none of the task's, with the fields that differ where the data are at hand."""
    view = digest.documents[task].view
    release = _release(manifest, task)
    known = releases.known(task, release, view)
    ours = {one for hashes in known for one in split(hashes)} if not isinstance(known, str) else set()
    strange = [
        (line, sample)
        for line, sample in enumerate(samples, start=1)
        if not split(hashes_of(task, [document_of(sample)], view)) <= ours
    ]
    try:
        theirs = {one["sample_id"]: one for one in releases.documents(task, release, view.cap)}
    except MedtasksError:
        theirs = None
    for line, sample in strange[:_MOST]:
        told = "its document is none of the task's"
        if theirs is not None and sample.sample_id not in theirs:
            told = "the task has no document with this id"
        elif theirs is not None:
            here, there = (seen(task, one, view) for one in (document_of(sample), theirs[sample.sample_id]))
            changed = sorted(name for name in {*here, *there} if here.get(name) != there.get(name))
            # names of fields alone: what the data hold may be confidential, and reports are public
            told = f"{_listed([f'`{name}`' for name in changed])} changed"
        where = f"{task}: {sample.sample_id}"
        yield problem("LB401", where, told, "a document of the data", _RUN_AGAIN, file=path, line=line)
    if len(strange) > _MOST:
        told = f"{len(strange) - _MOST:,} more samples have documents that are none of the task's"
        yield problem("LB401", task, told, "documents of the data", _RUN_AGAIN, file=path)


def _release(manifest: RunManifest, task: str) -> Release:
    """As `match_of` has it: miniature where any of the run's data are."""
    facts = manifest.data[load_spec(task).metadata.benchmark]
    return Release(facts.fingerprint, any(one.mini for one in manifest.data.values()))


def _prompts(path: Path, manifest: RunManifest, task: str, samples: Sequence[Sample]) -> Iterator[Finding]:
    others = list(other_prompts(task, manifest, manifest.tasks[task], samples))
    for line, sample in islice(others, _MOST):
        where, wanted = f"{task}: {sample.sample_id}", "what the task's template makes of the document"
        yield problem("LB403", where, "another prompt", wanted, _RUN_AGAIN, file=path, line=line, field="prompt")
    if len(others) > _MOST:
        told = f"{len(others) - _MOST:,} more prompts are not what the template gives"
        yield problem("LB403", task, told, "the template's", _RUN_AGAIN, file=path, field="prompt")


def _listed(names: Sequence[str]) -> str:
    rest = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return f"{', '.join(names[:_MOST])}{rest}"
