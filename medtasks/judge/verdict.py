"""Verdicts: a judge's answers, parsed leniently and validated strictly.

Parsing tolerates text around the JSON, backslashes and commas that JSON does not allow, and several
ways to write a number; it never guesses a score. An answer that quotes other JSON beside its own is
not a verdict: the two cannot be told apart.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import fsum
from typing import Any, Literal

from pydantic import Field

from medtasks.catalog.rubric import Aspect, Rubric, aspects_of, total
from medtasks.core.errors import MedtasksError
from medtasks.core.schema import Compact
from medtasks.judge.json_in_text import Invalid, objects_in, whole_object


class Verdict(Compact):
    """One judge's verdict on one response: scores and reasons by aspect, or why the response is
    unjudged.
    """

    key: str | None = (
        None  # of the first answer in the store (its repair: key + REPAIR); None without a prompt
    )
    scores: dict[str, int] | None = None  # None never counts as 0
    reasons: dict[str, str] = Field(default_factory=dict)
    unjudged: str | None = None
    repaired: bool = False
    prompt_tokens: int = 0  # of both answers, as stored
    completion_tokens: int = 0


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
        (:func:`medtasks.catalog.rubric.aspects_of`).
    """
    aspects = aspects_of(rubric, document)
    if not text.strip():
        return Invalid("it is empty")
    try:
        found = [whole_object(text)] if was_cut else objects_in(text)
        readings = [_validated(answer, aspects) for answer in found if answer is not None]
    except Invalid as error:
        return error
    verdicts = [reading for reading in readings if isinstance(reading, Verdict)]
    if not verdicts:
        return readings[0] if readings else Invalid("it has no complete JSON object")
    if any(verdict.scores != verdicts[0].scores for verdict in verdicts):
        return Invalid("it has several verdicts that differ")
    return verdicts[0]


def _validated(answer: dict[str, Any], aspects: tuple[Aspect, ...]) -> Verdict | Invalid:
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
            return Invalid(
                f"the score of aspect {aspect.name!r} is not a whole number from {aspect.minimum} to {aspect.maximum}"
            )
        scores[aspect.name] = score
    return Verdict(scores=scores, reasons=reasons)


def repair_request(text: str, invalid: Invalid, schema: Mapping[str, Any]) -> str:
    """One sentence that asks again after an ``invalid`` answer, which is not quoted: it may repeat
    the response.
    """
    return (
        f"Your answer of {len(text):,} characters cannot be used because {invalid}; judge again and answer with "
        "a single JSON object, without anything before or after it, that follows this JSON schema: "
        f"{json.dumps(schema, ensure_ascii=False, separators=(',', ':'))}"
    )


Rule = Literal["majority", "mean"]


def combine(
    verdicts: Mapping[str, Mapping[str, int] | None], aspects: Sequence[Aspect], rule: Rule
) -> tuple[dict[str, float], dict[str, str]]:
    """The scores that a panel decided, and why every other aspect is open; the order of judges does
    not matter.

    ``majority``: the score that more than half of the whole panel gave, those without a verdict
    included. ``mean``: the mean score, if all have a verdict. ``verdicts`` are the scores of each
    judge by name, or None if it has no verdict.
    """
    names = [aspect.name for aspect in aspects]
    for judge, given in verdicts.items():
        if given is not None and (
            given.keys() != {*names}
            or any(given[aspect.name] not in aspect.scale for aspect in aspects)
        ):
            raise MedtasksError(
                f"judge {judge} gave {dict(given)}, expected one score for each of {names}; combine verdicts on the "
                "same response under the same rubric."
            )
    decided: dict[str, float] = {}
    undecided: dict[str, str] = {}
    for name in names:
        votes = {
            judge: given[name] for judge, given in sorted(verdicts.items()) if given is not None
        }
        missing = sorted(verdicts.keys() - votes.keys())
        ranked = Counter(votes.values()).most_common()
        most = ranked[0][1] if ranked else 0
        absent = f"{', '.join(missing)} {'has' if len(missing) == 1 else 'have'} no verdict"
        present = ", ".join(f"{judge} gave {score}" for judge, score in votes.items())
        if rule == "mean" and not missing:
            decided[name] = fsum(votes.values()) / len(votes)
        elif rule == "majority" and 2 * most > len(verdicts):
            decided[name] = float(ranked[0][0])
        elif rule == "mean" or not votes:
            undecided[name] = absent
        elif 2 * (most + len(missing)) > len(verdicts):  # a missing judge could have decided
            undecided[name] = f"{absent}; {present}"
        else:
            tied = len(ranked) > 1 and ranked[1][1] == most
            undecided[name] = f"{'tie' if tied else 'no majority'}: {present}" + (
                f"; {absent}" if missing else ""
            )
    return decided, undecided


def bounds(
    rubric: Rubric, document: Mapping[str, Any], scores: Mapping[str, float]
) -> tuple[dict[str, float], dict[str, float]]:
    """The lowest and the highest totals possible; no weight is negative, and a higher score never
    lowers a cap.
    """
    aspects = aspects_of(rubric, document)
    low = total(rubric, document, {**{one.name: float(one.minimum) for one in aspects}, **scores})
    high = total(rubric, document, {**{one.name: float(one.maximum) for one in aspects}, **scores})
    return low, high


_FAMILIES = {
    "claude": "claude",
    "cohere": r"command-[ar]\b|\baya-",
    "deepseek": "deepseek",
    "glm": "glm",
    "google": "gemini|gemma",
    "grok": "grok",
    "internvl": "internvl|internlm",
    "kimi": "kimi",
    "llama": "(?<!o)llama(?!-?factory)|vicuna",
    "llava": "llava",
    "minicpm": "minicpm",
    "mistral": "mi[sx]tral|pixtral|magistral",
    "openai": r"\b(chat)?gpt-?(oss|[345])|(^|/)o[134]\b",
    "phi": r"\bphi-?[1-4]",
    "qwen": "qwen|qwq|lingshu|hulu-?med",
}


def family_of(name: str) -> tuple[str, ...]:
    """The families that a model's name or path mentions, sorted: a distilled model has two."""
    return tuple(
        family for family, pattern in _FAMILIES.items() if re.search(pattern, name, re.IGNORECASE)
    )


def family_warnings(judges: Iterable[str], names: Sequence[str]) -> tuple[str, ...]:
    """A warning in one sentence for each judge that is the model with these ``names``, or of its
    family.
    """
    warnings: dict[str, str] = {}
    for judge in sorted(judges):
        for name in names:
            if judge.strip().casefold() == name.strip().casefold() or {*family_of(judge)} & {
                *family_of(name)
            }:
                warnings.setdefault(
                    judge,
                    f"judge {judge[-80:]!a} and model {name[-80:]!a} are of the same family: judges tend to favour "
                    "answers of their own kind (homogeneity bias: the Kvasir-VQA-x1 paper asks for judges of another "
                    "architecture); use a judge from another family, or several judges.",
                )
    return tuple(warnings.values())
