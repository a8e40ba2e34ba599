r"""The option that a response selects, from free text: rule-based, deterministic, the same for
every model.

arXiv 2605.15574 (section 4.1, appendix E.5) counts a response only if exactly one option is
selectable. A response becomes plain text, the plain text a list of statements with a rank each, and
the statements one decision:

1. *Plain text* (``markup``). Thinking, markup and what follows the model's turn are removed; a
   letter in bold is one in brackets, keys of JSON are labels. If nothing is left the status is
   ``empty``.
2. *Whole answers* (``whole_answer``). If the response or its last sentence, or what follows its
   label, its last box or answer tag, or a JSON value is one option's text or place (``the second
   option``), that option is selected by its ``text``, unless a letter contradicts it (``The answer
   is X``, ``X is the right one``; a sentence that is only a text does not count). So does *yes* or
   *no* at the beginning, if an option is just that. An option's text within other prose never
   selects. A letter with its own option's text is that option; with another option's text, beside
   it, alone on a line or in another field of a JSON object, it is two options.
3. *Mentions* (``mentions``). A mention is an option's text, or a letter that is not part of a word
   or name (``T1``, ``vitamin D``), an article or a pronoun. Letters joined by *or*, *and*, a comma
   or a slash are one mention. Denied ones (``not B``, ``no pleural effusion (B)``, a label below
   ``Why not the others?``) do not count.
4. *Statements* (``statements``). Each mention has the highest rank
   (`medtasks.answers.vocabulary.Rank`) that words, signs or its place give it. A condition, a
   question or a negation before a claim takes it back; so do quotation marks around it and words
   that say whose claim it is (``The site's key says B``).
5. *The decision*. The firmest kind of statements decides: *stated* and above; else claims below
   that, with all mentions in the sentence of the last one, unless the response was cut off; else a
   letter that is *implied* because all others are denied, doubted or compared in their clauses,
   because it is in bold at the end, or because it is named alone, with its text (``left_over``);
   else labels, which any other undenied mention contradicts. The last statement counts alone if it
   outranks the others, narrows them down (``B or C … the answer is B``), or takes them back
   (``Wait, …``); else all count, with doubts that follow (``though C is possible``). A bare letter
   also yields to another option's text, however short, in the sentence before it (``It is on the
   left. (B)``). Text below a heading with *answer* or *conclusion* decides before the rest. A
   response selects nothing if it withdraws its last claim, asks for the image afterwards, or has
   ``null`` as its answer in JSON.
6. One letter among the options is ``ok``. Several letters are ``multiple``, no letter is ``none``,
   one letter that is not an option is ``out_of_range``. There is no partial credit.

A runaway response of more than 64,000 characters is read without sentences that it repeats, and if
it is still longer, without its middle. Of stage-wise responses, which are one record of all stages,
the last stage is read.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from string import ascii_uppercase
from typing import Any, Literal, get_args

from medtasks.answers.base import Reading, ResponseFilter
from medtasks.answers.deciding_statements import deciding_statements
from medtasks.answers.markup import PATTERNS, plain_reply
from medtasks.answers.mentions import Mention, letters_alone
from medtasks.answers.option_place import mark_places
from medtasks.answers.option_text import exact_letter, named_letters
from medtasks.answers.statements import letters_of
from medtasks.answers.thoughts import strip_thinking
from medtasks.answers.vocabulary import Rank, vocabulary_of
from medtasks.answers.whole_answer import WholeAnswer, contradictions, whole_answer, yes_or_no

LETTERS = "ABCDE"
"""The options of a benchmark that declares none."""

Status = Literal["ok", "none", "multiple", "out_of_range", "empty"]
_MARKERS: dict[str, Status] = {
    f"[{status}]": status for status in get_args(Status) if status != "ok"
}


@dataclass(frozen=True)
class Extraction:
    """The extracted letter; None unless ``status`` is ``ok``.

    ``how`` the option was named: by its ``letter``, or by its ``text`` or place; ``named`` if no
    letter was extracted, but exactly one option's text is in the response.
    """

    letter: str | None
    status: Status
    how: str = field(default="", compare=False)


def extract_option(
    text: str, letters: str = LETTERS, options: Mapping[str, str] | None = None
) -> Extraction:
    """The one option that ``text`` selects among ``letters``, by the rules in this module's
    docstring.

    Never raises. A status marker of this filter is read back as it is. ``options`` has the options'
    texts by letter; without them, only letters are read.

    >>> extract_option("Right lung", "AB", {"A": "Left lung", "B": "Right lung"}).letter
    'B'
    """
    status = _MARKERS.get(text.strip())
    if status is not None:
        return Extraction(None, status)
    bare_text = plain_reply(strip_thinking(text))
    if not bare_text:
        return Extraction(None, "empty")
    next_turn = PATTERNS["next_turn"].search(bare_text, 1)
    if next_turn:  # the model went on to write the next question
        extraction = _extracted(bare_text[: next_turn.start()].strip(), letters, options or {})
        if extraction.status != "none":
            return extraction
    return _extracted(bare_text, letters, options or {})


@lru_cache(maxsize=1024)  # thousands of filtered responses are a few letters
def option_status(filtered: str) -> Status:
    """Status of a filtered response: a letter, a status in brackets, or any other text."""
    return extract_option(filtered, ascii_uppercase).status


class OptionLetterFilter(ResponseFilter):
    """Raw responses become letters or ``[status]`` markers.

    Args:
        letters: the options; by default those of the document's benchmark. Their texts are the
            document's ``choices``.
    """

    version = "17"
    status = staticmethod(option_status)

    def __init__(self, letters: str | None = None) -> None:
        self._letters = letters

    def context(self, document: Mapping[str, Any]) -> Hashable:
        """The options' letters, and their texts by letter."""
        from medtasks.catalog.registry import get_benchmark  # which itself imports filters

        benchmark = document.get("benchmark")
        declared = self._letters or (benchmark and "".join(get_benchmark(benchmark).options))
        texts = document.get("choices") or {}
        # a dataset pads missing options with None
        options = [(letter, text) for letter, text in texts.items() if text is not None]
        return declared or LETTERS, tuple(sorted(options))

    def reader(self, context: Any) -> Callable[[str], Reading]:
        """:func:`extract_option` among these options."""
        letters, texts = context
        options = dict(texts)

        def read(text: str) -> Reading:
            extraction = extract_option(text, letters, options)
            filtered = extraction.letter or f"[{extraction.status}]"
            return Reading(filtered, extraction.how)

        return read


