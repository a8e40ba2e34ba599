"""Stage-wise responses, which are one record of all stages; the last stage answers the question."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Sequence
from typing import Any

from medtasks.answers.base import Reading
from medtasks.answers.option_letter import OptionLetterFilter


def join_stages(outputs: Sequence[str]) -> str:
    """Both responses as one line of JSON, as the sample log has them.

    >>> join_stages(["T1 to T2: nothing", "B"])
    '{"stage1": "T1 to T2: nothing", "stage2": "B"}'
    """
    record = {f"stage{number}": text for number, text in enumerate(outputs, start=1)}
    return json.dumps(record, ensure_ascii=False)


def read_stages(response: str) -> tuple[str, str]:
    """The texts of stage 1 and stage 2 of a logged response; any other text is stage 2 alone.

    Back-ends of the harness wrap the outcome of several rounds in a tuple, which the harness logs
    as its ``repr``.
    """
    text = response.strip()
    try:
        if text.startswith(("(", "[")):
            [text] = ast.literal_eval(text)
        record = json.loads(text)
        first, second = record["stage1"], record["stage2"]
    except (ValueError, TypeError, KeyError, SyntaxError, MemoryError, RecursionError):
        return "", response
    if isinstance(first, str) and isinstance(second, str):
        return first, second
    return "", response


class LastStageOptionFilter(OptionLetterFilter):
    """Raw responses become the option letter of the last stage, or a ``[status]`` marker."""

    version = f"1.{OptionLetterFilter.version}"

    def reader(self, context: Any) -> Callable[[str], Reading]:
        """The option letter, or ``[status]``, that the last stage selects."""
        read = super().reader(context)
        return lambda text: read(read_stages(text)[1])
