"""From model inputs to answers with the probabilities of tokens and letters, in one pass."""

from __future__ import annotations

import bisect
import copy
import functools
import math
import re
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from transformers import (
    LogitsProcessor,
    LogitsProcessorList,
    StoppingCriteria,
    StoppingCriteriaList,
)

from medtasks.answers.thoughts import strip_thinking
from medtasks.runs.replies import Letter, Probabilities, Reply

from ._answer_text import AnswerText, cut_at_stop, ends_of_turn
from ._settings import GenerationSettings

LETTERS = string.ascii_uppercase
_LONGEST = 6
"""Characters of a token that can be a letter with blanks and signs around it."""
_BLANKS_AND_SIGNS = re.compile(r"[\W_]+")
EDGE = 2e-5
"""Probabilities this close to the limit between two percents may round either way.

In single precision the batch size changes probabilities by up to 1e-5.
"""
TIE = 2e-5
"""Two tokens whose scores differ by less than this share of the score are a tie.

In single precision the batch size changes scores by about 1e-6 of the largest.
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
            share_of_letter = dict(zip(LETTERS, shares[step], strict=True))
            option_shares = [share_of_letter.get(option, 0.0) for option in options]
            mass = math.fsum(option_shares)
            if not mass:
                continue
            relative_shares = [share / mass for share in option_shares]
            unrounded += [*relative_shares, mass]
            percents: dict[str, float] = {}
            for option, share in zip(options, relative_shares, strict=True):
                percents[option] = round(share, 2)
            letters.append(Letter(len(text_of(row[:step])), letter, percents, round(mass, 2)))
        is_close = any(_may_round_either_way(share) for share in unrounded)
        return Probabilities(mean, tuple(letters)), is_close


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


class RecordedRow(NamedTuple):
    """What :class:`StepScores` recorded of the generated tokens of a row, step by step.

    ``letters`` are the probabilities of `LETTERS`; ``ties`` are empty unless they were requested.
    """

    chosen: list[float]
    letters: list[list[float]]
    ties: list[bool]


class StepScores(LogitsProcessor):  # type: ignore[misc]
    """Records probabilities while a model generates, and changes nothing.

    They are the log-probability of each generated token, the probabilities of all letters, and with
    ``ties`` whether the best two scores are tied, before temperature, top-p and top-k.
    """

    def __init__(self, letters: dict[int, str], *, ties: bool) -> None:
        self._letters = letters
        self._records_ties = ties
        self._latest: torch.Tensor | None = None
        self._chosen: list[torch.Tensor] = []
        self._letter_shares: list[torch.Tensor] = []
        self._ties: list[torch.Tensor] = []

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        self._record_chosen(input_ids)
        self._latest = scores.float().log_softmax(dim=-1)
        if self._records_ties:
            first, second = scores.topk(2).values.unbind(dim=-1)
            self._ties.append(first - second < TIE * first.abs().clamp(min=1.0))
        self._letter_shares.append(self._shares_of_letters(self._latest))
        return scores

    def _shares_of_letters(self, log_probabilities: torch.Tensor) -> torch.Tensor:
        """The probabilities of `LETTERS`, each the sum over the tokens that are this letter."""
        rows, vocabulary = log_probabilities.shape
        sums = torch.zeros(rows, len(LETTERS), device=log_probabilities.device)
        tokens = [token for token in self._letters if token < vocabulary]
        if not tokens:
            return sums
        columns = [LETTERS.index(self._letters[token]) for token in tokens]
        places = torch.tensor(columns, device=log_probabilities.device)
        return sums.index_add(1, places, log_probabilities[:, tokens].exp())

    def _record_chosen(self, tokens: torch.Tensor) -> None:
        """Record the last tokens' log-probabilities: they were chosen from the latest scores."""
        if self._latest is not None:
            self._chosen.append(self._latest.gather(1, tokens[:, -1:])[:, 0])

    def rows(self, tokens: torch.Tensor) -> list[RecordedRow]:
        """The records of each row of generated tokens ``(rows, steps)``."""
        self._record_chosen(tokens)
        chosen = torch.stack(self._chosen, dim=1).tolist()
        letters = torch.stack(self._letter_shares, dim=1).tolist()
        ties: list[list[bool]] = [[]] * len(chosen)
        if self._ties:
            ties = torch.stack(self._ties, dim=1).tolist()
        return [RecordedRow(*row) for row in zip(chosen, letters, ties, strict=True)]


class StopAtText(StoppingCriteria):  # type: ignore[misc]
    """Ends a row as soon as its decoded answer contains a stop string.

    The text itself is cut afterwards. transformers' own ``stop_strings`` would also stop at one
    that begins in the prompt.
    """

    def __init__(self, answer_text: AnswerText, prompt_length: int, until: Sequence[str]) -> None:
        self._answer_text = answer_text
        self._prompt_length = prompt_length
        self._until = until

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:  # noqa: ARG002
        stopped: list[bool] = []
        for tokens in input_ids[:, self._prompt_length :].tolist():
            text = self._answer_text.text_of(tokens)
            stopped.append(any(stop in text for stop in self._until))
        return torch.tensor(stopped, device=input_ids.device)


