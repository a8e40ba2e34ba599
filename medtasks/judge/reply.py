"""What an endpoint's reply to a chat request means: an answer and how it ended, or a failure.

Nothing here knows how the reply was transported.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from enum import Enum
from typing import Any

from medtasks.core.text import well_formed
from medtasks.runs.verdict import Cause

LARGEST_REPLY = 4 * 2**20  # bytes, unpacked: about a million tokens of reasoning
_WITHOUT_KEY = frozenset({400, 401, 403, 404})
"""HTTP statuses with which a request without a key is typically answered."""


class Ending(Enum):
    """How an answer ended; the values are those in verdict stores (`StoredVerdict.reason`)."""

    COMPLETE = "complete"
    CUT = "cut off"  # at a limit on its tokens
    REFUSED = "refused"  # by the model, or by a filter of the endpoint


@dataclass(frozen=True)
class JudgeAnswer:
    """A judge's answer or refusal, not yet parsed as a verdict.

    ``metered`` is false if the endpoint reported no tokens.
    """

    text: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    ending: Ending = Ending.COMPLETE
    metered: bool = True


@dataclass(frozen=True)
class FailedAttempt:
    """Why an attempt failed, and whether to try ``again``.

    ``status`` is that of HTTP, ``wait`` the seconds that the endpoint asks to wait.
    """

    reason: str
    again: bool
    status: int | None = None
    wait: float | None = None

    @property
    def cause(self) -> Cause:
        """Why a question has no answer if this was its last attempt."""
        return Cause.REJECTED if self.status in _WITHOUT_KEY else Cause.FAILED


class UnreadableReply(Exception):
    """A reply without an answer; the message says what was expected and found."""


class ReplyTooLarge(Exception):
    """A reply of more than `LARGEST_REPLY` bytes, which is not read to its end."""

    def __init__(self) -> None:
        super().__init__(
            f"more than {LARGEST_REPLY // 2**20} MB, of which nothing is kept; lower `max_tokens`"
        )


# `finish_reason` in lower case, as OpenAI, vLLM, Gemini, Anthropic, Bedrock, Cohere, Mistral,
# watsonx, DeepSeek and Zhipu write it, behind their own or others' gateways. Any other reason is
# that of a complete answer.
_CUT = frozenset(
    {
        "error_limit",
        "length",
        "max_output_tokens",
        "max_tokens",
        "model_context_window_exceeded",
        "model_length",
        "token_limit",
    }
)
_REFUSED = frozenset(
    {
        "blocklist",
        "content_filter",
        "content_filtered",
        "error_toxic",
        "guardrail_intervened",
        "image_safety",
        "prohibited_content",
        "recitation",
        "refusal",
        "safety",
        "sensitive",
        "spii",
    }
)
_BROKEN_OFF = frozenset(
    {
        "abort",
        "cancelled",
        "error",
        "insufficient_system_resource",
        "network_error",
        "time_limit",
        "timeout",
    }
)
_REFUSAL_CODES = frozenset(
    {
        "content_filter",
        "content_policy_violation",
        "data_inspection_failed",
        "datainspectionfailed",
        "moderation_blocked",
        "responsibleaipolicyviolation",
    }
)
"""Error codes, in lower case, of a refused request (Azure OpenAI, OpenAI, DashScope)."""
_MOST_TOKENS = 2**53


def read_completion(text: str) -> JudgeAnswer:
    """The answer in the body of a successful reply.

    Raises:
        UnreadableReply: it is not a chat completion, or one that the endpoint broke off.
    """
    document = _json_document(text)
    if _is_blocked_prompt(document):
        return JudgeAnswer("", ending=Ending.REFUSED)
    choice = _first_choice(document)
    ending = _ending_of(choice.finish_reason)
    content = choice.content
    if isinstance(choice.refusal, str) and choice.refusal.strip():
        ending = Ending.REFUSED
        content = choice.refusal
    answer = well_formed(_content_text(content))
    tokens = _tokens(document.get("usage"))
    if tokens is None:
        return JudgeAnswer(answer, ending=ending, metered=False)
    prompt_tokens, completion_tokens = tokens
    return JudgeAnswer(answer, prompt_tokens, completion_tokens, ending)


def _json_document(text: str) -> Any:
    """The JSON document that the body of a successful reply is."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableReply(
            f"expected JSON ({type(error).__name__}), found {text[:80]!r}"
        ) from None


