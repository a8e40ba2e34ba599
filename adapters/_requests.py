"""The harness's requests as typed records."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from medtasks.harness.requests import REPEAT, is_padding


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One ``generate_until`` request of a chat task.

    ``repeat`` counts requests for the same document, from 0; ``media`` names the document's media, in order, and
    ``item_id`` the streaming item it belongs to (else the sample itself); ``options`` are the letters to choose from.
    Equality ignores ``position``.
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


def read_requests(requests: Iterable[Any], task_dict: Mapping[str, Any]) -> list[ChatRequest]:
    """Read lmms-eval instances whose arguments are (context, doc_to_messages, settings, doc_id, task, split), without
    those that only fill up a replica.

    A document without ``sample_id`` (from a task that is not ours) gets the id ``<task>-<doc_id>``.
    """
    asked = [(position, request) for position, request in enumerate(requests) if not is_padding(request)]
    numbers: dict[tuple[str, str], list[int]] = defaultdict(list)
    for _, request in asked:
        *_, doc_id, task, split = request.args
        numbers[task, split].append(doc_id)
    rows: dict[tuple[str, str, int], Any] = {}
    for (task, split), chosen in numbers.items():
        view = light_rows(task_dict[task][split], ("sample_id", "item_id", "media", "choices"))
        read_now = [{}] * len(chosen) if view is None else read_rows(view, chosen)
        rows.update({(task, split, number): row for number, row in zip(chosen, read_now, strict=True)})
    seen: Counter[tuple[str, int]] = Counter()
    read = []
    for position, request in asked:
        context, to_messages, settings, doc_id, task, split = request.args
        row = rows[task, split, doc_id]
        repeat = (request.metadata or {}).get(REPEAT, seen[task, doc_id])
        seen[task, doc_id] += 1
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
                options=option_letters(row),
            )
        )
    return read
