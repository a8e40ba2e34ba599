"""Responses of the harness's back-ends as replies, and replies as the harness's responses."""

from __future__ import annotations

from typing import Any

from medtasks.runs.replies import BLANK, Reply, is_blank


def reply_of(response: Any) -> Reply:
    """The reply in a back-end's response to one request.

    A blank text is a response if the back-end counted a generated token; otherwise it may hide an
    error, and counts as failed.
    """
    from lmms_eval.api.instance import unwrap_generation_output

    if response is None:
        return Reply.failure("the back-end returned nothing")
    text, counts = unwrap_generation_output(response)
    if not isinstance(text, str):
        text = text[-1] if text else ""
    if text is None:
        return Reply.failure("the response has no content")
    reply = Reply(
        text,
        input_tokens=getattr(counts, "input_tokens", None),
        output_tokens=getattr(counts, "output_tokens", None),
    ).checked()
    if reply.failed is None and is_blank(text) and not reply.output_tokens:
        return Reply.failure(BLANK)
    return reply


def response_of(reply: Reply) -> Any:
    """The harness's response for a reply; a failed or missed one is a note in brackets."""
    from lmms_eval.api.instance import GenerationResult, TokenCounts

    text = reply.text if reply.failed is None else f"[no response: {reply.failed}]"
    if reply.missed:
        text = "[missed: the model was still busy when a later round was due]"
    return GenerationResult(text, TokenCounts(reply.input_tokens, reply.output_tokens))
