"""The next round of a multi-round request, which its task determines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from medtasks.runs.replies import Reply


def first_round(request: Any) -> Any:
    """The request of the first round, without the function for later ones."""
    arguments = (*request.args[:3], *request.args[-3:])
    return replace(request, request_type="generate_until", arguments=arguments)


def next_round(lm: Any, request: Any, replies: list[Reply], contents: dict[str, Any]) -> Any:
    """The request of the next round after these ``replies``, or the outcome as a `Reply`.

    ``contents`` is filled with what each document shows in this round, because some back-ends
    pass all documents of a batch to one request's function.
    """
    doc_id, task, split = request.args[-3:]
    document = lm.task_dict[task][split][doc_id]
    texts = [reply.text for reply in replies]
    if lm.is_simple:
        _, settings, _, to_text = request.args[:-3]
        visuals, text, is_done, outputs, _ = to_text(
            document, previous_output=texts, round_idx=len(replies), previous_round_info=None
        )
        contents[document["sample_id"]] = visuals or []
    else:
        context, to_messages, settings = request.args[:-3]
        messages, is_done, outputs, _ = to_messages(
            document, round_idx=len(replies), previous_output=texts
        )
        text = _text_of(messages or ()) or context
        contents[document["sample_id"]] = messages
    if is_done:
        return _outcome((outputs or texts)[-1], replies)

    def content(document: Any) -> Any:
        return contents[document["sample_id"]]

    arguments = (text, settings, content) if lm.is_simple else (text, content, settings)
    return replace(
        request, request_type="generate_until", arguments=(*arguments, doc_id, task, split)
    )


def _text_of(messages: Sequence[dict[str, Any]]) -> str:
    texts: list[str] = []
    for message in messages:
        for part in message["content"]:
            if part["type"] == "text":
                texts.append(part["text"])
    return "\n".join(texts)


def _outcome(text: str, replies: Sequence[Reply]) -> Reply:
    """The joint result of all rounds: cut off if one of them was."""
    is_cut_off = any(reply.finish == "length" for reply in replies)
    return Reply(
        text,
        input_tokens=_total([reply.input_tokens for reply in replies]),
        output_tokens=_total([reply.output_tokens for reply in replies]),
        finish="length" if is_cut_off else replies[-1].finish,
    )


def _total(counts: Sequence[int | None]) -> int | None:
    """The sum of the counts; None if one of them is unknown."""
    total = 0
    for number in counts:
        if number is None:
            return None
        total += number
    return total
