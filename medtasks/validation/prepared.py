"""Checks of one prepared benchmark."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from medtasks.benchmarks import get_benchmark
from medtasks.benchmarks.documents import pictures, prompt_text, task_documents
from medtasks.data.store import Prepared, open_prepared
from medtasks.errors import DataError, MedtasksError
from medtasks.spec import load_specs
from medtasks.validation.findings import Finding
from medtasks.validation.windows import WindowCheck

__all__ = ["validate_prepared"]

Progress = Callable[[int, int], None]


def validate_prepared(benchmark: str, *, decode: bool = True, progress: Progress | None = None) -> list[Finding]:
    """Findings about the prepared data of ``benchmark``: media, prompts, and the temporal contract of windows.

    With ``decode`` every document's pictures are decoded as an adapter would get them.

    Raises:
        UsageError: there is no such benchmark.
        NotPreparedError: it is not prepared.
    """
    prepared = open_prepared(benchmark)
    media = not prepared.manifest.references_only
    findings = list(_media(prepared))
    if any(finding.severity == "error" for finding in findings):
        return findings
    findings += _notes(prepared)
    tasks = [spec for spec in load_specs().values() if spec.kind == "task" and spec.metadata.benchmark == benchmark]
    for number, spec in enumerate(tasks, start=1):
        try:
            documents = task_documents(spec.name, media=media)
        except DataError as error:
            findings.append(Finding("note", "documents", spec.name, str(error)))
            continue
        template = spec.template or ""
        said = {"observations": "what stage 1 said"} if spec.stage1_template else {}
        windows = WindowCheck(prepared, template, decode=decode) if media and benchmark == "medstreambench" else None
        for document in documents:
            try:
                prompt_text(document, template, **said)
                if windows is not None:
                    findings += windows(document)
                elif decode and media:
                    pictures(document)
            except MedtasksError as error:
                findings.append(Finding("error", "documents", document["sample_id"], str(error)))
        if progress is not None:
            progress(number, len(tasks))
    return findings


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
