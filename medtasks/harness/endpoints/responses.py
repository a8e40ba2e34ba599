"""Replies in the responses of three protocols: chat completions, messages, and generateContent.

A response that the endpoint refused or blocked is a failed reply with the endpoint's reason. A
refusal that the model writes as an ordinary text is a response. Output tokens include those of
reasoning, because vendors charge both alike.

Sources: the types of ``openai`` 3.54, ``anthropic`` 2.14 and ``google-genai`` 3.6.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from medtasks.runs.replies import BLANK, Reply, is_blank

_MESSAGE_ENDINGS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
}
_CONTENT_ENDINGS = {"STOP": "stop", "MAX_TOKENS": "length"}
_COMPLETION_ENDINGS = {
    "stop": "stop",
    "length": "length",
    "eos_token": "stop",  # of text-generation-inference
    "stop_sequence": "stop",
    "model_length": "length",  # of Mistral
}


def reply_of_completion(response: Any) -> Reply:
    """The reply in a chat completion of ``openai``, or of ``litellm``, which has the same form."""
    if not response.choices:
        return Reply.failure("the response has no choices")
    choice = response.choices[0]
    refusal = getattr(choice.message, "refusal", None)
    if refusal:
        return Reply.failure(f"refused: {refusal}")
    ending = choice.finish_reason
    if ending not in (None, *_COMPLETION_ENDINGS):
        return Reply.failure(f"blocked (finish_reason={ending})")
    text = _text_of_content(choice.message.content)
    finish = _COMPLETION_ENDINGS.get(ending)
    if text is None and finish != "length":
        return Reply.failure("the response has no content")
    usage = getattr(response, "usage", None)
    input_tokens = getattr(usage, "prompt_tokens", None)
    return _reply(
        text or "",
        input_tokens=input_tokens,
        output_tokens=_completion_tokens(usage),
        finish=finish,
    )


def _completion_tokens(usage: Any) -> int | None:
    """The output tokens; some servers count those of reasoning only in the total."""
    output_tokens: int | None = getattr(usage, "completion_tokens", None)
    input_tokens = getattr(usage, "prompt_tokens", None)
    total = getattr(usage, "total_tokens", None)
    if output_tokens is None or input_tokens is None or total is None:
        return output_tokens
    return max(output_tokens, int(total) - int(input_tokens))


def _text_of_content(content: Any) -> str | None:
    """The text of a message, which some servers divide into parts."""
    if content is None or isinstance(content, str):
        return content
    texts: list[str] = []
    for part in content:
        text = part.get("text") if isinstance(part, dict) else getattr(part, "text", None)
        texts.append(text or "")
    return "".join(texts)


def reply_of_message(response: Any) -> Reply:
    """The reply in a message of Anthropic's API, without its thinking."""
    ending = response.stop_reason
    if ending not in _MESSAGE_ENDINGS:
        details = getattr(response, "stop_details", None)
        explanation = getattr(details, "explanation", None)
        reason = f": {explanation}" if explanation else ""
        return Reply.failure(f"refused (stop_reason={ending}){reason}")
    texts = [block.text for block in response.content if block.type == "text"]
    return _reply(
        "".join(texts),
        input_tokens=_message_input_tokens(response.usage),
        output_tokens=getattr(response.usage, "output_tokens", None),
        finish=_MESSAGE_ENDINGS[ending],
    )


def _message_input_tokens(usage: Any) -> int | None:
    """The input tokens, with those that were written to the cache or read from it."""
    tokens: int | None = getattr(usage, "input_tokens", None)
    if tokens is None:
        return None
    written = getattr(usage, "cache_creation_input_tokens", None) or 0
    read = getattr(usage, "cache_read_input_tokens", None) or 0
    return tokens + int(written) + int(read)


def reply_of_content(response: Any) -> Reply:
    """The reply in a response of Gemini's ``generateContent``, without its thoughts."""
    feedback = response.prompt_feedback
    if feedback is not None and feedback.block_reason is not None:
        return Reply.failure(f"prompt blocked (block_reason={_name_of(feedback.block_reason)})")
    if not response.candidates:
        return Reply.failure("the response has no candidates")
    candidate = response.candidates[0]
    ending = _name_of(candidate.finish_reason)
    if ending not in ("", *_CONTENT_ENDINGS):
        message = f": {candidate.finish_message}" if candidate.finish_message else ""
        return Reply.failure(f"blocked (finish_reason={ending}){message}")
    parts = (candidate.content and candidate.content.parts) or []
    texts = [part.text for part in parts if part.text and not part.thought]
    usage = response.usage_metadata
    counts = getattr(usage, "candidates_token_count", None), _thought_tokens(usage)
    return _reply(
        "".join(texts),
        input_tokens=getattr(usage, "prompt_token_count", None),
        output_tokens=_sum_of_known(counts),
        finish=_CONTENT_ENDINGS.get(ending),
    )


def _thought_tokens(usage: Any) -> int | None:
    """The tokens of Gemini's thoughts, which its candidates do not count."""
    tokens: int | None = getattr(usage, "thoughts_token_count", None)
    return tokens


def _sum_of_known(counts: Iterable[int | None]) -> int | None:
    """The sum of the counts that are known; None if none is."""
    known_counts = [count for count in counts if count is not None]
    return sum(known_counts) if known_counts else None


def _name_of(reason: Any) -> str:
    """The name of a reason, which is an enum or, if the package does not know it, a text."""
    if reason is None:
        return ""
    return str(getattr(reason, "value", reason))


def _reply(
    text: str, *, input_tokens: int | None, output_tokens: int | None, finish: str | None
) -> Reply:
    """The reply with a text; blank ones are failed unless the model generated tokens."""
    if is_blank(text) and not output_tokens:
        return Reply.failure(BLANK)
    return Reply(text or "", input_tokens=input_tokens, output_tokens=output_tokens, finish=finish)
