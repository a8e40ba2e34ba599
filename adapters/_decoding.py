"""Decoding: from generation settings and model inputs to answers."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from transformers import LogitsProcessorList, StoppingCriteria, StoppingCriteriaList

from medtasks.runs.replies import Reply

from ._base import Count, Natural, NonNegative, Settings, Share
from ._likelihoods import Letters, StepScores

DEFAULT_MAX_NEW_TOKENS = 512
_SAMPLING_FIELDS = ("temperature", "top_p", "top_k", "min_p", "typical_p", "epsilon_cutoff", "eta_cutoff")


class GenerationSettings(Settings):
    """How one request is decoded; ``temperature`` 0 is greedy (or beam) search.

    ``top_p`` 1 and ``top_k`` 0 switch the two filters off. ``repetition_penalty`` None keeps the checkpoint's own.
    ``ignored`` lists given settings that have no effect, for reporting.
    """

    max_new_tokens: Count = DEFAULT_MAX_NEW_TOKENS
    temperature: NonNegative = 0.0
    top_p: Share = 1.0
    top_k: Natural = 0
    num_beams: Count = 1
    repetition_penalty: NonNegative | None = None
    until: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()

    @property
    def sampling(self) -> bool:
        """Whether answers are drawn at random."""
        return self.temperature > 0

    def configure(self, checkpoint_defaults: Any) -> Any:
        """A transformers GenerationConfig for these settings on top of the checkpoint's own."""
        config = copy.deepcopy(checkpoint_defaults)
        config.max_new_tokens = self.max_new_tokens
        config.num_beams = self.num_beams
        config.do_sample = self.sampling
        if self.sampling:
            config.temperature, config.top_p, config.top_k = self.temperature, self.top_p, self.top_k
        if self.repetition_penalty is not None:
            config.repetition_penalty = self.repetition_penalty
        return config


def forget_sampling(config: Any) -> None:
    """Remove a checkpoint's sampling settings and length limit from its GenerationConfig, in place.

    A checkpoint that ships ``top_k=1`` would make every temperature greedy, and a greedy run would warn about
    a temperature it does not use. Pass the model's own object: transformers falls back to it for unset options.
    """
    fresh = type(config)()
    for name in _SAMPLING_FIELDS:
        setattr(config, name, None)
    config.do_sample = fresh.do_sample
    config.max_length = fresh.max_length


def read_settings(given: Mapping[str, Any], max_new_tokens: int | None = None) -> GenerationSettings:
    """Read a task's ``generation_kwargs``; ``max_new_tokens`` of the back-end overrides the task's.

    ``do_sample: false`` means greedy, regardless of temperature. Raises :class:`UsageError` naming the setting.
    """
    names = GenerationSettings.model_fields.keys() - {"ignored"}
    known = {name: value for name, value in given.items() if name in names}
    ignored = {name for name, value in given.items() if value is not None} - {*known, "do_sample"}
    if max_new_tokens:
        known["max_new_tokens"] = max_new_tokens
    until = known.pop("until", None)
    known["until"] = [stop for stop in ([until] if isinstance(until, str) else until or ()) if stop != ""]
    if given.get("do_sample") and known.get("temperature") is None:
        known["temperature"] = 1.0
    settings = GenerationSettings.read(known)
    if given.get("do_sample") is not None and not given["do_sample"] and settings.sampling:
        ignored.add("temperature")
        settings = settings.model_copy(update={"temperature": 0.0})
    return settings.model_copy(update={"top_p": settings.top_p or 1.0, "ignored": tuple(sorted(ignored))})


def cut_at_stop(text: str, until: Sequence[str]) -> str:
    """``text`` up to the earliest stop string in it."""
    found = [position for position in (text.find(stop) for stop in until) if position >= 0]
    return text[: min(found)] if found else text


END_OF_TURN = ("<|im_end|>", "<|eot_id|>", "<end_of_turn>", "<|endoftext|>", "</s>")
"""Special tokens that end a turn in chat templates."""


def ends_of_turn(tokenizer: Any, own: Any) -> list[int]:
    """The tokens that end an answer: those of the checkpoint (``own``: one, several or None), and `END_OF_TURN`.

    A fine-tuned checkpoint often names only its base model's end of text. Without its template's end of turn it goes on
    with an invented next question, up to the token limit. Padding ends an answer only if the checkpoint says so.
    """
    named = [own] if isinstance(own, int) else list(own or ())
    added = getattr(tokenizer, "added_tokens_decoder", {})  # tokenizers of other libraries have none
    known = {token.content: number for number, token in added.items() if token.special}
    more = {known[text] for text in END_OF_TURN if text in known} - {getattr(tokenizer, "pad_token_id", None), *named}
    return [*named, *sorted(more)]


