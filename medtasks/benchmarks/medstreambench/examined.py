"""MedStreamBench: what examining media found: frames of records, and what is wrong with files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from medtasks.benchmarks.medstreambench.records import MedStreamRecord
from medtasks.core.errors import MediaError
from medtasks.data.media.images import MediaEntry, MediaIndex
from medtasks.data.media.video_check import KnownVideo


class MediaProblem(Enum):
    """Why a record is left out because of its media."""

    MISSING = "missing_media"
    UNREADABLE = "unreadable_media"
    OUTSIDE = "window_outside_media"


@dataclass
class Examined:
    """What was found about some records' media.

    By record id: those ``chosen``, with the frames that their rounds show, and those ``left_out``.
    By path: ``errors`` are what is wrong with files, ``entries`` those of the files that are shown;
    ``uniform`` are pictures of one colour. ``video`` is the entry of a video, if it is the only
    file, in the progress log.
    """

    chosen: dict[str, MedStreamRecord] = field(default_factory=dict)
    left_out: dict[str, MediaProblem] = field(default_factory=dict)
    errors: dict[str, MediaError] = field(default_factory=dict)
    entries: dict[str, MediaEntry] = field(default_factory=dict)
    uniform: set[str] = field(default_factory=set)
    video: KnownVideo | None = None

    @classmethod
    def without(
        cls, records: Sequence[MedStreamRecord], reason: MediaProblem, file: str, error: MediaError
    ) -> Examined:
        """All ``records`` of a file are left out."""
        return cls(left_out={record.sample_id: reason for record in records}, errors={file: error})

    def leave_out(self, sample_id: str, reason: MediaProblem) -> None:
        """Leave out a record that may have been chosen."""
        self.chosen.pop(sample_id, None)
        self.left_out[sample_id] = reason

    def add(self, more: Examined) -> None:
        """Add what other files give."""
        self.chosen |= more.chosen
        self.left_out |= more.left_out
        self.errors |= more.errors
        self.entries |= more.entries
        self.uniform |= more.uniform

    @property
    def index(self) -> MediaIndex:
        """The files that are shown, and what is wrong with the others."""
        return MediaIndex(list(self.entries.values()), self.errors, sorted(self.uniform))
