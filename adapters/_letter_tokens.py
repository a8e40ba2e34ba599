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

    def probabilities(
        self,
        row: Sequence[int],
        text: str,
        text_of: Callable[[Sequence[int]], str],
        chosen: Sequence[float],
        shares: Sequence[Sequence[float]],
        options: Sequence[str],
    ) -> tuple[Probabilities, bool]:
        """The probabilities of a response, rounded to 1 %, and whether one is close to a limit.

        Another summation order could have rounded such a value otherwise. ``row`` are the tokens
        of the response without the one that ends it, and ``text_of`` decodes them; tokens of a stop
        string, which ``text`` lacks, are left out. ``chosen`` are their log-probabilities, and
        ``shares`` the probabilities of `LETTERS` where a token is a letter.
        """
        end = _end_of_text(row, text, text_of)
        first = _start_of_answer(row[:end], text, text_of)
        unrounded: list[float] = []
        mean = _mean_probability(chosen[first:end])
        if mean is not None:
            unrounded.append(mean)
            mean = round(mean, 2)
        letters: list[Letter] = []
        for step, token in enumerate(row[:end]):
            letter = self.tokens.get(token)
            if letter is None or letter not in options:
                continue
            estimate = _OptionShares.of(shares[step], options)
            if estimate is None:
                continue
            unrounded += [*estimate.shares.values(), estimate.mass]
            place = len(text_of(row[:step]))
            letters.append(Letter(place, letter, estimate.rounded, round(estimate.mass, 2)))
        is_close = any(_may_round_either_way(share) for share in unrounded)
        return Probabilities(mean, tuple(letters)), is_close


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
    """The position of the first token behind the thoughts, which are not part of the answer."""
    answer = strip_thinking(text)
    if answer == text.strip():
        return 0
    place = text.rfind(answer) if answer else len(text)
    return bisect.bisect_right(
        range(len(row)), place, key=lambda step: len(text_of(row[: step + 1]))
    )


def _may_round_either_way(share: float) -> bool:
    """Whether ``share`` is within `EDGE` of the middle between two whole percents."""
    return abs(100 * share % 1 - 0.5) < 100 * EDGE
