"""Checks of one prepared benchmark: records, media, and no leakage of the future into windows of streams."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from medtasks.benchmarks.documents import doc_to_messages, pictures, task_documents
from medtasks.data.media.video import read_index
from medtasks.data.media.windows import exact
from medtasks.data.preparation import Progress
from medtasks.data.prepared import Prepared
from medtasks.data.store import open_prepared
from medtasks.errors import MediaError, MedtasksError
from medtasks.registry import get_benchmark
from medtasks.spec import TaskSpec, load_specs
from medtasks.validation.findings import Finding, found

_NUMBER = re.compile(r"\d[\d.]*")


def validate_prepared(benchmark: str, *, decode: bool = True, progress: Progress | None = None) -> list[Finding]:
    """Findings about the prepared data of ``benchmark``; those that differ only in numbers are merged and counted.

    With ``decode``, every file's checksum is compared, and every document's images are decoded as an adapter would get
    them. Prompts, and documents that cannot be created at all, are checked by `validate_tasks`.

    Raises:
        MedtasksError: as :func:`medtasks.data.store.open_prepared`.
    """
    prepared = open_prepared(benchmark)
    findings = list(_records_and_media(prepared, decode))
    if findings:
        return findings
    findings += _notes(prepared)
    if prepared.manifest.references_only:
        return findings
    tasks = [spec for spec in load_specs().values() if spec.kind == "task" and spec.metadata.benchmark == benchmark]
    about_documents: list[Finding] = []
    for number, spec in enumerate(tasks, start=1):
        about_documents += _about_documents(spec, prepared, decode)
        if progress is not None:
            progress(number, len(tasks))
    return [*findings, *_counted(about_documents)]


def _records_and_media(prepared: Prepared, decode: bool) -> Iterator[Finding]:
    try:
        missing = prepared.changed_media() if decode else prepared.missing_media()
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
    """The first of findings that differ only in numbers, with their count; media findings must be equal."""
    equal: dict[tuple[Any, ...], list[Finding]] = {}
    for one in findings:
        message = one.message if one.code == "MT402" else _NUMBER.sub("#", one.message)
        equal.setdefault((one.severity, one.code, message), []).append(one)
    return [
        replace(first, message=f"{first.message} ({1 + len(rest):,} documents, this is the first)") if rest else first
        for first, *rest in equal.values()
    ]


def is_window(document: Mapping[str, Any]) -> bool:
    """Whether a document shows a stream up to some time."""
    return {"window_end", "times", "frames"} <= set(document)


class WindowCheck:
    """Checks documents one by one, and caches the true frame times of their videos.

    It does not trust the prepared data: it rereads the timestamps from the video, and takes the frames from the
    messages that an adapter would get.
    """

    def __init__(self, prepared: Prepared, template: str, *, decode: bool) -> None:
        self._prepared = prepared
        self._template = template
        self._decode = decode
        self._times: dict[Path, dict[int, Fraction]] = {}

    def __call__(self, doc: Mapping[str, Any]) -> Iterator[Finding]:
        end = exact(doc["window_end"])
        shown = [exact(time) for time in doc["times"]]
        if shown != sorted(set(shown)):
            yield self._finding(doc, f"frames are out of order: {doc['times']}")
        if doc["frames"]:
            yield from self._true_times(doc, end)
        late = [float(time) for time in shown if time > end]
        if late:
            yield self._finding(doc, f"a frame of {late[0]:g} is shown, after the window's end ({float(end):g})")
        if not self._decode:
            return
        try:
            parts = [
                part
                for part in doc_to_messages(doc, {"template": self._template})[-1]["content"]
                if part["type"] == "image"
            ]
        except MediaError:
            raise
        except MedtasksError:  # the check of the prompts reports it
            return
        if len(parts) != len(shown):
            yield self._finding(doc, f"{len(parts)} pictures are shown, {len(shown)} were chosen")
        if any(exact(part["time"]) > end for part in parts if "time" in part):
            yield self._finding(doc, "a picture in the message is later than the window's end")

    def _true_times(self, doc: Mapping[str, Any], end: Fraction) -> Iterator[Finding]:
        path = self._prepared.media_path(doc["media"][0])
        try:
            if path not in self._times:
                index = read_index(path)
                self._times[path] = dict(zip(index.pts, index.times, strict=True))
        except MedtasksError as error:
            yield found("MT402", str(doc["sample_id"]), str(error))
            return
        for pts, time in zip(doc["frames"], doc["times"], strict=True):
            true = self._times[path].get(pts)
            if true is None:
                yield self._finding(doc, f"the video has no frame with timestamp {pts}")
            elif true > end:
                yield self._finding(doc, f"the frame of {float(true):g} s is after the window's end ({float(end):g} s)")
            elif float(true) != time:
                yield self._finding(doc, f"the frame recorded at {time:g} s was taken at {float(true):g} s")

    def _finding(self, doc: Mapping[str, Any], message: str) -> Finding:
        return found("MT330", str(doc["sample_id"]), message + "; prepare the data again")
