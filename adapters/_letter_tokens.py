"""The option letters among a tokenizer's tokens, and the probabilities of an answer's letters."""

from __future__ import annotations

import bisect
import math
import re
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from medtasks.answers.thoughts import strip_thinking
from medtasks.runs.replies import Letter, Probabilities

LETTERS = string.ascii_uppercase
_LONGEST = 6
"""Characters of a token that can be a letter with blanks and signs around it."""
_BLANKS_AND_SIGNS = re.compile(r"[\W_]+")
EDGE = 2e-5
"""Probabilities this close to the limit between two percents may round either way.

In single precision the batch size changes probabilities by up to 1e-5.
"""


def letter_in(text: str) -> str | None:
    """The capital letter that a token's text is, apart from blanks and signs around it.

    >>> letter_in(" B"), letter_in("(C"), letter_in("AB"), letter_in("a")
    ('B', 'C', None, None)
    """
    rest = _BLANKS_AND_SIGNS.sub("", text)
    if len(rest) == 1 and rest in LETTERS:
        return rest
    return None


def _may_be_letter(token: str) -> bool:
    """Whether decoding a token of the vocabulary is worthwhile: it is short and has one letter."""
    if len(token) > _LONGEST:
        return False
    return sum(character in string.ascii_letters for character in token) == 1


@dataclass(frozen=True)
class RecordedAnswer:
    """A response with what its model recorded for each of its ``tokens``.

    The token that ends the response is not among them, and ``text_of`` decodes them. ``text`` is
    the response without a stop string, whose tokens may be among them. ``log_probabilities`` has
    one value for each token, ``letter_probabilities`` those of all `LETTERS` where a token is one.
    """

    tokens: Sequence[int]
    text: str
    text_of: Callable[[Sequence[int]], str]
    log_probabilities: Sequence[float]
    letter_probabilities: Sequence[Sequence[float]]


@dataclass(frozen=True)
class EstimatedAnswer:
    """The probabilities of a response, rounded to 1 %.

    One of them ``is_close`` to a limit if another summation order could have rounded it otherwise.
    """

    probabilities: Probabilities
    is_close: bool


class LetterTokens:
    """The letters among a tokenizer's tokens: ``tokens`` has the letter of each such token."""

    def __init__(self, tokenizer: Any) -> None:
        """Find the letters in the vocabulary of ``tokenizer``."""
        special = set(tokenizer.all_special_ids)
        letters: dict[int, str] = {}
        for token, number in tokenizer.get_vocab().items():
            if not _may_be_letter(token) or number in special:
                continue
            letter = letter_in(tokenizer.decode([number]))
            if letter is not None:
                letters[number] = letter
        self.tokens = dict(sorted(letters.items()))

    def probabilities(self, answer: RecordedAnswer, options: Sequence[str]) -> EstimatedAnswer:
        """The probabilities of a response, and of the letters among ``options`` in it."""
        tokens = answer.tokens
        end = _end_of_text(tokens, answer.text, answer.text_of)
        first = _start_of_answer(tokens[:end], answer.text, answer.text_of)
        unrounded: list[float] = []
        mean = _mean_probability(answer.log_probabilities[first:end])
        if mean is not None:
            unrounded.append(mean)
            mean = round(mean, 2)
        letters: list[Letter] = []
        for step, token in enumerate(tokens[:end]):
            letter = self.tokens.get(token)
            if letter is None or letter not in options:
                continue
            estimate = _OptionShares.of(answer.letter_probabilities[step], options)
            if estimate is None:
                continue
            unrounded += [*estimate.shares.values(), estimate.mass]
            place = len(answer.text_of(tokens[:step]))
            letters.append(Letter(place, letter, estimate.rounded, round(estimate.mass, 2)))
        is_close = any(_may_round_either_way(share) for share in unrounded)
        return EstimatedAnswer(Probabilities(mean, tuple(letters)), is_close)


@dataclass(frozen=True)
class _OptionShares:
    """The probability that a token is one of the options, and each option's share of it."""

    mass: float
    shares: dict[str, float]

    @classmethod
    def of(
        cls, letter_probabilities: Sequence[float], options: Sequence[str]
    ) -> _OptionShares | None:
        """The shares in the probabilities of `LETTERS`; None if no option has any."""
        probability_of = dict(zip(LETTERS, letter_probabilities, strict=True))
        probabilities = {option: probability_of.get(option, 0.0) for option in options}
        mass = math.fsum(probabilities.values())
        if not mass:
            return None
        return cls(mass, {option: share / mass for option, share in probabilities.items()})

    @property
    def rounded(self) -> dict[str, float]:
        """The shares, rounded to 1 %."""
        return {option: round(share, 2) for option, share in self.shares.items()}


def _mean_probability(log_probabilities: Sequence[float]) -> float | None:
    """The geometric mean of the tokens' probabilities; None without tokens."""
    if not log_probabilities:
        return None
    return math.exp(math.fsum(log_probabilities) / len(log_probabilities))


def _end_of_text(row: Sequence[int], text: str, text_of: Callable[[Sequence[int]], str]) -> int:
    """The number of tokens that are needed for ``text``, which was cut at a stop string."""
    end = len(row)
    if text_of(row) == text:
        return end
    while end and text_of(row[: end - 1]).startswith(text):
        end -= 1
    return end


def _start_of_answer(row: Sequence[int], text: str, text_of: Callable[[Sequence[int]], str]) -> int:
    """The position of the first token behind the thoughts, which are not part of the answer.

    The text of the tokens up to a position only grows with the position, so it is found by
    bisection: the first token whose text ends behind the beginning of the answer.
    """
    answer = strip_thinking(text)
    if answer == text.strip():
        return 0
    begin = text.rfind(answer) if answer else len(text)

    def length_up_to(position: int) -> int:
        return len(text_of(row[: position + 1]))

    return bisect.bisect_right(range(len(row)), begin, key=length_up_to)


def _may_round_either_way(share: float) -> bool:
    """Whether ``share`` is within `EDGE` of the middle between two whole percents."""
    return abs(100 * share % 1 - 0.5) < 100 * EDGE
