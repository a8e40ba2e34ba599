"""The harness's requests as typed records, and their grouping into batches."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from medtasks.harness.requests import REPEAT, is_padding

from ._decoding import GenerationSettings, read_settings


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One ``generate_until`` request of a chat task.

    ``repeat`` counts requests for the same document, from 0; ``padding`` marks a request that only fills up a replica
    and whose answer is discarded; ``media`` names the document's media, in order, and ``item_id`` the streaming item it
    belongs to (else the sample itself); ``options`` are the letters to choose from. Equality ignores ``position``.
    """

    position: int = field(compare=False)
    task: str
    split: str
    doc_id: int
    prompt: str
    settings: Mapping[str, Any]
    to_messages: Callable[[Any], list[dict[str, Any]]]
    sample_id: str
    media: tuple[str, ...]
    item_id: str
    repeat: int
    padding: bool
    options: tuple[str, ...] = ()

    def messages(self, task_dict: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The chat messages of this request, made by its own task; this decodes the images."""
        return self.to_messages(task_dict[self.task][self.split][self.doc_id])


def option_letters(document: Mapping[str, Any]) -> tuple[str, ...]:
    """The letters of a document's options; a dataset pads missing options with None."""
    choices = document.get("choices") or {}
    return tuple(sorted(letter for letter, text in choices.items() if text is not None))


def light_rows(rows: Any, names: Sequence[str]) -> Any:
    """The columns ``names`` of a dataset, so that reading a row decodes no image; None if it has none of them.

    A plain sequence of documents is returned unchanged.
    """
    columns = getattr(rows, "column_names", None)
    if columns is None:
        return rows
    kept = [name for name in names if name in columns]
    return rows.select_columns(kept) if kept else None


def read_rows(rows: Any, numbers: Sequence[int]) -> list[Any]:
    """The documents with these numbers; a dataset reads many at once in a third of the time."""
    if not hasattr(rows, "column_names"):
        return [rows[number] for number in numbers]
    columns = rows[list(numbers)]
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


_AT_ONCE = 1_024
"""Requests whose rows are read together."""


def read_requests(requests: Iterable[Any], task_dict: Mapping[str, Any]) -> list[ChatRequest]:
    """Read lmms-eval instances whose arguments are (context, doc_to_messages, settings, doc_id, task, split).

    A document without ``sample_id`` (from a task that is not ours) gets the id ``<task>-<doc_id>``.
    """
    views: dict[tuple[str, str], Any] = {}
    rows: dict[tuple[str, str, int], Any] = {}
    seen: Counter[tuple[str, int]] = Counter()
    read = []
    asked = list(requests)
    for position, request in enumerate(asked):
        if position % _AT_ONCE == 0:
            rows = _light_rows_of(asked[position : position + _AT_ONCE], task_dict, views)
        context, to_messages, settings, doc_id, task, split = request.args
        row = rows[task, split, doc_id]
        padding = is_padding(request)
        repeat = (request.metadata or {}).get(REPEAT, seen[task, doc_id])
        seen[task, doc_id] += not padding
        sample_id = str(row.get("sample_id") or f"{task}-{doc_id}")
        read.append(
            ChatRequest(
                position=position,
                task=task,
                split=split,
                doc_id=doc_id,
                prompt=context if isinstance(context, str) else "",
                settings=settings or {},
                to_messages=to_messages,
                sample_id=sample_id,
                # If the media have no names, only a document's own repeats are known to share them.
                media=tuple(map(str, row.get("media") or (sample_id,))),
                item_id=str(row.get("item_id") or sample_id),
                repeat=repeat,
                padding=padding,
                options=option_letters(row),
            )
        )
    return read


def _light_rows_of(
    requests: Sequence[Any], task_dict: Mapping[str, Any], views: dict[tuple[str, str], Any]
) -> dict[tuple[str, str, int], Any]:
    """What :func:`read_requests` needs of the requests' documents, by task, split and number; keeps ``views``."""
    numbers: dict[tuple[str, str], dict[int, None]] = {}
    for request in requests:
        *_, doc_id, task, split = request.args
        numbers.setdefault((task, split), {})[doc_id] = None
    found = {}
    for (task, split), chosen in numbers.items():
        if (task, split) not in views:
            views[task, split] = light_rows(task_dict[task][split], ("sample_id", "item_id", "media", "choices"))
        view = views[task, split]
        rows = [{}] * len(chosen) if view is None else read_rows(view, list(chosen))
        found.update({(task, split, number): row for number, row in zip(chosen, rows, strict=True)})
    return found


Batch = tuple[GenerationSettings, list[ChatRequest]]


def plan_batches(
    requests: Iterable[ChatRequest],
    size: int,
    max_new_tokens: int | None = None,
    *,
    alone_when_sampling: bool = True,
) -> Iterator[Batch]:
    """Yield batches (settings, requests) of at most ``size`` requests with equal settings, without padding requests.

    With ``alone_when_sampling`` each sampled answer is a separate batch, so that its draw depends on its seed alone.

    The order is by generation settings, media, item, then text length, longest first: samples that share images and
    rounds of one stream are adjacent, batches need little padding, and out-of-memory errors occur early.
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
    for _, same_settings in groupby(ordered, key=settings_key):
        group = list(same_settings)
        settings = read_settings(group[0].settings, max_new_tokens)
        step = 1 if settings.sampling and alone_when_sampling else size
        for start in range(0, len(group), step):
            yield settings, group[start : start + step]