@dataclass(frozen=True)
class _CompletionChoice:
    """The fields of a completion's first choice that are read, not checked yet.

    ``finish_reason`` is empty if the endpoint states none.
    """

    content: Any
    refusal: Any
    finish_reason: str


def _first_choice(document: Any) -> _CompletionChoice:
    """The first choice of a chat completion.

    Raises:
        UnreadableReply: the document has no message there, or the endpoint broke it off.
    """
    try:
        choice = document["choices"][0]
        message = choice["message"]
        refusal = message.get("refusal")
        content = message.get("content")
    except (TypeError, LookupError, AttributeError):
        raise UnreadableReply(f"expected choices[0].message, found {_as_text(document)}") from None
    reason = choice.get("finish_reason")
    if not isinstance(reason, str):
        reason = ""
    if reason.lower() in _BROKEN_OFF:
        raise UnreadableReply(f"the endpoint broke the answer off (finish_reason {reason!r})")
    return _CompletionChoice(content, refusal, reason)


def _is_blocked_prompt(document: Any) -> bool:
    """Whether the reply has no answer because a filter blocked the prompt, as Gemini reports it."""
    if not isinstance(document, dict) or document.get("choices"):
        return False
    feedback = document.get("promptFeedback") or document.get("prompt_feedback")
    return isinstance(feedback, dict) and bool(
        feedback.get("blockReason") or feedback.get("block_reason")
    )


def _ending_of(reason: str) -> Ending:
    """How an answer ended by its finish reason; one that is not listed is that of a whole one."""
    if reason.lower() in _CUT:
        return Ending.CUT
    if reason.lower() in _REFUSED:
        return Ending.REFUSED
    return Ending.COMPLETE


def _content_text(content: Any) -> str:
    """The text of a message's content: a string, or content parts, as some gateways answer."""
    if content is None:
        return ""
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        return "".join(part for part in parts if isinstance(part, str))
    if not isinstance(content, str):
        kind = type(content).__name__
        raise UnreadableReply(f"expected a string as choices[0].message.content, found {kind}")
    return content


def _tokens(usage: Any) -> tuple[int, int] | None:
    """The reported tokens of prompt and completion; None without a plausible report."""
    if not isinstance(usage, dict):
        return None
    prompt: Any = usage.get("prompt_tokens")
    completion: Any = usage.get("completion_tokens", 0)
    for count in (prompt, completion):
        if type(count) is not int or not 0 <= count < _MOST_TOKENS:
            return None
    return prompt, completion


def is_refusal(text: str) -> bool:
    """Whether the body of an error says that a filter refused the request."""
    error = _error_in(_json_or_none(text))
    if not isinstance(error, dict):
        return False
    inner = error.get("innererror") or error.get("inner_error")
    places = [error, inner] if isinstance(inner, dict) else [error]
    for place in places:
        for code in (place.get("code"), place.get("type")):
            if isinstance(code, str) and code.lower() in _REFUSAL_CODES:
                return True
    return False


def problem_of(text: str) -> str:
    """The message in the body of an error; without one, all of it."""
    document = _json_or_none(text)
    if document is None:
        return text.strip() or "the answer is empty"
    message = _error_in(document)
    if isinstance(message, dict):
        message = message.get("message")
    if isinstance(message, str) and message.strip():
        return message
    return _as_text(document)  # encoded again: escapes in the original might hide the key


def _json_or_none(text: str) -> Any:
    with contextlib.suppress(ValueError, RecursionError):
        return json.loads(text)
    return None


def _error_in(document: Any) -> Any:
    return document.get("error", document) if isinstance(document, dict) else None


def _as_text(document: Any) -> str:
    return json.dumps(document, ensure_ascii=False)
