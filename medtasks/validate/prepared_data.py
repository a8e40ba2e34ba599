"""Rules for prepared data: records can be read, media files are complete and unchanged, and windows
of streams show no frame after their end.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

from medtasks.benchmarks.documents import doc_to_messages, doc_to_visual
from medtasks.catalog.registry import get_benchmark
from medtasks.core.errors import MediaError, MedtasksError, first_line
from medtasks.core.findings import Finding, failed, finding
from medtasks.data.media.video_index import read_index
from medtasks.data.media.windows import exact
from medtasks.data.prepared import Prepared
from medtasks.validate.report import Document, TaskReport


def check_data(prepared: Prepared, decode: bool) -> list[Finding]:
    """Findings about records and media files; files are compared by size or, to ``decode`` them, by
    checksum.
    """
    manifest, name = prepared.manifest, prepared.manifest.benchmark
    try:
        missing = prepared.changed_media() if decode else prepared.missing_media()
        prepared.records()
    except MedtasksError as error:
        return [finding("MT401", str(prepared.directory), str(error))]
    findings = []
    for file in missing:
        message = "missing or changed since the data were prepared"
        fix = f"restore it, or prepare again: {get_benchmark(name).data.prepare}"
        findings.append(finding("MT402", str(prepared.media_path(file)), message, fix=fix))
    if failed(findings):
        return findings
    if manifest.references_only:
        message = "only references were prepared: no media to check"
        findings.append(finding("MT402", name, message, severity="note"))
    for difference in manifest.differences:
        findings.append(finding("MT404", name, difference))
    for reason, count in manifest.excluded.items():
        findings.append(finding("MT405", name, f"{count:,} records ({reason})"))
    return findings


class MediaCheck:
    """Checks the pictures of a benchmark's documents, each once, and that windows show no frame
    after their end.

    It does not trust the prepared data: it rereads the timestamps from the video, and takes the
    frames from the messages that an adapter would get. Without ``decode`` no picture is read.
    """

    def __init__(self, prepared: Prepared, decode: bool) -> None:
        self._prepared, self._decode = prepared, decode
        self._times: dict[Path, dict[int, Fraction]] = {}
        self._decoded: set[tuple[str, ...]] = set()

    def __call__(self, document: Document, template: str, report: TaskReport) -> None:
        """Report the defects of a document's media, shown by ``template``."""
        is_window = {"window_end", "times", "frames"} <= set(document)
        try:
            if is_window:
                for fault in self._window_faults(document, template):
                    report.on_document("MT330", document, fault)
            elif self._decode:
                self._decode_pictures(document)
        except MediaError as error:
            report.on_document("MT402", document, str(error), str(error))
        except Exception as error:  # documents may be another package's
            reason = first_line(error)
            if is_window:
                message = f"its window cannot be read ({reason})"
                report.on_document("MT330", document, message)
            else:
                report.on_document("MT402", document, reason)

    def _decode_pictures(self, document: Document) -> None:
        files = tuple(document["media"])
        if files not in self._decoded:
            doc_to_visual(document)
            self._decoded.add(files)

    def _window_faults(self, document: Document, template: str) -> Iterator[str]:
        """What a window, its frames in the video, and the message with it break."""
        end = exact(document["window_end"])
        times = [exact(time) for time in document["times"]]
        if times != sorted(set(times)):
            yield f"frames are out of order: {document['times']}"
        if document["frames"]:
            yield from self._frame_faults(document, end)
        late = [float(time) for time in times if time > end]
        if late:
            yield f"a frame of {late[0]:g} is shown, after the window's end ({float(end):g})"
        if self._decode:
            yield from _message_faults(document, template, len(times), end)

    def _frame_faults(self, document: Document, end: Fraction) -> Iterator[str]:
        """Frames that the video does not have, or has at another time, or after the window's
        end.
        """
        video_times = self._video_times(self._prepared.media_path(document["media"][0]))
        for timestamp, time in zip(document["frames"], document["times"], strict=True):
            video_time = video_times.get(timestamp)
            if video_time is None:
                yield f"the video has no frame with timestamp {timestamp}"
                continue
            seconds = float(video_time)
            if video_time > end:
                yield f"the frame of {seconds:g} s is after the window's end ({float(end):g} s)"
            elif seconds != time:
                yield f"the frame recorded at {time:g} s was taken at {seconds:g} s"

    def _video_times(self, path: Path) -> dict[int, Fraction]:
        """The time of every frame of a video, by presentation timestamp; each video is read
        once.
        """
        if path not in self._times:
            index = read_index(path)
            self._times[path] = dict(zip(index.pts, index.times, strict=True))
        return self._times[path]


def _message_faults(
    document: Document, template: str, frame_count: int, end: Fraction
) -> Iterator[str]:
    """Pictures that the message with a window lacks, has too many, or has after the window's
    end.
    """
    try:
        content = doc_to_messages(document, {"template": template})[-1]["content"]
    except MediaError:
        raise
    except MedtasksError:  # the check of the prompts reports it
        return
    pictures = [part for part in content if part["type"] == "image"]
    if len(pictures) != frame_count:
        yield f"{len(pictures)} pictures are shown, {frame_count} were chosen"
    if any(exact(picture["time"]) > end for picture in pictures if "time" in picture):
        yield "a picture in the message is later than the window's end"
