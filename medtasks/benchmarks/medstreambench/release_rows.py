"""MedStreamBench: the fields of a release object, single-turn or streaming.

The release's names for a round's fields are not settled, so they are read through :data:`ALIASES`.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AliasChoices, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from medtasks.catalog.records import ReleaseRow, is_path_below, is_text
from medtasks.core.schema import Text, expects

ALIASES: Mapping[str, tuple[str, ...]] = {
    "rounds": ("rounds", "stream_rounds"),
    "current_time": ("current_time", "t_c", "time"),
    "expected_output": ("expected_output", "expected", "answer"),
    "answerable": ("answerable", "is_answerable"),
    "expected_time": ("expected_time", "critical_time", "answerable_time", "t_star"),
    "tolerance": ("tolerance", "tolerance_sec", "delta"),
}
"""Names that a field may have in the release, first match first."""

_VIDEO = frozenset(
    {".mp4", ".m4v", ".mov", ".avi", ".mkv", ".webm", ".mpg", ".mpeg", ".ts", ".wmv", ".flv"}
)

Seconds = Annotated[float, Field(ge=0, lt=1e9)]
Unicode = Annotated[str, expects("a string of valid Unicode", is_text)]


def _ordered(window: tuple[float, float]) -> tuple[float, float]:
    if window[0] > window[1]:
        raise PydanticCustomError("expected", "a window that ends after it starts")
    return window


Window = Annotated[tuple[Seconds, Seconds], Field(strict=False), AfterValidator(_ordered)]


def _texts(value: Any) -> Any:
    """One answer or several, as distinct texts; anything else stays as it is.

    Finite numbers become their text.
    """
    texts: dict[str, None] = {}
    for item in value if isinstance(value, list) else [value]:
        text = str(item) if _is_finite_number(item) else item
        if not is_text(text):
            return value
        texts[text.strip()] = None
    return tuple(texts)


def _is_finite_number(value: Any) -> bool:
    return type(value) is int or (type(value) is float and isfinite(value))


def _are_texts(value: Any) -> bool:
    return isinstance(value, tuple) and all(value)


Answers = Annotated[
    tuple[str, ...],
    expects(
        "a non-empty string, or a non-empty list of such strings",
        lambda value: _are_texts(value) and bool(value),
    ),
    BeforeValidator(_texts),
]


def _choices(value: Any) -> Any:
    """A list of options, or options by letter, as texts; anything else stays as it is."""
    if isinstance(value, Mapping):
        value = [value[letter] for letter in sorted(value)]
    if isinstance(value, list):
        return _texts(value)
    return value


def _rubric(value: Any) -> Any:
    """A rubric with its values as texts, sorted by key; anything else stays as it is."""
    if isinstance(value, Mapping) and all(is_text(key) for key in value):
        return {key: str(value[key]) for key in sorted(value)}
    return value


def _alias(field: str, default: Any = ...) -> Any:
    """A field that has any of the names in :data:`ALIASES`."""
    return Field(default, validation_alias=AliasChoices(*ALIASES[field]))


class ReleasedItem(ReleaseRow):
    """The fields that single-turn and streaming items share."""

    sample_id: Text
    dataset: Text
    video_id: Text
    media_path: Annotated[str, expects("a relative path below the media directory", is_path_below)]
    task: Text
    temporal_mode: Literal["retrospective", "present", "future", "proactive"]
    task_mode: Literal["single_turn", "streaming"]
    question_type: Literal["closed", "open"]
    question: Unicode
    query_time: Seconds
    context_window_sec: Seconds | None = None
    evidence: Unicode = ""
    label_source: Unicode = ""
    response_protocol: Unicode = ""
    choices: Annotated[
        tuple[str, ...], expects("a list of strings", _are_texts), BeforeValidator(_choices)
    ] = ()
    judge_rubric: Annotated[dict[str, str], BeforeValidator(_rubric)] = Field(default_factory=dict)
    expected_time: Seconds | None = _alias("expected_time", None)
    tolerance: Seconds | None = _alias("tolerance", None)
    answer: Answers = ()
    reference_answer: Any = ""

    @property
    def medium(self) -> Literal["video", "images"]:
        return "video" if PurePosixPath(self.media_path).suffix.lower() in _VIDEO else "images"

    @property
    def reference(self) -> str:
        if self.question_type == "closed":
            return "; ".join(self.answer)
        return self.reference_answer if is_text(self.reference_answer) else ""


class ReleasedSingleTurn(ReleaseRow):
    input_range: Window


class ReleasedRound(ReleaseRow):
    current_time: Seconds = _alias("current_time")
    input_range: Window | None = None
    expected_output: Answers | None = _alias("expected_output", None)
    answerable: bool | None = _alias("answerable", None)


class ReleasedStream(ReleaseRow):
    rounds: Annotated[tuple[ReleasedRound, ...], Field(strict=False, min_length=1)] = _alias(
        "rounds"
    )
