"""The documents of a run's data, where the same data are prepared on this machine."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from medtasks.benchmarks.documents import task_rows
from medtasks.benchmarks.stages import asked_prompt
from medtasks.catalog.benchmark import Document
from medtasks.catalog.registry import get_benchmark
from medtasks.catalog.spec import TaskSpec, load_spec
from medtasks.core.errors import DataError, MedtasksError, first_line
from medtasks.core.files import canonical_json
from medtasks.core.settings import Settings, current_settings, read_subset, using
from medtasks.data.store import open_prepared
from medtasks.runs.manifest import DataFacts


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


def local_documents(task: str, release: Release) -> Mapping[str, Document]:
    """The task's documents by sample id in the data prepared here; miniature data are made if they are absent.

    Raises:
        MedtasksError: no data of that release are prepared.
    """
    here = current_settings().mini
    others: list[MedtasksError] = []
    for mini in dict.fromkeys((here, True) if release.mini else (here,)):
        with using(mini=mini, max_frames=release.cap, subset=read_subset(release.subset)):
            try:
                return _documents(task, release.fingerprint, current_settings())
            except MedtasksError as error:
                others.append(error)
            except Exception as error:  # code of other packages
                others.append(MedtasksError(f"{task}: its documents cannot be made ({first_line(error)})."))
    raise others[0]


@functools.lru_cache(maxsize=8)
def _documents(task: str, fingerprint: str, settings: Settings) -> Mapping[str, Document]:
    del settings  # in force; here only part of the cache key
    benchmark = load_spec(task).metadata.benchmark
    prepared = open_prepared(benchmark).manifest.fingerprint
    if prepared != fingerprint:
        raise DataError(f"the data of {benchmark} prepared here have the fingerprint {prepared[:16]}.")
    return {document["sample_id"]: document for document in task_rows(task).documents(media=False)}


_KNOWN: dict[tuple[str, Release, Settings], Mapping[str, tuple[Mapping[str, Any], bytes]]] = {}


def known_documents(task: str, release: Release) -> Mapping[str, tuple[Mapping[str, Any], bytes]]:
    """By sample id what a sample has of the task's document, and the hash of the prompt that it gives; empty if it
    gives none. Made once: all runs of a board answer the same questions.

    Raises:
        MedtasksError: as :func:`local_documents`.
    """
    key = (task, release, current_settings())
    if key not in _KNOWN:
        spec = load_spec(task)
        _KNOWN[key] = {name: _known(spec, one) for name, one in local_documents(task, release).items()}
    return _KNOWN[key]


def forget_documents() -> None:
    """Free the memory that the documents take."""
    _KNOWN.clear()
    _documents.cache_clear()


def _known(spec: TaskSpec, document: Document) -> tuple[Mapping[str, Any], bytes]:
    own = ("sample_id", "cluster", "media", "target")
    others = {name: value for name, value in document.items() if name not in own}
    try:
        prompt = text_hash(asked_prompt(spec, document))
    except (MedtasksError, KeyError):  # the document does not give one
        prompt = b""
    fields = {
        "cluster": document["cluster"],
        "media": tuple(document["media"]),
        "target": document["target"],
        "document": json.loads(canonical_json(others)),
    }
    return fields, prompt


def text_hash(text: str) -> bytes:
    """SHA-256 of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def is_miniature(benchmark: str, facts: DataFacts) -> bool:
    """Whether the data are miniature data, also if they were prepared from their source files like a release."""
    if facts.mini or facts.records >= get_benchmark(benchmark).published.get("rows", 0):
        return facts.mini
    with using(mini=True):
        try:
            return open_prepared(benchmark).manifest.fingerprint == facts.fingerprint
        except MedtasksError:
            return False
