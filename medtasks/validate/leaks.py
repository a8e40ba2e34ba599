"""Rules against leaks: no prompt contains a hidden field, and no visible field the gold answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from medtasks.core.schema import shown
from medtasks.validate.options import folded, options_of
from medtasks.validate.report import Document, Documents, TaskReport

LONG = 12
"""Minimum length of a text whose occurrence in a prompt is no coincidence."""
SHORT = 4
"""Minimum length of an open answer that may be a single word."""
FEW = 5
"""With fewer documents, an answer may be in its question by chance."""
OWN_SHARE, OTHER_SHARE = 0.8, 0.2
"""A field gives answers away if it contains the document's own answer at least in this share of the
documents, and another answer at most in that.
"""

_SENTENCE_ENDS = re.compile(r"(?<=[.;!?])\s+")
_NO_WORD = re.compile(r"\W+")
_HARMLESS = frozenset({"abstention", "benchmark", "cluster", "item_id", "media", "sample_id"})
"""Fields that a prompt may contain without giving the answer away."""


def leaks(
    document: Mapping[str, Any], visible: frozenset[str], prompt: str
) -> Iterator[tuple[str, str]]:
    """Hidden fields of a document that its prompt shows, each with the text that it shows."""
    folded_prompt = folded(prompt)
    visible_texts = [
        folded(text) for field in visible & set(document) for text in texts_in(document[field])
    ]
    is_open = not options_of(document)
    for field in sorted(set(document) - visible - _HARMLESS):
        is_answer = is_open and field in ("target", "answer", "reference")
        for text in _texts_and_sentences(document[field]):
            is_leaked = _is_in_prompt(text, folded_prompt, is_answer=is_answer)
            if is_leaked and not any(text in visible_text for visible_text in visible_texts):
                yield field, text
                break


def _texts_and_sentences(value: Any) -> list[str]:
    """All strings in a value, then their longer sentences, folded."""
    texts = list(texts_in(value))
    sentences = []
    for text in texts:
        for sentence in _SENTENCE_ENDS.split(text):
            if len(sentence) >= 2 * LONG:
                sentences.append(sentence)
    return list(map(folded, texts + sentences))


def _is_in_prompt(text: str, prompt: str, *, is_answer: bool) -> bool:
    """Whether a prompt contains a text that is not there by chance: several words or, of an open
    answer, a word.
    """
    if len(text) >= LONG and (" " in text or is_answer):
        return text in prompt
    is_word = is_answer and len(text) >= SHORT and any(map(str.isalpha, text))
    return is_word and f" {text} " in f" {prompt} "


def texts_in(value: Any) -> Iterator[str]:
    """All strings in a value, at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from texts_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from texts_in(item)


@dataclass(frozen=True)
class _AnswerPair:
    """The words of a document's own answer, and of one that is wrong for it."""

    document: int
    own: str
    wrong: str


def check_giveaways(documents: Documents, fields: Set[str], report: TaskReport) -> None:
    """Count the documents whose gold answer is in one of ``fields``, which their prompt shows.

    A field is reported if it contains the document's own answer in most documents, and another
    answer in few: as text, or as a letter. The list of options contains all answers and is left
    out.
    """
    pairs = _answer_pairs(documents)
    for field in sorted(fields - {"choices", "options"}):
        texts = [_field_words(document.get(field)) for document in documents]
        for form, form_pairs in pairs.items():
            for number in _given_away(form_pairs, texts):
                document = documents[number]
                contains = f"`{field}` contains the {form} of the gold answer"
                message = f"{contains} ({shown(document['target'])}), which the prompt shows"
                report.on_document("MT219", document, message, field)


def _given_away(pairs: Sequence[_AnswerPair], texts: Sequence[str]) -> list[int]:
    """The numbers of the documents whose own answer is in their text; none if that is chance."""
    own = [pair.document for pair in pairs if pair.own in texts[pair.document]]
    # in many documents the other answer as well: "red or blue?" does not tell which is right
    wrong_count = sum(pair.wrong in texts[pair.document] for pair in pairs)
    if len(pairs) < FEW:
        return []
    if len(own) < OWN_SHARE * len(pairs) or wrong_count > OTHER_SHARE * len(pairs):
        return []
    return own


def _answer_pairs(documents: Documents) -> dict[str, list[_AnswerPair]]:
    """The answers of each document in two forms: as ``text`` and, with lettered options, as
    ``letter``.
    """
    targets = sorted({str(document.get("target")) for document in documents})
    other_targets = dict(zip(targets, (*targets[1:], *targets[:1]), strict=True))
    pairs: dict[str, list[_AnswerPair]] = {"text": [], "letter": []}
    for number, document in enumerate(documents):
        for form, (own, wrong) in _answers(document, other_targets).items():
            pair = _AnswerPair(number, _words(own), _words(wrong))
            if pair.own.strip() and pair.wrong.strip() and pair.own != pair.wrong:
                pairs[form].append(pair)
    return pairs


def _answers(document: Document, other_targets: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """A document's own answer and a wrong one, by form; empty if nothing is wrong for it."""
    target, options = str(document.get("target")), dict(options_of(document))
    if target in options and isinstance(document.get("choices"), Mapping):
        for letter, text in options.items():
            if text != options[target]:
                return {"text": (options[target], text), "letter": (target, letter)}
        return {}
    for text in (*options.values(), other_targets[target]):
        if text != target:
            return {"text": (target, text)}
    return {}


def _field_words(value: Any) -> str:
    """The words of a field: of a number, or of all strings in it."""
    return _words(str(value) if isinstance(value, int | float) else " ".join(texts_in(value)))


def _words(text: str) -> str:
    """The words of ``text``, with a space before, between and after them."""
    return f" {_NO_WORD.sub(' ', text.casefold()).strip()} "
