"""The documents that samples claim to answer, as hashes, and files of such hashes.

A sample line contains its whole document: question, choices, gold answer, media, cluster. A submitter can change it,
so every document is hashed and looked up among those of the release (`medtasks.leaderboard.releases`). With a file of
hashes, an organiser can compare runs without the data.
"""

from __future__ import annotations

import base64
import hashlib
import marshal
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from medtasks.benchmarks.base import Document
from medtasks.errors import DataError, UsageError
from medtasks.files import canonical_json
from medtasks.registry import get_benchmark
from medtasks.results.manifest import TaskFacts
from medtasks.results.samples import Sample
from medtasks.spec import load_spec

from .strip import is_stripped

LENGTH = 12
"""Bytes kept of each SHA-256: enough to make a second document with the same hash infeasible."""

Hashes = Mapping[tuple[str, str], bytes]
"""Hashes by fingerprint of the data and task, as in `TaskDocuments`."""


@dataclass(frozen=True)
class View:
    """The part of a document that a sample shows.

    ``cap`` is the limit on frames of a request (``MEDTASKS_MAX_FRAMES``). ``fields`` are those that a stripped sample
    has besides its id and correct option; None for a whole sample. ``subset`` is that of the documents that were asked
    (``MEDTASKS_SUBSET``), empty for all.
    """

    cap: int | None = None
    fields: tuple[str, ...] | None = None
    subset: str = ""


@dataclass(frozen=True)
class TaskDocuments:
    """The documents of one task in one run as ``hashes``, sorted, `LENGTH` bytes each."""

    view: View
    hashes: bytes

    def __len__(self) -> int:
        return len(self.hashes) // LENGTH


def document_of(sample: Sample) -> Document:
    """The whole document of a sample, as passed to the harness."""
    return {
        **sample.document,
        "sample_id": sample.sample_id,
        "cluster": sample.cluster,
        "media": list(sample.media),
        "target": sample.target,
    }


def run_documents(task: str, facts: TaskFacts, samples: Sequence[Sample]) -> TaskDocuments:
    """The documents of the ``samples`` of ``task``."""
    fields = None
    if is_stripped(samples):
        fields = tuple(sorted({name for sample in samples for name in sample.document}))
    view = View(facts.frames.get("cap"), fields, facts.subset)
    what = f"{task} {view}"
    found = {once(what, document_of(sample), lambda one: _hash(seen(task, one, view))) for sample in samples}
    return TaskDocuments(view, b"".join(sorted(found)))


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


def hashes_of(task: str, documents: Iterable[Mapping[str, Any]], view: View) -> bytes:
    """The hashes of the documents of ``task``, as in `TaskDocuments`."""
    return b"".join(sorted({_hash(seen(task, document, view)) for document in documents}))


def seen(task: str, document: Mapping[str, Any], view: View) -> Document:
    """The part of a document of ``task`` that ``view`` shows.

    Equal for a document and its copy from JSON or a table: absent and empty fields, tuples and lists, and whole numbers
    of any type are the same.
    """
    if view.fields is None:
        return _canonical(document)
    options = get_benchmark(load_spec(task).metadata.benchmark).options
    kept = {name: document[name] for name in view.fields if name in document}
    target = document["target"] if document["target"] in options else ""
    return _canonical({**kept, "sample_id": document["sample_id"], "target": target})


def _hash(document: Document) -> bytes:
    return hashlib.sha256(canonical_json(document).encode("utf-8", "surrogatepass")).digest()[:LENGTH]


def _canonical(document: Mapping[str, Any]) -> Document:
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


def split(hashes: bytes) -> frozenset[bytes]:
    """The individual hashes."""
    return frozenset(hashes[start : start + LENGTH] for start in range(0, len(hashes), LENGTH))


def _decoded(text: Any) -> bytes:
    try:
        hashes = base64.b64decode(str(text), validate=True)
    except ValueError:
        hashes = b""
    if not hashes or len(hashes) % LENGTH:
        raise ValueError(f"damaged hashes, expected {LENGTH} bytes per document")
    return hashes


class _File(BaseModel):
    """``documents`` maps fingerprint and task to the hashes, in base64."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: int
    documents: dict[str, dict[str, Annotated[bytes, BeforeValidator(_decoded)]]]


def write_document_file(path: Path, hashes: Hashes) -> None:
    """Write the hashes to the new file ``path``.

    Raises:
        UsageError: the file exists; it is never overwritten, because submissions are compared with it.
        OSError: it cannot be written.
    """
    documents: dict[str, dict[str, str]] = {}
    for (fingerprint, task), found in sorted(hashes.items()):
        documents.setdefault(fingerprint, {})[task] = base64.b64encode(found).decode()
    text = canonical_json({"schema_version": 1, "documents": documents}, indent=1) + "\n"
    try:
        with path.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError as error:
        raise UsageError(f"{path}: exists already; choose another file (--documents takes several).") from error


def read_document_files(paths: Sequence[Path]) -> dict[tuple[str, str], tuple[bytes, ...]]:
    """The hashes of all files; several files may have hashes for the same data and task.

    Raises:
        DataError: a file was not written by `write_document_file`; names the field.
    """
    found: dict[tuple[str, str], tuple[bytes, ...]] = {}
    fix = "write it again with `medtasks leaderboard digest`"
    for path in paths:
        try:
            documents = _File.model_validate_json(path.read_bytes()).documents
        except OSError as error:
            raise DataError(f"{path}: cannot be read ({error.strerror}); {fix}.") from error
        except ValidationError as error:
            first = error.errors()[0]
            place = f"field `{'.'.join(map(str, first['loc']))}`: " if first["loc"] else ""
            text = first["msg"].removeprefix("Value error, ")
            raise DataError(f"{path}: not a file of document hashes ({place}{text}); {fix}.") from error
        for fingerprint, tasks in documents.items():
            for task, hashes in tasks.items():
                found[fingerprint, task] = (*found.get((fingerprint, task), ()), hashes)
    return found
