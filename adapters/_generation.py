"""Generation settings of a request: reading them, passing them to transformers, stop strings, seeds."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from transformers import StoppingCriteria

from ._arguments import Count, Natural, NonNegative, Settings, Share

DEFAULT_MAX_NEW_TOKENS = 512
_SAMPLING_FIELDS = ("temperature", "top_p", "top_k", "min_p", "typical_p", "epsilon_cutoff", "eta_cutoff")


class GenerationSettings(Settings):
    """How one request is decoded; ``temperature`` 0 is greedy (or beam) search.

    ``top_p`` 1 and ``top_k`` 0 switch the two filters off. ``repetition_penalty`` None keeps the checkpoint's own.
    ``ignored`` names the given settings without effect, for the run to report.
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
    """Take a checkpoint's own sampling settings and length limit out of its GenerationConfig, in place.

    A checkpoint that ships ``top_k=1`` would make every temperature greedy, and a greedy run would warn about
    a temperature it does not use. This has to be the model's own object: transformers takes from it what a request
    leaves open.
    """
    fresh = type(config)()
    for name in _SAMPLING_FIELDS:
        setattr(config, name, None)
    config.do_sample = fresh.do_sample
    config.max_length = fresh.max_length


def read_settings(given: Mapping[str, Any], max_new_tokens: int | None = None) -> GenerationSettings:
    """Read a task's ``generation_kwargs``; ``max_new_tokens`` of the back-end overrides the task's.

    ``do_sample: false`` means greedy whatever the temperature. Raises :class:`UsageError` naming the setting.
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


def sample_seed(seed: int, sample_id: str, repeat: int) -> int:
    """A 63-bit seed from its arguments alone, so sharding and batching cannot change a draw."""
    named = json.dumps([seed, sample_id, repeat]).encode()
    return int.from_bytes(hashlib.sha256(named).digest()[:8], "big") >> 1


class StopAtText(StoppingCriteria):  # type: ignore[misc]
    """Ends a row as soon as its decoded answer holds a stop string; the text itself is cut afterwards."""

    def __init__(self, tokenizer: Any, prompt_length: int, until: Sequence[str]) -> None:
        self._tokenizer = tokenizer
        self._prompt_length = prompt_length
        self._until = tuple(until)

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:  # noqa: ARG002
        texts = self._tokenizer.batch_decode(input_ids[:, self._prompt_length :], skip_special_tokens=True)
        done = [any(stop in text for stop in self._until) for text in texts]
        return torch.tensor(done, device=input_ids.device, dtype=torch.bool)
