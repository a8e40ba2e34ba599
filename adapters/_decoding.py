"""From the model's inputs to answers: generation settings, stop strings, where an answer ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from lmms_eval.api.instance import TokenCounts
from transformers import LogitsProcessor, LogitsProcessorList, StoppingCriteriaList

from ._base import Response
from ._generation import GenerationSettings, StopAtText, cut_at_stop

TIE = 2e-5
"""Two tokens whose scores differ by less than this share of the score are a tie: rounding may decide between them. In
single precision the size of a batch changes scores by some 1e-6 of the largest."""


@dataclass(frozen=True)
class Answer:
    """One generated answer; ``finish`` is ``stop`` or, if the token limit cut it off, ``length``.

    ``tied``: at some token the second best was so close that another summation order could have chosen it.
    """

    text: str
    input_tokens: int
    output_tokens: int
    finish: str
    tied: bool = False

    def response(self) -> Response:
        """The answer as the harness takes it."""
        counts = TokenCounts(input_tokens=self.input_tokens, output_tokens=self.output_tokens)
        return Response(self.text, counts, finish=self.finish)


class Decoder:
    """Generates with a model, from inputs made by its processor or :class:`SharedPrefix`."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self._model = model
        self._tokenizer = tokenizer

    @property
    def exact(self) -> bool:
        """Whether sums are precise enough that only ties depend on the order of summation."""
        return bool(self._model.dtype == torch.float32)

    def decode(self, inputs: Mapping[str, Any], settings: GenerationSettings, seed: int = 0) -> list[Answer]:
        """One answer per row of ``inputs``; ``seed`` is used for sampling."""
        length = inputs["input_ids"].shape[1]
        extra: dict[str, Any] = {}
        if settings.until and settings.num_beams == 1:
            stop = StopAtText(self._tokenizer, length, settings.until)
            extra["stopping_criteria"] = StoppingCriteriaList([stop])
        margins = _Margins()
        if self.exact and not settings.sampling and settings.num_beams == 1:
            extra["logits_processor"] = LogitsProcessorList([margins])
        device = self._model.device
        with torch.inference_mode(), torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            if settings.sampling:
                torch.manual_seed(seed)
            output = self._model.generate(**inputs, generation_config=self._configure(settings), **extra)
        tokens = inputs["attention_mask"].sum(dim=1).tolist()
        rows = output[:, length:].tolist()
        ties = margins.ties(len(rows))
        return [self._answer(*row, settings) for row in zip(rows, tokens, ties, strict=True)]

    def scores(self, inputs: Mapping[str, Any], tokens: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The first greedy ``tokens`` of each row, (rows, tokens), and their scores, (rows, tokens, vocabulary)."""
        config = self._configure(GenerationSettings(max_new_tokens=tokens))
        config.eos_token_id = None
        config.output_logits = config.return_dict_in_generate = True
        with torch.inference_mode():
            output = self._model.generate(**inputs, generation_config=config)
        return output.sequences[:, -tokens:].cpu(), torch.stack(output.logits, dim=1).float().cpu()

    def _configure(self, settings: GenerationSettings) -> Any:
        config = settings.configure(self._model.generation_config)
        if config.eos_token_id is None:
            config.eos_token_id = self._tokenizer.eos_token_id
        config.pad_token_id = self._tokenizer.pad_token_id
        return config

    def _answer(self, row: list[int], prompt_tokens: int, ties: list[bool], settings: GenerationSettings) -> Answer:
        ends = self._configure(settings).eos_token_id
        ends = set(ends) if isinstance(ends, (list, tuple)) else {ends}
        end = next((i for i, token in enumerate(row) if token in ends), None)
        if end is None:
            while row and row[-1] == self._tokenizer.pad_token_id:  # it reached a stop string before other rows ended
                row = row[:-1]
        else:
            row = row[: end + 1]
        full = self._tokenizer.decode(row, skip_special_tokens=True)
        text = cut_at_stop(full, settings.until)
        finish = "stop" if end is not None or text != full else "length"
        return Answer(text, int(prompt_tokens), len(row), finish, any(ties[: len(row)]))


class _Margins(LogitsProcessor):  # type: ignore[misc]
    """Records the tokens at which the best two scores are tied; changes nothing."""

    def __init__(self) -> None:
        self._steps: list[torch.Tensor] = []

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:  # noqa: ARG002
        first, second = scores.topk(2).values.unbind(dim=-1)
        self._steps.append(first - second < TIE * first.abs().clamp(min=1.0))
        return scores

    def ties(self, rows: int) -> list[list[bool]]:
        """For each row whether each token was tied; empty if nothing was recorded."""
        return torch.stack(self._steps, dim=1).tolist() if self._steps else [[]] * rows
