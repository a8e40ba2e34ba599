"""MedStreamBench: an item and its rounds as typed records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from medtasks.catalog.records import Record
from medtasks.core.schema import Frozen

ABSTENTIONS: Mapping[str, tuple[str, ...]] = {
    "future": ("unanswerable",),
    "proactive": ("no_alert", "uncertain"),
}
"""Responses while the evidence does not suffice, by temporal mode; the first is the default."""


class MedStreamRound(Frozen, strict=True):
    """One request to the model: what it sees and what it should say.

    A single-turn item has exactly one. ``time`` is t_c; ``window`` is what may be seen, in seconds
    of the video or as frame indices. Of the frames shown, ``frames`` are the presentation
    timestamps in the time base of the video, and ``times`` are in the unit of the window.
    """

    time: float
    window: tuple[float, float]
    expected: tuple[str, ...]
    answerable: bool
    media: tuple[str, ...] = ()
    frames: tuple[int, ...] = ()
    times: tuple[float, ...] = ()


class MedStreamRecord(Record):
    """One item of MedStreamBench. ``cluster`` is the video.

    ``family`` is shared by model-written variants of one item. ``degenerate`` is why the item
    cannot be asked, empty if it can; ``notes`` are what is odd about the object of the release.
    """

    dataset: str
    video_id: str
    media_path: str
    medium: Literal["video", "images"]
    source_task: str
    task_mode: Literal["single_turn", "streaming"]
    temporal_mode: Literal["retrospective", "present", "future", "proactive"]
    question_type: Literal["closed", "open"]
    question: str
    query_time: float
    context_window: float
    evidence: str
    label_source: str
    family: str
    choices: tuple[str, ...]
    multi_select: bool
    reference: str
    judge_rubric: dict[str, str]
    response_protocol: str
    expected_time: float | None
    tolerance: float | None
    degenerate: str
    notes: tuple[str, ...]
    rounds: tuple[MedStreamRound, ...]

    @property
    def subtask(self) -> str:
        """The temporal mode; ``future_streaming`` for the streaming items of that mode."""
        if self.temporal_mode == "future" and self.task_mode == "streaming":
            return "future_streaming"
        return self.temporal_mode
