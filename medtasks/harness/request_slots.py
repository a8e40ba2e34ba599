"""The harness's requests divided into ours and others, and the slot of each of ours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from medtasks.runs.replies import Slot

from .rounds import ROUND

REPEAT = "medtasks_repeat"
"""Metadata key: the number of a request among several for the same document."""


@dataclass
class Shares:
    """The requests of a call by their numbers: for our tasks, those of them that are paced, for
    others, and padding.
    """

    ours: dict[int, Any] = field(default_factory=dict)
    paced: dict[int, Any] = field(default_factory=dict)
    foreign: dict[int, Any] = field(default_factory=dict)
    padding: dict[int, Any] = field(default_factory=dict)


def shares_of(requests: Sequence[Any], ours: Collection[str], paced: Collection[str]) -> Shares:
    """The requests of one call, divided; those for our tasks get the number of their repeat.

    Args:
        requests: the requests in the harness's order.
        ours: the names of our tasks.
        paced: the names of those whose rounds are sent in real time.
    """
    shares = Shares()
    repeats = Counter[tuple[str, int]]()
    for number, request in enumerate(requests):
        if request.task_name not in ours:
            shares.foreign[number] = request
            continue
        if is_padding(request):
            shares.padding[number] = request
            continue
        document = request.task_name, request.doc_id
        metadata = {**(request.metadata or {}), REPEAT: repeats[document]}
        repeats[document] += 1
        numbered = replace(request, metadata=metadata)
        if request.task_name in paced:
            shares.paced[number] = numbered
        else:
            shares.ours[number] = numbered
    return shares


def is_padding(request: Any) -> bool:
    """Whether a request only pads a process's share, so that its response is not used."""
    return bool((request.metadata or {}).get("__padding_only__", False))


def slot_of(request: Any, *, outcome: bool = True) -> Slot:
    """The slot of a request: task, document, repeat and prompt."""
    prompt = request.args[0] if isinstance(request.args[0], str) else ""
    metadata = request.metadata or {}
    repeat = int(metadata.get(REPEAT, 0))
    number = metadata.get(ROUND)
    return Slot(request.task_name, int(request.doc_id), repeat, prompt, outcome, number)
