"""The rounds of a multi-round request: its task makes each of them from the replies so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from medtasks.runs.replies import Reply

ROUND = "medtasks_round"
"""Metadata key: the number of a round, from 0."""


@dataclass
class Dialogue:
    """A multi-round ``request``, the request of its next round (``upcoming``), and the replies."""

    request: Any
    upcoming: Any
    replies: list[Reply] = field(default_factory=list)

    @classmethod
    def begin(cls, request: Any) -> Dialogue:
        """The dialogue before its first round, whose request lacks the function for later ones."""
        arguments = (*request.args[:3], *request.args[-3:])
        return cls(request, _round_request(request, arguments, 0))

    def after(self, reply: Reply, lm: Any, contents: dict[str, Any]) -> Reply | None:
        """Take the reply to the upcoming round; return the outcome once there are no more rounds.

        ``contents`` is filled with what each document shows in the next round, because some
        back-ends pass all documents of a batch to one request's function.
        """
        self.replies.append(reply)
        if reply.failed is not None:
            return Reply.failure(f"round {len(self.replies)}: {reply.failed}")
        doc_id, task, split = self.request.args[-3:]
        document = lm.task_dict[task][split][doc_id]
        texts = [earlier.text for earlier in self.replies]
        if lm.is_simple:
            following = _simple_round(self.request, document, texts)
        else:
            following = _chat_round(self.request, document, texts)
        contents[document["sample_id"]] = following.content
        if following.is_last:
            return _outcome((following.outputs or texts)[-1], self.replies)
        content = partial(_content_of, contents)
        arguments = (following.text, content, following.settings)
        if lm.is_simple:
            arguments = (following.text, following.settings, content)
        whole_arguments = (*arguments, doc_id, task, split)
        self.upcoming = _round_request(self.request, whole_arguments, len(self.replies))
        return None


def _round_request(request: Any, arguments: tuple[Any, ...], number: int) -> Any:
    """The request of one round of a multi-round ``request``."""
    metadata = {**(request.metadata or {}), ROUND: number}
    return replace(request, request_type="generate_until", arguments=arguments, metadata=metadata)


@dataclass(frozen=True)
class _NextRound:
    """What a task's function returns about the round after the replies so far.

    ``content`` are pictures for simple back-ends, messages for chat back-ends. If there is no next
    round (``is_last``), the last of ``outputs`` is the response to the whole request.
    """

    content: Any
    text: str
    settings: Any
    is_last: bool
    outputs: Sequence[str] | None


def _simple_round(request: Any, document: Any, texts: list[str]) -> _NextRound:
    """The round after responses with these ``texts``, for a simple back-end."""
    _, settings, _, to_text = request.args[:-3]
    visuals, text, is_last, outputs, _ = to_text(
        document, previous_output=texts, round_idx=len(texts), previous_round_info=None
    )
    return _NextRound(visuals or [], text, settings, is_last, outputs)


def _chat_round(request: Any, document: Any, texts: list[str]) -> _NextRound:
    """The round after responses with these ``texts``, for a chat back-end."""
    context, to_messages, settings = request.args[:-3]
    messages, is_last, outputs, _ = to_messages(
        document, round_idx=len(texts), previous_output=texts
    )
    text = _text_of(messages or ()) or context
    return _NextRound(messages, text, settings, is_last, outputs)


def _content_of(contents: dict[str, Any], document: Any) -> Any:
    """What a document shows in the round."""
    return contents[document["sample_id"]]


def _text_of(messages: Sequence[dict[str, Any]]) -> str:
    """The texts of messages, one a line."""
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
