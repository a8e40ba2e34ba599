"""What went wrong with one attempt, by the exception that a vendor's package raised.

``openai`` and ``anthropic`` raise exceptions of their own for a lost connection, ``google-genai``
those of its HTTP library, and ``litellm`` reports either as a status of 500.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from medtasks.core.redaction import without_keys
from medtasks.judge.retry_after import seconds_to_wait

LONGEST_WAIT = 300.0
"""Seconds; if an endpoint asks for a longer wait, the request fails."""

_MAY_PASS = (408, 409, 429)
_NO_CREDIT = "insufficient_quota"
"""OpenAI's code for an account without credit, which it reports with status 429."""
_WRONG_KEY = "API_KEY_INVALID"
_CONNECTION = frozenset({"TransportError", "APIConnectionError"})
"""Base classes of the vendors' and HTTP libraries' exceptions if there was no response."""
_TIMEOUT = frozenset({"TimeoutException", "APITimeoutError", "Timeout"})
_WAITS = ("retry-after-ms", "Retry-After", "Date")
"""Headers that `seconds_to_wait` reads."""
_SECONDS = re.compile(r"(?P<seconds>[0-9]{1,9}(\.[0-9]{1,9})?)s")
_CAUSES = 8
"""Exceptions in a chain that are looked at: some packages raise an exception from itself."""


@dataclass(frozen=True)
class Failure:
    """A failed attempt.

    Args:
        reason: one line, with the endpoint's own message if it sent one.
        status: the HTTP status; None if there was none.
        may_pass: whether a further attempt may succeed.
        wait: seconds that the endpoint asks to wait; None if it does not.
        is_unreached: whether there was no response at all.
        has_wrong_key: whether the endpoint says that the key is wrong, whatever the status.
    """

    reason: str
    status: int | None = None
    may_pass: bool = False
    wait: float | None = None
    is_unreached: bool = False
    has_wrong_key: bool = False


def failure_of(error: Exception) -> Failure:
    """The failure behind an exception of a vendor's package."""
    causes = list(_causes(error))
    if any(_kinds(cause) & _TIMEOUT for cause in causes):
        return Failure("timeout: no answer in time", may_pass=True, is_unreached=True)
    if _is_unreached(causes):
        reason = f"connection: {_line(str(causes[-1])) or type(causes[-1]).__name__}"
        return Failure(reason, may_pass=True, is_unreached=True)
    status = _status_of(error)
    if status is None:
        return Failure(_line(str(error)) or type(error).__name__)
    return _failure_of_status(error, status)


def _failure_of_status(error: Exception, status: int) -> Failure:
    """The failure that an HTTP status reports."""
    reason = f"status {status}: {_message_of(error)}"
    may_pass = status in _MAY_PASS or status >= 500
    if getattr(error, "code", None) == _NO_CREDIT:
        may_pass = False
    wait = seconds_to_wait(_headers_of(error))
    if wait is None:
        wait = _retry_delay(_details_of(error))
    if may_pass and wait is not None and wait > LONGEST_WAIT:
        may_pass = False
        reason = f"{reason} (the endpoint asks to wait {wait:.0f} s)"
    return Failure(reason, status, may_pass, wait, has_wrong_key=_has_wrong_key(error))


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and those behind it."""
    cause: BaseException | None = error
    for _ in range(_CAUSES):
        if cause is None:
            return
        yield cause
        cause = cause.__cause__ or cause.__context__


def _kinds(error: BaseException) -> set[str]:
    """The names of an exception's classes.

    Of ``litellm``'s, only its own name: it raises a connection error for whatever it does not know.
    """
    kind = type(error)
    if kind.__module__.startswith("litellm"):
        return {kind.__name__} - _CONNECTION
    return {base.__name__ for base in kind.__mro__}


def _is_unreached(causes: list[BaseException]) -> bool:
    """Whether an exception with these causes means that there was no response."""
    if any("HTTPStatusError" in _kinds(cause) for cause in causes):
        return False
    return any(_kinds(cause) & _CONNECTION for cause in causes)


def _status_of(error: Exception) -> int | None:
    """The HTTP status that an exception reports; None if it reports none."""
    # litellm reports Anthropic's 529 as 500, and google-genai calls the status a code
    for name in ("provider_status_code", "status_code", "code"):
        status = getattr(error, name, None)
        if isinstance(status, int):
            return status
    return None


def _headers_of(error: Exception) -> Mapping[str, str]:
    """The headers about a wait of the response behind an exception.

    Those of ``litellm`` may be a dictionary with names in small letters.
    """
    headers = getattr(error, "litellm_response_headers", None)
    if not headers:
        headers = getattr(getattr(error, "response", None), "headers", None)
    by_name = {str(name).lower(): value for name, value in (headers or {}).items()}
    return {name: by_name[name.lower()] for name in _WAITS if name.lower() in by_name}


def _details_of(error: Exception) -> Mapping[str, Any]:
    """The endpoint's own description of the error; empty if it sent none."""
    body = getattr(error, "body", None)
    if not isinstance(body, Mapping):
        body = getattr(error, "details", None)  # of google-genai
    if not isinstance(body, Mapping):
        body = _json_in(str(error))
    details = body.get("error", body)
    return details if isinstance(details, Mapping) else {}


def _retry_delay(details: Mapping[str, Any]) -> float | None:
    """The seconds to wait that Gemini's API names in the body (``"retryDelay": "37s"``)."""
    for entry in _entries(details):
        match = _SECONDS.fullmatch(str(entry.get("retryDelay")))
        if match:
            return float(match["seconds"])
    return None


def _has_wrong_key(error: Exception) -> bool:
    """Whether Gemini's API refuses the key, which it reports with status 400."""
    entries = _entries(_details_of(error))
    return any(entry.get("reason") == _WRONG_KEY for entry in entries)


def _entries(details: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The details of an error of Gemini's API."""
    entries = details.get("details")
    if not isinstance(entries, list):
        return []
    return [entry for entry in entries if isinstance(entry, Mapping)]


def _message_of(error: Exception) -> str:
    """The endpoint's own message on one line, or else that of the package."""
    message = _details_of(error).get("message")
    return _line(str(message or getattr(error, "message", None) or error))


def _json_in(text: str) -> Mapping[str, Any]:
    """The JSON object that ``litellm`` puts into its messages; empty if there is none."""
    begin = text.find("{")
    if begin < 0:
        return {}
    try:
        value, _ = json.JSONDecoder().raw_decode(text[begin:])
    except ValueError:
        return {}
    return value if isinstance(value, Mapping) else {}


def _line(text: str) -> str:
    """The text on one line, without the period at its end, and without keys, which some endpoints
    repeat.
    """
    return without_keys(" ".join(text.split()))[:200].rstrip(".")
