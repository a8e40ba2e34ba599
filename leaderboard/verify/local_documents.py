"""The documents of a run's data, where the same data are prepared on this machine."""

from __future__ import annotations

import functools
import hashlib
import json
import marshal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from medtasks.benchmarks.documents import task_rows
from medtasks.catalog.benchmark import Document
from medtasks.catalog.registry import get_benchmark
from medtasks.catalog.spec import load_spec
from medtasks.core.errors import DataError, MedtasksError, first_line
from medtasks.core.files import canonical_json
from medtasks.core.settings import Settings, current_settings, using
from medtasks.data.store import open_prepared
from medtasks.runs.manifest import DataFacts
from medtasks.runs.samples import Sample

LENGTH = 12
"""Bytes kept of each SHA-256: enough to make a second document with the same hash infeasible."""


@dataclass(frozen=True)
class Release:
    """The data that a run claims for a task.

    ``mini`` marks miniature data, ``cap`` is the limit on frames of a request (``MEDTASKS_MAX_FRAMES``), ``subset``
    that of the documents that were asked (``MEDTASKS_SUBSET``), empty for all.
    """

    fingerprint: str
    mini: bool = False
    cap: int | None = None
    subset: str = ""


def local_documents(task: str, release: Release) -> list[Document]:
    """The task's documents in the data prepared here; miniature data are made if they are absent.

    Raises:
        MedtasksError: no data of that release are prepared.
    """
    here = current_settings().mini
    others: list[MedtasksError] = []
    for mini in dict.fromkeys((here, True) if release.mini else (here,)):
        with using(mini=mini, max_frames=release.cap, subset=release.subset):
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


_HASHES: dict[tuple[str, Release, Settings], Mapping[str, bytes]] = {}


def local_hashes(task: str, release: Release) -> Mapping[str, bytes]:
    """The hash of each of the task's documents by sample id: all runs of a board are compared with the same ones.

    Raises:
        MedtasksError: as :func:`local_documents`.
    """
    key = (task, release, current_settings())
    if key not in _HASHES:
        _HASHES[key] = {one["sample_id"]: _hash(one) for one in local_documents(task, release)}
    return _HASHES[key]


def document_of(sample: Sample) -> Document:
    """The whole document of a sample, as passed to the harness."""
    return {
        **sample.document,
        "sample_id": sample.sample_id,
        "cluster": sample.cluster,
        "media": list(sample.media),
        "target": sample.target,
    }


def document_hash(sample: Sample) -> bytes:
    """The hash of the sample's document, as in :func:`local_hashes`."""
    return once("document", document_of(sample), _hash)


def with_document(sample: Sample, document: Document) -> Sample:
    """The sample with another document."""
    fields = dict(document)
    update = {name: fields.pop(name) for name in ("cluster", "target")}
    fields.pop("sample_id")
    media = tuple(fields.pop("media"))
    return sample.model_copy(update={**update, "media": media, "document": json.loads(canonical_json(fields))})


_MOST = 2**18
_MADE: dict[bytes, bytes] = {}


def once(what: str, document: Document, make: Callable[[Document], bytes]) -> bytes:
    """``make(document)``, called once for all equal documents: the runs of a leaderboard answer the same questions.

    Args:
        what: the name of the result, different for each kind of ``make``.
        document: from JSON.
        make: depends on nothing else.
    """
    key = hashlib.blake2b(marshal.dumps((what, document), 2), digest_size=24).digest()  # version 2 has no references
    if key not in _MADE:
        if len(_MADE) >= _MOST:
            _MADE.clear()
        _MADE[key] = make(document)
    return _MADE[key]


def _hash(document: Mapping[str, Any]) -> bytes:
    text = canonical_json(_canonical(document))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:LENGTH]


def _canonical(document: Mapping[str, Any]) -> Document:
    """Equal for a document and its copy from JSON or a table: absent and empty fields, tuples and lists, and whole
    numbers of any type are the same."""
    fields = {str(key): _canonical_value(value) for key, value in document.items()}
    return {key: value for key, value in fields.items() if value is not None and value != {}}


def _canonical_value(value: Any) -> Any:
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return _canonical(value)
    if isinstance(value, list | tuple):
        return [_canonical_value(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def is_miniature(benchmark: str, facts: DataFacts) -> bool:
    """Whether the data are miniature data, also if they were prepared from their source files like a release."""
    if facts.mini or facts.records >= get_benchmark(benchmark).published.get("rows", 0):
        return facts.mini
    with using(mini=True):
        try:
            return open_prepared(benchmark).manifest.fingerprint == facts.fingerprint
        except MedtasksError:
            return False
