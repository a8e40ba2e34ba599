"""MedStreamBench: what one filtered response contributes to its item (paper, section 5.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

from medtasks.answers.alert_state import parse_alert
from medtasks.answers.answerability import UNANSWERABLE, answerability_status
from medtasks.benchmarks.medstreambench.records import ABSTENTIONS
from medtasks.catalog.items import SampleView, Turn, Value
from medtasks.metrics.closed_answer import closed_answer_matches
from medtasks.metrics.stream_values import FALLBACK, OPEN


class _Judgement(NamedTuple):
    """The content of an answer by a judge, and the judge that was asked; None if none was."""

    content: float | None = None
    judge: str | None = None


def turn_of(
    doc: Mapping[str, Any], filtered: str, judged: Mapping[str, Value] = MappingProxyType({})
) -> Turn:
    """What the filtered response to one document contributes; ``judged`` are verdicts on it."""
    response = _read_response(doc, filtered)
    content_by_rule = _content_by_rule(doc, response)
    judgement = _Judgement(content_by_rule)
    if content_by_rule is None:
        judgement = _judgement(judged.get(OPEN))
    fallback = _Judgement(content_by_rule)
    if _is_mismatch(doc, response, content_by_rule):
        fallback = _judgement(judged.get(FALLBACK))
    return Turn(
        item=doc["item_id"],
        number=doc["round"],
        rounds=doc["rounds"],
        streaming=doc["task_mode"] == "streaming",
        in_seconds=doc["medium"] == "video",
        closed=doc["question_type"] == "closed",
        time=doc["time"],
        query_time=doc["query_time"],
        expected_time=doc["expected_time"],
        tolerance=doc["tolerance"],
        answerable=doc["answerable"],
        positive=response.positive,
        content=judgement.content,
        invalid=response.invalid,
        judge=judgement.judge,
        fallback=fallback.content,
        fallback_judge=fallback.judge,
    )


def turn_of_sample(sample: SampleView) -> Turn:
    """:func:`turn_of` a scored sample."""
    return turn_of(sample.document, sample.filtered, sample.values)


def is_open(doc: Mapping[str, Any], filtered: str) -> bool:
    """Whether only a judge can score the response."""
    return turn_of(doc, filtered).content is None


def is_mismatch(doc: Mapping[str, Any], filtered: str) -> bool:
    """Whether matching finds an answer to an answerable closed question wrong.

    A missing alert does not count: it is not an answer in other words.
    """
    turn = turn_of(doc, filtered)
    return turn.content is not None and turn.fallback is None


def _judgement(verdict: Value | None) -> _Judgement:
    """The content by a judge's verdict, which is None if there is no verdict yet."""
    if verdict is None:
        return _Judgement()
    content = None if verdict.statistics is None else verdict.statistics[0]
    return _Judgement(content, verdict.judge)


@dataclass(frozen=True)
class _Response:
    """What a response says: its answer, or an alert's reason.

    ``invalid`` is a response that is none of those allowed. ``positive`` (section 5.5) is an alert,
    or any answer other than ``unanswerable``; one that ``abstains`` is allowed while the evidence
    does not suffice.
    """

    answer: str
    invalid: bool
    positive: bool
    abstains: bool


def _read_response(doc: Mapping[str, Any], filtered: str) -> _Response:
    if doc["temporal_mode"] == "proactive":
        return _read_alert(filtered)
    return _read_answer(filtered, doc["options"])


def _read_alert(filtered: str) -> _Response:
    """What a proactive response says: an alert with its reason, or an abstention."""
    alert = parse_alert(filtered)
    return _Response(
        answer=alert.reason,
        invalid=alert.status != "ok",
        positive=alert.state == "alert",
        abstains=alert.state in ABSTENTIONS["proactive"],
    )


def _read_answer(filtered: str, options: Sequence[str]) -> _Response:
    """What an answer says; to select an option that means *unanswerable* is to abstain."""
    status = answerability_status(filtered)
    selects_refusal = any(
        closed_answer_matches(filtered, (refusal,), options)
        for refusal in _unanswerable_options(tuple(options))
    )
    return _Response(
        answer=filtered,
        invalid=status == "empty",
        positive=status == "ok" and not selects_refusal,
        abstains=filtered == UNANSWERABLE or selects_refusal,
    )


@lru_cache(maxsize=1024)
def _unanswerable_options(options: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(option for option in options if answerability_status(option) == UNANSWERABLE)


def _content_by_rule(doc: Mapping[str, Any], response: _Response) -> float | None:
    """The content score, 0 or 1, if a rule decides on it; None if a judge has to."""
    if response.invalid:
        return 0.0
    is_open = doc["question_type"] == "open"
    may_be_answered = doc["answerable"] or doc["task_mode"] == "single_turn"
    # section 5.5: a judge decides on all answers to open questions that can be answered by then
    if is_open and may_be_answered:
        return None
    # section 5.3: before t*, `no_alert` and `uncertain` are both right
    if not doc["answerable"]:
        return 1.0 if response.abstains else 0.0
    if doc["temporal_mode"] == "proactive":
        return _alert_content(doc, response)
    return _matched_content(doc, response, doc["expected"])


def _alert_content(doc: Mapping[str, Any], response: _Response) -> float:
    """1 if the response is an alert for the expected reason, else 0 (section 5.5)."""
    if not response.positive:
        return 0.0
    reasons = [_alert_reason(text) for text in doc["expected"]]
    if not any(reasons):  # the record asks for an alert and gives no reason to compare
        return 1.0
    return _matched_content(doc, response, reasons)


def _matched_content(doc: Mapping[str, Any], response: _Response, expected: Sequence[str]) -> float:
    """1 if the answer matches one of the expected answers, else 0."""
    options, several = doc["options"], doc["multi_select"]
    return float(closed_answer_matches(response.answer, expected, options, several))


def _alert_reason(expected: str) -> str:
    """The reason in an expected alert; a text without an alert is the reason itself."""
    alert = parse_alert(expected)
    return alert.reason if alert.state == "alert" else expected


def _is_mismatch(
    doc: Mapping[str, Any], response: _Response, content_by_rule: float | None
) -> bool:
    """Whether a judge may find that a wrong answer to a closed question is right."""
    closed = doc["question_type"] == "closed"
    return bool(closed and doc["answerable"] and response.positive and content_by_rule == 0)
