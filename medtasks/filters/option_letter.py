r"""Option letters from free text: rule-based, deterministic, the same for every model.

arXiv 2605.15574 (section 4.1, appendix E.5) counts a response only if exactly one option is selectable. The rules:

1. Thinking and markup are removed and the text is normalised (NFKC: full-width letters become plain ones; a letter in
   bold counts as one in brackets; keys of JSON become labels; text after the end of the turn is not read). If nothing
   is left the status is ``empty``. A response of single letters and punctuation only names those letters.
2. A *mention* is a single letter that is not part of a word (``C-shaped``, ``T1``), not an article or pronoun (``A
   small effusion``, ``I see``) and not part of a name (``vitamin D``, ``image A``, ``E. coli``). Letters joined by
   *or*, *and*, a comma or a slash are one mention of several letters. A denied mention (``not B``, ``B is incorrect``)
   does not count.
3. A *claim* is a mention that the text calls the answer. Ranks, weakest first: tentative (``it may be
   B``), suggested (``points to B``), stated (``the answer is B``, ``I choose B``, ``B is correct``), concluded
   (``therefore B``), answered (``Answer: B`` at the start of a line, a tick, a letter alone on the first or last
   line), final (``Final answer: B``, a LaTeX box, an answer tag). A condition, a question or a negation before it
   takes a claim back.
4. Stated and firmer claims decide if there are any: the last one alone if it outranks every earlier one with other
   letters, narrows them down (``B or C … the answer is B``), or takes them back (``Wait, …``); otherwise all of them
   count, and so does a doubt after them (``though C is also possible``).
5. Tentative and suggested claims decide in the same way if there are no firmer ones, unless the response was cut off:
   an option met in the course of reasoning is not yet an answer.
6. Without a claim, mentions used as labels count: before a sign or the option's text at the start of a line; in
   brackets at the end of a sentence; and several joined letters (a hedge). A list of options (``A.``, ``B.``, …) counts
   only if nothing else does, and a single option under ``Let us look at each option:`` does not count.
7. Below a heading with *answer* or *conclusion* only the text there counts, if it names an option.
8. One letter among the options is ``ok``. Several different letters are ``multiple``, no letter is ``none``, one
   letter that is not an option is ``out_of_range``. There is no partial credit.

Of stage-wise responses, which are one record of all stages, the last stage is read.

Option texts are never matched: a response that repeats an option's words without its letter is ``none``.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from medtasks.filters.base import ResponseFilter
from medtasks.filters.thinking import strip_thinking

LETTERS = "ABCDE"
"""The options of a benchmark that declares none."""

Status = Literal["ok", "none", "multiple", "out_of_range", "empty"]


@dataclass(frozen=True)
class Extraction:
    """The extracted letter; None unless ``status`` is ``ok``."""

    letter: str | None
    status: Status

    @property
    def filtered(self) -> str:
        """The letter, or the status in brackets: what the harness logs as the filtered response."""
        return self.letter or f"[{self.status}]"


def extract_option(text: str, letters: str = LETTERS) -> Extraction:
    """The one option that ``text`` selects among ``letters``, by the rules in this module's docstring.

    Never raises; the result depends on the text alone. A status marker of this filter is read back as it is.
    """
    from medtasks.filters.selection import selected_letters  # many patterns, which importing a task need not compile

    own = _own_marker(text)
    if own:
        return Extraction(None, own)
    selected = selected_letters(strip_thinking(text), letters)
    if selected is None:
        return Extraction(None, "empty")
    if len(selected) != 1:
        return Extraction(None, "multiple" if selected else "none")
    (letter,) = selected
    return Extraction(letter, "ok") if letter in letters else Extraction(None, "out_of_range")


def parse_filtered(filtered: str) -> Extraction:
    """The extraction that a filtered response carries: the letter, or the status in brackets.

    Any other text (from another filter) goes through :func:`extract_option`.
    """
    text = filtered.strip()
    if len(text) == 1 and "A" <= text <= "Z":
        return Extraction(text, "ok")
    return extract_option(text)


def option_status(filtered: str) -> Status:
    """Status of :func:`parse_filtered`."""
    return parse_filtered(filtered).status


def declared_letters(docs: Any) -> str:
    """The options of the benchmark that the documents belong to (``Benchmark.options``); by default A to E."""
    name = docs[0].get("benchmark") if docs else None
    if not name:
        return LETTERS
    from medtasks.registry import get_benchmark  # which itself imports filters

    return "".join(get_benchmark(name).options) or LETTERS


class OptionLetterFilter(ResponseFilter):
    """Raw responses become letters or ``[status]`` markers.

    Args:
        letters: the options; by default those of the documents' benchmark.
    """

    version = "4"
    status = staticmethod(option_status)

    def __init__(self, letters: str | None = None) -> None:
        self._letters = letters

    def reader(self, docs: Any) -> Callable[[str], str]:
        """:func:`extract_option` with the options of ``docs``, as a string."""
        letters = self._letters or declared_letters(docs)
        return lambda text: extract_option(text, letters).filtered


def _own_marker(text: str) -> Status | None:
    inner = text.strip()
    for status in get_args(Status):
        if status != "ok" and inner == f"[{status}]":
            known: Status = status
            return known
    return None


def join_stages(outputs: Sequence[str]) -> str:
    """Both responses as one line of JSON, as the sample log has them.

    >>> join_stages(["T1 to T2: nothing", "B"])
    '{"stage1": "T1 to T2: nothing", "stage2": "B"}'
    """
    return json.dumps({f"stage{number}": text for number, text in enumerate(outputs, start=1)}, ensure_ascii=False)


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
