"""Thoughts marked by special tokens: what a checkpoint thinks is never part of its answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from architectures import tokenizer_with
from medtasks.adapters._answer_text import AnswerText, ThoughtMarkers, named_markers
from medtasks.adapters._decoding import Decoder
from medtasks.adapters._letter_tokens import LETTERS
from medtasks.adapters._settings import GenerationSettings
from transformers import AutoModelForImageTextToText, AutoTokenizer

from medtasks.answers.thoughts import strip_thinking

TURNS = (
    "{% for m in messages %}<|turn>{{ m.role }}\n{% if m.reasoning_content %}<|muse|>{{ m.reasoning_content }}<|said|>"
    "{% endif %}{{ m.content }}<turn|>\n{% endfor %}{% if add_generation_prompt %}<|turn>assistant\n{% endif %}"
)
"""The chat template of a checkpoint whose markers no table has."""


def tokens_of(tokenizer: Any, text: str) -> list[int]:
    numbers: list[int] = tokenizer.encode(text, add_special_tokens=False)
    return numbers


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ("<|channel>thought\n", "<channel|>"),
        ("<|inner_prefix|>", "<|inner_suffix|>"),
        ("<think>", "</think>"),
        ("[THINK]", "[/THINK]"),
        ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
    ],
)
def test_the_markers_of_known_formats_survive_decoding_although_they_are_special(
    opening: str, closing: str
) -> None:
    marks = [
        "<|channel>",
        "<channel|>",
        "<|inner_prefix|>",
        "<|inner_suffix|>",
        "<think>",
        "</think>",
        "[THINK]",
    ]
    marks += ["[/THINK]", "<|channel|>", "<|message|>", "<|start|>", "<|end|>", "<turn|>"]
    tokenizer = tokenizer_with({}, marks)
    row = tokens_of(tokenizer, f"{opening}Is it A?{closing}A polyp.<turn|>")
    assert opening.strip() not in tokenizer.decode(row, skip_special_tokens=True)
    text = AnswerText(tokenizer).text_of(row)
    assert opening in text
    assert strip_thinking(text) == "A polyp."
    assert "<turn|>" not in text
    assert (
        strip_thinking(
            AnswerText(tokenizer).text_of(tokens_of(tokenizer, f"{opening}Is it A? Yes, A"))
        )
        == ""
    )


def test_without_markers_the_text_is_the_decoders_own() -> None:
    tokenizer = tokenizer_with({}, ["<|channel>", "<channel|>"])
    row = [*tokens_of(tokenizer, " A small\n\npolyp , 5 µm"), tokenizer.eos_token_id]
    assert AnswerText(tokenizer).text_of(row) == tokenizer.decode(row, skip_special_tokens=True)


def test_markers_that_only_the_chat_template_names_become_those_of_the_table() -> None:
    tokenizer = tokenizer_with({}, ["<|muse|>", "<|said|>", "<|turn>", "<turn|>"])
    tokenizer.chat_template = TURNS
    assert named_markers(tokenizer) == ThoughtMarkers("<|muse|>", "<|said|>")
    text = AnswerText(tokenizer).text_of(tokens_of(tokenizer, "<|muse|>Is it A?<|said|>B<turn|>"))
    assert text == "<think>Is it A?</think>B"


def test_markers_that_only_the_response_template_names_become_those_of_the_table() -> None:
    tokenizer = tokenizer_with({}, ["<|muse|>", "<|said|>"])
    thought = {"open": "<|muse|>", "close": ["<|said|>", "<|quit|>"]}
    tokenizer.response_template = {
        "start_anchor": "<|turn>",
        "fields": {"reasoning_content": thought, "content": {}},
    }
    assert (
        AnswerText(tokenizer).text_of(tokens_of(tokenizer, "<|muse|>Is it A?<|said|>B"))
        == "<think>Is it A?</think>B"
    )


@pytest.mark.parametrize(
    "template",
    [
        "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}",
        "{% for m in messages %}<|turn>{{ m.role }} {{ m.reasoning_content or '' }}\n{{ m.content }}\n{% endfor %}",
        "{{ raise_exception('only one message') }}",
    ],
)
def test_a_chat_template_without_marked_thoughts_names_no_markers(template: str) -> None:
    tokenizer = tokenizer_with({}, ["<|turn>"])
    tokenizer.chat_template = template
    assert named_markers(tokenizer) is None
    assert AnswerText(tokenizer).text_of(tokens_of(tokenizer, "A polyp")) == "A polyp"


@pytest.mark.parametrize(
    ("prompt", "begins"),
    [
        ("Question<|turn>assistant\n<think>\n", True),
        ("Question<|turn>assistant\n<|muse|>", True),
        ("Question<|turn>assistant\n<think>\n\n</think>\n\n", False),
        ("Question: what does <think> mean?<|turn>assistant\n", False),
    ],
)
def test_a_prompt_that_opens_a_thought_is_noticed(prompt: str, begins: bool) -> None:
    tokenizer = tokenizer_with({}, ["<|muse|>", "<|said|>", "<|turn>", "<turn|>"])
    tokenizer.chat_template = TURNS
    assert AnswerText(tokenizer).begins_in_thought(tokens_of(tokenizer, prompt)) is begins


@pytest.fixture
def thinker(tiny: Path) -> tuple[Any, Any]:
    """The tiny checkpoint and its tokenizer; `speak` makes it generate given tokens."""
    model = AutoModelForImageTextToText.from_pretrained(tiny).eval()
    tokenizer = AutoTokenizer.from_pretrained(tiny, padding_side="left")
    return model, tokenizer


def speak(model: Any, row: list[int]) -> None:
    """Make ``model`` generate ``row``: each beginning of it makes its next token certain."""
    biases = [[row[:length], 100.0 * length] for length in range(1, len(row) + 1)]
    model.generation_config.sequence_bias = biases


def test_a_thought_that_the_prompt_opened_and_nothing_closed_is_no_answer(
    thinker: tuple[Any, Any],
) -> None:
    model, tokenizer = thinker
    row = tokens_of(tokenizer, "Is it B? Yes, B")
    speak(model, row)
    for prompt, answer in (("Which option?<think>\n", ""), ("Which option?", "Is it B? Yes, B")):
        inputs = dict(tokenizer([prompt], return_tensors="pt"))
        [(reply, _)] = Decoder(model, tokenizer).decode(
            inputs, [LETTERS], GenerationSettings(max_new_tokens=len(row))
        )
        assert (strip_thinking(reply.text), reply.finish) == (answer, "length")


def test_a_letters_place_is_its_place_in_the_text_with_the_thought(
    thinker: tuple[Any, Any],
) -> None:
    model, tokenizer = thinker
    row = [*tokens_of(tokenizer, "not C</think>B"), tokenizer.eos_token_id]
    speak(model, row)
    inputs = dict(tokenizer(["Which option?<think>\n"], return_tensors="pt"))
    [(reply, _)] = Decoder(model, tokenizer).decode(
        inputs, [LETTERS], GenerationSettings(max_new_tokens=40)
    )
    assert reply.text == "<think>not C</think>B"
    assert reply.probabilities is not None
    assert [reply.text[letter.at :].lstrip()[0] for letter in reply.probabilities.letters] == [
        "C",
        "B",
    ]
