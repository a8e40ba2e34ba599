"""MedStreamBench: a release object as a record, if it keeps the temporal contract."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from medtasks.benchmarks.medstreambench.records import (
    ABSTENTIONS,
    MedStreamRecord,
    MedStreamRound,
)
from medtasks.benchmarks.medstreambench.release_rows import (
    ALIASES,
    ReleasedItem,
    ReleasedRound,
    ReleasedSingleTurn,
    ReleasedStream,
)
from medtasks.catalog.records import (
    Where,
    build,
    parse_row,
    text_field,
    value_or_null,
    wrong,
)

SLACK = 0.01
"""Seconds by which times that the temporal contract calls equal may differ.

Windows of the release begin at 0.001, not at 0.
"""

SAME_TIME = 1e-6
"""Seconds by which the times of two rounds must differ."""

_PROTOCOL = re.compile(r"\s*Response protocol\s*:.*\Z", re.IGNORECASE | re.DOTALL)
_FIRST_SENTENCE = re.compile(r"[.:;,!]|\s[-–—]\s")
_OWN_LETTER = re.compile(r"^\s*\(?[A-Z][.):]\s*")
_VARIANT = re.compile(r"_gemini_(?:closed|open)\Z")
_PLACEHOLDER = "no additional evidence text provided"

_AS_RELEASED = set(ReleasedItem.model_fields) & set(MedStreamRecord.model_fields) - {
    "media_path",
    "question",
}


def parse_medstream_row(row: Mapping[str, Any], where: Where) -> MedStreamRecord:
    """The record of a release object, its frames not chosen yet.

    Raises:
        DataError: a field is missing or of the wrong type, a round's field is under no known alias,
            or the object breaks the temporal contract (a single-turn window ends at the query time;
            a round's window runs from the query time to its current time; current times increase).
    """
    where = replace(where, record=text_field(row, "sample_id", where))
    item = _parse_item(row, where)
    notes: list[str] = []
    if item.task_mode == "streaming":
        rounds = _rounds(parse_row(ReleasedStream, row, where), item, where, notes)
    else:
        _require_reference(item, row, where)
        rounds = [_single_turn(parse_row(ReleasedSingleTurn, row, where), item, where)]
    if item.question_type == "closed" and not item.choices:
        notes.append("closed question without choices")
    return build(
        MedStreamRecord,
        where,
        cluster=f"{item.dataset}/{item.video_id}",
        media=(),
        media_path=str(PurePosixPath(item.media_path)),
        medium=item.medium,
        source_task=item.task,
        question=item.question.strip(),
        context_window=item.context_window_sec or 0.0,
        family=_VARIANT.sub("", item.sample_id),
        multi_select=len(item.answer) > 1,
        reference=item.reference.strip(),
        degenerate=_why_degenerate(item),
        notes=tuple(notes),
        rounds=tuple(rounds),
        **item.model_dump(include=_AS_RELEASED),
    )


def _parse_item(row: Mapping[str, Any], where: Where) -> ReleasedItem:
    """The fields that are not about rounds."""
    fields = dict(row)
    if row.get("question_type") == "open":  # its answer is the reference
        fields.pop("answer", None)
    item = parse_row(ReleasedItem, fields, where)
    _check_modes(item, where)
    return item


def _require_reference(item: ReleasedItem, row: Mapping[str, Any], where: Where) -> None:
    """Refuse a single-turn item without a reference answer."""
    if not item.reference.strip():
        field = "reference_answer" if item.question_type == "open" else "answer"
        raise wrong(where, field, value_or_null(row, field), "a non-empty string")


def _check_modes(item: ReleasedItem, where: Where) -> None:
    """Refuse a task mode that does not fit the temporal mode."""
    streaming = item.task_mode == "streaming"
    if item.temporal_mode == "proactive":
        if not streaming:
            raise wrong(where, "task_mode", item.task_mode, "streaming")
    elif streaming and item.temporal_mode != "future":
        expected = "single_turn (streaming is for future and proactive items)"
        raise wrong(where, "task_mode", item.task_mode, expected)


def _why_degenerate(item: ReleasedItem) -> str:
    """Why the item cannot be asked; empty if it can."""
    if not _PROTOCOL.sub("", item.question).strip():
        return "empty question"
    if item.reference.strip().rstrip(".").casefold() == _PLACEHOLDER:
        return "placeholder answer"
    return ""


def _single_turn(row: ReleasedSingleTurn, item: ReleasedItem, where: Where) -> MedStreamRound:
    """The only round of a single-turn item."""
    window = row.input_range
    if item.medium == "video":
        _check_single_turn_window(window, item, where)
    abstentions = ABSTENTIONS["future"]
    if item.question_type == "open" and _abstention(item.reference, abstentions):
        return MedStreamRound(time=window[1], window=window, expected=abstentions, answerable=False)
    expected = []
    for answer in item.answer or (item.reference,):
        if answer not in item.choices:
            answer = _abstention(answer, abstentions) or answer
        expected.append(answer)
    return MedStreamRound(time=window[1], window=window, expected=tuple(expected), answerable=True)


def _check_single_turn_window(
    window: tuple[float, float], item: ReleasedItem, where: Where
) -> None:
    """Refuse a window that does not end at the query time, or is not as wide as stated."""
    end = item.query_time
    if abs(window[1] - end) > SLACK:
        expected = f"a window that ends at query_time ({end:g})"
        raise wrong(where, "input_range", list(window), expected)
    if item.context_window_sec is None:
        return
    begin = max(0.0, end - item.context_window_sec)
    if abs(window[0] - begin) > SLACK:
        expected = f"a window that begins at {begin:g} (query time - window)"
        raise wrong(where, "input_range", list(window), expected)


def _rounds(
    row: ReleasedStream, item: ReleasedItem, where: Where, notes: list[str]
) -> list[MedStreamRound]:
    """The rounds of a streaming item; oddities of the release are added to ``notes``."""
    rounds: list[MedStreamRound] = []
    for number, released in enumerate(row.rounds):
        name = f"rounds[{number}]"
        previous = rounds[-1].time if rounds else None
        _check_time(released.current_time, previous, item, where, name)
        window = _round_window(released, item, where, name)
        if released.expected_output is None:
            target = _derived_target(released, item, where, name)
        else:
            target = _stated_target(released, released.expected_output, item, notes)
        rounds.append(
            MedStreamRound(
                time=released.current_time,
                window=window,
                expected=target.expected,
                answerable=target.answerable,
            )
        )
    return rounds


def _check_time(
    time: float, previous: float | None, item: ReleasedItem, where: Where, name: str
) -> None:
    """Refuse a time before the query, or one that is not after the previous round's."""
    field = f"{name}.current_time"
    if time < item.query_time - SLACK:
        expected = f"a time at or after query_time ({item.query_time:g})"
        raise wrong(where, field, time, expected)
    if previous is not None and time <= previous + SAME_TIME:
        raise wrong(where, field, time, f"a time after the previous round ({previous:g})")


def _round_window(
    released: ReleasedRound, item: ReleasedItem, where: Where, name: str
) -> tuple[float, float]:
    """The window of a round, which runs from the query time to the current time."""
    begin, end = item.query_time, released.current_time
    if released.input_range is None:
        return begin, end
    window = released.input_range
    if abs(window[0] - begin) > SLACK or abs(window[1] - end) > SLACK:
        expected = f"[query_time, current_time], here [{begin:g}, {end:g}]"
        raise wrong(where, f"{name}.input_range", list(window), expected)
    return window


class _Target(NamedTuple):
    """What a round should say, and whether that is an answer."""

    expected: tuple[str, ...]
    answerable: bool


def _derived_target(
    released: ReleasedRound, item: ReleasedItem, where: Where, name: str
) -> _Target:
    """The target of a round without an expected output, by its flag: the item's answer or none."""
    answers = item.answer
    if not answers and item.reference:
        answers = (item.reference,)
    if released.answerable is None or (released.answerable and not answers):
        aliases = ", ".join(ALIASES["expected_output"])
        expected = f"the answer of the round (as {aliases})"
        raise wrong(where, f"{name}.expected_output", None, expected)
    if released.answerable:
        return _Target(answers, answerable=True)
    return _Target(ABSTENTIONS[item.temporal_mode][:1], answerable=False)


def _stated_target(
    released: ReleasedRound, output: tuple[str, ...], item: ReleasedItem, notes: list[str]
) -> _Target:
    """The target of a round with an expected output; a contradicting flag is noted.

    An abstention counts, whether the output or the flag states it.
    """
    abstentions = ABSTENTIONS[item.temporal_mode]
    abstention = None
    if len(output) == 1:
        abstention = _abstention(output[0], abstentions, item.choices)
    stated_answerable = abstention is None
    if released.answerable is not None and released.answerable != stated_answerable:
        notes.append("answerable flag contradicts expected output")
        abstention = abstention or abstentions[0]
    if abstention is None:
        return _Target(output, answerable=True)
    return _Target((abstention,), answerable=False)


def _abstention(text: str, abstentions: Sequence[str], choices: Sequence[str] = ()) -> str | None:
    """The abstention that a gold text states; None if it states none.

    The text is an abstention, begins with one before an explanation, or is the letter of a choice
    that does.
    """
    letter = re.fullmatch(r"\W*([A-Za-z])\W*", text)
    if letter:
        position = ord(letter[1].upper()) - ord("A")
        if position < len(choices):
            text = _OWN_LETTER.sub("", choices[position])
    first_sentence = _FIRST_SENTENCE.split(text.strip(), maxsplit=1)[0]
    stated = re.sub(r"[\s-]+", "_", first_sentence.casefold())
    return stated if stated in abstentions else None
