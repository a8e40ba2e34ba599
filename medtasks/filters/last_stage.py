"""Stage-wise responses: one record of all stages, of which the last one's option letter is scored."""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from typing import Any

from medtasks.filters.option_letter import declared_letters, extract_option

__all__ = ["VERSION", "LastStageOptionFilter", "join_stages", "read_stages"]

VERSION = "1"
"""Changes whenever the rule does; part of every protocol hash. Option letters have a version of their own."""


def join_stages(said: Sequence[str]) -> str:
    """Both responses as one line of JSON, which is what the sample log keeps as the response.

    >>> join_stages(["T1 to T2: nothing", "B"])
    '{"stage1": "T1 to T2: nothing", "stage2": "B"}'
    """
    return json.dumps({f"stage{number}": text for number, text in enumerate(said, start=1)}, ensure_ascii=False)


def read_stages(response: str) -> tuple[str, str]:
    """The texts of stage 1 and stage 2 of a logged response; a text that is no such record is stage 2 alone.

    Back-ends of the harness wrap what several rounds gave in a tuple, which the harness logs as its representation.
    """
    text = response.strip()
    if text.startswith(("(", "[")):
        try:
            found = ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            found = None
        if isinstance(found, (tuple, list)) and len(found) == 1 and isinstance(found[0], str):
            text = found[0]
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return "", response
    if isinstance(record, dict) and all(isinstance(record.get(key), str) for key in ("stage1", "stage2")):
        return record["stage1"], record["stage2"]
    return "", response


class LastStageOptionFilter:
    """A step for the harness's ``filter_list``: the option letter (or ``[status]``) that the last stage selects."""

    def apply(self, resps: list[list[str]], docs: Any) -> list[str | list[str]]:
        """One filtered string per document; a list of them where a document was answered several times."""
        letters = declared_letters(docs)
        filtered = [[extract_option(read_stages(text)[1], letters).filtered for text in answers] for answers in resps]
        return [answers[0] if len(answers) == 1 else answers for answers in filtered]
