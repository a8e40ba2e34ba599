"""The documents that samples claim to answer, as hashes.

A sample line holds its whole document: question, choices, gold answer, media, cluster. Whoever submits it can change
it, so every document is hashed and looked up among those of the release (`medtasks.leaderboard.releases`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from medtasks.benchmarks import get_benchmark
from medtasks.benchmarks.base import Document
from medtasks.files import canonical_json
from medtasks.results.manifest import TaskFacts
from medtasks.results.samples import Sample
from medtasks.spec import load_spec

from .strip import is_stripped

__all__ = ["LENGTH", "TaskDocuments", "View", "document_of", "hashes_of", "run_documents", "seen", "split"]

LENGTH = 12
"""Bytes kept of each SHA-256: nobody finds a second document with the hash of a given one."""


@dataclass(frozen=True)
class View:
    """What of a document a sample shows.

    ``cap`` is the limit on frames of a request (``MEDTASKS_MAX_FRAMES``). ``fields`` are those that a stripped sample
    keeps beside its id and its right option; None for a whole sample.
    """

    cap: int | None = None
    fields: tuple[str, ...] | None = None


@dataclass(frozen=True)
class TaskDocuments:
    """The documents of one task in one run: ``hashes`` are theirs, sorted, `LENGTH` bytes each."""

    view: View
    hashes: bytes

    def __len__(self) -> int:
        return len(self.hashes) // LENGTH


def document_of(sample: Sample) -> Document:
    """The whole document of a sample, as the harness was given it."""
    return {
        **sample.document,
        "sample_id": sample.sample_id,
        "cluster": sample.cluster,
        "media": list(sample.media),
        "target": sample.target,
    }


def run_documents(task: str, facts: TaskFacts, samples: Sequence[Sample]) -> TaskDocuments:
    """The documents that the ``samples`` of ``task`` hold."""
    fields = None
    if is_stripped(samples):
        fields = tuple(sorted({name for sample in samples for name in sample.document}))
    view = View(facts.frames.get("cap"), fields)
    return TaskDocuments(view, hashes_of(task, map(document_of, samples), view))


def hashes_of(task: str, documents: Iterable[Mapping[str, Any]], view: View) -> bytes:
    """The hashes of the documents of ``task``, as `TaskDocuments` holds them."""
    return b"".join(sorted({_hash(seen(task, document, view)) for document in documents}))


def seen(task: str, document: Mapping[str, Any], view: View) -> Document:
    """What ``view`` shows of a document of ``task``.

    Equal for a document and its copy that went through JSON or a table: absent and empty fields, tuples and lists,
    whole numbers of any type count as the same.
    """
    found: Document
    if view.fields is None:
        found = _canonical(document)
        return found
    options = get_benchmark(load_spec(task).metadata.benchmark).options
    kept = {name: document[name] for name in view.fields if name in document}
    target = document["target"] if document["target"] in options else ""
    found = _canonical({**kept, "sample_id": document["sample_id"], "target": target})
    return found


def _hash(document: Document) -> bytes:
    return hashlib.sha256(canonical_json(document).encode("utf-8", "surrogatepass")).digest()[:LENGTH]


def _canonical(value: Any) -> Any:
    if isinstance(value, Mapping):
        fields = {str(key): _canonical(one) for key, one in value.items()}
        return {key: one for key, one in fields.items() if one is not None and one != {}}
    if isinstance(value, list | tuple):
        return [_canonical(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def split(hashes: bytes) -> frozenset[bytes]:
    """The hashes one by one."""
    return frozenset(hashes[start : start + LENGTH] for start in range(0, len(hashes), LENGTH))
