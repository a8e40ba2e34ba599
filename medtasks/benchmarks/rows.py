"""The rows of a task: which documents of a benchmark's prepared data it asks about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from medtasks.catalog.benchmark import Document
from medtasks.catalog.guest_code import raised_in
from medtasks.catalog.registry import get_benchmark
from medtasks.core import errors
from medtasks.core.errors import (
    MediaError,
    MedtasksError,
    NoRowsError,
    NotPreparedError,
    first_line,
)
from medtasks.core.settings import current_settings
from medtasks.core.text import first_names
from medtasks.data.media.windows import thin
from medtasks.data.prepared import Prepared
from medtasks.data.store import open_prepared

if TYPE_CHECKING:
    from datasets import Dataset

T = TypeVar("T")

_COMPARED = 16
"""How many media files of a task are compared by content before a run."""

_COMPARED_BYTES = 64 * 2**20
"""The size of the largest file that is compared: 64 MiB."""


class _TaskRow(NamedTuple):
    """A document of a task; ``excluded`` is why it cannot be asked in this form, or empty."""

    document: Document
    excluded: str


@dataclass(frozen=True)
class Rows:
    """The rows of one subtask; as ``process_docs`` they replace the task file's placeholder.

    ``change`` turns all of the benchmark's documents into those of a variant; ``unusable`` gives
    the reason why a row of the subtask cannot be asked in this form (empty if it can): such rows
    are left out and counted. ``variants`` are the documents that ask a row of the subtask.
    """

    benchmark: str
    keep: Callable[[Document], bool]
    change: Callable[[list[Document]], list[Document]] | None = None
    unusable: Callable[[Document], str] | None = None
    variants: Callable[[Document], list[Document]] | None = None

    @classmethod
    def where(cls, benchmark: str, **fields: object) -> Rows:
        """The rows whose documents have these values."""

        def keep(document: Document) -> bool:
            return all(document[name] == value for name, value in fields.items())

        return cls(benchmark, keep)

    def documents(self, *, media: bool = True) -> list[Document]:
        """Documents of the prepared records that belong to this subtask, in prepared order.

        ``MEDTASKS_SUBSET`` restricts them to some clusters (`medtasks.core.settings.Subset`). With
        ``media``, their files must exist with the size (and, in a sample of 16, the content) they
        had, or a :class:`MediaError` is raised. No row is a :class:`NoRowsError`; errors of the
        benchmark's functions name function, row, file and line.
        """
        prepared = open_prepared(self.benchmark)
        candidates = list(self._candidates(prepared))
        documents = [candidate.document for candidate in candidates if not candidate.excluded]
        if not documents:
            raise self._no_rows(candidates)
        subset = current_settings().subset
        if subset is not None:
            documents = subset.of(documents)
        if media:
            command = get_benchmark(self.benchmark).data.prepare
            _refuse_missing_media(prepared, documents, command)
        if self.variants is None:
            return documents
        variants: list[Document] = []
        for document in documents:
            variants.extend(self._call_benchmark("variants", self.variants, document))
        return variants

    def excluded(self) -> dict[str, int]:
        """How many rows of the subtask cannot be asked in this form, by reason."""
        prepared = open_prepared(self.benchmark)
        if self.unusable is None:
            return {}
        return _counts_by_reason(self._candidates(prepared))

    def _candidates(self, prepared: Prepared) -> Iterator[_TaskRow]:
        """All documents of the subtask, also those that cannot be asked."""
        documents = self._benchmark_documents(prepared)
        if self.change is not None:
            documents = self._call_benchmark("change", self.change, list(documents))
        for document in documents:
            if not self._call_benchmark("keep", self.keep, document):
                continue
            excluded = ""
            if self.unusable is not None:
                excluded = str(self._call_benchmark("unusable", self.unusable, document))
            yield _TaskRow(document, excluded)

    def _benchmark_documents(self, prepared: Prepared) -> Iterable[Document]:
        """The documents of all prepared records, copied so that subtasks may change them."""
        documents_of = get_benchmark(self.benchmark).data.documents

        def copied_documents(record: Any) -> list[Document]:
            return [dict(document) for document in documents_of(record)]

        for record in prepared.records():
            for document in self._call_benchmark("documents", copied_documents, record):
                yield {"benchmark": self.benchmark, **document}

    def _call_benchmark(self, name: str, function: Callable[[Any], T], argument: Any) -> T:
        """The result of a function of the benchmark's package; errors name function and row."""
        try:
            return function(argument)
        except MedtasksError:
            raise
        except (Exception, SystemExit) as error:
            owner = "benchmark" if name == "documents" else "rows of"
            row = _sample_id(argument)
            which = "" if row is None else f" on row {row}"
            raise MedtasksError(
                f"`{name}` of {owner} {self.benchmark} fails{which} {raised_in(error)}: "
                f"{first_line(error)}."
            ) from error

    def _no_rows(self, candidates: Iterable[_TaskRow]) -> NoRowsError:
        """The error of a subtask of which no row can be asked, with the reasons."""
        counts = _counts_by_reason(candidates)
        left_out = ", ".join(f"{count:,} {reason}" for reason, count in counts.items())
        why = f" (left out: {left_out})" if left_out else ""
        return NoRowsError(
            f"the prepared data of {self.benchmark} have no rows for this task{why}; prepare a "
            f"source that has some: {get_benchmark(self.benchmark).data.prepare}"
        )

    def dataset(self) -> Dataset:
        """The documents as the harness's dataset."""
        from datasets import Dataset

        return Dataset.from_list(self.documents())

    @errors.exit_with_sentence
    def __call__(self, placeholder: Dataset) -> Dataset:  # noqa: ARG002
        """:meth:`dataset`; the placeholder is ignored."""
        return self.dataset()


def _sample_id(argument: Any) -> Any:
    """The id of a document or record; None for anything else."""
    if isinstance(argument, dict):
        return argument.get("sample_id")
    return getattr(argument, "sample_id", None)


def _counts_by_reason(candidates: Iterable[_TaskRow]) -> dict[str, int]:
    """How many rows are excluded, by reason."""
    counts = Counter(candidate.excluded for candidate in candidates if candidate.excluded)
    return dict(sorted(counts.items()))


def _refuse_missing_media(prepared: Prepared, documents: list[Document], command: str) -> None:
    """Raise an error unless the documents' media are as they were prepared."""
    if prepared.manifest.references_only:
        raise NotPreparedError(
            f"{prepared.manifest.benchmark} is prepared without media, which is enough for scoring "
            f"but not for running models; prepare its media, too: {command}"
        )
    needed: set[str] = set()
    for document in documents:
        needed.update(document["media"])
    # the size of every file, and the content of a sample; `medtasks validate` compares all
    wrong = needed.intersection(prepared.missing_media())
    if not wrong:
        sample = _sample_of_media(prepared, needed)
        wrong = set(prepared.changed_media(sample))
    if wrong:
        paths = sorted(str(prepared.media_path(name)) for name in wrong)
        raise MediaError(
            f"{first_names(paths, 1)}: missing or changed since the data were prepared; restore "
            f"them, or prepare again: {command}"
        )


def _sample_of_media(prepared: Prepared, needed: set[str]) -> set[str]:
    """Up to 16 of the ``needed`` media files, evenly spread over those of at most 64 MiB.

    Comparing their contents is quick enough for the start of every run.
    """
    small_files: list[str] = []
    for entry in prepared.media:
        if entry.path in needed and entry.bytes <= _COMPARED_BYTES:
            small_files.append(entry.path)
    positions = thin(len(small_files), _COMPARED)
    return {small_files[position] for position in positions}
