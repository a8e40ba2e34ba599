"""The documents of a run's data, where the same data are prepared on this machine."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from medtasks.benchmarks.documents import task_rows
from medtasks.benchmarks.stages import asked_prompt
from medtasks.catalog.benchmark import Document
from medtasks.catalog.registry import get_benchmark
from medtasks.catalog.spec import load_spec
from medtasks.core.errors import DataError, MedtasksError, first_line
from medtasks.core.files import canonical_json
from medtasks.core.settings import Settings, current_settings, read_subset, using
from medtasks.data.store import open_prepared
from medtasks.runs.manifest import DataFacts, RunManifest

T = TypeVar("T")


def local_documents(task: str, manifest: RunManifest) -> Mapping[str, Document]:
    """The documents that the run asks in a task, by sample id, from the data prepared here; miniature data are made if
    they are absent."""
    return _from_data_here(_documents, task, manifest)


def known_documents(task: str, manifest: RunManifest) -> Mapping[str, tuple[Mapping[str, Any], bytes]]:
    """By sample id what a sample has of the task's document, and the hash of the prompt that it gives; empty if it
    gives none. Made once: all runs of a board answer the same questions."""
    return _from_data_here(_known, task, manifest)


def _from_data_here(make: Callable[[str, str, Settings], T], task: str, manifest: RunManifest) -> T:
    facts, here = manifest.tasks[task], current_settings().mini
    data = manifest.data[facts.benchmark]
    errors: list[MedtasksError] = []
    for mini in dict.fromkeys((here, True) if data.mini else (here,)):
        with using(mini=mini, max_frames=facts.frames.get("cap"), subset=read_subset(facts.subset)):
            try:
                return make(task, data.fingerprint, current_settings())
            except MedtasksError as error:
                errors.append(error)
            except Exception as error:  # code of other packages
                errors.append(MedtasksError(f"{task}: its documents cannot be made ({first_line(error)})."))
    raise errors[0]


@functools.lru_cache(maxsize=8)
def _documents(task: str, fingerprint: str, settings: Settings) -> Mapping[str, Document]:
    del settings  # in force; here only part of the cache key
    benchmark = load_spec(task).metadata.benchmark
    prepared = open_prepared(benchmark).manifest.fingerprint
    if prepared != fingerprint:
        raise DataError(f"the data of {benchmark} prepared here have the fingerprint {prepared[:16]}.")
    return {document["sample_id"]: document for document in task_rows(task).documents(media=False)}


@functools.cache
def _known(task: str, fingerprint: str, settings: Settings) -> Mapping[str, tuple[Mapping[str, Any], bytes]]:
    known = {}
    for name, document in _documents(task, fingerprint, settings).items():
        try:
            prompt = text_hash(asked_prompt(load_spec(task), document))
        except (MedtasksError, KeyError):  # the document does not give one
            prompt = b""
        fields = {field: document[field] for field in ("cluster", "target")}
        fields["media"] = tuple(document["media"])
        others = {field: value for field, value in document.items() if field not in {"sample_id", *fields}}
        known[name] = {**fields, "document": json.loads(canonical_json(others))}, prompt
    return known


def forget_documents() -> None:
    """Free the memory that the documents take."""
    _known.cache_clear()
    _documents.cache_clear()


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
