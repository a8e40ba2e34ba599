"""Generation settings of a request: reading them, telling transformers, stop strings, seeds."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import StoppingCriteria

from medtasks.errors import UsageError

from ._arguments import read_integer, read_number

__all__ = [
    "GenerationSettings",
    "StopAtText",
    "cut_at_stop",
    "forget_sampling",
    "read_settings",
    "sample_seed",
]

DEFAULT_MAX_NEW_TOKENS = 512
_SAMPLING_FIELDS = ("temperature", "top_p", "top_k", "min_p", "typical_p", "epsilon_cutoff", "eta_cutoff")
_KNOWN = {
    "max_new_tokens",
    "temperature",
    "top_p",
    "top_k",
    "num_beams",
    "repetition_penalty",
    "do_sample",
    "until",
}


@dataclass(frozen=True)
class GenerationSettings:
    """How one request is decoded; ``temperature`` 0 is greedy (or beam) search.

    ``top_p`` 1 and ``top_k`` 0 switch the two filters off. ``repetition_penalty`` None leaves the
    checkpoint's own. ``ignored`` names the given settings that have no effect, so that the run can say so.
    """

    max_new_tokens: int = DEFAULT_MAX_NEW_TOKENS
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    num_beams: int = 1
    repetition_penalty: float | None = None
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
    a temperature it does not use. It has to be the model's own object: transformers fills what a request
    leaves open from there.
    """
    fresh = type(config)()
    for name in _SAMPLING_FIELDS:
        setattr(config, name, None)
    config.do_sample = fresh.do_sample
    config.max_length = fresh.max_length


def read_settings(given: Mapping[str, Any], max_new_tokens: int | None = None) -> GenerationSettings:
    """Read a task's ``generation_kwargs``; ``max_new_tokens`` of the adapter wins over the task's.

    ``do_sample: false`` means greedy whatever the temperature. Raises :class:`UsageError` naming the setting.
    """
    given = {name: value for name, value in given.items() if value is not None}
    temperature = read_number("temperature", given.get("temperature", 0), least=0)
    ignored = set(given) - _KNOWN
    if "do_sample" in given and not given["do_sample"] and temperature > 0:
        ignored.add("temperature")
        temperature = 0.0
    elif given.get("do_sample") and "temperature" not in given:
        temperature = 1.0
    limit = max_new_tokens or given.get("max_new_tokens", DEFAULT_MAX_NEW_TOKENS)
    penalty = given.get("repetition_penalty")
    return GenerationSettings(
        max_new_tokens=read_integer("max_new_tokens", limit, least=1),
        temperature=temperature,
        top_p=read_number("top_p", given.get("top_p", 1), least=0, most=1) or 1.0,
        top_k=read_integer("top_k", given.get("top_k", 0), least=0),
        num_beams=read_integer("num_beams", given.get("num_beams", 1), least=1),
        repetition_penalty=None if penalty is None else read_number("repetition_penalty", penalty, least=0),
        until=_read_until(given.get("until")),
        ignored=tuple(sorted(ignored)),
    )


def _read_until(until: Any) -> tuple[str, ...]:
    listed = [until] if isinstance(until, str) else list(until or ())
    for stop in listed:
        if not isinstance(stop, str):
            raise UsageError(f"until holds {stop!r}, expected stop strings.")
    return tuple(stop for stop in listed if stop)


def cut_at_stop(text: str, until: Sequence[str]) -> str:
    """``text`` up to the earliest stop string in it, all of it where there is none."""
    found = [position for position in (text.find(stop) for stop in until) if position >= 0]
    return text[: min(found)] if found else text


def sample_seed(seed: int, sample_id: str, repeat: int) -> int:
    """A 63-bit seed that depends on its arguments alone, so sharding and batching cannot change a draw."""
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