def sample_seed(seed: int, sample_id: str, repeat: int) -> int:
    """A 63-bit seed from its arguments alone, so sharding and batching cannot change a draw."""
    key = json.dumps([seed, sample_id, repeat]).encode()
    return int.from_bytes(hashlib.sha256(key).digest()[:8], "big") >> 1


class StopAtText(StoppingCriteria):  # type: ignore[misc]
    """Ends a row as soon as its decoded answer contains a stop string; the text itself is cut afterwards.

    transformers' own ``stop_strings`` would also stop at one that begins in the prompt.
    """

    def __init__(self, tokenizer: Any, prompt_length: int, until: Sequence[str]) -> None:
        self._tokenizer = tokenizer
        self._prompt_length = prompt_length
        self._until = tuple(until)

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:  # noqa: ARG002
        texts = self._tokenizer.batch_decode(input_ids[:, self._prompt_length :], skip_special_tokens=True)
        done = [any(stop in text for stop in self._until) for text in texts]
        return torch.tensor(done, device=input_ids.device, dtype=torch.bool)


TIE = 2e-5
"""Two tokens whose scores differ by less than this share of the score are a tie: rounding may decide between them. In
single precision the batch size changes scores by about 1e-6 of the largest."""


class Decoder:
    """Generates with a model, from inputs made by its processor or :class:`SharedPrefix`."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._letters = Letters(tokenizer)
        own = model.generation_config.eos_token_id
        self._ends = ends_of_turn(tokenizer, tokenizer.eos_token_id if own is None else own)

    def decode(
        self, inputs: Mapping[str, Any], options: Sequence[Sequence[str]], settings: GenerationSettings, seed: int = 0
    ) -> list[tuple[Reply, bool]]:
        """A reply per row of ``inputs``, a question with so many ``options``; ``seed`` is used for sampling.

        Each with whether another summation order could have chosen the second best at some token, or could have rounded
        a probability otherwise.
        """
        length = inputs["input_ids"].shape[1]
        extra: dict[str, Any] = {}
        if settings.until and settings.num_beams == 1:
            stop = StopAtText(self._tokenizer, length, settings.until)
            extra["stopping_criteria"] = StoppingCriteriaList([stop])
        exact = self._model.dtype == torch.float32 and not settings.sampling  # then ties are settled
        scores = StepScores(self._letters.tokens, TIE if exact else None)
        if settings.num_beams == 1:  # beams change rows between steps
            extra["logits_processor"] = LogitsProcessorList([scores])
        device = self._model.device
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            if settings.sampling:
                torch.manual_seed(seed)
            output = self._model.generate(**inputs, generation_config=self._configure(settings), **extra)
        tokens = inputs["attention_mask"].sum(dim=1).tolist()
        rows = output[:, length:].tolist()
        replies = [self._reply(row, count, settings) for row, count in zip(rows, tokens, strict=True)]
        if settings.num_beams > 1:
            return [(reply, False) for reply in replies]
        recorded = zip(replies, rows, options, scores.rows(output[:, length:]), strict=True)
        decoded = []
        for reply, row, letters, (chosen, shares, ties) in recorded:
            count = reply.output_tokens or 0
            spoken = row[: count - 1] if count and row[count - 1] in self._ends else row[:count]
            probabilities, close = self._letters.probabilities(spoken, reply.text, chosen, shares, letters)
            decoded.append((replace(reply, probabilities=probabilities), exact and (close or any(ties[:count]))))
        return decoded

    def scores(self, inputs: Mapping[str, Any], tokens: int) -> tuple[torch.Tensor, torch.Tensor]:
        """First greedy tokens of each row, (rows, tokens), and their scores, (rows, tokens, vocabulary)."""
        config = self._configure(GenerationSettings(max_new_tokens=tokens))
        config.eos_token_id = None
        config.output_logits = config.return_dict_in_generate = True
        output = self._model.generate(**inputs, generation_config=config)
        return output.sequences[:, -tokens:].cpu(), torch.stack(output.logits, dim=1).float().cpu()

    def _configure(self, settings: GenerationSettings) -> Any:
        config = settings.configure(self._model.generation_config)
        config.eos_token_id = self._ends
        config.pad_token_id = self._tokenizer.pad_token_id
        return config

    def _reply(self, row: list[int], prompt_tokens: int, settings: GenerationSettings) -> Reply:
        end = next((i for i, token in enumerate(row) if token in self._ends), None)
        if end is None:
            while row and row[-1] == self._tokenizer.pad_token_id:  # it reached a stop string before other rows ended
                row = row[:-1]
        else:
            row = row[: end + 1]
        full = self._tokenizer.decode(row, skip_special_tokens=True)
        text = cut_at_stop(full, settings.until)
        finish = "stop" if end is not None or text != full else "length"
        return Reply(text, input_tokens=int(prompt_tokens), output_tokens=len(row), finish=finish)
