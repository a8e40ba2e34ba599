"""What a user needs to know about a judge without verdicts: its first error and an invalid answer."""

from __future__ import annotations

from collections.abc import Mapping

from medtasks.judge.judgement import INVALID, REPAIR, Adjudication
from medtasks.judge.settings import JudgeSettings
from medtasks.judge.store import VerdictStore
from medtasks.text import one_line

SHOWN = 300  # characters of an answer
_FAILURES = ("http ", "timeout:", "connection:", "bad reply:", "question:")
_KEY_MISSING = ("http 400", "http 401", "http 403", "http 404")  # possible answers to a request without a key


def problems(
    found: Mapping[str, Adjudication], judges: Mapping[str, JudgeSettings], store: VerdictStore
) -> tuple[str, ...]:
    """Per judge its first failure with the address, and its first invalid answer; one line each."""
    lines = []
    for name, adjudication in found.items():
        failure = next((why for why in adjudication.unjudged.values() if why.startswith(_FAILURES)), None)
        if failure is not None:
            lines.append(one_line(f"{name} at {judges[name].base_url}: {failure}{_without_key(failure, judges[name])}"))
        invalid = next((one for one in adjudication.judgements.items() if one[1].reason == INVALID), None)
        if invalid is not None:
            lines.append(one_line(f"{name} on {invalid[0]}: {_said(invalid[1].key or '', store)}"))
    return tuple(lines)


def _without_key(failure: str, settings: JudgeSettings) -> str:
    if not failure.startswith(_KEY_MISSING) or settings.api_key() is not None:
        return ""
    return f" (asked without a key: the environment variable {settings.api_key_env} is not set)"


def _said(key: str, store: VerdictStore) -> str:
    (*_, last) = store.get([key, key + REPAIR]).values()
    answer = one_line(last.answer)
    shown = answer if len(answer) <= SHOWN else f"{answer[:SHOWN]}…"
    return f"not a verdict, because {last.reason}; it answered: {shown or '(nothing)'}"
