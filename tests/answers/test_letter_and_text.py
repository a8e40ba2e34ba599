"""A letter with an option's text: its own text confirms it, another option's text contradicts it,
in every format.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from medtasks.answers.option_letter import extract_option
from medtasks.benchmarks import DIRECTORIES
from medtasks.data.store import open_prepared

Options = Mapping[str, str]

FORMATS = (
    "L. T",
    "L: T",
    "(L) T",
    "- L. T",
    "> L. T",
    "Option L. T",
    "T (L)",
    r"\boxed{L. T}",
    '{"answer": "L. T"}',
)
MORE_FORMATS = (
    "L) T",
    "L, T",
    "L - T",
    "L (T)",
    "L.T",
    "[L] T",
    "L\nT",
    "**L. T**",
    "`L. T`",
    "✅ L. T",
    "T: L",
    "T → L",
    "T [L]",
    "T (option L)",
    "T, i.e. option L.",
    "T\n\nAnswer: L",
    "It is T. (L)",
    "I think T. (L)",
    "Answer: L. T",
    "**Answer:** L. T",
    "Answer: option L, T",
    "Answer: L (T)\n\nReasoning: the picture shows it.",
    "The answer is L. T",
    "The answer is T (L).",
    "The answer is **L**: T",
    "The correct answer is:\n\n**L. T**",
    "Based on the images, the correct answer is L. T",
    "I choose L (T).",
    "L is correct: T",
    "L. T is the correct answer.",
    "Therefore, L. T",
    "T is what I see, so L. T",
    "L. T\n\nExplanation: the change is seen on the later radiograph.",
    "The picture was compared with the others.\n\nAnswer: L. T",
    "### Answer\nL. T",
    "Final answer: L: T",
    "Final Answer: L\nT",
    "Answer: L\nOption text: T",
    "<answer>L. T</answer>",
    r"$\boxed{L: T}$",
    r"\boxed{\text{L. T}}",
    r"The final answer is $\boxed{L}$ (T).",
    '{"answer": "L", "answer_text": "T"}',
    '{"option": "L", "text": "T"}',
    '{"choice": "L", "explanation": "T"}',
    '{"L": "T"}',
    '```json\n{"answer": "L: T"}\n```',
    "<think>It may be T.</think>\nL. T",
    "答案：L. T",
    "选L. T",
    "La respuesta correcta es L. T",
    "Die richtige Antwort ist L: T",
)
ALL = [*FORMATS, *(pytest.param(manner, marks=pytest.mark.slow) for manner in MORE_FORMATS)]


@pytest.fixture(scope="module")
def miniature() -> list[Options]:
    """The options of every miniature row that has lettered options, each set once."""
    found: dict[tuple[tuple[str, str], ...], Options] = {}
    for benchmark in DIRECTORIES:
        for record in open_prepared(benchmark).records():
            choices = getattr(record, "choices", None)
            if isinstance(choices, Mapping):
                found[tuple(choices.items())] = choices
    return list(found.values())


def written(manner: str, letter: str, text: str) -> str:
    """``manner`` with ``letter`` for L and ``text`` for T, where these are words of their own."""
    signs = {"L": letter, "T": text}
    parts = re.split(r"(?<![A-Za-z])([LT])(?![A-Za-z])", manner)
    return "".join(signs.get(part, part) for part in parts)


def test_the_miniature_rows_have_options_of_all_kinds(miniature: list[Options]) -> None:
    assert len(miniature) >= 60
    texts = {text for options in miniature for text in options.values()}
    assert texts >= {"There is no change in this interval", "left", "T1 → T2"}


@pytest.mark.parametrize("manner", ALL)
def test_an_options_own_text_never_makes_its_letter_unread(
    manner: str, miniature: list[Options]
) -> None:
    unread = []
    for options in miniature:
        for letter, text in options.items():
            response = written(manner, letter, text)
            if extract_option(response, "".join(options), options).letter != letter:
                unread.append(response)
    assert unread == []


@pytest.mark.parametrize("manner", ALL)
def test_a_letter_with_another_options_text_is_several_options(
    manner: str, miniature: list[Options]
) -> None:
    single = []
    for number, options in enumerate(miniature):
        letters = list(options)
        distance = 1 + ((*FORMATS, *MORE_FORMATS).index(manner) + number) % (len(letters) - 1)
        for place, letter in enumerate(letters):
            other = letters[(place + distance) % len(letters)]
            response = written(manner, letter, options[other])
            if extract_option(response, "".join(options), options).status != "multiple":
                single.append(response)
    assert single == []
