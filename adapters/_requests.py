"""The harness's request objects, read once into typed records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from medtasks.harness.requests import REPEAT, is_padding

__all__ = ["ChatRequest", "light_rows", "read_requests"]


@dataclass(frozen=True)
class ChatRequest:
    """One ``generate_until`` request of a chat task.

    ``repeat`` counts requests for the same document, from 0; ``padding`` marks a request that
    only fills up a replica and whose answer nobody reads; ``media`` names the document's media, in order,
    and ``item_id`` the streaming item that it is a round of (else the sample itself). Two are equal wherever they
    stand (``position``).
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

    def messages(self, task_dict: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The chat messages of this request, made by its own task; images are decoded here, not earlier."""
        return self.to_messages(task_dict[self.task][self.split][self.doc_id])


def light_rows(rows: Any, names: Sequence[str]) -> Any:
    """``rows`` limited to the columns ``names`` where it is a dataset, so that looking at it decodes no
    image.

    A plain sequence of documents is returned as it is; None where the dataset has none of the columns.
    """
    columns = getattr(rows, "column_names", None)
    if columns is None:
        return rows
    kept = [name for name in names if name in columns]
    return rows.select_columns(kept) if kept else None


def read_requests(requests: Iterable[Any], task_dict: Mapping[str, Any]) -> list[ChatRequest]:
    """Read lmms-eval instances whose arguments are (context, doc_to_messages, settings, doc_id, task, split).

    A document without ``sample_id`` (of a task that is not ours) is called ``<task>-<doc_id>``.
    """
    views: dict[tuple[str, str], Any] = {}
    seen: Counter[tuple[str, int]] = Counter()
    read = []
    for position, request in enumerate(requests):
        context, to_messages, settings, doc_id, task, split = request.args
        if (task, split) not in views:
            views[task, split] = light_rows(task_dict[task][split], ("sample_id", "item_id", "media"))
        view = views[task, split]
        row = {} if view is None else view[doc_id]
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
                # Without names of media, only a document's own repeats are known to share them.
                media=tuple(map(str, row.get("media") or (sample_id,))),
                item_id=str(row.get("item_id") or sample_id),
                repeat=repeat,
                padding=padding,
            )
        )
    return read
