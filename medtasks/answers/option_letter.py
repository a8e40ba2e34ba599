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

import ast
import json
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from string import ascii_uppercase
from typing import Any, Literal, get_args

from medtasks.answers.base import Reading, ResponseFilter
from medtasks.answers.markup import PATTERNS, plain_reply
from medtasks.answers.mentions import Marked, Mention, letters_alone, mark_mentions
from medtasks.answers.option_place import mark_places
from medtasks.answers.option_text import exact_letter, named_letters, texts_within
from medtasks.answers.statements import left_over, letters_of, statements, weakened
from medtasks.answers.thoughts import strip_thinking
from medtasks.answers.vocabulary import MARK, Rank, vocabulary_of
from medtasks.answers.whole_answer import contradictions, whole_answer, yes_or_no

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
    if own := _MARKERS.get(text.strip()):
        return Extraction(None, own)
    plain = plain_reply(strip_thinking(text))
    if not plain:
        return Extraction(None, "empty")
    next_turn = PATTERNS["next_turn"].search(plain, 1)
    if next_turn:  # the model went on to write the next question
        found = _extracted(plain[: next_turn.start()].strip(), letters, options or {})
        if found.status != "none":
            return found
    return _extracted(plain, letters, options or {})


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
        return declared or LETTERS, tuple(sorted(document.get("choices", {}).items()))

    def reader(self, context: Any) -> Callable[[str], Reading]:
        """:func:`extract_option` among these options."""
        letters, options = context[0], dict(context[1])

        def read(text: str) -> Reading:
            found = extract_option(text, letters, options)
            return Reading(found.letter or f"[{found.status}]", found.how)

        return read


def join_stages(outputs: Sequence[str]) -> str:
    """Both responses as one line of JSON, as the sample log has them.

    >>> join_stages(["T1 to T2: nothing", "B"])
    '{"stage1": "T1 to T2: nothing", "stage2": "B"}'
    """
    return json.dumps(
        {f"stage{number}": text for number, text in enumerate(outputs, start=1)}, ensure_ascii=False
    )


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
        stages = record["stage1"], record["stage2"]
    except (ValueError, TypeError, KeyError, SyntaxError, MemoryError, RecursionError):
        return "", response
    return stages if all(isinstance(stage, str) for stage in stages) else ("", response)


class LastStageOptionFilter(OptionLetterFilter):
    """Raw responses become the option letter of the last stage, or a ``[status]`` marker."""

    version = f"1.{OptionLetterFilter.version}"

    def reader(self, context: Any) -> Callable[[str], Reading]:
        """The option letter, or ``[status]``, that the last stage selects."""
        read = super().reader(context)
        return lambda text: read(read_stages(text)[1])


def _extracted(plain: str, letters: str, options: Mapping[str, str]) -> Extraction:
    found, how = _selected(plain, letters, options)
    if len(found) != 1:
        named = len(named_letters(plain, options)) == 1
        return Extraction(None, "multiple" if found else "none", "named" if named else "")
    (letter,) = found
    return Extraction(letter, "ok", how) if letter in letters else Extraction(None, "out_of_range")


def _selected(plain: str, letters: str, options: Mapping[str, str]) -> tuple[frozenset[str], str]:
    """The letters that a reply selects, options or not, and how."""
    if alone := letters_alone(plain):
        return alone, "letter"
    if vocabulary_of(plain)["no_answer"].search(plain):  # null in JSON
        return frozenset(), "letter"
    if letter := exact_letter(plain, options):
        return frozenset(letter), "text"
    whole = whole_answer(plain, options)
    if whole.alone:
        return whole.letters, "letter" if whole.letter else "text"
    deciding = _deciding_statements(plain, letters, options)
    selected = letters_of(deciding)
    only_texts = all(statement.text for statement in deciding) and len(selected) <= 1
    if only_texts and not whole.letter:
        if whole.text:
            return whole.letters, "text"
        if selected and all(statement.rank == Rank.FINAL for statement in deciding):
            return selected, "text"
        return frozenset(yes_or_no(plain, options)), "text"
    if not selected:
        return frozenset(), "letter"
    if whole.letters == selected and mark_places(plain, options) != plain:
        return selected, "text"
    selected |= whole.letters
    if len(selected) == 1 and options:
        selected |= contradictions(plain, options, *selected)
    return selected, "letter"


def _deciding_statements(plain: str, letters: str, options: Mapping[str, str]) -> Sequence[Mention]:
    """The statements that decide, those under the last heading with *answer* if there are any."""
    for section in reversed(list(vocabulary_of("")["section"].finditer(plain))[-3:]):
        if found := _deciding(mark_mentions(plain[section.end() :], options), letters):
            return found
    marked = mark_mentions(plain, options)
    found = _deciding(marked, letters)
    beside: list[Mention] = []
    for one in found:
        if one.bare and not one.own and options:  # "It is on the left. (B)"
            named = _named_before(marked, one.position, options)
            if not named & one.letters:
                beside += [replace(one, letters=frozenset(letter)) for letter in named]
    return [*found, *beside]


