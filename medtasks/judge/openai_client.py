"""The `openai` clients that ask a judge.

Importing this module takes a while, because it imports `openai`.
"""

from __future__ import annotations

import ssl
from typing import Any

import certifi
from openai import (
    APIConnectionError,
    AsyncOpenAI,
    DefaultAioHttpClient,
    DefaultAsyncHttpxClient,
    Omit,
)

from medtasks.core.errors import UsageError
from medtasks.judge.http_library import http
from medtasks.judge.reply import LARGEST_REPLY, ReplyTooLarge
from medtasks.judge.settings import JudgeSettings

IDLE = 4.0  # seconds that an unused connection is kept; servers close theirs after five or more
NO_KEY = "none"  # the client demands a key


class JudgeOpenAI(AsyncOpenAI):
    """A client without headers about this machine, or from variables such as ``OPENAI_ORG_ID``."""

    @property
    def default_headers(self) -> dict[str, str | Omit]:
        return {
            "Accept": "application/json",
            "Content-Type": "application/json",
            "User-Agent": self.user_agent,
            # newer versions add them themselves
            **self.auth_headers,
        }

    async def request(self, *arguments: Any, **options: Any) -> Any:
        """The reply to a request.

        Raises:
            ReplyTooLarge: its body is longer than `LARGEST_REPLY`.
            openai.OpenAIError: any other failure.
        """
        try:
            return await super().request(*arguments, **options)
        except APIConnectionError as error:
            # older versions of openai wrap what the HTTP client raises
            if isinstance(error.__cause__, ReplyTooLarge):
                raise error.__cause__ from None
            raise


class BoundedHttpClient(DefaultAioHttpClient):
    """An HTTP client that reads at most `LARGEST_REPLY` bytes of a reply, unpacked.

    openai's client reads the body of an error to its end, however long it is.
    """

    async def send(self, request: http.Request, **options: Any) -> http.Response:
        """The reply with its body, which is unpacked.

        Raises:
            ReplyTooLarge: it is longer.
        """
        options["stream"] = True
        response = await super().send(request, **options)
        return await _with_body(response, request)


class BoundedFileClient(DefaultAsyncHttpxClient):
    """An HTTP client that streams the files of successful replies, and reads at most
    `LARGEST_REPLY` bytes of every other reply, unpacked.
    """

    async def send(
        self, request: http.Request, *, stream: bool = False, **options: Any
    ) -> http.Response:
        """The reply, with its body unless that is a file to stream.

        Raises:
            ReplyTooLarge: the body is longer.
        """
        response = await super().send(request, stream=True, **options)
        if stream and response.is_success:
            return response
        return await _with_body(response, request)


async def _with_body(response: http.Response, request: http.Request) -> http.Response:
    """The reply with its body read and unpacked.

    Raises:
        ReplyTooLarge: the body is longer than `LARGEST_REPLY`.
    """
    try:
        body = await _bounded_body(response)
    finally:
        await response.aclose()
    headers = response.headers.copy()
    headers.pop("Content-Encoding", None)
    # without its charset, which may be a codec that fails, or that unpacks
    headers["Content-Type"] = headers.get("Content-Type", "").partition(";")[0]
    return http.Response(response.status_code, headers=headers, content=body, request=request)


async def _bounded_body(response: http.Response) -> bytes:
    body = bytearray()
    async for block in response.aiter_bytes():
        body += block
        if len(body) > LARGEST_REPLY:
            raise ReplyTooLarge
    return bytes(body)


def chat_client(settings: JudgeSettings, key: str | None, proxy: str | None) -> AsyncOpenAI:
    """A client for single requests, which has no timeout and repeats none.

    Raises:
        UsageError: the judge's address or its proxy's is malformed.
    """
    tls = ssl.create_default_context()
    # too, as some Python installations find no others
    tls.load_verify_locations(certifi.where())
    try:
        http_client = BoundedHttpClient(
            verify=tls,
            proxy=proxy,
            trust_env=False,
            timeout=None,
            limits=http.Limits(max_connections=settings.in_flight, keepalive_expiry=IDLE),
            # a redirect would send the prompts to an address that the user did not name
            follow_redirects=False,
        )
        return JudgeOpenAI(
            base_url=settings.base_url.rstrip("/"),
            api_key=key or NO_KEY,
            timeout=None,
            max_retries=0,
            http_client=http_client,
        )
    except http.InvalidURL as error:
        raise UsageError(
            f"the judge's base_url {settings.base_url!r} or its proxy cannot be used ({error}); "
            "give an address such as http://127.0.0.1:8000/v1."
        ) from None


def batch_client(settings: JudgeSettings, key: str | None) -> AsyncOpenAI:
    """A client for files and batches, which repeats requests itself, streams files, and reads no
    other reply beyond `LARGEST_REPLY` bytes.
    """
    return JudgeOpenAI(
        base_url=settings.base_url,
        api_key=key or NO_KEY,
        timeout=settings.timeout,
        max_retries=settings.retries,
        http_client=BoundedFileClient(follow_redirects=False),
    )
