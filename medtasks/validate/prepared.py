"""Rules for prepared data: records, media, and no leakage of the future into windows of streams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from medtasks.benchmarks.documents import doc_to_messages, doc_to_visual
from medtasks.catalog.registry import get_benchmark
from medtasks.core.errors import MediaError, MedtasksError, first_line
from medtasks.core.findings import Finding, failed, finding
from medtasks.data.media.video import read_index
from medtasks.data.media.windows import exact
from medtasks.data.prepared import Prepared
from medtasks.validate.report import TaskReport


def check_data(prepared: Prepared, decode: bool) -> list[Finding]:
    """Findings about records and media files, which are compared by size or, to ``decode`` them, by checksum."""
    manifest, name = prepared.manifest, prepared.manifest.benchmark
    try:
        missing = prepared.changed_media() if decode else prepared.missing_media()
        prepared.records()
    except MedtasksError as error:
        return [finding("MT401", str(prepared.directory), str(error))]
    fix = f"restore it, or prepare again: {get_benchmark(name).prepare}"
    message = "missing or changed since the data were prepared"
    findings = [finding("MT402", str(prepared.media_path(file)), message, fix=fix) for file in missing]
    if failed(findings):
        return findings
    if manifest.references_only:
        findings.append(finding("MT402", name, "only references were prepared: no media to check", severity="note"))
    findings += [finding("MT404", name, difference) for difference in manifest.differences]
    left_out = manifest.excluded.items()
    return [*findings, *(finding("MT405", name, f"{number:,} records ({reason})") for reason, number in left_out)]


class MediaCheck:
    """Checks the pictures of a benchmark's documents, each once, and that windows show no frame after their end.

    It does not trust the prepared data: it rereads the timestamps from the video, and takes the frames from the
    messages that an adapter would get. Without ``decode`` no picture is read.
    """

    def __init__(self, prepared: Prepared, decode: bool) -> None:
        self._prepared = prepared
        self._decode = decode
        self._times: dict[Path, dict[int, Fraction]] = {}
        self._decoded: set[tuple[str, ...]] = set()

    def __call__(self, document: Mapping[str, Any], template: str, report: TaskReport) -> None:
        """Report what is wrong with the media of ``document``."""
        is_window = {"window_end", "times", "frames"} <= set(document)
        try:
            if is_window:
                for message in self._window(document, template):
                    report.count("MT330", document, message)
            elif self._decode and tuple(document["media"]) not in self._decoded:
                doc_to_visual(document)
                self._decoded.add(tuple(document["media"]))
        except MediaError as error:
            report.count("MT402", document, str(error), str(error))
        except Exception as error:  # documents may be another package's
            message = f"its window cannot be read ({first_line(error)})" if is_window else first_line(error)
            report.count("MT330" if is_window else "MT403", document, message)

    def _window(self, doc: Mapping[str, Any], template: str) -> Iterator[str]:
        end = exact(doc["window_end"])
        shown = [exact(time) for time in doc["times"]]
        if shown != sorted(set(shown)):
            yield f"frames are out of order: {doc['times']}"
        if doc["frames"]:
            path = self._prepared.media_path(doc["media"][0])
            if path not in self._times:
                try:
                    index = read_index(path)
                except MedtasksError as error:
                    raise MediaError(str(error)) from error
                self._times[path] = dict(zip(index.pts, index.times, strict=True))
            for pts, time in zip(doc["frames"], doc["times"], strict=True):
                true = self._times[path].get(pts)
                if true is None:
                    yield f"the video has no frame with timestamp {pts}"
                elif true > end:
                    yield f"the frame of {float(true):g} s is after the window's end ({float(end):g} s)"
                elif float(true) != time:
                    yield f"the frame recorded at {time:g} s was taken at {float(true):g} s"
        late = [float(time) for time in shown if time > end]
        if late:
            yield f"a frame of {late[0]:g} is shown, after the window's end ({float(end):g})"
        if not self._decode:
            return
        try:
            content = doc_to_messages(doc, {"template": template})[-1]["content"]
        except MediaError:
            raise
        except MedtasksError:  # the check of the prompts reports it
            return
        parts = [part for part in content if part["type"] == "image"]
        if len(parts) != len(shown):
            yield f"{len(parts)} pictures are shown, {len(shown)} were chosen"
        if any(exact(part["time"]) > end for part in parts if "time" in part):
            yield "a picture in the message is later than the window's end"
