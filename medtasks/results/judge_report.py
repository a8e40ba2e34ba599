"""Reports of judging as plain lines: progress, coverage, unjudged responses and why, cost, warnings."""

from __future__ import annotations

import sys
import time

from medtasks.judge.client import Spent
from medtasks.judge.config import JudgeConfig
from medtasks.judge.stub import MODEL
from medtasks.results.adjudication import Judged
from medtasks.text import printable

EVERY = 30.0  # seconds


class PlainProgress:
    """Reports progress as lines on standard error: every 30 seconds, and at once when a judge begins to fail."""

    def __init__(self) -> None:
        self._printed = time.monotonic()
        self._known: set[tuple[str, str]] = set()

    def __call__(self, rubric: str, judge: str, done: int, total: int, spent: Spent, trouble: str | None) -> None:
        """As :data:`medtasks.results.adjudication.Progress`."""
        kind = (judge, "" if trouble is None else trouble.partition(":")[0])
        fresh = trouble is not None and kind not in self._known
        if not fresh and time.monotonic() - self._printed < EVERY:
            return
        self._known.add(kind)
        self._printed = time.monotonic()
        state = f"{done:,} of {total:,} responses done, {spent.requests:,} requests"
        if trouble is not None:
            state += f"; waiting to ask again: {trouble}"
        print(printable(f"medtasks: {rubric}, {judge}: {state}"), file=sys.stderr, flush=True)


def report_lines(judged: Judged, config: JudgeConfig) -> list[str]:
    """A paragraph for each rubric that was judged now, and a line for each that failed."""
    lines = []
    for name, facts in judged.facts.items():
        asked = [(judge, spent) for (rubric, judge), spent in judged.spent.items() if rubric == name]
        if not asked:
            continue
        share = f" ({facts.judged / facts.asked:.1%})" if facts.asked else ""
        lines += ["", f"{name}: {facts.judged:,} of {facts.asked:,} responses judged{share}"]
        if any(one["model"] == MODEL for one in facts.judges.values()):
            lines.append("  judged by a stub, which compares words: a demonstration, no judgement")
        lines += [f"  unjudged: {count:,} ({reason})" for reason, count in facts.unjudged.items()]
        lines += [f"  {printable(problem)}" for problem in judged.problems[name]]
        if facts.repaired or facts.extra_keys:
            lines.append(f"  {facts.repaired:,} answers repaired; {facts.extra_keys:,} unknown keys")
        lines += [f"  {judge}: {_taken(spent, config, judge)}" for judge, spent in asked]
        rests_on = _tokens(facts.prompt_tokens, facts.completion_tokens)
        lines.append(f"  its verdicts took {rests_on}, those stored before included")
        lines += [f"  warning: {warning}" for warning in facts.warnings]
        labels = judged.labels.get(name)
        if labels is not None and labels.unmatched:
            shown = ", ".join(labels.unmatched[:5])
            lines.append(f"  {len(labels.unmatched):,} labelled samples are not in this run: {shown}")
    if judged.failed and judged.spent:
        lines += ["", *(printable(f"not judged: {error}") for error in judged.failed.values())]
    return lines


def _taken(spent: Spent, config: JudgeConfig, judge: str) -> str:
    cost = config.judges[judge].cost(spent.prompt_tokens, spent.completion_tokens)
    return (
        f"{spent.requests:,} requests now ({spent.retries:,} of them again, {spent.failed:,} questions without an "
        f"answer), {_tokens(spent.prompt_tokens, spent.completion_tokens)}"
        + ("" if cost is None else f", cost {cost:,.2f}")
    )


def _tokens(prompt: int, completion: int) -> str:
    return f"{prompt:,} prompt and {completion:,} completion tokens"
