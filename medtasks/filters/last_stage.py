"""Stage-wise responses: one record of all stages; the option letter of the last stage is scored."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Sequence
from typing import Any

from medtasks.filters.base import ResponseFilter
from medtasks.filters.option_letter import OptionLetterFilter, declared_letters, extract_option, option_status


def join_stages(said: Sequence[str]) -> str:
    """Both responses as one line of JSON, as the sample log has them.

    >>> join_stages(["T1 to T2: nothing", "B"])
    '{"stage1": "T1 to T2: nothing", "stage2": "B"}'
    """
    return json.dumps({f"stage{number}": text for number, text in enumerate(said, start=1)}, ensure_ascii=False)


def read_stages(response: str) -> tuple[str, str]:
    """The texts of stage 1 and stage 2 of a logged response; any other text is stage 2 alone.

    Back-ends of the harness wrap the outcome of several rounds in a tuple, which the harness logs as its ``repr``.
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


class LastStageOptionFilter(ResponseFilter):
    """Raw responses become the option letter of the last stage, or a ``[status]`` marker."""

    version = f"1.{OptionLetterFilter.version}"
    status = staticmethod(option_status)

    def reader(self, docs: Any) -> Callable[[str], str]:
        """The option letter, or ``[status]``, that the last stage selects."""
        letters = declared_letters(docs)
        return lambda text: extract_option(read_stages(text)[1], letters).filtered
