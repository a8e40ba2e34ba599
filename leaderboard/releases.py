"""Comparing documents of runs with releases: data prepared here, and files of ``leaderboard digest``.

Forged runs are not ranked; what could not be compared is noted.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from medtasks.benchmarks.base import Document
from medtasks.benchmarks.documents import task_rows
from medtasks.data.store import open_prepared
from medtasks.errors import DataError, MedtasksError, first_line
from medtasks.registry import get_benchmark
from medtasks.results.manifest import DataFacts
from medtasks.settings import Settings, current_settings, using
from medtasks.spec import load_spec

from .digest import Digest
from .documents import TaskDocuments, View, hashes_of, read_document_files, split
from .redaction import shown


@dataclass(frozen=True)
class Release:
    """The data that a run claims for a benchmark; ``mini`` marks miniature data."""

    fingerprint: str
    mini: bool = False


@dataclass(frozen=True)
class Match:
    """A comparison of a run's documents of one task with the release's.

    ``absent`` says why they could not be compared, ``strange`` counts documents that are not the task's, ``missing``
    those of the task that the run lacks.
    """

    absent: str | None = None
    strange: int = 0
    missing: int = 0


class Releases:
    """The available releases: data prepared here, miniature data (made if absent), and digest files.

    Args:
        files: written by ``medtasks leaderboard digest``.

    Raises:
        DataError: a file is not a digest file.
    """

    def __init__(self, files: Sequence[Path] = ()) -> None:
        self._files = read_document_files(files)
        self._known: dict[tuple[str, Release, View], tuple[bytes, ...] | str] = {}

    def match(self, task: str, release: Release, own: TaskDocuments) -> Match:
        """Compare a run's documents of ``task`` with those of the release that it claims."""
        sets = self.known(task, release, own.view)
        if isinstance(sets, str):
            return Match(absent=sets)
        if own.hashes in sets:
            return Match()
        claimed, known = split(own.hashes), [split(one) for one in sets]
        return Match(strange=len(claimed.difference(*known)), missing=min(len(one - claimed) for one in known))

    def known(self, task: str, release: Release, view: View) -> tuple[bytes, ...] | str:
        """Hashes of the task's documents, from every source of this release; or the reason why there are none."""
        key = (task, release, view)
        if key not in self._known:
            found: list[bytes] = []
            absent = ""
            try:
                found.append(hashes_of(task, self.documents(task, release, view.cap, view.subset), view))
            except MedtasksError as error:
                absent = first_line(error).rstrip(".")
            if view == View():  # files have only whole documents
                found += self._files.get((release.fingerprint, task), ())
            self._known[key] = tuple(dict.fromkeys(found)) or absent
        return self._known[key]

    def documents(self, task: str, release: Release, cap: int | None = None, subset: str = "") -> list[Document]:
        """The task's documents, or a subset of them, in the data prepared here.

        Raises:
            MedtasksError: no data of that release are prepared.
        """
        here = current_settings().mini
        others: list[MedtasksError] = []
        for mini in dict.fromkeys((here, True) if release.mini else (here,)):
            with using(mini=mini, max_frames=cap, subset=subset):
                try:
                    return _documents(task, release.fingerprint, current_settings())
                except MedtasksError as error:
                    others.append(error)
                except Exception as error:  # code of other packages
                    others.append(MedtasksError(f"{task}: its documents cannot be made ({first_line(error)})."))
        raise others[0]


@functools.lru_cache(maxsize=2)
def _documents(task: str, fingerprint: str, settings: Settings) -> list[Document]:
    del settings  # in force; here only part of the cache key
    benchmark = load_spec(task).metadata.benchmark
    prepared = open_prepared(benchmark).manifest.fingerprint
    if prepared != fingerprint:
        raise DataError(f"the data of {benchmark} prepared here have the fingerprint {prepared[:16]}.")
    return task_rows(task).documents(media=False)


def is_miniature(benchmark: str, facts: DataFacts) -> bool:
    """Whether the data are miniature data, also if they were prepared from their source files like a release."""
    if facts.mini or facts.records >= get_benchmark(benchmark).published.get("rows", 0):
        return facts.mini
    with using(mini=True):
        try:
            return open_prepared(benchmark).manifest.fingerprint == facts.fingerprint
        except MedtasksError:
            return False


def verified(digest: Digest, releases: Releases) -> Digest:
    """The digest, with the result of comparing its documents with the available releases."""
    matches = {task: match_of(digest, task, releases) for task in digest.documents}
    doubts = {
        task: (*_doubts(match, len(digest.documents[task]), whole=digest.complete[task]), *digest.doubts.get(task, ()))
        for task, match in matches.items()
    }
    unverified = {task: match.absent for task, match in matches.items() if match.absent is not None}
    notes = tuple(dict.fromkeys((*digest.facts.notes, *_notes(digest, doubts, unverified))))
    return replace(
        digest,
        facts=digest.facts.model_copy(update={"notes": notes}),
        doubts={task: found for task, found in doubts.items() if found},
        unverified=unverified,
    )


def match_of(digest: Digest, task: str, releases: Releases) -> Match:
    """Compare the documents of one task of the run with the release that its manifest claims."""
    return releases.match(task, release_of(digest, task), digest.documents[task])


def release_of(digest: Digest, task: str) -> Release:
    """The release that the run's manifest claims for a task."""
    fingerprint = digest.facts.data.get(load_spec(task).metadata.benchmark, "")
    return Release(fingerprint, digest.facts.mini)


def unverified_note(tasks: list[str]) -> str:
    """The note that the documents of these tasks were not verified."""
    return (
        f"Documents not verified: {', '.join(tasks)} (neither the data nor a file of document hashes was available "
        "when the board was built, so questions and gold answers are taken as submitted)."
    )


def _doubts(match: Match, documents: int, *, whole: bool) -> Iterator[str]:
    if match.strange:
        yield (
            f"{match.strange:,} of {documents:,} documents differ from the data (question, options, gold answer, "
            "media or id differ)"
        )
    if match.missing and whole:
        yield f"{match.missing:,} documents of the data were left out"


def _notes(digest: Digest, doubts: dict[str, tuple[str, ...]], unverified: dict[str, str]) -> Iterator[str]:
    for task, found in sorted(doubts.items()):
        yield from (shown(f"{task}: {doubt}") for doubt in found)
    if unverified:
        yield unverified_note(sorted(unverified))
    if stripped := sorted(task for task, one in digest.documents.items() if one.view.fields is not None):
        yield f"stripped, so the responses cannot be scored again: {', '.join(stripped)}"