class Decoder:
    """Generates with a model, from inputs made by its processor or :class:`SharedPrefix`."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._letters = LetterTokens(tokenizer)
        self._answer_text = AnswerText(tokenizer)
        own = model.generation_config.eos_token_id
        self._ends = ends_of_turn(tokenizer, tokenizer.eos_token_id if own is None else own)

    @property
    def dtype(self) -> torch.dtype:
        """The precision of the model's scores."""
        dtype: torch.dtype = self._model.dtype
        return dtype

    def decode(
        self,
        inputs: Mapping[str, Any],
        options: Sequence[Sequence[str]],
        settings: GenerationSettings,
        seed: int = 0,
    ) -> list[tuple[Reply, bool]]:
        """A reply per row of ``inputs``, and whether rounding may have decided it.

        That is, another summation order could have chosen another token, or rounded a probability
        otherwise. ``options`` are those of the question of each row; ``seed`` is for sampling.
        """
        # only then do ties depend on rounding alone
        detects_ties = self._model.dtype == torch.float32 and not settings.sampling
        output, records = self._generate(inputs, settings, seed, ties=detects_ties)
        lengths = inputs["attention_mask"].sum(dim=1).tolist()
        prompts = inputs["input_ids"].tolist()
        decoded: list[tuple[Reply, bool]] = []
        for row, prompt, length, letters, record in zip(
            output.tolist(), prompts, lengths, options, records, strict=True
        ):
            reply, is_tied = self._reply(row, prompt, letters, record, settings)
            reply = replace(reply, input_tokens=int(length))
            decoded.append((reply, detects_ties and is_tied))
        return decoded

    def _generate(
        self, inputs: Mapping[str, Any], settings: GenerationSettings, seed: int, *, ties: bool
    ) -> tuple[torch.Tensor, Sequence[RecordedRow | None]]:
        """The generated tokens, (rows, steps), and their records; beam search has no records."""
        prompt_length = inputs["input_ids"].shape[1]
        scores = StepScores(self._letters.tokens, ties=ties)
        is_recorded = settings.num_beams == 1  # beams change rows between steps
        extra: dict[str, Any] = {}
        if is_recorded:
            extra["logits_processor"] = LogitsProcessorList([scores])
            if settings.until:
                stop = StopAtText(self._answer_text, prompt_length, settings.until)
                extra["stopping_criteria"] = StoppingCriteriaList([stop])
        device = self._model.device
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            if settings.sampling:
                torch.manual_seed(seed)
            output = self._model.generate(
                **inputs, generation_config=self.configure(settings), **extra
            )
        generated = output[:, prompt_length:]
        if not is_recorded:
            return generated, [None] * len(generated)
        return generated, scores.rows(generated)

    def _reply(
        self,
        row: list[int],
        prompt: list[int],
        options: Sequence[str],
        record: RecordedRow | None,
        settings: GenerationSettings,
    ) -> tuple[Reply, bool]:
        """The reply in a row of generated tokens, and whether rounding may have decided it."""
        in_thought = self._answer_text.begins_in_thought(prompt)
        text_of = functools.partial(self._answer_text.text_of, in_thought=in_thought)
        end = self._end_of_answer(row)
        tokens = self._without_padding(row) if end is None else row[: end + 1]
        full_text = text_of(tokens)
        text = cut_at_stop(full_text, settings.until)
        is_complete = end is not None or text != full_text
        reply = Reply(text, output_tokens=len(tokens), finish="stop" if is_complete else "length")
        if record is None:
            return reply, False
        probabilities, is_close = self._letters.probabilities(
            tokens[:end], text, text_of, record.chosen, record.letters, options
        )
        is_tied = is_close or any(record.ties[: len(tokens)])
        return replace(reply, probabilities=probabilities), is_tied

    def _without_padding(self, row: list[int]) -> list[int]:
        """The tokens of a row that reached a stop string, perhaps before other rows ended."""
        length = len(row)
        while length and row[length - 1] == self._tokenizer.pad_token_id:
            length -= 1
        return row[:length]

    def _end_of_answer(self, row: list[int]) -> int | None:
        """The position of the first token that ends an answer; None if there is none."""
        for place, token in enumerate(row):
            if token in self._ends:
                return place
        return None

    def scores(self, inputs: Mapping[str, Any], tokens: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The first greedy tokens of each row, (rows, tokens), and their scores.

        The scores are (rows, tokens, vocabulary).
        """
        config = self.configure(GenerationSettings(max_new_tokens=tokens))
        config.eos_token_id = None
        config.output_logits = True
        config.return_dict_in_generate = True
        output = self._model.generate(**inputs, generation_config=config)
        return output.sequences[:, -tokens:].cpu(), torch.stack(output.logits, dim=1).float().cpu()

    def configure(self, settings: GenerationSettings) -> Any:
        """A transformers GenerationConfig for these settings on top of the checkpoint's own."""
        config = copy.deepcopy(self._model.generation_config)
        config.max_new_tokens = settings.max_new_tokens
        config.num_beams = settings.num_beams
        config.do_sample = settings.sampling
        if settings.sampling:
            config.temperature = settings.temperature
            config.top_p = settings.top_p
            config.top_k = settings.top_k
        if settings.repetition_penalty is not None:
            config.repetition_penalty = settings.repetition_penalty
        config.eos_token_id = self._ends
        config.pad_token_id = self._tokenizer.pad_token_id
        return config
