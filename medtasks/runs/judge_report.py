"""Reports of judging: progress and results as plain text, and every verdict as a line of JSON."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

from medtasks.core.files import canonical_json
from medtasks.core.text import first_names, printable
from medtasks.judge.client import Spent
from medtasks.judge.pipeline import REPAIR
from medtasks.judge.settings import STUB, JudgeConfig
from medtasks.judge.store import VerdictStore
from medtasks.runs.judge_run import Judged, Outcome

EVERY = 30.0  # seconds


class PlainProgress:
    """Prints progress on standard error: every 30 seconds, and immediately when a judge starts to fail."""

    def __init__(self) -> None:
        self._printed = time.monotonic()
        self._known: set[tuple[str, str]] = set()

    def __call__(self, rubric: str, judge: str, done: int, total: int, spent: Spent, trouble: str | None) -> None:
        """See :data:`medtasks.runs.judge_run.Progress`."""
        kind = (judge, "" if trouble is None else trouble.partition(":")[0])
        fresh = trouble is not None and kind not in self._known
        if not fresh and time.monotonic() - self._printed < EVERY:
            return
        self._known.add(kind)
        self._printed = time.monotonic()
        state = f"{done:,} of {total:,} responses done, {spent.requests:,} requests"
        if trouble is not None:
            state += f"; waiting: {trouble}"
        print(printable(f"medtasks: {rubric}, {judge}: {state}"), file=sys.stderr, flush=True)


def report_lines(judged: Judged, config: JudgeConfig) -> list[str]:
    """A paragraph for each rubric that was just judged, and a line for each that failed."""
    lines = [line for name, outcome in judged.succeeded.items() for line in _rubric_lines(name, outcome, config)]
    if judged.failed and lines:
        lines += ["", *(printable(f"not judged: {error}") for error in judged.failed.values())]
    return lines


def _rubric_lines(name: str, outcome: Outcome, config: JudgeConfig) -> Iterator[str]:
    facts, labels = outcome.facts, outcome.labels
    share = f" ({facts.judged / facts.asked:.1%})" if facts.asked else ""
    yield from ("", f"{name}: {facts.judged:,} of {facts.asked:,} responses judged{share}")
    if any(one["model"] == STUB for one in facts.judges.values()):
        yield "  judged by a stub, which compares words: a demonstration, not a judgement"
    yield from (f"  unjudged: {count:,} ({reason})" for reason, count in facts.unjudged.items())
    yield from (f"  {printable(problem)}" for problem in outcome.problems)
    if facts.repaired or facts.extra_keys:
        yield f"  {facts.repaired:,} answers repaired; {facts.extra_keys:,} unknown keys"
    for judge, verdicts in outcome.verdicts.items():
        yield f"  {judge}: {_usage(verdicts.spent, config, judge)}"
    yield f"  all verdicts, including stored ones: {_tokens(facts.prompt_tokens, facts.completion_tokens)}"
    yield from (f"  warning: {warning}" for warning in facts.warnings)
    if labels is not None and labels.unmatched:
        shown = first_names(labels.unmatched, 5)
        yield f"  {len(labels.unmatched):,} labelled samples are not in this run: {shown}"


def _usage(spent: Spent, config: JudgeConfig, judge: str) -> str:
    cost = config.judges[judge].cost(spent.prompt_tokens, spent.completion_tokens)
    return (
        f"{spent.requests:,} requests now ({spent.retries:,} retries, {spent.failed:,} questions without an "
        f"answer), {_tokens(spent.prompt_tokens, spent.completion_tokens)}"
        + ("" if cost is None else f", cost {cost:,.2f}")
    )


def _tokens(prompt: int, completion: int) -> str:
    return f"{prompt:,} prompt and {completion:,} completion tokens"


def exported_lines(judged: Judged, store: VerdictStore) -> Iterator[str]:
    """One JSON line per response, judge and rubric: sample, prompt, raw answers, parsed verdict, tokens.

    If nothing could be judged under a rubric, its lines are from that attempt: the answers show why.
    """
    sources = {name: (facts, judged.samples) for name, facts in judged.facts.items()}
    sources |= {name: (outcome.facts, outcome.samples) for name, outcome in judged.outcomes.items()}
    for rubric, (facts, samples) in sorted(sources.items()):
        for task, sample in ((name, one) for name in facts.tasks for one in samples[name]):
            for number, response in enumerate(sample.verdicts.get(rubric, ())):
                for judge, entry in sorted(response.judges.items()):
                    stored = [] if entry.key is None else [*store.get([entry.key, entry.key + REPAIR]).values()]
                    line = {
                        "rubric": rubric,
                        "task": task,
                        "sample_id": sample.sample_id,
                        "repeat": number,
                        "judge": judge,
                        **entry.model_dump(mode="json"),
                        "prompt": stored[0].prompt if stored else None,
                        "answers": [one.answer for one in stored],
                    }
                    yield canonical_json(line)
