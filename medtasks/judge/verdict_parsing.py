"""A judge's answer to a verdict: parsed leniently and validated strictly.

Parsing tolerates text around the JSON, backslashes and commas that JSON does not allow, and several
ways to write a number; it never guesses a score. An answer that quotes other JSON beside its own is
not a verdict: the two cannot be distinguished.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from medtasks.catalog.judge_prompt import aspects_of
from medtasks.catalog.rubric import Aspect, Rubric
from medtasks.judge.json_in_text import Invalid, objects_in, whole_object
from medtasks.runs.verdict import Verdict


def parse_verdict(
    text: str, rubric: Rubric, document: Mapping[str, Any], *, was_cut: bool = False
) -> Verdict | Invalid:
    """The verdict in a judge's answer ``text`` on a response to ``document``.

    Reads the whole text as JSON, or else every complete JSON object in it, fenced or amid prose,
    that is not inside another, unreadable one. If several are verdicts, they must agree on all
    scores. Thinking blocks are skipped. An answer that ``was_cut`` may have gone on to another
    verdict, unless all of it is one JSON object.

    Raises:
        DataError: the document does not define the aspects
            (:func:`medtasks.catalog.judge_prompt.aspects_of`).
    """
    aspects = aspects_of(rubric, document)
    if not text.strip():
        return Invalid("it is empty")
    try:
        readings = [_verdict_in(answer, aspects) for answer in _candidates(text, was_cut=was_cut)]
    except Invalid as error:
        return error
    verdicts = [reading for reading in readings if isinstance(reading, Verdict)]
    if not readings:
        return Invalid("it has no complete JSON object")
    if not verdicts:
        return readings[0]
    if any(verdict.scores != verdicts[0].scores for verdict in verdicts):
        return Invalid("it has several verdicts that differ")
    return verdicts[0]


def _candidates(text: str, *, was_cut: bool) -> Iterable[dict[str, Any]]:
    """The JSON objects that may be the verdict."""
    if not was_cut:
        return objects_in(text)
    whole = whole_object(text)
    return [] if whole is None else [whole]


def _verdict_in(answer: dict[str, Any], aspects: tuple[Aspect, ...]) -> Verdict | Invalid:
    """The verdict that a JSON object is, or why it is not one."""
    scores: dict[str, int] = {}
    reasons: dict[str, str] = {}
    for aspect in aspects:
        if aspect.name not in answer:
            return Invalid(f"aspect {aspect.name!r} is missing")
        value = answer[aspect.name]
        if isinstance(value, dict):
            reason = value.get("reason")
            if isinstance(reason, str):
                # lone surrogates, which JSON can carry and UTF-8 cannot, are written out
                reasons[aspect.name] = reason.encode("utf-8", "backslashreplace").decode("utf-8")
            if "score" not in value:
                return Invalid(f"aspect {aspect.name!r} has no score")
            value = value["score"]
        score = aspect.score_of(value)
        if score is None:
            scale = f"{aspect.minimum} to {aspect.maximum}"
            return Invalid(
                f"the score of aspect {aspect.name!r} is not a whole number from {scale}"
            )
        scores[aspect.name] = score
    return Verdict(scores=scores, reasons=reasons)


def repair_request(text: str, invalid: Invalid, schema: Mapping[str, Any]) -> str:
    """One sentence that asks again after an ``invalid`` answer.

    The answer is not quoted, because it may repeat the response.
    """
    schema_text = json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
    return (
        f"Your answer of {len(text):,} characters cannot be used because {invalid}; judge again "
        "and answer with a single JSON object, without anything before or after it, that follows "
        f"this JSON schema: {schema_text}"
    )
