"""The ms-swift layout, in which the authors of Kvasir-VQA-x1 publish predictions (protocol card, "Old predictions")."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PureWindowsPath
from typing import Any

from medtasks.catalog.records import Where, is_text, wrong
from medtasks.importers.prediction import Prediction, one_response

_ROLES = ("system", "user", "assistant")


def parse_ms_swift_line(row: Mapping[str, Any], where: Where) -> Prediction:
    """The prediction in a line with ``images``, ``messages`` and perhaps ``response``.

    The image id is the stem of the one image's path, the question the last user message without its ``<image>``.
    ``response`` takes precedence over the assistant's message, which in some files is the reference; so a
    ``response`` of null is an error.

    Raises:
        DataError: a field is missing or invalid.
    """
    messages = _messages(row, where)
    asked = [content for role, content in messages if role == "user"]
    question = asked[-1].replace("<image>", " ").strip() if asked else ""
    if not question:
        raise wrong(where, "messages", row["messages"], "a user's message with a question")
    keys = {"img_id": _img_id(row, where), "question": question}
    if "response" in row:
        if row["response"] is None:
            raise wrong(where, "response", "null", "the model's text, or no such field")
        return Prediction(where, None, keys, one_response(where, "response", row["response"]))
    role, content = messages[-1]
    if role != "assistant":
        raise wrong(where, "messages", row["messages"], "the assistant's message at the end, or a field `response`")
    return Prediction(where, None, keys, content)


def _messages(row: Mapping[str, Any], where: Where) -> list[tuple[str, str]]:
    found = row.get("messages")
    if not isinstance(found, list) or not found:
        raise wrong(where, "messages", found, "a list of messages")
    messages = []
    for number, message in enumerate(found):
        place = f"messages[{number}]"
        if not isinstance(message, dict):
            raise wrong(where, place, message, "an object with `role` and `content`")
        role, content = message.get("role"), message.get("content")
        if role not in _ROLES:
            raise wrong(where, f"{place}.role", role, f"one of {', '.join(_ROLES)}")
        if not is_text(content):
            raise wrong(where, f"{place}.content", content, "a text")
        messages.append((role, content))
    return messages


def _img_id(row: Mapping[str, Any], where: Where) -> str:
    images = row.get("images")
    if not isinstance(images, list) or len(images) != 1:
        raise wrong(where, "images", images, "a list of one image")
    path = images[0].get("path") if isinstance(images[0], dict) else images[0]
    # handles both separators: these paths come from other machines
    stem = PureWindowsPath(path).stem.strip() if is_text(path) else ""
    if not stem:
        raise wrong(where, "images[0]", images[0], "a path that ends in <img_id>.jpg")
    return stem
