"""Probabilities of generated tokens and of option letters, from the scores of each step: no extra pass."""

from __future__ import annotations

import bisect
import math
import re
import string
from collections.abc import Sequence
from typing import Any

import torch
from transformers import LogitsProcessor

from medtasks.answers.markup import strip_thinking
from medtasks.runs.replies import Letter, Probabilities

LETTERS = string.ascii_uppercase
_LONGEST = 6
"""Characters of a token that can be a letter with blanks and signs around it."""
_ASIDE = re.compile(r"[\W_]+")
EDGE = 2e-5
"""Probabilities this close to the limit between two percents may round either way: in single precision the batch size
changes them by up to 1e-5."""


def letter_in(text: str) -> str | None:
    """The capital letter that a token's text is, apart from blanks and signs around it.

    >>> letter_in(" B"), letter_in("(C"), letter_in("AB"), letter_in("a")
    ('B', 'C', None, None)
    """
    left = _ASIDE.sub("", text)
    return left if len(left) == 1 and left in LETTERS else None


def letter_tokens(tokenizer: Any) -> dict[int, str]:
    """The letter of each token that is one."""
    special = set(tokenizer.all_special_ids)
    likely = [
        number
        for token, number in tokenizer.get_vocab().items()
        if len(token) <= _LONGEST and number not in special and sum(one in string.ascii_letters for one in token) == 1
    ]
    return {number: letter for number in sorted(likely) if (letter := letter_in(tokenizer.decode([number])))}


class Letters:
    """The letters among a tokenizer's tokens: ``tokens`` has the letter of each token that is one."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self.tokens = letter_tokens(tokenizer)

    def probabilities(
        self,
        row: Sequence[int],
        text: str,
        chosen: Sequence[float],
        shares: Sequence[Sequence[float]],
        options: Sequence[str],
    ) -> tuple[Probabilities, bool]:
        """Those of a response in whole percents, and whether another summation order could have rounded one otherwise.

        Args:
            row: its tokens without the one that ends it; those of a stop string are left out.
            text: its text.
            chosen: log-probability of each token.
            shares: probabilities of `LETTERS` at the place of each token; needed where it is a letter.
            options: the letters of the question's options.
        """
        first, end = 0, len(row)
        if self._text(row) != text:
            while end and self._text(row[: end - 1]).startswith(text):
                end -= 1
        answer = strip_thinking(text)
        if answer != text.strip():  # thoughts are not part of the answer
            place = text.rfind(answer) if answer else len(text)
            first = bisect.bisect_right(range(end), place, key=lambda step: len(self._text(row[: step + 1])))
        mean = math.exp(math.fsum(chosen[first:end]) / (end - first)) if first < end else None
        exact = [] if mean is None else [mean]
        letters = []
        for step, token in enumerate(row[:end]):
            letter = self.tokens.get(token)
            if letter is None or letter not in options:
                continue
            of = dict(zip(LETTERS, shares[step], strict=True))
            mass = math.fsum(of.get(option, 0.0) for option in options)
            if not mass:
                continue
            normal = {option: of.get(option, 0.0) / mass for option in options}
            exact += [*normal.values(), mass]
            percents = {option: round(share, 2) for option, share in normal.items()}
            letters.append(Letter(len(self._text(row[:step])), letter, percents, round(mass, 2)))
        close = any(abs(100 * one % 1 - 0.5) < 100 * EDGE for one in exact)
        return Probabilities(None if mean is None else round(mean, 2), tuple(letters)), close

    def _text(self, row: Sequence[int]) -> str:
        return str(self._tokenizer.decode(row, skip_special_tokens=True))


class StepScores(LogitsProcessor):  # type: ignore[misc]
    """Records the log-probability of each generated token, the probabilities of all letters, and whether the best two
    scores are tied; changes nothing.

    It sees the scores after the checkpoint's repetition penalty, and before temperature, top-p and top-k.

    Args:
        letters: of the tokens that are one.
        tie: share of the score by which tied scores differ at most; None if ties do not matter.
    """

    def __init__(self, letters: dict[int, str], tie: float | None) -> None:
        self._letters = letters
        self._tie = tie
        self._ties: list[torch.Tensor] = []
        self._latest: torch.Tensor | None = None
        self._chosen: list[torch.Tensor] = []
        self._of_letters: list[torch.Tensor] = []

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """``scores``, unchanged."""
        self._keep(input_ids[:, -1])
        self._latest = scores.float().log_softmax(dim=-1)
        if self._tie is not None:
            first, second = scores.topk(2).values.unbind(dim=-1)
            self._ties.append(first - second < self._tie * first.abs().clamp(min=1.0))
        known = [token for token in self._letters if token < scores.shape[-1]]
        sums = torch.zeros(len(scores), len(LETTERS), device=scores.device)
        places = torch.tensor([LETTERS.index(self._letters[token]) for token in known], device=scores.device)
        self._of_letters.append(sums.index_add(1, places, self._latest[:, known].exp()) if known else sums)
        return scores

    def _keep(self, tokens: torch.Tensor) -> None:
        """The log-probability of the tokens chosen from the latest scores."""
        if self._latest is not None:
            self._chosen.append(self._latest.gather(1, tokens[:, None])[:, 0])

    def rows(self, tokens: torch.Tensor) -> list[tuple[list[float], list[list[float]], list[bool]]]:
        """Of each row of generated tokens ``(rows, steps)``: log-probabilities, the letters' probabilities, ties."""
        self._keep(tokens[:, -1])
        self._latest = None
        chosen, letters = (torch.stack(one, dim=1).tolist() for one in (self._chosen, self._of_letters))
        ties = torch.stack(self._ties, dim=1).tolist() if self._ties else [[]] * len(chosen)
        return list(zip(chosen, letters, ties, strict=True))