def _extracted(bare_text: str, letters: str, options: Mapping[str, str]) -> Extraction:
    """The option that a text without markup selects."""
    selection = _selection(bare_text, letters, options)
    if len(selection.letters) == 1:
        (letter,) = selection.letters
        if letter in letters:
            return Extraction(letter, "ok", selection.how)
        return Extraction(None, "out_of_range")
    how = "named" if len(named_letters(bare_text, options)) == 1 else ""
    return Extraction(None, "multiple" if selection.letters else "none", how)


@dataclass(frozen=True)
class _Selection:
    """The letters that a reply selects, options or not; ``how`` as in `Extraction`."""

    letters: frozenset[str]
    how: str = "letter"


def _selection(bare_text: str, letters: str, options: Mapping[str, str]) -> _Selection:
    """What a reply selects: by a whole answer, or else by its deciding statements."""
    alone = letters_alone(bare_text)
    if alone:
        return _Selection(alone)
    if vocabulary_of(bare_text)["no_answer"].search(bare_text):  # null in JSON
        return _Selection(frozenset())
    letter = exact_letter(bare_text, options)
    if letter:
        return _Selection(frozenset(letter), "text")
    whole = whole_answer(bare_text, options)
    if whole.alone:
        return _Selection(whole.letters, "letter" if whole.letter else "text")
    deciding = deciding_statements(bare_text, letters, options)
    by_text = all(statement.text for statement in deciding) and len(letters_of(deciding)) <= 1
    if by_text and not whole.letter:
        return _selection_by_text(bare_text, options, whole, deciding)
    return _selection_by_letter(bare_text, options, whole, deciding)


def _selection_by_text(
    bare_text: str, options: Mapping[str, str], whole: WholeAnswer, deciding: Sequence[Mention]
) -> _Selection:
    """What a reply without a letter selects: a whole answer, a final text, or *yes* or *no*."""
    if whole.text:
        return _Selection(whole.letters, "text")
    selected = letters_of(deciding)
    if selected and all(statement.rank == Rank.FINAL for statement in deciding):
        return _Selection(selected, "text")
    return _Selection(frozenset(yes_or_no(bare_text, options)), "text")


def _selection_by_letter(
    bare_text: str, options: Mapping[str, str], whole: WholeAnswer, deciding: Sequence[Mention]
) -> _Selection:
    """The letters of a reply's deciding statements, with the options that contradict them.

    Contradicting options are those of a whole answer, and those whose texts are beside the only
    letter. Nothing is selected if no statement decides.
    """
    stated = letters_of(deciding)
    if not stated:
        return _Selection(frozenset())
    if whole.letters == stated and _names_place(bare_text, options):
        return _Selection(stated, "text")
    selected = stated | whole.letters
    if len(selected) == 1 and options:
        (letter,) = selected
        selected |= contradictions(bare_text, options, letter)
    return _Selection(selected)


def _names_place(bare_text: str, options: Mapping[str, str]) -> bool:
    """Whether a text names an option by its place, as in *the second option*."""
    return mark_places(bare_text, options) != bare_text
