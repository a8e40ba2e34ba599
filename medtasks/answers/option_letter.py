r"""The option that a response selects, from free text: rule-based, deterministic, the same for every model.

arXiv 2605.15574 (section 4.1, appendix E.5) counts a response only if exactly one option is selectable. A response
becomes plain text, the plain text a list of statements with a rank each, and the statements one decision:

1. *Plain text* (``selection``). Thinking and markup are removed and the text is normalised (NFKC; a letter in bold
   counts as one in brackets; keys of JSON become labels; text after the end of the turn is not read). If nothing is
   left the status is ``empty``. A response of single letters and punctuation only names those letters.
2. *Whole answers* (``option_text``). If the response, what follows its label, the content of its last box or answer
   tag, or the value of a JSON field equals one option's text (case, articles, punctuation and arrows aside) or its
   place (``the second option``), that option is selected by its ``text``, unless a letter contradicts it. An option's
   text within prose never selects.
3. *Mentions* (``mentions``). A mention is an option's text, or a single letter that is not part of a word
   (``C-shaped``, ``T1``), not an article or pronoun and not part of a name (``vitamin D``, ``E. coli``). Letters joined
   by *or*, *and*, a comma or a slash are one mention; so is a letter with another option's text behind it. Denied
   mentions (``not B``, ``B is incorrect``, ``no pleural effusion (B)``, a label below ``Why not the others?``) do not
   count.
4. *Statements* (``statements``). Each statement calls a mention the answer, with a rank (`answers.vocabulary.Rank`):
   label, tentative, suggested, stated, concluded, answer, final. A condition, a question or a negation before it takes
   it back. The words are data, one table a language.
5. *The decision* (``selection``). Stated and firmer statements decide if there are any: the last one alone if it
   outranks every earlier one with other letters, narrows them down (``B or C … the answer is B``), or takes them back
   (``Wait, …``); otherwise all of them count, and so does a doubt after them (``though C is also possible``,
   ``Alternatively C.``). Weaker statements decide in the same way, unless the response was cut off. Labels decide only
   without any other statement, and if no other option's letter or text is elsewhere in the response, undenied. A bare
   letter behind a sentence counts only if that sentence names no other option, in however short a text (``It is on the
   left. (B)``), or its own, too. A label
   with an explanation below other prose is discussion, a list of options (``A.``, ``B.``, …) counts only if nothing
   else does.
6. Below a heading with *answer* or *conclusion* only the text there counts, if it names an option.
7. One letter among the options is ``ok``. Several different letters are ``multiple``, no letter is ``none``, one
   letter that is not an option is ``out_of_range``. There is no partial credit.

A runaway response of more than 64,000 characters is read without sentences that it repeats, and if it is still longer,
without its middle. Of stage-wise responses, which are one record of all stages, the last stage is read.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from medtasks.answers.base import Reading, ResponseFilter
from medtasks.answers.thinking import strip_thinking

LETTERS = "ABCDE"
"""The options of a benchmark that declares none."""

Status = Literal["ok", "none", "multiple", "out_of_range", "empty"]


Kind = Literal["letter", "text"]


@dataclass(frozen=True)
class Extraction:
    """The extracted letter; None unless ``status`` is ``ok``.

    ``kind`` is how the option was named: by its letter, or by its text or place. ``named`` has the options whose texts
    are in a response that was not read.
    """

    letter: str | None
    status: Status
    kind: Kind | None = field(default=None, compare=False)
    named: frozenset[str] = field(default=frozenset(), compare=False)

    @property
    def filtered(self) -> str:
        """The letter, or the status in brackets: what the harness logs as the filtered response."""
        return self.letter or f"[{self.status}]"


def extract_option(text: str, letters: str = LETTERS, options: Mapping[str, str] | None = None) -> Extraction:
    """The one option that ``text`` selects among ``letters``, by the rules in this module's docstring.

    Never raises; the result depends on the text and the options alone. A status marker of this filter is read back as
    it is.

    Args:
        text: the response.
        letters: the options' letters.
        options: the options' texts by letter; without them, only letters are read.

    >>> extract_option("Right lung", "AB", {"A": "Left lung", "B": "Right lung"}).letter
    'B'
    """
    from medtasks.answers.selection import selection_of  # many patterns, which importing a task need not compile

    own = _own_marker(text)
    if own:
        return Extraction(None, own)
    selected = selection_of(strip_thinking(text), letters, options or {})
    if selected is None:
        return Extraction(None, "empty")
    if len(selected.letters) != 1:
        return Extraction(None, "multiple" if selected.letters else "none", named=selected.named)
    (letter,) = selected.letters
    if letter not in letters:
        return Extraction(None, "out_of_range")
    return Extraction(letter, "ok", "text" if selected.text else "letter")


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

    version = "9"
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


class LastStageOptionFilter(OptionLetterFilter):
    """Raw responses become the option letter of the last stage, or a ``[status]`` marker."""

    version = f"1.{OptionLetterFilter.version}"

    def reader(self, context: Any) -> Callable[[str], Reading]:
        """The option letter, or ``[status]``, that the last stage selects."""
        read = super().reader(context)
        return lambda text: read(read_stages(text)[1])
