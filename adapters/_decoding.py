"""From model inputs to answers, with probabilities of their tokens and of option letters: no extra
pass.
"""

from __future__ import annotations

import bisect
import copy
import functools
import math
import re
import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from transformers import (
    LogitsProcessor,
    LogitsProcessorList,
    StoppingCriteria,
    StoppingCriteriaList,
)

from medtasks.answers.thoughts import strip_thinking
from medtasks.runs.replies import Letter, Probabilities, Reply

from ._answer_text import AnswerText
from ._base import GenerationSettings, cut_at_stop, ends_of_turn

LETTERS = string.ascii_uppercase
_LONGEST = 6  # characters of a token that can be a letter with blanks and signs around it
_ASIDE = re.compile(r"[\W_]+")
EDGE = TIE = 2e-5
"""Probabilities this close to the limit between two percents may round either way, and two tokens
whose scores differ by less than this share of the score are a tie. In single precision the batch
size changes probabilities by up to 1e-5, and scores by about 1e-6 of the largest.
"""


def letter_in(text: str) -> str | None:
    """The capital letter that a token's text is, apart from blanks and signs around it.

    >>> letter_in(" B"), letter_in("(C"), letter_in("AB"), letter_in("a")
    ('B', 'C', None, None)
    """
    left = _ASIDE.sub("", text)
    return left if len(left) == 1 and left in LETTERS else None


class Letters:
    """The letters among a tokenizer's tokens: ``tokens`` has the letter of each token that is
    one.
    """

    def __init__(self, tokenizer: Any) -> None:
        special, found = set(tokenizer.all_special_ids), dict[int, str]()
        for token, number in tokenizer.get_vocab().items():
            likely = (
                len(token) <= _LONGEST and sum(one in string.ascii_letters for one in token) == 1
            )
            if (
                likely
                and number not in special
                and (letter := letter_in(tokenizer.decode([number])))
            ):
                found[number] = letter
        self.tokens = dict(sorted(found.items()))

    def probabilities(
        self,
        row: Sequence[int],
        text: str,
        text_of: Callable[[Sequence[int]], str],
        chosen: Sequence[float],
        shares: Sequence[Sequence[float]],
        options: Sequence[str],
    ) -> tuple[Probabilities, bool]:
        """Those of a response in whole percents, and whether another summation order could have
        rounded one otherwise. ``row`` are its tokens without the one that ends it, of which those
        of a stop string are left out; ``text_of`` decodes them; ``chosen`` are their
        log-probabilities, ``shares`` the probabilities of `LETTERS` where a token is a letter.
        """
        first, end = 0, len(row)
        if text_of(row) != text:
            while end and text_of(row[: end - 1]).startswith(text):
                end -= 1
        answer = strip_thinking(text)
        if answer != text.strip():  # thoughts are not part of the answer
            place = text.rfind(answer) if answer else len(text)
            first = bisect.bisect_right(
                range(end), place, key=lambda step: len(text_of(row[: step + 1]))
            )
        mean = math.exp(math.fsum(chosen[first:end]) / (end - first)) if first < end else None
        exact = [] if mean is None else [mean]

        letters = []
        for step, token in enumerate(row[:end]):
            letter, of = self.tokens.get(token), dict(zip(LETTERS, shares[step], strict=True))
            mass = math.fsum(of.get(option, 0.0) for option in options)
            if letter is not None and letter in options and mass:
                normal = {option: of.get(option, 0.0) / mass for option in options}
                exact += [*normal.values(), mass]
                percents = {option: round(share, 2) for option, share in normal.items()}
                letters.append(Letter(len(text_of(row[:step])), letter, percents, round(mass, 2)))
        close = any(abs(100 * one % 1 - 0.5) < 100 * EDGE for one in exact)
        return Probabilities(None if mean is None else round(mean, 2), tuple(letters)), close


class StepScores(LogitsProcessor):  # type: ignore[misc]
    """Records the log-probability of each generated token, the probabilities of all letters, and
    with ``ties`` whether the best two scores are tied, before temperature, top-p and top-k; changes
    nothing.
    """

    def __init__(self, letters: dict[int, str], *, ties: bool) -> None:
        self._letters = letters
        self._settle = ties
        self._latest: torch.Tensor | None = None
        self._chosen: list[torch.Tensor] = []
        self._of_letters: list[torch.Tensor] = []
        self._ties: list[torch.Tensor] = []

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        self._keep(input_ids)
        self._latest = scores.float().log_softmax(dim=-1)
        if self._settle:
            first, second = scores.topk(2).values.unbind(dim=-1)
            self._ties.append(first - second < TIE * first.abs().clamp(min=1.0))
        known = [token for token in self._letters if token < scores.shape[-1]]
        sums = torch.zeros(len(scores), len(LETTERS), device=scores.device)
        places = torch.tensor(
            [LETTERS.index(self._letters[token]) for token in known], device=scores.device
        )
        self._of_letters.append(
            sums.index_add(1, places, self._latest[:, known].exp()) if known else sums
        )
        return scores

    def _keep(self, tokens: torch.Tensor) -> None:
        """Keep the log-probabilities of the last tokens, which were chosen from the latest
        scores.
        """
        if self._latest is not None:
            self._chosen.append(self._latest.gather(1, tokens[:, -1:])[:, 0])

    def rows(self, tokens: torch.Tensor) -> list[tuple[list[float], list[list[float]], list[bool]]]:
        """Of each row of generated tokens ``(rows, steps)``: log-probabilities, the letters'
        probabilities, ties.
        """
        self._keep(tokens)
        chosen, letters = (
            torch.stack(one, dim=1).tolist() for one in (self._chosen, self._of_letters)
        )
        ties = torch.stack(self._ties, dim=1).tolist() if self._ties else [[]] * len(chosen)
        return list(zip(chosen, letters, ties, strict=True))


