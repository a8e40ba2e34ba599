"""From model inputs to answers with the probabilities of tokens and letters, in one pass."""

from __future__ import annotations

import copy
import functools
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from transformers import (
    LogitsProcessor,
    LogitsProcessorList,
    StoppingCriteria,
    StoppingCriteriaList,
)

from medtasks.runs.replies import Reply, ReplyTiming

from ._answer_text import AnswerText, cut_at_stop, ends_of_turn
from ._letter_tokens import LETTERS, LetterTokens, RecordedAnswer
from ._settings import GenerationSettings

TIE = 2e-5
"""Two tokens whose scores differ by less than this share of the score are a tie.

In single precision the batch size changes scores by about 1e-6 of the largest.
"""


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
        """Record the probabilities of the tokens ``letters``, each with its letter."""
        self._letters = letters
        self._records_ties = ties
        self._latest: torch.Tensor | None = None
        self._chosen: list[torch.Tensor] = []
        self._letter_shares: list[torch.Tensor] = []
        self._ties: list[torch.Tensor] = []
        # when the scores of the first token were there, by `time.monotonic`
        self.first_token: float | None = None

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Record a step, and return its scores ``(rows, vocabulary)`` unchanged."""
        if self.first_token is None:
            if scores.is_cuda:
                torch.cuda.synchronize(scores.device)  # generation waits for the step here anyway
            self.first_token = time.monotonic()
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
        """Look for the strings ``until`` behind the first ``prompt_length`` tokens."""
        self._answer_text = answer_text
        self._prompt_length = prompt_length
        self._until = until

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:  # noqa: ARG002
        """Whether each row has ended."""
        stopped: list[bool] = []
        for tokens in input_ids[:, self._prompt_length :].tolist():
            text = self._answer_text.text_of(tokens)
            stopped.append(any(stop in text for stop in self._until))
        return torch.tensor(stopped, device=input_ids.device)


class Decoder:
    """Generates with a model, from inputs made by its processor or :class:`SharedPrefix`."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        """Generate with ``model``, and decode with ``tokenizer``."""
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
        otherwise. The timing of a reply is that of all rows. ``options`` are those of the question
        of each row; ``seed`` is for sampling.
        """
        # only then do ties depend on rounding alone
        detects_ties = self._model.dtype == torch.float32 and not settings.sampling
        began = time.monotonic()
        output, records, first_token = self._generate(inputs, settings, seed, ties=detects_ties)
        rows = len(output)
        timing = ReplyTiming(time.monotonic() - began, began, batch=rows, in_flight=rows)
        if first_token is not None:
            timing = replace(timing, first_token=first_token - began)
        lengths = inputs["attention_mask"].sum(dim=1).tolist()
        prompts = inputs["input_ids"].tolist()
        decoded: list[tuple[Reply, bool]] = []
        for row, prompt, length, letters, record in zip(
            output.tolist(), prompts, lengths, options, records, strict=True
        ):
            reply, is_tied = self._reply(row, prompt, letters, record, settings)
            reply = replace(reply, input_tokens=int(length), timing=timing)
            decoded.append((reply, detects_ties and is_tied))
        return decoded

    def _generate(
        self, inputs: Mapping[str, Any], settings: GenerationSettings, seed: int, *, ties: bool
    ) -> tuple[torch.Tensor, Sequence[RecordedRow | None], float | None]:
        """The generated tokens, (rows, steps), their records, and when the first ones were there.

        Beam search has neither records nor a first token.
        """
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
            return generated, [None] * len(generated), None
        return generated, scores.rows(generated), scores.first_token

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
        answer = RecordedAnswer(tokens[:end], text, text_of, record.chosen, record.letters)
        estimate = self._letters.probabilities(answer, options)
        is_tied = estimate.is_close or any(record.ties[: len(tokens)])
        return replace(reply, probabilities=estimate.probabilities), is_tied

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
