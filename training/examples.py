"""Lessons as tokens: prompts, answers, and what must be known at which token of a prompt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from medtasks.catalog.prompts import render

from .lesson import Lesson
from .tiny_tokenizer import END_OF_TURN, IMAGE_TOKEN

KNOWN, FOUND, JUDGED = 1, 2, 3
"""Layers after which the decoder must know what the pictures so far show, what is true about a
claim, and whether it or an option is right.
"""


@dataclass(frozen=True)
class Hint:
    """What must be known at a token of the prompt after a layer: a name and its value."""

    token: int
    layer: int
    name: str
    value: str


@dataclass(frozen=True)
class Example:
    """Tokens of a lesson: its prompt, the same without pictures, and the answer; its pictures, as
    rows of `Pictures`.
    """

    prompt: list[int]
    blind: list[int]
    answer: list[int]
    places: list[int]
    hints: list[Hint]


@dataclass(frozen=True)
class _Tokenized:
    """A prompt, its tokens, and the characters at which they end."""

    text: str
    tokens: list[int]
    ends: list[int]

    def last_tokens(self, parts: Iterable[str]) -> list[int]:
        """The token in which each part of the prompt ends; parts are in order."""
        tokens, position = [], 0
        for part in parts:
            position = self.text.index(part, position) + len(part)
            tokens.append(next(token for token, end in enumerate(self.ends) if end >= position))
        return tokens


def tokenized(tokenizer: Any, lesson: Lesson, picture_places: Mapping[int, int]) -> Example:
    """A lesson as tokens; ``picture_places`` are rows of `Pictures` by a picture's identity."""
    prompt = _prompt(tokenizer, lesson, len(lesson.shown))
    image = tokenizer.convert_tokens_to_ids(IMAGE_TOKEN)
    return Example(
        prompt=prompt.tokens,
        blind=_prompt(tokenizer, lesson, 0).tokens,
        answer=list(tokenizer(lesson.answer + END_OF_TURN)["input_ids"]),
        places=[picture_places[id(drawing)] for drawing in lesson.shown],
        hints=[*_hints(prompt, lesson, image)],
    )


def _prompt(tokenizer: Any, lesson: Lesson, pictures: int) -> _Tokenized:
    """The prompt of a lesson with so many pictures."""
    text = render(lesson.template, **lesson.fields)
    content = [{"type": "image"}] * pictures + [{"type": "text", "text": text}]
    prompt = tokenizer.apply_chat_template(
        [{"role": "user", "content": content}], tokenize=False, add_generation_prompt=True
    )
    encoded = tokenizer(prompt, return_offsets_mapping=True)
    ends = [end for _, end in encoded["offset_mapping"]]
    return _Tokenized(str(prompt), list(encoded["input_ids"]), ends)


def _hints(prompt: _Tokenized, lesson: Lesson, image: int) -> Iterator[Hint]:
    """All hints of a lesson: at its pictures, at the end, at its claims and at its options."""
    pictures = [place for place, token in enumerate(prompt.tokens) if token == image]
    for token, facts in zip(pictures, lesson.known, strict=False):
        for name, value in facts.items():
            yield Hint(token, KNOWN, name, value)
    last = len(prompt.tokens) - 1
    for name, value in lesson.asked.items():
        yield Hint(last, JUDGED if name.startswith("event") else KNOWN, name, value)
    claim_tokens = prompt.last_tokens(claim.text for claim in lesson.claims)
    for token, claim in zip(claim_tokens, lesson.claims, strict=True):
        yield Hint(token, KNOWN, "about", claim.about)
        yield Hint(token, FOUND, "true", claim.true)
        yield Hint(token, JUDGED, "claim", str(claim.true == claim.claimed))
    choices = lesson.fields.get("choices", {})
    options = [f"\n{letter}. {choice}" for letter, choice in choices.items()]
    option_tokens = prompt.last_tokens(options)
    if len(set(option_tokens)) == len(option_tokens):  # several options may be one token
        for letter, token in zip(choices, option_tokens, strict=True):
            yield Hint(token, JUDGED, "option", str(letter == lesson.answer))
