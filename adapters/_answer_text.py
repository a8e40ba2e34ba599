"""From generated tokens to text in which the markers of thoughts survive.

Many tokenizers have these markers as special tokens. A decoder that skips special tokens joins the
thought and the answer, and no filter can part them again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from medtasks.answers.thoughts import (
    CLOSING,
    OPENING,
    ends_in_opening,
    marker_tokens,
    strip_thinking,
)

_THOUGHT_FIELDS = ("reasoning_content", "reasoning", "thinking", "thought")
"""Names of the field for a message's thought in chat templates."""

_THOUGHT, _ANSWER = "medtasks asks for a thought", "medtasks asks for an answer"
_TAG = r"(?:<[^<>\n]{1,40}>|\[[^\[\]\n]{1,40}\]|◁[^◁▷\n]{1,40}▷)"
_TAG_BEFORE = re.compile(rf"{_TAG}\w{{0,20}}(?=\s*\Z)")
_TAG_BEHIND = re.compile(rf"\s*({_TAG})")
_TAIL = 16
"""Tokens at the end of a prompt among which an opening marker is looked for."""


END_OF_TURN = (
    "<|im_end|>",
    "<|eot_id|>",
    "<end_of_turn>",
    "<turn|>",
    "<|assistant_end|>",
    "<|endoftext|>",
    "</s>",
)


def cut_at_stop(text: str, until: Sequence[str]) -> str:
    """``text`` up to the earliest stop string in it."""
    places = [text.find(stop) for stop in until if stop in text]
    if not places:
        return text
    return text[: min(places)]


def ends_of_turn(tokenizer: Any, own: Any) -> list[int]:
    """The tokens that end an answer: the checkpoint's ``own``, and `END_OF_TURN`.

    A fine-tuned checkpoint often names only its base model's, and would go on with an invented next
    question. Padding ends an answer only if the checkpoint says so.
    """
    ends = [own] if isinstance(own, int) else list(own or ())
    # tokenizers of other libraries have none
    added_tokens = getattr(tokenizer, "added_tokens_decoder", {})
    padding = getattr(tokenizer, "pad_token_id", None)
    # of tokens with the same text, the last one counts
    numbers: dict[str, int] = {}
    for number, token in added_tokens.items():
        if token.special and token.content in END_OF_TURN:
            numbers[token.content] = number
    additional = set(numbers.values()) - {padding, *ends}
    return [*ends, *sorted(additional)]


@dataclass(frozen=True)
class ThoughtMarkers:
    """The texts that open and close a thought."""

    opening: str
    closing: str


def named_markers(tokenizer: Any) -> ThoughtMarkers | None:
    """The markers in a tokenizer's response template or chat template; None if they have none."""
    return _markers_of_response_template(tokenizer) or _markers_of_chat_template(tokenizer)


def _markers_of_response_template(tokenizer: Any) -> ThoughtMarkers | None:
    """The markers in a response template's field for thoughts (transformers 5.13 and newer)."""
    template = getattr(tokenizer, "response_template", None) or {}
    for name in _THOUGHT_FIELDS:
        field = template.get("fields", {}).get(name, {})
        opening = _first_literal(field.get("open"))
        closing = _first_literal(field.get("close"))
        if opening and closing:
            return ThoughtMarkers(opening, closing)
    return None


def _first_literal(literals: str | list[str] | None) -> str:
    """The text that a template's field states, or the first of several; empty without any."""
    if not literals:
        return ""
    if isinstance(literals, str):
        return literals.strip()
    return literals[0].strip()


def _markers_of_chat_template(tokenizer: Any) -> ThoughtMarkers | None:
    """The tags that the chat template writes around the thought of an assistant's message."""
    if not getattr(tokenizer, "chat_template", None):
        return None
    for name in _THOUGHT_FIELDS:
        message = {"role": "assistant", "content": _ANSWER, name: _THOUGHT}
        question = {"role": "user", "content": "?"}
        try:
            written = str(tokenizer.apply_chat_template([question, message], tokenize=False))
        except Exception:  # a template may raise anything for messages that it does not expect
            continue
        before, _, behind = written.partition(_THOUGHT)
        between, answer, _ = behind.partition(_ANSWER)
        opening = _TAG_BEFORE.search(before)
        closing = _TAG_BEHIND.match(between)
        if answer and opening and closing:
            return ThoughtMarkers(opening[0], closing[1])
    return None


class AnswerText:
    """The text of generated tokens, with the markers of thoughts and without other special tokens.

    Markers of a format that `medtasks.answers.thoughts` does not know, but the tokenizer names,
    become ``<think>`` and ``</think>``. If the prompt ended within a thought, the text begins with
    ``<think>``, so that a response that was cut off before the thought was closed has no answer.
    """

    def __init__(self, tokenizer: Any) -> None:
        """Find the markers of thoughts among the special tokens of ``tokenizer``."""
        self._tokenizer = tokenizer
        self._unknown = _unknown_markers(tokenizer)
        unknown_texts = ""
        if self._unknown:
            unknown_texts = f"{self._unknown.opening} {self._unknown.closing}"
        supported = marker_tokens()
        special = _special_tokens(tokenizer)
        self._markers: set[int] = set()
        for number, text in special.items():
            if text in supported or (text and text in unknown_texts):
                self._markers.add(number)
        self._hidden = special.keys() - self._markers

    def begins_in_thought(self, prompt: Sequence[int]) -> bool:
        """Whether a prompt ends with a marker that opens a thought."""
        tail = [number for number in prompt[-_TAIL:] if number >= 0]
        text = str(self._tokenizer.decode(tail, skip_special_tokens=False)).rstrip()
        if self._unknown and text.endswith(self._unknown.opening):
            return True
        return ends_in_opening(text)

    def text_of(self, tokens: Sequence[int], *, in_thought: bool = False) -> str:
        """The text of ``tokens``.

        ``in_thought`` is whether the prompt before them ended within a thought.
        """
        if self._markers.isdisjoint(tokens):
            text = str(self._tokenizer.decode(list(tokens), skip_special_tokens=True))
        else:
            visible = [number for number in tokens if number not in self._hidden]
            text = str(self._tokenizer.decode(visible, skip_special_tokens=False))
        if self._unknown:
            text = text.replace(self._unknown.opening, OPENING)
            text = text.replace(self._unknown.closing, CLOSING)
        return f"{OPENING}{text}" if in_thought else text


def _unknown_markers(tokenizer: Any) -> ThoughtMarkers | None:
    """The markers that the tokenizer names, unless the table of formats has them."""
    markers = named_markers(tokenizer)
    if markers is None or strip_thinking(f"{markers.opening}\nA\n{markers.closing}\nB") == "B":
        return None
    return markers


def _special_tokens(tokenizer: Any) -> dict[int, str]:
    """The special tokens by number.

    Tokenizers of other libraries may have only some of these attributes.
    """
    special: dict[int, str] = {}
    numbers = getattr(tokenizer, "all_special_ids", ())
    texts = getattr(tokenizer, "all_special_tokens", ())
    for number, text in zip(numbers, texts, strict=False):
        special[number] = str(text)
    for number, token in getattr(tokenizer, "added_tokens_decoder", {}).items():
        if token.special:
            special[number] = token.content
    return special
