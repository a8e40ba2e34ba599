"""Checks of the prompts that a task's documents give: nothing hidden in them, and nothing missing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from medtasks.benchmarks.documents import prompt_text
from medtasks.prompts import render, template_path
from medtasks.validation.findings import Place
from medtasks.validation.options import options_of
from medtasks.validation.tally import Tally

__all__ = ["GIVEN_BY_STAGE_1", "check_prompts", "leaks", "texts_in"]

GIVEN_BY_STAGE_1 = {"observations": "what stage 1 said"}

LONG = 12
"""Characters from which a hidden text in a prompt is no coincidence."""

SHORT = 4
"""Characters from which an open question's answer is looked for as a word of its own."""

_SENTENCE_ENDS = re.compile(r"(?<=[.;!?])\s+")

# where a document comes from is no secret
_HARMLESS = frozenset({"abstention", "benchmark", "cluster", "item_id", "media", "sample_id"})


def check_prompts(
    documents: Sequence[Mapping[str, Any]], template: str, stage1: str | None, visible: frozenset[str], tally: Tally
) -> None:
    """Render the prompt of every document, and count in ``tally`` what is wrong with it."""
    said, place = GIVEN_BY_STAGE_1 if stage1 else {}, Place(template_path(template), 1)
    first = _rendered(stage1, tally, documents[0]) if stage1 else ""
    for document in documents:
        try:
            prompt = prompt_text(document, template, **said)
        except Exception as error:  # a template may divide by zero, or call a field as a function
            tally.add("MT208", document, " ".join(str(error).split())[:300], "fix template or document", place=place)
            continue
        if not prompt.strip():
            tally.add("MT212", document, "the prompt is empty", "show the question", place=place)
            continue
        _complete(document, prompt, visible, tally)
        for field, text in leaks(document, visible, f"{first}\n{prompt}"):
            message = f"the prompt holds {text[:60]!r} of the hidden field `{field}`"
            tally.add("MT209", document, message, "remove it", field)


def _rendered(template: str, tally: Tally, document: Mapping[str, Any]) -> str:
    try:
        return render(template)
    except Exception as error:
        place = Place(template_path(template), 1)
        tally.add("MT208", document, " ".join(str(error).split())[:300], "fix the template of stage 1", place=place)
        return ""


def _complete(document: Mapping[str, Any], prompt: str, visible: frozenset[str], tally: Tally) -> None:
    """Whether question and options stand in the prompt."""
    plain = _plain(prompt)
    question = document.get("question")
    if "question" in visible and isinstance(question, str) and _plain(question) not in plain:
        tally.add("MT216", document, "the prompt does not hold the question", "show `question` as it is")
    for name, text in options_of(document) if visible & {"choices", "options"} else ():
        if _plain(text) not in plain:
            message = f"option {name} ({text[:60]!r}) is not in the prompt"
            tally.add("MT214", document, message, "show every option as it is")
            return


def leaks(document: Mapping[str, Any], visible: frozenset[str], prompt: str) -> Iterator[tuple[str, str]]:
    """Fields of a document that its prompt must not show, with the text of theirs that it shows all the same."""
    prompt = _plain(prompt)
    shown_texts = [_plain(text) for key in visible & set(document) for text in texts_in(document[key])]
    is_open = not any(True for _ in options_of(document))
    for field in sorted(set(document) - visible - _HARMLESS):
        for text in (_plain(piece) for one in texts_in(document[field]) for piece in _pieces(one)):
            answer = is_open and field in ("target", "answer", "reference")
            if len(text) >= LONG and (" " in text or answer):
                found = text in prompt
            else:
                found = answer and len(text) >= SHORT and any(map(str.isalpha, text)) and f" {text} " in f" {prompt} "
            if found and not any(text in one for one in shown_texts):
                yield field, text
                break


def texts_in(value: Any) -> Iterator[str]:
    """All texts in a value, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from texts_in(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from texts_in(item)


def _pieces(text: str) -> Iterator[str]:
    """A text and, of a long one, every sentence that says enough to be known again."""
    yield text
    sentences = _SENTENCE_ENDS.split(text)
    if len(sentences) > 1:
        yield from (one for one in sentences if len(one) >= 2 * LONG)


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
