"""All verdicts on a run as JSON lines, with the prompts and raw answers from the verdict store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from medtasks.core.files import canonical_json
from medtasks.core.replacement import replaced
from medtasks.judge.judged import Judged, JudgedRubric
from medtasks.judge.settings import JudgeConfig
from medtasks.judge.store import StoredVerdict, VerdictStore
from medtasks.runs.verdict import Verdict


def export_verdicts(judged: Judged, config: JudgeConfig, path: Path) -> int:
    """Write one JSON line per response, judge and rubric; returns the number of lines.

    A line has the sample, prompt, raw answers, parsed verdict and tokens.
    """
    results = {name: JudgedRubric(judged.samples, facts) for name, facts in judged.facts.items()}
    # also if nothing could be judged under a rubric: the answers show why
    results |= judged.unused
    written = 0
    with (
        VerdictStore(config.store) as store,
        replaced(path) as partial,
        partial.open("w", encoding="utf-8") as stream,
    ):
        for rubric, result in sorted(results.items()):
            for line in _verdict_lines(rubric, result, store):
                stream.write(canonical_json(line) + "\n")
                written += 1
    return written


def _verdict_lines(
    rubric: str, result: JudgedRubric, store: VerdictStore
) -> Iterator[dict[str, Any]]:
    """A line per verdict under the rubric, in the order of tasks, samples, responses and judges."""
    for task in result.facts.tasks:
        for sample in result.samples[task]:
            for number, response in enumerate(sample.verdicts.get(rubric, ())):
                for judge, verdict in sorted(response.judges.items()):
                    yield {
                        "rubric": rubric,
                        "task": sample.task,
                        "sample_id": sample.sample_id,
                        "repeat": number,
                        "judge": judge,
                        **verdict.model_dump(mode="json"),
                        **_stored_texts(verdict, store),
                    }


def _stored_texts(verdict: Verdict, store: VerdictStore) -> dict[str, Any]:
    """The prompt of a verdict and the judge's raw answers to it."""
    stored: list[StoredVerdict] = []
    if verdict.key is not None:
        stored = store.get(verdict.key)
    prompt = stored[0].prompt if stored else None
    return {"prompt": prompt, "answers": [row.answer for row in stored]}
