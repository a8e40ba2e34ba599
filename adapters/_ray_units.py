"""Units of requests for replicas: how requests are divided, and how they travel."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from medtasks.benchmarks.documents import encoded_pictures
from medtasks.core.errors import MedtasksError, first_line
from medtasks.core.settings import using
from medtasks.data.media.images import EncodedPicture

from ._requests import ChatRequest, read_documents
from .baseline import FIELDS

UNITS_EACH = 4
"""Least units for each replica, so that none is idle for long at the end."""

# Rough sizes, which are used for the sizes of units only
PICTURE_TOKENS = 1_024
ANSWER_TOKENS = 512
CHARACTERS = 4
"""Characters of a token."""

Payload = tuple[list[ChatRequest], dict[str, dict[str, list[Any]]]]
"""Requests as they travel to a replica, and their documents by task and split.

Requests have their messages with them; a picture of several requests travels once.
"""


@dataclass
class Unit:
    """Requests that a replica answers together; without requests, its model is loaded.

    ``attempts`` is the number of replicas that died on the unit; ``payload`` is a future of its
    `Payload`; ``sent`` is when a replica got it, by `time.monotonic`.
    """

    requests: list[ChatRequest]
    cost: int = 0
    attempts: int = 0
    payload: Any = None
    sent: float = 0.0


def units_of(requests: Sequence[ChatRequest], tokens: int, least: int = 1) -> list[Unit]:
    """The requests in units of at most ``tokens`` tokens, or a single request, longest first.

    Requests that share media are together, and a picture costs its tokens once. Units are made
    smaller where there are fewer than ``least``.
    """
    units: list[Unit] = []
    media: tuple[str, ...] = ()
    for request in sorted(requests, key=_media_order):
        text_cost = len(request.prompt) // CHARACTERS + ANSWER_TOKENS
        media_cost = PICTURE_TOKENS * len(request.media)
        cost = text_cost if request.media == media else text_cost + media_cost
        if not units or units[-1].cost + cost > tokens:
            units.append(Unit([]))
            # a new unit has none of the media yet
            cost = text_cost + media_cost
        units[-1].requests.append(request)
        units[-1].cost += cost
        media = request.media
    smaller = sum(unit.cost for unit in units) // least
    if len(units) < least and smaller < tokens:
        return units_of(requests, smaller)
    return sorted(units, key=lambda unit: -unit.cost)


def _media_order(request: ChatRequest) -> tuple[Any, ...]:
    """A sort key by which requests that share media are adjacent."""
    return request.media, request.item_id, request.task, request.sample_id, request.repeat


def payload_of(requests: Sequence[ChatRequest], task_dict: Mapping[str, Any]) -> Payload:
    """The requests as they travel, with the documents that they are about.

    ``task_dict`` has the harness's documents by task and split.
    """
    travelling: list[ChatRequest] = []
    documents: dict[str, dict[str, list[Any]]] = {}
    with using(), encoded_pictures():  # the environment is read once
        for (task, split), group in groupby(requests, key=_task_and_split):
            requests_of_task = list(group)
            rows = task_dict[task][split]
            numbers = [request.doc_id for request in requests_of_task]
            whole_documents = read_documents(rows, getattr(rows, "column_names", ()), numbers)
            sent = documents.setdefault(task, {}).setdefault(split, [])
            for request, document in zip(requests_of_task, whole_documents, strict=True):
                messages = functools.partial(_decoded_messages, _messages(request, document))
                travelling.append(replace(request, doc_id=len(sent), to_messages=messages))
                sent.append({name: document[name] for name in FIELDS if name in document})
    return travelling, documents


def _task_and_split(request: ChatRequest) -> tuple[str, str]:
    return request.task, request.split


def _messages(
    request: ChatRequest, document: Mapping[str, Any]
) -> list[dict[str, Any]] | MedtasksError:
    """The messages of a request, or the error of making them."""
    try:
        return request.to_messages(document)
    except Exception as error:  # a package's prompts may raise anything
        return MedtasksError(first_line(error))


def _decoded_messages(messages: list[dict[str, Any]] | Exception, _: Any) -> list[dict[str, Any]]:
    """Messages as they travelled, with their pictures decoded; raises what they are instead."""
    if isinstance(messages, Exception):
        raise messages
    decoded: list[dict[str, Any]] = []
    for message in messages:
        content = message["content"]
        if isinstance(content, list):
            content = [_decoded_part(part) for part in content]
        decoded.append({**message, "content": content})
    return decoded


def _decoded_part(part: dict[str, Any]) -> dict[str, Any]:
    """A part of a message with its picture decoded."""
    picture = part.get("url")
    if isinstance(picture, EncodedPicture):
        return {**part, "url": picture.image}
    return part
