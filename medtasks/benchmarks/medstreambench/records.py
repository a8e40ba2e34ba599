"""MedStreamBench: one release object, single-turn or streaming, as a typed record.

The release's names for a round's fields are not settled, so they are read through :data:`ALIASES`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import isfinite
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AliasChoices, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from medtasks.catalog.records import (
    Record,
    ReleaseRow,
    Where,
    build,
    is_path_below,
    is_text,
    parse_row,
    text_field,
    value_or_null,
    wrong,
)
from medtasks.core.schema import Frozen, Text, expects

ALIASES: Mapping[str, tuple[str, ...]] = {
    "rounds": ("rounds", "stream_rounds"),
    "current_time": ("current_time", "t_c", "time"),
    "expected_output": ("expected_output", "expected", "answer"),
    "answerable": ("answerable", "is_answerable"),
    "expected_time": ("expected_time", "critical_time", "answerable_time", "t_star"),
    "tolerance": ("tolerance", "tolerance_sec", "delta"),
}
"""Names that a field may have in the release, first match first."""

ABSTENTIONS: Mapping[str, tuple[str, ...]] = {
    "future": ("unanswerable",),
    "proactive": ("no_alert", "uncertain"),
}
"""Responses while the evidence does not suffice, by temporal mode; the first is the plainest."""

SLACK = 0.01
"""Seconds by which times that the temporal contract calls equal may differ: windows begin at 0.001,
not at 0.
"""

SAME_TIME = 1e-6  # seconds by which two rounds must differ to be two

_PROTOCOL = re.compile(r"\s*Response protocol\s*:.*\Z", re.IGNORECASE | re.DOTALL)
_FIRST_SENTENCE = re.compile(r"[.:;,!]|\s[-–—]\s")
_OWN_LETTER = re.compile(r"^\s*\(?[A-Z][.):]\s*")
_VARIANT = re.compile(r"_gemini_(?:closed|open)\Z")
_VIDEO = frozenset(
    {".mp4", ".m4v", ".mov", ".avi", ".mkv", ".webm", ".mpg", ".mpeg", ".ts", ".wmv", ".flv"}
)
_PLACEHOLDER = "no additional evidence text provided"


class MedStreamRound(Frozen, strict=True):
    """One request to the model: what it sees and what it should say. A single-turn item has exactly
    one.
    """

    time: float  # t_c
    window: tuple[float, float]  # what may be seen, in seconds of the video or as frame indices
    expected: tuple[str, ...]
    answerable: bool
    media: tuple[str, ...] = ()
    frames: tuple[int, ...] = ()  # presentation timestamps in the time base of the video
    times: tuple[float, ...] = ()  # of the frames shown, in the unit of the window


class MedStreamRecord(Record):
    """One item of MedStreamBench. ``cluster`` is the video."""

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
    family: str  # shared by model-written variants of one item
    choices: tuple[str, ...]
    multi_select: bool
    reference: str
    judge_rubric: dict[str, str]
    response_protocol: str
    expected_time: float | None
    tolerance: float | None
    degenerate: str  # why the item cannot be asked; empty if it can
    notes: tuple[str, ...]  # what was odd about the object of the release
    rounds: tuple[MedStreamRound, ...]

    @property
    def subtask(self) -> str:
        """The temporal mode; ``future_streaming`` for the streaming items of that mode."""
        streaming_future = self.temporal_mode == "future" and self.task_mode == "streaming"
        return "future_streaming" if streaming_future else self.temporal_mode


Seconds = Annotated[float, Field(ge=0, lt=1e9)]
Unicode = Annotated[str, expects("a string of valid Unicode", is_text)]


def _ordered(window: tuple[float, float]) -> tuple[float, float]:
    if window[0] > window[1]:
        raise PydanticCustomError("expected", "a window that ends after it starts")
    return window


Window = Annotated[tuple[Seconds, Seconds], Field(strict=False), AfterValidator(_ordered)]


def _texts(value: Any) -> Any:
    """One answer or several, as distinct texts; finite numbers become their text. Anything else
    stays as it is.
    """
    listed = value if isinstance(value, list) else [value]
    texts = [
        str(item) if type(item) is int or (type(item) is float and isfinite(item)) else item
        for item in listed
    ]
    return (
        tuple(dict.fromkeys(text.strip() for text in texts)) if all(map(is_text, texts)) else value
    )


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
    if isinstance(value, Mapping):  # by letter
        value = [value[key] for key in sorted(value)]
    return _texts(value) if isinstance(value, list) else value


def _rubric(value: Any) -> Any:
    readable = isinstance(value, Mapping) and all(map(is_text, value))
    return {key: str(value[key]) for key in sorted(value)} if readable else value


def _alias(field: str, default: Any = ...) -> Any:
    return Field(default, validation_alias=AliasChoices(*ALIASES[field]))


class _Row(ReleaseRow):
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


_AS_RELEASED = set(_Row.model_fields) & set(MedStreamRecord.model_fields) - {
    "media_path",
    "question",
}


class _SingleTurn(ReleaseRow):
    input_range: Window


class _Round(ReleaseRow):
    current_time: Seconds = _alias("current_time")
    input_range: Window | None = None
    expected_output: Answers | None = _alias("expected_output", None)
    answerable: bool | None = _alias("answerable", None)


class _Streaming(ReleaseRow):
    rounds: Annotated[tuple[_Round, ...], Field(strict=False, min_length=1)] = _alias("rounds")


def parse_medstream_row(row: Mapping[str, Any], where: Where) -> MedStreamRecord:
    """The record of a release object, its frames not chosen yet. Besides single fields, the
    temporal contract is
    checked: a single-turn window ends at the query time; a round's window runs from the query time
    to its current time; current times increase.

    Raises:
        DataError: a field is missing or of the wrong type, a round's field is under no known alias,
            or the object breaks the temporal contract (a single-turn window ends at the query time;
            a round's window runs from the query time to its current time; current times increase).
    """
    where = replace(where, record=text_field(row, "sample_id", where))
    is_open = row.get("question_type") == "open"  # its answer is the reference
    given = parse_row(
        _Row, {name: value for name, value in row.items() if name != "answer" or not is_open}, where
    )
    streaming, mode = given.task_mode == "streaming", given.temporal_mode
    if streaming != (mode == "proactive") and not (streaming and mode == "future"):
        fits = (
            "streaming"
            if mode == "proactive"
            else "single_turn (streaming is for future and proactive items)"
        )
        raise wrong(where, "task_mode", given.task_mode, fits)
    notes: list[str] = []
    if streaming:
        rounds = tuple(_rounds(parse_row(_Streaming, row, where), given, where, notes))
    elif given.reference.strip():
        rounds = (_single_turn(parse_row(_SingleTurn, row, where), given, where),)
    else:
        field = "reference_answer" if is_open else "answer"
        raise wrong(where, field, value_or_null(row, field), "a non-empty string")
    if not is_open and not given.choices:
        notes.append("closed question without choices")
    degenerate = ""
    if not _PROTOCOL.sub("", given.question).strip():
        degenerate = "empty question"
    elif given.reference.strip().rstrip(".").casefold() == _PLACEHOLDER:
        degenerate = "placeholder answer"
    return build(
        MedStreamRecord,
        where,
        cluster=f"{given.dataset}/{given.video_id}",
        media=(),
        media_path=str(PurePosixPath(given.media_path)),
        medium=given.medium,
        source_task=given.task,
        question=given.question.strip(),
        context_window=given.context_window_sec or 0.0,
        family=_VARIANT.sub("", given.sample_id),
        multi_select=len(given.answer) > 1,
        reference=given.reference.strip(),
        degenerate=degenerate,
        notes=tuple(notes),
        rounds=rounds,
        **given.model_dump(include=_AS_RELEASED),
    )


def _single_turn(row: _SingleTurn, given: _Row, where: Where) -> MedStreamRound:
    window, end = row.input_range, given.query_time
    if given.medium == "video":
        if abs(window[1] - end) > SLACK:
            raise wrong(
                where, "input_range", list(window), f"a window that ends at query_time ({end:g})"
            )
        width = given.context_window_sec
        begin = None if width is None else max(0.0, end - width)
        if begin is not None and abs(window[0] - begin) > SLACK:
            raise wrong(
                where,
                "input_range",
                list(window),
                f"a window that begins at {begin:g} (query time - window)",
            )
    abstentions = ABSTENTIONS["future"]
    if given.question_type == "open" and _abstention(given.reference, abstentions):
        return MedStreamRound(time=window[1], window=window, expected=abstentions, answerable=False)
    answers = given.answer or (given.reference,)
    expected = (
        text if text in given.choices else _abstention(text, abstentions) or text
        for text in answers
    )
    return MedStreamRound(time=window[1], window=window, expected=tuple(expected), answerable=True)


def _rounds(
    row: _Streaming, given: _Row, where: Where, notes: list[str]
) -> Iterator[MedStreamRound]:
    """The rounds; what each should say, and whether that is an answer, may be derived from the
    other.
    """
    begin, abstentions = given.query_time, ABSTENTIONS[given.temporal_mode]
    previous: float | None = None
    for number, item in enumerate(row.rounds):
        name, time = f"rounds[{number}]", item.current_time
        if time < begin - SLACK:
            raise wrong(
                where, f"{name}.current_time", time, f"a time at or after query_time ({begin:g})"
            )
        if previous is not None and time <= previous + SAME_TIME:
            raise wrong(
                where,
                f"{name}.current_time",
                time,
                f"a time after the previous round ({previous:g})",
            )
        previous = time
        window = item.input_range or (begin, time)
        if abs(window[0] - begin) > SLACK or abs(window[1] - time) > SLACK:
            expected = f"[query_time, current_time], here [{begin:g}, {time:g}]"
            raise wrong(where, f"{name}.input_range", list(window), expected)

        output, flag = item.expected_output, item.answerable
        if output is None:
            answers = given.answer or ((given.reference,) if given.reference else ())
            if flag is None or (flag and not answers):
                aliases = ", ".join(ALIASES["expected_output"])
                raise wrong(
                    where,
                    f"{name}.expected_output",
                    None,
                    f"the answer of the round (as {aliases})",
                )
            output = answers if flag else abstentions[:1]
        else:
            state = _abstention(output[0], abstentions, given.choices) if len(output) == 1 else None
            if flag is not None and flag == (state is not None):
                notes.append("answerable flag contradicts expected output")
                state = state or abstentions[0]
            flag, output = state is None, output if state is None else (state,)
        yield MedStreamRound(time=time, window=window, expected=output, answerable=flag)


def _abstention(text: str, abstentions: Sequence[str], choices: Sequence[str] = ()) -> str | None:
    """The abstention that a gold text is, begins with before an explanation, or names by the letter
    of a choice.
    """
    letter = re.fullmatch(r"\W*([A-Za-z])\W*", text)
    place = ord(letter[1].upper()) - ord("A") if letter else len(choices)
    if place < len(choices):
        text = _OWN_LETTER.sub("", choices[place])
    begin = re.sub(r"[\s-]+", "_", _FIRST_SENTENCE.split(text.strip(), maxsplit=1)[0].casefold())
    return begin if begin in abstentions else None
