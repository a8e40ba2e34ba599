"""The benchmark of a benchmark folder, and the names to which its task files refer.

The rows of a benchmark are this module's attribute ``rows_of_NAME``, for ``process_docs: !function
medtasks.benchmarks.folder_benchmark.rows_of_NAME``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

from medtasks.benchmarks.aggregations import scored_by
from medtasks.benchmarks.rows import Rows
from medtasks.catalog.benchmark import (
    ABSTENTION,
    Benchmark,
    DataSource,
    Document,
    LocalFiles,
    Publication,
)
from medtasks.catalog.benchmark_file import LETTERS, TEMPLATE_NAMES
from medtasks.catalog.benchmark_folder import BenchmarkFolder, load_benchmark_folder
from medtasks.catalog.folder_tasks import (
    CHOICE_METRICS,
    OTHER_TEXT_METRICS,
    ROWS,
    TEXT_METRICS,
)
from medtasks.catalog.items import by_fields
from medtasks.catalog.registry import Plugin
from medtasks.data.folder_rows import FolderRecord, folder_records, folder_state
from medtasks.data.release import Release

score_choices = scored_by(*CHOICE_METRICS)
score_texts = scored_by(*TEXT_METRICS)
score_other_texts = scored_by(*OTHER_TEXT_METRICS)


def __getattr__(name: str) -> Rows:
    """The rows of a benchmark, after ``rows_of_``: all of its documents.

    lmms-eval finds ``!function`` by attribute, and calls it without the name of the task.
    """
    if not name.startswith(ROWS):
        raise AttributeError(name)
    return Rows.where(name.removeprefix(ROWS))


def folder_plugin(folder: BenchmarkFolder) -> Plugin:
    """The parts of a folder: one benchmark."""
    return Plugin(benchmarks=(folder_benchmark(folder),))


def benchmark_in_folder(path: Path) -> Benchmark:
    """The benchmark that the ``benchmark.yaml`` in a directory describes, for a package's
    ``PLUGIN``.

    Its data are prepared when they are first used.

    Raises:
        MedtasksError: ``benchmark.yaml`` is missing or not valid; names the line.
    """
    benchmark = folder_benchmark(load_benchmark_folder(path))
    command = f"medtasks prepare package {benchmark.name}"
    return replace(benchmark, data=replace(benchmark.data, prepare=command))


def folder_benchmark(folder: BenchmarkFolder) -> Benchmark:
    """The benchmark that a ``benchmark.yaml`` describes."""
    file = folder.file
    options: tuple[str, ...] = ()
    if isinstance(file.columns.options, dict):
        options = tuple(file.columns.options)
    elif file.columns.options is not None:
        options = LETTERS
    return Benchmark(
        name=file.name,
        title=file.title,
        publication=Publication(
            paper=file.paper,
            source=file.source,
            licence=file.licence,
            language=file.language,
            shows=file.shows,
        ),
        data=DataSource(
            prepare=f"medtasks add {folder.name}",
            record=FolderRecord,
            read=partial(_records, folder),
            documents=folder_documents,
            local=LocalFiles(folder.data, folder.images, partial(folder_state, folder)),
        ),
        cluster=file.columns.cluster or ("picture" if file.columns.image else "question"),
        visible_fields=TEMPLATE_NAMES.union(file.visible),
        breakdowns=by_fields(*file.breakdowns),
        options=options,
        requires_media=bool(file.columns.image),
    )


def _records(folder: BenchmarkFolder, release: Release) -> Iterable[FolderRecord]:
    """The records of a folder, for `DataSource.read`."""
    return folder_records(folder, release)


def folder_documents(record: FolderRecord) -> list[Document]:
    """The document of a record: the labels of a closed question are its ``options``."""
    document: Document = {
        "sample_id": record.sample_id,
        "cluster": record.cluster,
        "media": list(record.media),
        "question": record.question,
        "instructions": record.instructions,
        **record.further,
        "target": record.answer,
        "abstention": ABSTENTION,
    }
    if record.choices:
        document["choices"] = dict(record.choices)
    if record.labels:
        document["options"] = list(record.labels)
        document["guesses"] = list(record.labels)
    return [document]
