"""Checks of one prepared benchmark: records, media, and the temporal contract of windows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from medtasks.benchmarks.documents import pictures, task_documents
from medtasks.data.prepared import Prepared
from medtasks.data.store import open_prepared
from medtasks.errors import MediaError, MedtasksError
from medtasks.prompts import isolated_rendering
from medtasks.registry import get_benchmark
from medtasks.spec import TaskSpec, load_specs
from medtasks.validation.findings import Finding, found
from medtasks.validation.tasks import Progress
from medtasks.validation.windows import WindowCheck, is_window

_NUMBER = re.compile(r"\d[\d.]*")


def validate_prepared(benchmark: str, *, decode: bool = True, progress: Progress | None = None) -> list[Finding]:
    """Findings about the prepared data of ``benchmark``; those that differ only in numbers are one, with their count.

    With ``decode`` every document's pictures are decoded as an adapter would get them. Prompts, and documents that
    cannot be made at all, are checked by `validate_tasks`.

    Raises:
        UsageError: there is no such benchmark.
        NotPreparedError: it is not prepared.
        DataError: the manifest cannot be read.
    """
    prepared = open_prepared(benchmark)
    findings = list(_records_and_media(prepared))
    if findings:
        return findings
    findings += _notes(prepared)
    if prepared.manifest.references_only:
        return findings
    tasks = [spec for spec in load_specs().values() if spec.kind == "task" and spec.metadata.benchmark == benchmark]
    about_documents: list[Finding] = []
    with isolated_rendering():
        for number, spec in enumerate(tasks, start=1):
            about_documents += _about_documents(spec, prepared, decode)
            if progress is not None:
                progress(number, len(tasks))
    return [*findings, *_counted(about_documents)]


def _records_and_media(prepared: Prepared) -> Iterator[Finding]:
    try:
        missing = prepared.missing_media()
        prepared.records()
    except MedtasksError as error:
        yield found("MT401", str(prepared.directory), str(error))
        return
    command = get_benchmark(prepared.manifest.benchmark).prepare
    for name in missing:
        message = f"missing or changed since the data were prepared; restore it, or prepare again: {command}"
        yield found("MT402", str(prepared.media_path(name)), message)


def _notes(prepared: Prepared) -> Iterator[Finding]:
    manifest = prepared.manifest
    if manifest.references_only:
        message = "only references were prepared: no media to check"
        yield found("MT402", manifest.benchmark, message, severity="note")
    for difference in manifest.differences:
        yield found("MT404", manifest.benchmark, difference)
    for reason, number in manifest.excluded.items():
        yield found("MT405", manifest.benchmark, f"{number:,} records ({reason})")


def _about_documents(spec: TaskSpec, prepared: Prepared, decode: bool) -> Iterator[Finding]:
    try:
        documents = task_documents(spec.name)
    except MedtasksError:
        return
    windows = WindowCheck(prepared, spec.template or "", decode=decode)
    for document in documents:
        name = str(document.get("sample_id"))
        try:
            if is_window(document):
                yield from windows(document)
            elif decode:
                pictures(document)
        except MediaError as error:
            yield found("MT402", name, str(error))
        except Exception as error:  # documents may be another package's
            kind = "" if isinstance(error, MedtasksError) else f"{type(error).__name__}: "
            yield found("MT403", name, f"{kind}{error}")


def _counted(findings: Iterable[Finding]) -> list[Finding]:
    """The first of those that are alike, with their number; names of media files keep findings about them apart."""
    alike: dict[tuple[Any, ...], list[Finding]] = {}
    for one in findings:
        message = one.message if one.code == "MT402" else _NUMBER.sub("#", one.message)
        alike.setdefault((one.severity, one.code, message), []).append(one)
    return [
        replace(first, message=f"{first.message} ({1 + len(rest):,} documents, this is the first)") if rest else first
        for first, *rest in alike.values()
    ]
