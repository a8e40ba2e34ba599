"""Which failures of an endpoint may pass, and how long it asks to wait, by openai's exceptions and
by those of other packages, which name their facts differently.
"""

from __future__ import annotations

from typing import Any

import openai
import pytest

from medtasks.harness.endpoints.failures import Failure, failure_of
from medtasks.judge.http_library import http

REQUEST = http.Request("POST", "http://127.0.0.1/v1/chat/completions")


def status_error(status: int, body: object, **headers: str) -> openai.APIStatusError:
    """The exception that openai raises for a response."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    response = http.Response(status, headers=named, request=REQUEST)
    return openai.APIStatusError("Error code", response=response, body=body)


class GoogleError(Exception):
    """Has the attributes of google-genai's ``APIError``."""

    def __init__(self, code: int, details: dict[str, Any]) -> None:
        super().__init__(f"{code} {details}")
        self.code = code
        self.details = details


@pytest.mark.parametrize(
    ("status", "may_pass"), [(400, False), (401, False), (408, True), (429, True), (529, True)]
)
def test_only_what_may_pass_is_tried_again(status: int, may_pass: bool) -> None:
    failure = failure_of(status_error(status, {"message": "words\nof the endpoint."}))
    assert failure == Failure(f"status {status}: words of the endpoint", status, may_pass)


def test_an_account_without_credit_is_not_a_rate_limit() -> None:
    error = status_error(429, {"message": "no credit", "code": "insufficient_quota"})
    assert not failure_of(error).may_pass


def test_a_wait_is_read_from_headers_or_from_the_body_of_gemini() -> None:
    assert failure_of(status_error(429, {}, retry_after="7")).wait == 7
    retry = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "37.5s"}
    failure = failure_of(GoogleError(429, {"error": {"message": "quota", "details": [retry]}}))
    assert failure == Failure("status 429: quota", 429, may_pass=True, wait=37.5)


def test_a_wait_is_read_from_litellms_headers_in_small_letters() -> None:
    error = status_error(429, {"message": "slow down"})
    error.litellm_response_headers = {"retry-after": "3"}  # type: ignore[attr-defined]
    assert failure_of(error).wait == 3


def test_a_wait_of_hours_is_a_failure_that_names_it() -> None:
    failure = failure_of(status_error(429, {"message": "quota"}, retry_after="7200"))
    assert not failure.may_pass
    assert failure.reason == "status 429: quota (the endpoint asks to wait 7200 s)"


def test_a_key_that_gemini_refuses_with_status_400_is_wrong() -> None:
    info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
    error = GoogleError(400, {"error": {"message": "API key not valid.", "details": [info]}})
    assert failure_of(error) == Failure("status 400: API key not valid", 400, has_wrong_key=True)


def test_a_key_that_the_endpoint_repeats_is_in_no_reason() -> None:
    key = "sk-proj-abcdefghijklmnopqrstuvwxyz"
    failure = failure_of(status_error(401, {"message": f"no such key: {key}"}))
    assert failure.reason == "status 401: no such key: …"


def test_timeouts_and_lost_connections_did_not_reach_the_endpoint() -> None:
    timeout = failure_of(openai.APITimeoutError(REQUEST))
    assert timeout == Failure("timeout: no answer in time", may_pass=True, is_unreached=True)
    lost = openai.APIConnectionError(request=REQUEST)
    lost.__cause__ = ConnectionRefusedError(111, "Connection refused")
    assert failure_of(lost).is_unreached
    assert failure_of(lost).reason == "connection: [Errno 111] Connection refused"


def test_an_error_of_the_package_itself_is_neither() -> None:
    assert failure_of(ValueError("no such parameter")) == Failure("no such parameter")
