r"""The option that a response selects, from free text: rule-based, deterministic, the same for every model.

arXiv 2605.15574 (section 4.1, appendix E.5) counts a response only if exactly one option is selectable. A response
becomes plain text, the plain text a list of statements with a rank each, and the statements one decision:

1. *Plain text* (``markup``). Thinking, markup and what follows the model's turn are removed; a letter in
   bold is one in brackets, keys of JSON are labels. If nothing is left the status is ``empty``.
2. *Whole answers* (``option_text``). If the response or its last sentence, or what follows its label, its last box or
   answer tag, or a JSON value is one option's text or place (``the second option``), that option is selected by its
   ``text``, unless a letter contradicts it (``The answer is X``, ``X is the right one``; a sentence that is only a text
   does not count). So does *yes* or *no* at the beginning, if an option is just that. An option's text within other
   prose never selects.
3. *Mentions* (``mentions``). A mention is an option's text, or a letter that is not part of a word or name (``T1``,
   ``vitamin D``), an article or a pronoun. Letters joined by *or*, *and*, a comma or a slash are one mention. Denied
   ones (``not B``, ``no pleural effusion (B)``, a label below ``Why not the others?``) do not count.
4. *Statements* (``statements``). Each mention has the highest rank (`medtasks.answers.vocabulary.Rank`) that words,
   signs or its place give it. A condition, a question or a negation before a claim takes it back; so do quotation
   marks around it and words that say whose claim it is (``The site's key says B``).
5. *The decision* (``selection``). The firmest kind of statements decides: *stated* and above; else claims below that,
   with all mentions in the sentence of the last one, unless the response was cut off; else a letter that is *implied*
   because all others are denied, doubted or compared in their clauses, because it is in bold at the end, or because it
   is named alone, with its text (``left_over``); else labels, which any other undenied mention contradicts. The last
   statement counts alone if it outranks the others, narrows them down (``B or C … the answer is B``), or takes them
   back (``Wait, …``); else all count, with doubts that follow (``though C is possible``). A bare letter also yields to
   another option's text, however short, in the sentence before it (``It is on the left. (B)``). Text below a heading
   with *answer* or *conclusion* decides before the rest. A response selects nothing if it withdraws its last claim,
   asks for the image afterwards, or has ``null`` as its answer in JSON.
6. One letter among the options is ``ok``. Several letters are ``multiple``, no letter is ``none``, one letter that is
   not an option is ``out_of_range``. There is no partial credit.

A runaway response of more than 64,000 characters is read without sentences that it repeats, and if it is still longer,
without its middle. Of stage-wise responses, which are one record of all stages, the last stage is read.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from string import ascii_uppercase
from typing import Any

from medtasks.answers.base import Reading, ResponseFilter
from medtasks.answers.selection import LETTERS, Extraction, Status, extract_option


def parse_filtered(filtered: str) -> Extraction:
    """The extraction that a filtered response carries, as the letter or the status in brackets, or any other text."""
    return extract_option(filtered, ascii_uppercase)


def option_status(filtered: str) -> Status:
    """Status of a filtered response."""
    return parse_filtered(filtered).status


def declared_letters(document: Mapping[str, Any]) -> str:
    """The options of the benchmark that the document belongs to (``Benchmark.options``); by default A to E."""
    name = document.get("benchmark")
    if not name:
        return LETTERS
    from medtasks.catalog.registry import get_benchmark  # which itself imports filters

    return "".join(get_benchmark(name).options) or LETTERS


class OptionLetterFilter(ResponseFilter):
    """Raw responses become letters or ``[status]`` markers.

    Args:
        letters: the options; by default those of the document's benchmark. Their texts are the document's ``choices``.
    """

    version = "16"
    status = staticmethod(option_status)

    def __init__(self, letters: str | None = None) -> None:
        self._letters = letters

    def context(self, document: Mapping[str, Any]) -> Hashable:
        """The options' letters, and their texts by letter."""
        return self._letters or declared_letters(document), tuple(sorted(document.get("choices", {}).items()))

    def reader(self, context: Any) -> Callable[[str], Reading]:
        """:func:`extract_option` among these options."""
        letters, options = context[0], dict(context[1])

        def read(text: str) -> Reading:
            found = extract_option(text, letters, options)
            return Reading(found.filtered, found.kind or ("named" if len(found.named) == 1 else ""))

        return read


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


class LastStageOptionFilter(OptionLetterFilter):
    """Raw responses become the option letter of the last stage, or a ``[status]`` marker."""

    version = f"1.{OptionLetterFilter.version}"

    def reader(self, context: Any) -> Callable[[str], Reading]:
        """The option letter, or ``[status]``, that the last stage selects."""
        read = super().reader(context)
        return lambda text: read(read_stages(text)[1])
