"""Checks of one prepared benchmark."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from medtasks.benchmarks.documents import pictures, task_documents
from medtasks.data.prepared import Prepared
from medtasks.data.store import open_prepared
from medtasks.errors import MediaError, MedtasksError
from medtasks.prompts import isolated_rendering
from medtasks.registry import get_benchmark
from medtasks.spec import TaskSpec, load_specs
from medtasks.validation.findings import Finding
from medtasks.validation.windows import WindowCheck, is_window

__all__ = ["Progress", "validate_prepared"]

Progress = Callable[[int, int], None]

_NUMBER = re.compile(r"\d[\d.]*")


def validate_prepared(benchmark: str, *, decode: bool = True, progress: Progress | None = None) -> list[Finding]:
    """Findings about the prepared data of ``benchmark``: records, media, and the temporal contract of windows.

    With ``decode`` every document's pictures are decoded as an adapter would get them. Prompts, and documents that
    cannot be made at all, are `validate_tasks`'s. Findings that differ in numbers alone are one, with their count.

    Raises:
        UsageError: there is no such benchmark.
        NotPreparedError: it is not prepared.
    """
    prepared = open_prepared(benchmark)
    findings = list(_media(prepared))
    if any(finding.severity == "error" for finding in findings):
        return findings
    findings += _notes(prepared)
    tasks = [spec for spec in load_specs().values() if spec.kind == "task" and spec.metadata.benchmark == benchmark]
    about_documents: list[Finding] = []
    with isolated_rendering():
        for number, spec in enumerate(tasks, start=1):
            about_documents += _about_documents(spec, prepared, decode)
            if progress is not None:
                progress(number, len(tasks))
    return [*findings, *_counted(about_documents)]


def _about_documents(spec: TaskSpec, prepared: Prepared, decode: bool) -> Iterator[Finding]:
    if prepared.manifest.references_only:
        return
    try:
        documents = task_documents(spec.name)
    except MedtasksError:
        return
    windows = WindowCheck(prepared, spec.template or "", decode=decode)
    for document in documents:
        try:
            if is_window(document):
                yield from windows(document)
            elif decode:
                pictures(document)
        except MediaError as error:
            yield Finding("error", "media", str(document.get("sample_id")), str(error))
        except Exception as error:  # documents may be another package's
            yield Finding("error", "documents", str(document.get("sample_id")), _told(error))


def _told(error: Exception) -> str:
    return str(error) if isinstance(error, MedtasksError) else f"{type(error).__name__}: {error}"


def _counted(findings: Iterable[Finding]) -> list[Finding]:
    """The first of those that are alike, with their number; the names of files tell findings about media apart."""
    alike: dict[tuple[Any, ...], list[Finding]] = {}
    for one in findings:
        message = one.message if one.check == "media" else _NUMBER.sub("#", one.message)
        alike.setdefault((one.severity, one.check, message), []).append(one)
    return [
        replace(
            first,
            message=f"{first.message} ({1 + len(rest):,} documents, this is the first)" if rest else first.message,
        )
        for first, *rest in alike.values()
    ]


def _media(prepared: Prepared) -> Iterator[Finding]:
    try:
        missing = prepared.missing_media()
        prepared.records()
    except MedtasksError as error:
        yield Finding("error", "records", str(prepared.directory), str(error))
        return
    command = get_benchmark(prepared.manifest.benchmark).prepare
    for name in missing:
        said = f"gone or changed since the data were prepared; restore it, or prepare again: {command}"
        yield Finding("error", "media", str(prepared.media_path(name)), said)


def _notes(prepared: Prepared) -> Iterator[Finding]:
    manifest = prepared.manifest
    if manifest.references_only:
        yield Finding("note", "media", manifest.benchmark, "references alone were prepared: no media to check")
    for difference in manifest.differences:
        yield Finding("note", "published counts", manifest.benchmark, difference)
    for reason, number in manifest.excluded.items():
        yield Finding("note", "excluded", manifest.benchmark, f"{number:,} records ({reason})")