class StopAtText(StoppingCriteria):  # type: ignore[misc]
    """Ends a row as soon as its decoded answer contains a stop string; the text itself is cut
    afterwards. transformers' own ``stop_strings`` would also stop at one that begins in the
    prompt.
    """

    def __init__(self, answer_text: AnswerText, prompt_length: int, until: Sequence[str]) -> None:
        self._answer_text = answer_text
        self._prompt_length = prompt_length
        self._until = until

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:  # noqa: ARG002
        texts = map(self._answer_text.of, input_ids[:, self._prompt_length :].tolist())
        return torch.tensor(
            [any(stop in text for stop in self._until) for text in texts], device=input_ids.device
        )


class Decoder:
    """Generates with a model, from inputs made by its processor or :class:`SharedPrefix`."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._letters = Letters(tokenizer)
        self._answer_text = AnswerText(tokenizer)
        own = model.generation_config.eos_token_id
        self._ends = ends_of_turn(tokenizer, tokenizer.eos_token_id if own is None else own)

    def decode(
        self,
        inputs: Mapping[str, Any],
        options: Sequence[Sequence[str]],
        settings: GenerationSettings,
        seed: int = 0,
    ) -> list[tuple[Reply, bool]]:
        """A reply per row of ``inputs``, each a question with so many ``options``, and whether
        another summation order could have chosen another token or rounded a probability otherwise;
        ``seed`` is used for sampling.
        """
        length = inputs["input_ids"].shape[1]
        exact = (
            self._model.dtype == torch.float32 and not settings.sampling
        )  # then ties are settled
        scores = StepScores(self._letters.tokens, ties=exact)
        extra: dict[str, Any] = {}
        if settings.num_beams == 1:  # beams change rows between steps
            extra["logits_processor"] = LogitsProcessorList([scores])
            if settings.until:
                stop = StopAtText(self._answer_text, length, settings.until)
                extra["stopping_criteria"] = StoppingCriteriaList([stop])
        device = self._model.device
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            if settings.sampling:
                torch.manual_seed(seed)
            output = self._model.generate(
                **inputs, generation_config=self.configure(settings), **extra
            )[:, length:]

        recorded = scores.rows(output) if settings.num_beams == 1 else [None] * len(output)
        lengths = inputs["attention_mask"].sum(dim=1).tolist()
        prompts = zip(inputs["input_ids"].tolist(), lengths, options, strict=True)
        decoded = []
        for row, (prompt, prompt_length, letters), steps in zip(
            output.tolist(), prompts, recorded, strict=True
        ):
            in_thought = self._answer_text.begins_in_thought(prompt)
            text_of = functools.partial(self._answer_text.of, in_thought=in_thought)
            end = next((place for place, token in enumerate(row) if token in self._ends), None)
            tokens = row if end is None else row[: end + 1]
            while end is None and tokens and tokens[-1] == self._tokenizer.pad_token_id:
                tokens = tokens[:-1]  # it reached a stop string before other rows ended
            full = text_of(tokens)
            text = cut_at_stop(full, settings.until)
            known, tied = None, False
            if steps is not None:
                chosen, shares, ties = steps
                known, close = self._letters.probabilities(
                    tokens[:end], text, text_of, chosen, shares, letters
                )
                tied = exact and (close or any(ties[: len(tokens)]))
            finish = "stop" if end is not None or text != full else "length"
            reply = Reply(text, None, int(prompt_length), len(tokens), finish, probabilities=known)
            decoded.append((reply, tied))
        return decoded

    def scores(self, inputs: Mapping[str, Any], tokens: int) -> tuple[torch.Tensor, torch.Tensor]:
        """First greedy tokens of each row, (rows, tokens), and their scores, (rows, tokens,
        vocabulary).
        """
        config = self.configure(GenerationSettings(max_new_tokens=tokens))
        config.eos_token_id = None
        config.output_logits = config.return_dict_in_generate = True
        output = self._model.generate(**inputs, generation_config=config)
        return output.sequences[:, -tokens:].cpu(), torch.stack(output.logits, dim=1).float().cpu()

    def configure(self, settings: GenerationSettings) -> Any:
        """A transformers GenerationConfig for these settings on top of the checkpoint's own."""
        config = copy.deepcopy(self._model.generation_config)
        config.max_new_tokens = settings.max_new_tokens
        config.num_beams = settings.num_beams
        config.do_sample = settings.sampling
        if settings.sampling:
            config.temperature, config.top_p, config.top_k = (
                settings.temperature,
                settings.top_p,
                settings.top_k,
            )
        if settings.repetition_penalty is not None:
            config.repetition_penalty = settings.repetition_penalty
        config.eos_token_id = self._ends
        config.pad_token_id = self._tokenizer.pad_token_id
        return config
