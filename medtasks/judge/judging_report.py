"""What `medtasks judge` prints: progress, what each judge spent, and why answers are not
verdicts.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from medtasks.core.text import one_line, printable, shortened
from medtasks.judge.client import Spent
from medtasks.judge.settings import JudgeSettings
from medtasks.judge.store import StoredVerdict, VerdictStore
from medtasks.runs.manifest import RubricFacts
from medtasks.runs.verdict import STUB, Cause, Verdict

Progress = Callable[[str, str, int, int, Spent, "str | None"], None]
"""Called with the rubric, the judge, questions done and in total, usage, and why the judge is not
answering, if so.
"""
Verdicts = Mapping[str, Mapping[str, Verdict]]
"""Verdicts by judge and name of the question."""

KEPT = (
    "unusable answers are kept in the verdict store; "
    "once the judge works, ask for them again with --again"
)
SHOWN = 300  # characters of an answer
EVERY = 30.0  # seconds


def all_verdicts(verdicts: Verdicts) -> Iterator[Verdict]:
    """The verdicts of all judges on all questions."""
    for by_question in verdicts.values():
        yield from by_question.values()


def has_unusable(verdicts: Verdicts) -> bool:
    """Whether a stored answer of a judge is not a verdict."""
    for verdict in all_verdicts(verdicts):
        if verdict.cause is not None and verdict.cause.is_answered:
            return True
    return False


def problems(
    verdicts: Verdicts, judges: Mapping[str, JudgeSettings], store: VerdictStore
) -> list[str]:
    """What keeps judges from giving verdicts.

    A line per judge for its first failure, with its address, and one for its first unusable answer
    of each kind.
    """
    lines = []
    for judge, by_question in verdicts.items():
        failure = _first_failure(by_question.values())
        if failure is not None:
            lines.append(_failure_line(failure, judge, judges[judge]))
        for question, verdict in _first_unusable(by_question).items():
            last = store.get(verdict.key or "")[-1]
            answer = shortened(last.answer, SHOWN) or "(nothing)"
            why = _why_unusable(verdict, last)
            lines.append(one_line(f"{judge} on {question}: {why}; it answered: {answer}"))
    return lines


def _first_failure(verdicts: Iterable[Verdict]) -> Verdict | None:
    for verdict in verdicts:
        if verdict.cause is not None and verdict.cause.is_failure:
            return verdict
    return None


def _failure_line(failure: Verdict, judge: str, settings: JudgeSettings) -> str:
    """The line on a judge that failed, which mentions a missing key if that may be the cause."""
    without_key = ""
    if failure.cause is Cause.REJECTED and settings.api_key() is None:
        without_key = (
            f" (asked without a key: the environment variable {settings.api_key_env} is not set)"
        )
    return one_line(f"{judge} at {settings.base_url}: {failure.unjudged}{without_key}")


def _first_unusable(by_question: Mapping[str, Verdict]) -> dict[str, Verdict]:
    """The first unusable answer of each kind, by question."""
    kinds: set[Cause] = set()
    first = {}
    for question, verdict in by_question.items():
        kind = verdict.cause
        if kind is not None and kind.is_answered and kind not in kinds:
            kinds.add(kind)
            first[question] = verdict
    return first


def _why_unusable(verdict: Verdict, last: StoredVerdict) -> str:
    """Why the last answer to a question is not a verdict."""
    if verdict.cause is Cause.INVALID:
        return f"not a verdict, because {last.reason}"
    if verdict.cause is Cause.CUT and last.completion_tokens:
        tokens = f"{last.completion_tokens:,} tokens, those of its reasoning included"
        return f"{verdict.unjudged} (it has {tokens})"
    return verdict.unjudged or ""


def plain_progress() -> Progress:
    """Progress as lines on standard error.

    They are printed every 30 seconds, and immediately when a judge starts to fail.
    """
    return _PlainProgress().show


class _PlainProgress:
    """Prints progress if it is due: by time, or for a failure that was not printed yet."""

    def __init__(self) -> None:
        self._last_printed = time.monotonic()
        self._reported: set[tuple[str, str]] = set()
        """Judges with the kinds of failure, which messages begin with."""

    def show(
        self, rubric: str, judge: str, done: int, total: int, spent: Spent, failure: str | None
    ) -> None:
        """Print the state of a judge, unless this is too soon after the last line."""
        kind_of_failure = (failure or "").partition(":")[0]
        is_new = bool(failure) and (judge, kind_of_failure) not in self._reported
        if not is_new and time.monotonic() - self._last_printed < EVERY:
            return
        self._reported.add((judge, kind_of_failure))
        self._last_printed = time.monotonic()
        waiting = f"; waiting: {failure}" if failure else ""
        state = f"{done:,} of {total:,} responses done, {spent.requests:,} requests{waiting}"
        print(printable(f"medtasks: {rubric}, {judge}: {state}"), file=sys.stderr, flush=True)


def report(
    facts: RubricFacts,
    problem_lines: Sequence[str],
    spent: Mapping[str, Spent],
    judges: Mapping[str, JudgeSettings],
    *,
    kept: bool,
) -> Iterator[str]:
    """The lines on a rubric that was just judged.

    Args:
        facts: the outcome under the rubric.
        problem_lines: those of `problems`.
        spent: what each judge spent on the rubric.
        judges: the settings of each judge.
        kept: whether the verdict store has answers that are not verdicts.
    """
    share = ""
    if facts.asked:
        share = f" ({facts.judged / facts.asked:.1%})"
    yield ""
    yield f"{facts.rubric.name}: {facts.judged:,} of {facts.asked:,} responses judged{share}"
    if any(identity["model"] == STUB for identity in facts.judges.values()):
        yield "  judged by a stub, which compares words: a demonstration, not a judgement"
    for reason, count in facts.unjudged.items():
        yield f"  unjudged: {count:,} ({reason})"
    for line in problem_lines:
        yield f"  {printable(line)}"
    if kept:
        yield f"  {KEPT}"
    if facts.repaired:
        yield f"  {facts.repaired:,} answers repaired"
    for judge, used in spent.items():
        yield f"  {judge}: {_usage(used, judges[judge])}"
    yield f"  all verdicts, including stored ones: {_tokens(facts)}"
    for warning in facts.warnings:
        yield f"  warning: {warning}"


def _usage(used: Spent, settings: JudgeSettings) -> str:
    """Requests and tokens in words, with their cost if the settings have prices."""
    text = (
        f"{used.requests:,} requests now ({used.retries:,} retries, {used.failed:,} questions "
        f"without an answer), {_tokens(used)}"
    )
    cost = settings.cost(used.prompt_tokens, used.completion_tokens)
    return text if cost is None else f"{text}, cost {cost:,.2f}"


def _tokens(used: Spent | RubricFacts) -> str:
    return f"{used.prompt_tokens:,} prompt and {used.completion_tokens:,} completion tokens"
