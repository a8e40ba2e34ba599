"""The documents of a run's tasks, from the data prepared on this machine."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from medtasks.benchmarks.documents import asked_prompt, task_rows
from medtasks.catalog.benchmark import Document
from medtasks.catalog.registry import get_benchmark
from medtasks.catalog.spec import load_spec
from medtasks.core.errors import (
    DamagedDataError,
    DataError,
    MachineError,
    MedtasksError,
    first_line,
    machine_fault,
)
from medtasks.core.files import canonical_json, short_hash
from medtasks.core.settings import Settings, current_settings, read_subset, using
from medtasks.data.store import open_prepared
from medtasks.runs.manifest import DataFacts, RunManifest

T = TypeVar("T")


class LocalDocument(NamedTuple):
    """The ``fields`` that a sample has of its document, and the hash of the prompt that the
    document gives; empty if it gives none.
    """

    fields: Mapping[str, Any]
    prompt_hash: str


def local_documents(task: str, manifest: RunManifest) -> Mapping[str, Document]:
    """The documents of the run's task by sample id, from the data prepared here; miniature data are
    made if absent.
    """
    return _from_local_data(_documents, task, manifest)


def local_sample_fields(task: str, manifest: RunManifest) -> Mapping[str, LocalDocument]:
    """What samples have of the documents of the run's task, by sample id."""
    return _from_local_data(_sample_fields, task, manifest)


def forget_documents() -> None:
    """Free the memory that the documents take."""
    _sample_fields.cache_clear()
    _documents.cache_clear()


def is_miniature(benchmark: str, facts: DataFacts) -> bool:
    """Whether the data are miniature data, also if they were prepared from their source files like
    a release.
    """
    if facts.mini or facts.records >= get_benchmark(benchmark).counts.published.get("rows", 0):
        return facts.mini
    with using(mini=True):
        try:
            return open_prepared(benchmark).manifest.fingerprint == facts.fingerprint
        except MachineError:
            raise
        except MedtasksError:
            return False


def _from_local_data(
    make: Callable[[str, str, Settings], T], task: str, manifest: RunManifest
) -> T:
    """What ``make`` returns from the data prepared here; for a run on miniature data, from these if
    the others fail.
    """
    facts = manifest.tasks[task]
    data = manifest.data[facts.benchmark]
    uses_mini = [current_settings().mini]
    if data.mini and not current_settings().mini:
        uses_mini.append(True)
    errors: list[MedtasksError] = []
    for mini in uses_mini:
        with using(mini=mini, max_frames=facts.frames.get("cap"), subset=read_subset(facts.subset)):
            try:
                return make(task, data.fingerprint, current_settings())
            except Exception as error:  # code of other packages, too
                errors.append(_reported(error, task, facts.benchmark))
    try:
        raise _most_important(errors)
    finally:
        # each has this frame, which has them: they, and the callers' samples, would stay
        errors.clear()


def _reported(error: Exception, task: str, benchmark: str) -> MedtasksError:
    """The error as one of ours."""
    if isinstance(error, MedtasksError):
        return error
    if isinstance(error, OSError):
        reason = error.strerror or error
        return DamagedDataError(
            f"{benchmark}: its prepared data cannot be read ({reason}); restore them."
        )
    problem = f"{task}: its documents cannot be made ({first_line(error)})."
    return machine_fault(error) or MedtasksError(problem)


def _most_important(errors: list[MedtasksError]) -> MedtasksError:
    """The first fault of this machine, else the first error."""
    for error in errors:
        if isinstance(error, MachineError):
            return error
    return errors[0]


@functools.lru_cache(maxsize=8)
def _documents(task: str, fingerprint: str, settings: Settings) -> Mapping[str, Document]:
    """The task's documents by sample id, from the data prepared here.

    Raises:
        DataError: the prepared data have another fingerprint.
    """
    del settings  # in force; here only part of the cache key
    benchmark = load_spec(task).metadata.benchmark
    prepared = open_prepared(benchmark)
    prepared_fingerprint = prepared.manifest.fingerprint
    if prepared_fingerprint != fingerprint:
        prepared.require_intact()  # else the manifest's fingerprint may be what was damaged
        raise DataError(
            f"the data of {benchmark} prepared here have the fingerprint "
            f"{prepared_fingerprint[:16]}."
        )
    return {document["sample_id"]: document for document in task_rows(task).documents(media=False)}


@functools.cache
def _sample_fields(task: str, fingerprint: str, settings: Settings) -> Mapping[str, LocalDocument]:
    """The fields of samples that come from the task's documents, by sample id.

    They are computed once, because all runs of a board answer the same questions.
    """
    spec = load_spec(task)
    local = {}
    for sample_id, document in _documents(task, fingerprint, settings).items():
        try:
            prompt_hash = short_hash(asked_prompt(spec, document))
        except (MedtasksError, KeyError):  # the document does not give one
            prompt_hash = ""
        rest = dict(document)
        del rest["sample_id"]
        fields = {
            "cluster": rest.pop("cluster"),
            "target": rest.pop("target"),
            "media": tuple(rest.pop("media")),
            "document": json.loads(canonical_json(rest)),
        }
        local[sample_id] = LocalDocument(fields, prompt_hash)
    return local
