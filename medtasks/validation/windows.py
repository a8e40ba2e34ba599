"""No future leakage: what a model is shown of a video is never later than the window's end.

The check does not trust the prepared data: it reads the time stamps from the video again, and takes the frames from
the messages that an adapter would get.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from medtasks.benchmarks.documents import messages
from medtasks.data.media import read_index
from medtasks.data.media.windows import exact
from medtasks.data.prepared import Prepared
from medtasks.errors import MediaError, MedtasksError
from medtasks.validation.findings import Finding, found


def is_window(document: Mapping[str, Any]) -> bool:
    """Whether a document shows a stream up to some time."""
    return {"window_end", "times", "frames"} <= set(document)


class WindowCheck:
    """Checks documents one by one; holds the true frame times of the videos met so far."""

    def __init__(self, prepared: Prepared, template: str, *, decode: bool) -> None:
        self._prepared = prepared
        self._template = template
        self._decode = decode
        self._times: dict[Path, dict[int, Fraction]] = {}

    def __call__(self, doc: Mapping[str, Any]) -> Iterator[Finding]:
        """Findings about one document."""
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
            parts = [part for part in messages(doc, self._template)[0]["content"] if part["type"] == "image"]
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
                yield self._finding(doc, f"the video has no frame with time stamp {pts}")
            elif true > end:
                yield self._finding(doc, f"the frame of {float(true):g} s is after the window's end ({float(end):g} s)")
            elif float(true) != time:
                yield self._finding(doc, f"the frame recorded at {time:g} s was taken at {float(true):g} s")

    def _finding(self, doc: Mapping[str, Any], message: str) -> Finding:
        return found("MT330", str(doc["sample_id"]), message + "; prepare the data again")
