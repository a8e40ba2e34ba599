"""MedStreamBench: one release object, single-turn or streaming, as a typed record (card, "Records").

The release's names for a round's fields are not settled, so they are read through :data:`ALIASES`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from medtasks.data.records.base import Record, Where, build, is_text, text_field, wrong
from medtasks.errors import DataError

__all__ = ["ABSTENTIONS", "ALIASES", "MODES", "MedStreamRecord", "MedStreamRound", "parse_medstream_row"]

ALIASES: Mapping[str, tuple[str, ...]] = {
    "rounds": ("rounds", "stream_rounds"),
    "current_time": ("current_time", "t_c", "time"),
    "input_range": ("input_range",),
    "expected_output": ("expected_output", "expected", "answer"),
    "answerable": ("answerable", "is_answerable"),
    "expected_time": ("expected_time", "critical_time", "answerable_time", "t_star"),
    "tolerance": ("tolerance", "tolerance_sec", "delta"),
}
"""Names under which a field may stand in the release, first match first."""

MODES = ("retrospective", "present", "future", "proactive")
ABSTENTIONS: Mapping[str, tuple[str, ...]] = {"future": ("unanswerable",), "proactive": ("no_alert", "uncertain")}
"""What a streaming model says while the evidence does not suffice, by temporal mode; the first is the plainest."""

SLACK = 0.01
"""Seconds by which times that the temporal contract calls equal may differ: windows begin at 0.001, not at 0."""

SAME_TIME = 1e-6
"""Seconds by which two rounds must differ to be two."""

_PROTOCOL = re.compile(r"\s*Response protocol\s*:.*\Z", re.IGNORECASE | re.DOTALL)
_VARIANT = re.compile(r"_gemini_(?:closed|open)\Z")
_VIDEO = frozenset({".mp4", ".m4v", ".mov", ".avi", ".mkv", ".webm", ".mpg", ".mpeg", ".ts", ".wmv", ".flv"})
_PLACEHOLDER = "no additional evidence text provided"


class MedStreamRound(BaseModel):
    """One request to the model: what it sees and what it should say. A single-turn item has exactly one.

    ``time`` is t_c and ``window`` what may be seen, in seconds of the video or as frame indices. ``frames`` are
    the presentation time stamps (of the video's time base) of the frames that are shown; ``media`` are files: the
    video, or the pictures themselves; ``times`` says when each shown frame was taken, in the window's unit.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    time: float
    window: tuple[float, float]
    expected: tuple[str, ...]
    answerable: bool
    media: tuple[str, ...] = ()
    frames: tuple[int, ...] = ()
    times: tuple[float, ...] = ()


class MedStreamRecord(Record):
    """One item of MedStreamBench. ``cluster`` is the video.

    ``question`` is the release's text with its response-protocol paragraph; ``degenerate`` says why an item cannot
    be asked (empty where it can); ``family`` is shared by model-written variants of one item; ``notes`` name what
    was odd about the release's object. ``evidence``, answers and rubric are for scoring alone.
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
        streaming_future = self.temporal_mode == "future" and self.task_mode == "streaming"
        return "future_streaming" if streaming_future else self.temporal_mode


def parse_medstream_row(row: Mapping[str, Any], where: Where) -> MedStreamRecord:
    """The record that a release object holds, its frames not chosen yet.

    Raises:
        DataError: a field is missing or of the wrong type, no alias of a round's field is there, or the object
            breaks the temporal contract (a single-turn window ends at the query time; a round's window runs from
            the query time to its current time; current times increase).
    """
    sample_id = text_field(row, "sample_id", where)
    where = replace(where, record=sample_id)
    path = _media_path(row, where)
    medium: Literal["video", "images"] = "video" if PurePosixPath(path).suffix.lower() in _VIDEO else "images"
    mode = _one_of(row, "temporal_mode", MODES, where)
    task_mode = _one_of(row, "task_mode", ("single_turn", "streaming"), where)
    streaming = task_mode == "streaming"
    if streaming != (mode == "proactive") and not (streaming and mode == "future"):
        expected = "streaming" if mode == "proactive" else "single_turn (streaming is for future and proactive items)"
        raise wrong(where, "task_mode", task_mode, expected)
    kind = _one_of(row, "question_type", ("closed", "open"), where)
    query_time = _number(row, "query_time", where)
    answers = _answers(row, "answer", where) if kind == "closed" and row.get("answer") is not None else ()
    reference = row.get("reference_answer") if kind == "open" else "; ".join(answers)
    if not streaming and not (answers or (is_text(reference) and reference.strip())):
        raise wrong(where, "answer" if kind == "closed" else "reference_answer", reference, "a text that is not empty")
    reference = reference if is_text(reference) else ""
    notes: list[str] = []
    if streaming:
        rounds = _rounds(row, mode, answers or ((reference,) if reference else ()), query_time, where, notes)
    else:
        rounds = (_single(row, answers or (reference,), query_time, medium, where),)
    question = row.get("question")
    if not is_text(question):
        raise wrong(where, "question", question, "a text")
    choices = _choices(row, where)
    if kind == "closed" and not choices:
        notes.append("closed question without choices")
    return build(
        MedStreamRecord,
        where,
        sample_id=sample_id,
        cluster=f"{text_field(row, 'dataset', where)}/{text_field(row, 'video_id', where)}",
        media=(),
        dataset=row["dataset"],
        video_id=row["video_id"],
        media_path=path,
        medium=medium,
        source_task=text_field(row, "task", where),
        task_mode=task_mode,
        temporal_mode=mode,
        question_type=kind,
        question=question.strip(),
        query_time=query_time,
        context_window=0.0 if row.get("context_window_sec") is None else _number(row, "context_window_sec", where),
        evidence=_text_or_empty(row, "evidence", where),
        label_source=_text_or_empty(row, "label_source", where),
        family=_VARIANT.sub("", sample_id),
        choices=choices,
        multi_select=len(answers) > 1,
        reference=reference.strip(),
        judge_rubric=_rubric(row, where),
        response_protocol=_text_or_empty(row, "response_protocol", where),
        expected_time=_aliased_number(row, "expected_time", where),
        tolerance=_aliased_number(row, "tolerance", where),
        degenerate=_degenerate(question, reference),
        notes=tuple(notes),
        rounds=rounds,
    )


def bare_question(question: str) -> str:
    """The question without its response-protocol paragraph; empty for a degenerate record."""
    return _PROTOCOL.sub("", question).strip()


def _degenerate(question: str, reference: str) -> str:
    if not bare_question(question):
        return "empty question"
    if reference.strip().rstrip(".").casefold() == _PLACEHOLDER:
        return "placeholder answer"
    return ""


def _single(
    row: Mapping[str, Any], expected: tuple[str, ...], query_time: float, medium: str, where: Where
) -> MedStreamRound:
    window = _window(row, "input_range", where)
    if medium == "video":
        if abs(window[1] - query_time) > SLACK:
            raise wrong(where, "input_range", list(window), f"a window that ends at query_time ({query_time:g})")
        wide = row.get("context_window_sec")
        begins = None if wide is None else max(0.0, query_time - _number(row, "context_window_sec", where))
        if begins is not None and abs(window[0] - begins) > SLACK:
            raise wrong(where, "input_range", list(window), f"a window that begins at {begins:g} (query time - window)")
    return MedStreamRound(time=window[1], window=window, expected=expected, answerable=True)


def _rounds(
    row: Mapping[str, Any],
    mode: str,
    answers: tuple[str, ...],
    query_time: float,
    where: Where,
    notes: list[str],
) -> tuple[MedStreamRound, ...]:
    listed = _alias(row, "rounds", where)
    if not isinstance(listed, list) or not listed or not all(isinstance(item, Mapping) for item in listed):
        raise wrong(where, "rounds", listed, "a list of at least one round")
    rounds: list[MedStreamRound] = []
    for number, item in enumerate(listed):
        name = f"rounds[{number}]"
        time = _as_number(_alias(item, "current_time", where, name), where, f"{name}.current_time")
        if time < query_time - SLACK:
            raise wrong(where, f"{name}.current_time", time, f"a time from query_time ({query_time:g}) on")
        if rounds and time <= rounds[-1].time + SAME_TIME:
            raise wrong(where, f"{name}.current_time", time, f"a time after the round before ({rounds[-1].time:g})")
        window = (query_time, time)
        if item.get("input_range") is not None:
            window = _window(item, "input_range", where, name)
        if abs(window[0] - query_time) > SLACK or abs(window[1] - time) > SLACK:
            expected = f"[query_time, current_time], here [{query_time:g}, {time:g}]"
            raise wrong(where, f"{name}.input_range", list(window), expected)
        said, answerable = _expected(item, mode, answers, where, name, notes)
        rounds.append(MedStreamRound(time=time, window=window, expected=said, answerable=answerable))
    return tuple(rounds)


def _expected(
    item: Mapping[str, Any], mode: str, answers: tuple[str, ...], where: Where, name: str, notes: list[str]
) -> tuple[tuple[str, ...], bool]:
    """What a round should say, and whether that is an answer; each may have to stand in for the other."""
    flag = _alias(item, "answerable", where, name, required=False)
    if flag is not None and not isinstance(flag, bool):
        raise wrong(where, f"{name}.answerable", flag, "true or false")
    abstentions = ABSTENTIONS[mode]
    field = next((alias for alias in ALIASES["expected_output"] if item.get(alias) is not None), None)
    if field is None:
        if flag is None:
            raise _no_alias(item, "expected_output", where, name)
        if flag and not answers:
            raise wrong(where, f"{name}.expected_output", None, "the expected answer, here or in the item")
        return (answers, True) if flag else (abstentions[:1], False)
    said = _answers(item, field, where)
    abstains = len(said) == 1 and _state(said[0]) in abstentions
    if flag is None or flag != abstains:
        return ((_state(said[0]),), False) if abstains else (said, True)
    notes.append("answerable flag contradicts expected output")
    return ((_state(said[0]) if abstains else abstentions[0],), False)


def _state(text: str) -> str:
    return re.sub(r"[\s-]+", "_", text.strip().strip(".").casefold())


def _alias(row: Mapping[str, Any], field: str, where: Where, name: str = "", required: bool = True) -> Any:
    for alias in ALIASES[field]:
        if row.get(alias) is not None:
            return row[alias]
    if required:
        raise _no_alias(row, field, where, name)
    return None


def _no_alias(row: Mapping[str, Any], field: str, where: Where, name: str) -> DataError:
    found = ", ".join(sorted(map(str, row))) or "nothing"
    place = f"{name}: " if name else ""
    return DataError(
        f"{where}: {place}none of the fields {', '.join(ALIASES[field])} is there, found {found}; fix the row, or add "
        "the field's name to the alias table."
    )


def _aliased_number(row: Mapping[str, Any], field: str, where: Where) -> float | None:
    value = _alias(row, field, where, required=False)
    return None if value is None else _as_number(value, where, field)


def _number(row: Mapping[str, Any], field: str, where: Where) -> float:
    return _as_number(row.get(field), where, field)


def _as_number(value: Any, where: Where, field: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e9:  # nor NaN
        raise wrong(where, field, value, "a number from 0")
    return float(value)


def _window(row: Mapping[str, Any], field: str, where: Where, name: str = "") -> tuple[float, float]:
    field_name = f"{name}.{field}" if name else field
    value = row.get(field)
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise wrong(where, field_name, value, "a window [start, end]")
    start, end = (_as_number(edge, where, field_name) for edge in value)
    if start > end:
        raise wrong(where, field_name, list(value), "a window that ends after it starts")
    return start, end


def _one_of(row: Mapping[str, Any], field: str, known: tuple[str, ...], where: Where) -> Any:
    value = row.get(field)
    if value not in known:
        raise wrong(where, field, value, f"one of {', '.join(known)}")
    return value


def _media_path(row: Mapping[str, Any], where: Where) -> str:
    path = text_field(row, "media_path", where)
    parts = PurePosixPath(path).parts
    if "\\" in path or "\0" in path or path.startswith("/") or ".." in parts or not parts:
        raise wrong(where, "media_path", path, "a relative path below the media folder")
    return str(PurePosixPath(path))


def _answers(row: Mapping[str, Any], field: str, where: Where) -> tuple[str, ...]:
    """The answer, or the several answers of a multi-select question; numbers become their text."""
    value = row.get(field)
    listed = value if isinstance(value, list) else [value]
    texts: list[str] = []
    for item in listed:
        text = str(item) if isinstance(item, (int, float)) and not isinstance(item, bool) else item
        if not is_text(text) or not text.strip():
            raise wrong(where, field, value, "a text, or a list of texts, not empty")
        texts.append(text.strip())
    if not texts:
        raise wrong(where, field, value, "a text, or a list of texts, not empty")
    return tuple(dict.fromkeys(texts))


def _choices(row: Mapping[str, Any], where: Where) -> tuple[str, ...]:
    value = row.get("choices")
    if value is None:
        return ()
    if isinstance(value, Mapping):  # lettered
        value = [value[key] for key in sorted(value)]
    if not isinstance(value, list):
        raise wrong(where, "choices", value, "a list of texts")
    return _answers({"choices": value}, "choices", where) if value else ()


def _rubric(row: Mapping[str, Any], where: Where) -> dict[str, str]:
    value = row.get("judge_rubric")
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(is_text(key) for key in value):
        raise wrong(where, "judge_rubric", value, "an object of texts")
    texts = {key: str(value[key]) for key in sorted(value)}
    for key, text in texts.items():
        if not is_text(text):
            raise wrong(where, f"judge_rubric.{key}", text, "a text")
    return texts


def _text_or_empty(row: Mapping[str, Any], field: str, where: Where) -> str:
    value = row.get(field)
    if value is None:
        return ""
    if not is_text(value):
        raise wrong(where, field, value, "a text")
    return value
