"""Whether the documents of runs are those of the data they claim: forged runs are not ranked, doubts are noted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from medtasks.spec import load_spec

from .digest import Digest
from .redaction import shown
from .releases import Match, Release, Releases


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
    fingerprint = digest.facts.data.get(load_spec(task).metadata.benchmark, "")
    return releases.match(task, Release(fingerprint, digest.facts.mini), digest.documents[task])


def unverified_note(tasks: list[str]) -> str:
    """A sentence for readers of the board."""
    return (
        f"Documents not verified: {', '.join(tasks)} (neither the data nor a file of document hashes was available "
        "when the board was built, so questions and gold answers are those that the runs claim)."
    )


def _doubts(match: Match, documents: int, *, whole: bool) -> Iterator[str]:
    if match.strange:
        yield (
            f"{match.strange:,} of {documents:,} documents are not those of the data (question, options, gold answer, "
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