def _named_before(marked: Marked, position: int, options: Mapping[str, str]) -> frozenset[str]:
    """The options whose texts, however short, are in the sentence before a letter on its line."""
    text, words = marked.text, marked.words
    line = max(text.rfind("\n", 0, position) + 1, position - 300)
    start = line
    for sentence in words["sentence_ends"].finditer(text, line, position):
        if _says_something(text[sentence.end() : position]):
            start = sentence.end()
    marks = re.compile(MARK).finditer(text, start, position)
    mentions = [marked.mentions[mark.start()] for mark in marks]
    named = letters_of(mention for mention in mentions if mention.text)
    return named | texts_within(text[start:position], options, words)


def _says_something(text: str) -> bool:
    return re.search(rf"[\w{MARK}]", text) is not None


def _deciding(marked: Marked, letters: str) -> Sequence[Mention]:
    """The statements that count: one, if it decides alone, or all that contradict each other."""
    text, found = marked.text, statements(marked, letters)
    claims = [one for one in found if one.rank >= Rank.TENTATIVE]
    firm = [one for one in claims if one.rank >= (Rank.ANSWER if one.text else Rank.STATED)]
    retractions = [match.end() for match in marked.words["retracts"].finditer(text)]
    if any(not one.text or one.rank == Rank.FINAL for one in firm):
        upheld = (
            [one for one in firm if one.position > retraction]
            for retraction in reversed(retractions)
        )
        firm = next(filter(None, upheld), firm)
        last = firm[-1].position
        if _is_reopened(marked, last):
            return ()
        later = [one for one in found if one.position > last]
        doubts = [one for one in later if one.rank == Rank.TENTATIVE]
        unclear = [one for one in later if one.position > max(retractions, default=0) > last]
        return [*_outranking([*firm, *doubts]), *unclear]
    found = weakened(marked, found)
    claims = [one for one in found if one.rank >= Rank.TENTATIVE]
    if marked.words["withdraws"].search(text, claims[-1].position if claims else 0):
        return ()
    if all(one.rank <= Rank.IMPLIED for one in claims):
        if left := left_over(marked, found, letters):
            return (left,)
        if any(one.rank == Rank.IMPLIED and one.upper for one in claims):
            return [one for one in found if one.rank >= Rank.MENTIONED and one.upper]
        claims = [one for one in claims if one.rank != Rank.IMPLIED]
    if not all(one.text for one in claims):
        return _claims_and_beside(marked, found, claims, letters)
    if retractions and not marked.ended:
        return ()
    labels = [one for one in found if one.rank == Rank.LABEL]
    listed = [one for one in found if one.rank in (Rank.LISTED, Rank.REPEATED)]
    if marked.unfinished:  # what the reply began with may still be its answer
        start = len(text) - len(text.lstrip(" ("))
        labels = [one for one in labels if not one.named and one.position == start]
    elif not labels and any(one.rank == Rank.LISTED for one in listed):
        labels = listed
    others = [one for one in found if one not in listed and (one.text or not one.weak)]
    others = [one for one in others if one.upper and one.letters & set(letters)]
    return [*labels, *others] if len(letters_of(labels)) == 1 else labels


def _claims_and_beside(
    marked: Marked, found: Sequence[Mention], claims: Sequence[Mention], letters: str
) -> Sequence[Mention]:
    """Claims without a firm one, with what the sentence of the last one names (all if it is
    tentative), and a label.
    """
    text, claim = marked.text, claims[-1]
    if marked.cut_off or _is_reopened(marked, claim.position):
        return ()
    beside = list(found)
    if claim.rank != Rank.TENTATIVE:
        ends = marked.words["sentence_ends"]
        start = max((end.end() for end in ends.finditer(text, 0, claim.position)), default=0)
        stop = ends.search(text, claim.position)
        end = stop.start() if stop else len(text)
        beside = []
        for one in found:
            counts = one.rank > Rank.MENTIONED or one.letters & set(letters)
            if counts and start <= one.position < end:
                # a weak one, or one that the claim narrows down, may be set aside by *but* or a
                # semicolon
                first, last = sorted((one.position, claim.position))
                apart = marked.words["parted"].search(text, first, last)
                if not (apart and (one.weak or claim.letters < one.letters)):
                    beside.append(one)
    labels = [one for one in found if one.rank == Rank.LABEL and one.position < 4 and one.upper]
    return [*_outranking(claims), *beside, *labels]


def _is_reopened(marked: Marked, position: int) -> bool:
    """Whether the text withdraws the claim at ``position``, or is cut off while it reasons or lists
    on after it.
    """
    text, words = marked.text, marked.words
    if words["withdraws"].search(text, position):
        return True
    if marked.ended:
        return False
    more = marked.unfinished and words["more_comes"].match(text, position + 1)
    return bool(
        more
        or words["reasons_on"].search(text, position)
        or words["retracts"].search(text, position)
    )


def _outranking(claims: Sequence[Mention]) -> Sequence[Mention]:
    """The last claim if it outranks or narrows down every other one; else all of them.

    An option's text never outranks a letter that is stated: either may be a slip.
    """
    last = claims[-1]
    for claim in claims:
        if claim.letters == last.letters:
            continue
        letter_is_stated = not claim.text and claim.rank >= Rank.STATED
        outranked = claim.rank < last.rank and not (last.text and letter_is_stated)
        narrowed = claim.rank <= last.rank + 1 and last.letters < claim.letters
        if not outranked and not narrowed:
            return claims
    return [claim for claim in claims if claim.letters == last.letters]
