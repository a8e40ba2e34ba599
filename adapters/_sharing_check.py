"""Whether sharing prefixes leaves a model's scores as they are, tested on a few tokens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from medtasks.core.errors import first_line

from ._decoding import Decoder
from ._messages import media_in
from ._reading import Prompt
from ._shared_prefix import SharedPrefix
from ._token_budget import is_out_of_memory

COMPARED_TOKENS = 4
"""Tokens whose scores are compared with and without sharing, once per kind of batch."""
TOLERANCE = {torch.float32: 1e-4, torch.float16: 0.01, torch.bfloat16: 0.05}
"""Largest allowed difference, relative to the largest score.

Padding alone changes scores by 1e-6 in single precision and by nearly 0.01 in bfloat16; wrong
positions or masks by 0.01 to 0.2.
"""


class BatchKind(NamedTuple):
    """What may decide whether sharing prefixes changes the scores of a batch.

    ``images`` is their number in the first prompt; 2 stands for several.
    """

    images: int
    has_videos: bool
    has_several_rows: bool

    @classmethod
    def of(cls, prompts: Sequence[Prompt]) -> BatchKind:
        """The kind of a batch of ``prompts``."""
        messages = prompts[0].messages
        return cls(
            images=min(len(media_in(messages, "image")), 2),
            has_videos=bool(media_in(messages, "video")),
            has_several_rows=len(prompts) > 1,
        )


def fault_of_sharing(
    decoder: Decoder,
    shared: SharedPrefix,
    prompts: Sequence[Prompt],
    inputs_alone: Iterable[Mapping[str, Any]],
    padding: int,
) -> str | None:
    """Why prefixes of these prompts cannot be shared; None if their scores are the same.

    ``inputs_alone`` are the inputs of each prompt in a batch of its own.
    """
    alone = [decoder.scores(inputs, COMPARED_TOKENS) for inputs in inputs_alone]
    try:
        inputs, _ = shared.inputs(prompts, padding)
        tokens, scores = decoder.scores(inputs, COMPARED_TOKENS)
    except Exception as error:  # an untested model class may raise anything
        if is_out_of_memory(error):
            raise
        return first_line(error)
    for row, (expected_tokens, expected_scores) in enumerate(alone):
        gap = _relative_gap(tokens[row], scores[row], expected_tokens[0], expected_scores[0])
        if not gap <= TOLERANCE[decoder.dtype]:  # NaN is no small difference, either
            return f"scores differ by {gap:.1%} from those of the prompt alone"
    return None


def _relative_gap(
    tokens: torch.Tensor,
    scores: torch.Tensor,
    expected_tokens: torch.Tensor,
    expected_scores: torch.Tensor,
) -> float:
    """The largest difference between the scores of a prompt, relative to the largest score.

    Tokens are (steps,), scores (steps, vocabulary). Only steps with the same input are compared:
    those up to and including the first different token.
    """
    equal_tokens = int((tokens == expected_tokens).cumprod(0).sum())
    compared = slice(equal_tokens + 1)
    largest_gap = (scores[compared] - expected_scores[compared]).abs().max()
    return float(largest_gap / expected_scores.abs().max())
