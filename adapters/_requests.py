"""The harness's requests as typed records, and their batches."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from medtasks.harness.request_slots import REPEAT, is_padding

from ._settings import read_settings
from .policies import draw, option_letters

_FIELDS = ("sample_id", "item_id", "media", "choices")
"""Fields of documents that requests need."""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One ``generate_until`` request of a chat task.

    ``repeat`` counts requests for the same document, from 0; ``media`` names the document's media,
    in order, and ``item_id`` the streaming item it belongs to (else the sample itself); ``options``
    are the letters to choose from.
    """

    position: int
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
    options: tuple[str, ...] = ()

    def messages(self, task_dict: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The chat messages of this request, made by its own task; this decodes the images."""
        return self.to_messages(task_dict[self.task][self.split][self.doc_id])


def read_documents(
    rows: Any, names: Collection[str], numbers: Sequence[int] | None = None
) -> list[dict[str, Any]]:
    """The documents with these numbers, or all.

    Those of a dataset have the fields ``names`` only, so that no image is decoded; they are read at
    once, in a third of the time.
    """
    numbers = range(len(rows)) if numbers is None else numbers
    if not hasattr(rows, "column_names"):
        return [rows[number] for number in numbers]
    columns = [name for name in rows.column_names if name in names]
    if not columns:
        return [{} for _ in numbers]
    values_of_column = rows.select_columns(columns)[list(numbers)]
    documents: list[dict[str, Any]] = []
    for place in range(len(numbers)):
        documents.append({name: values_of_column[name][place] for name in columns})
    return documents


def read_requests(instances: Iterable[Any], task_dict: Mapping[str, Any]) -> list[ChatRequest]:
    """Read lmms-eval instances of chat tasks, without those that only fill up a replica.

    A document without ``sample_id`` (of a task that is not ours) gets the id ``<task>-<doc_id>``.
    """
    groups: dict[tuple[str, str], list[tuple[int, Any]]] = defaultdict(list)
    for position, instance in enumerate(instances):
        if not is_padding(instance):
            task_and_split = instance.args[4:]
            groups[task_and_split].append((position, instance))
    requests: list[ChatRequest] = []
    for (task, split), placed_instances in groups.items():
        numbers = [instance.args[3] for _, instance in placed_instances]
        documents = read_documents(task_dict[task][split], _FIELDS, numbers)
        repeats: Counter[int] = Counter()
        for (position, instance), document in zip(placed_instances, documents, strict=True):
            doc_id = instance.args[3]
            repeat = (instance.metadata or {}).get(REPEAT, repeats[doc_id])
            requests.append(_request(position, instance, document, repeat))
            repeats[doc_id] += 1
    return sorted(requests, key=lambda request: request.position)


def _request(position: int, instance: Any, document: Mapping[str, Any], repeat: int) -> ChatRequest:
    """The request of a harness instance about ``document``."""
    context, to_messages, settings, doc_id, task, split = instance.args
    sample_id = str(document.get("sample_id") or f"{task}-{doc_id}")
    # Media without names are shared by the repeats of a document only, as far as is known.
    media = document.get("media") or (sample_id,)
    return ChatRequest(
        position=position,
        task=task,
        split=split,
        doc_id=doc_id,
        prompt=context if isinstance(context, str) else "",
        settings=settings or {},
        to_messages=to_messages,
        sample_id=sample_id,
        media=tuple(map(str, media)),
        item_id=str(document.get("item_id") or sample_id),
        repeat=repeat,
        options=option_letters(document),
    )


def sample_seed(seed: int, sample_id: str, repeat: int) -> int:
    """A 63-bit seed from its arguments alone, so sharding and batching cannot change a draw."""
    return draw(seed, sample_id, repeat) >> 193


def plan_batches(
    requests: Iterable[ChatRequest], size: int, *, alone_when_sampling: bool = True
) -> Iterator[list[ChatRequest]]:
    """Yield batches of at most ``size`` requests with equal settings.

    Sampled requests are alone, so that a draw depends on its seed. Shared pictures and rounds of a
    stream are adjacent, then the longest texts come first: batches need little padding, and running
    out of memory is noticed early.
    """
    ordered = sorted(requests, key=_batch_order)
    for _, group in groupby(ordered, key=_settings_key):
        same_settings = list(group)
        samples = read_settings(same_settings[0].settings).sampling
        step = 1 if alone_when_sampling and samples else size
        for start in range(0, len(same_settings), step):
            yield same_settings[start : start + step]


def _settings_key(request: ChatRequest) -> str:
    """A text that is equal for requests with equal settings."""
    return json.dumps(dict(request.settings), sort_keys=True, default=str)


def _batch_order(request: ChatRequest) -> tuple[Any, ...]:
    """The sort key of :func:`plan_batches`: settings, media, stream, then the longest texts."""
    item = request.item_id if request.item_id != request.sample_id else ""
    return (
        _settings_key(request),
        request.media,
        item,
        -len(request.prompt),
        request.task,
        request.sample_id,
        request.repeat,
    )
