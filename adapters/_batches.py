"""Which requests are generated together, and in which order."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import groupby

from ._generation import GenerationSettings, read_settings
from ._requests import ChatRequest

__all__ = ["plan_batches"]


def plan_batches(
    requests: Iterable[ChatRequest],
    size: int,
    max_new_tokens: int | None = None,
    *,
    alone_when_sampling: bool = True,
) -> Iterator[tuple[GenerationSettings, list[ChatRequest]]]:
    """Yield (settings, requests) with one setting a batch and at most ``size`` requests.

    A sampled answer is a batch of its own with ``alone_when_sampling``, so that its draw depends on its seed alone.

    Order: generation settings, then media, then item, then text length, longest first, so that samples that share
    images and rounds of one stream stand together, a batch needs little padding, and what does not fit into memory is
    met at the start. Padding requests are left out.
    """

    def settings_key(request: ChatRequest) -> str:
        return json.dumps(dict(request.settings), sort_keys=True, default=str)

    def key(request: ChatRequest) -> tuple[str, tuple[str, ...], str, int, str, str, int]:
        return (
            settings_key(request),
            request.media,
            request.item_id if request.item_id != request.sample_id else "",
            -len(request.prompt),
            request.task,
            request.sample_id,
            request.repeat,
        )

    ordered = sorted((request for request in requests if not request.padding), key=key)
    for _, alike in groupby(ordered, key=settings_key):
        group = list(alike)
        settings = read_settings(group[0].settings, max_new_tokens)
        step = 1 if settings.sampling and alone_when_sampling else size
        for start in range(0, len(group), step):
            yield settings, group[start : start + step]
