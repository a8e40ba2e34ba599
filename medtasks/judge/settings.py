"""Settings of one judge: endpoint, request, limits."""

from __future__ import annotations

import json
import os
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator

from medtasks.errors import UsageError

# hide_input_in_errors: an API key in the wrong field must not be printed
_FROZEN = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class Budget(BaseModel):
    """Limits at which a `JudgeClient` stops asking; None is no limit. Requests in flight still finish.

    Args:
        max_requests: HTTP requests sent, including retries; never exceeded.
        max_tokens: tokens of prompts and completions, as the endpoint reports them; exceeded by at most the tokens of
            the requests in flight. If the endpoint reports none, asking stops after the first answers.
    """

    model_config = _FROZEN

    max_requests: int | None = Field(default=None, ge=0)
    max_tokens: int | None = Field(default=None, ge=0)


class JudgeSettings(BaseModel):
    """An OpenAI-compatible endpoint and the requests to it.

    Args:
        base_url: of the API, ending before ``/chat/completions`` (for most servers in ``/v1``), without credentials.
        model: as the endpoint names it.
        api_key_env: name of the environment variable with the key, never the key itself; unset means no key.
        temperature, max_tokens: None omits them from the request, for models that refuse them.
        timeout: seconds for one whole attempt.
        concurrency: maximum number of requests in flight.
        retries: further attempts after a 408, 409, 429, 5xx, timeout, broken connection or unreadable reply.
        backoff: seconds; the n-th retry waits a random time up to ``backoff * 2**(n - 1)``, at most 30 s.
        structured: whether to send ``response_format`` with the schema; None tries, and continues without it if the
            server answers 400 or 422.
        extra_body: further fields of the request, such as ``{"chat_template_kwargs": {"enable_thinking": False}}``.
        images: whether the judge can see images: rubrics with ``media: true`` then show them.
        image_side: pixels; images with a longer side are reduced.
        prompt_price, completion_price: currency per million tokens; None if unknown.
        budget: over the life of one client.
        batch: whether to use the endpoint's Batch API (``/files`` and ``/batches``), which answers within a day and is
            usually cheaper. ``concurrency`` then has no effect.
    """

    model_config = _FROZEN

    base_url: str
    model: str = Field(min_length=1)
    api_key_env: str = "OPENAI_API_KEY"
    temperature: float | None = Field(default=0.0, ge=0, allow_inf_nan=False)
    max_tokens: int | None = Field(default=1024, ge=1)
    timeout: float = Field(default=120.0, gt=0, allow_inf_nan=False)
    concurrency: int = Field(default=64, ge=1, le=1000)
    retries: int = Field(default=5, ge=0)
    backoff: float = Field(default=0.5, ge=0, allow_inf_nan=False)
    structured: bool | None = None
    extra_body: dict[str, Any] = Field(default_factory=dict)
    images: bool = False
    image_side: int = Field(default=1024, ge=16)
    prompt_price: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    completion_price: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    budget: Budget = Budget()
    batch: bool = False

    @property
    def in_flight(self) -> int:
        """Maximum number of requests in flight; those of a batch all are, with their images in memory."""
        return (1000 if self.images else 10_000) if self.batch else self.concurrency

    @field_validator("base_url")
    @classmethod
    def _plain_address(cls, value: str) -> str:
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("expected an address such as http://127.0.0.1:8000/v1")
        _ = parts.port, parts.hostname.encode("idna")  # raise ValueError if malformed
        if parts.username or parts.password or parts.query:
            raise ValueError("expected an address without credentials or query; name the key's variable in api_key_env")
        return value

    @field_validator("extra_body")
    @classmethod
    def _plain_json(cls, value: dict[str, Any]) -> dict[str, Any]:
        for name, part in value.items():
            try:
                json.dumps(part, ensure_ascii=False, allow_nan=False).encode()
            except (TypeError, ValueError) as error:
                raise ValueError(f"{name} is not valid JSON ({error}); quote dates and the like") from None
        return value

    @field_validator("api_key_env")
    @classmethod
    def _name_not_key(cls, value: str) -> str:
        if not value.isidentifier() or not value.isascii() or value != value.upper():
            raise ValueError("expected the name of an environment variable, in capitals, not the key itself")
        return value

    def api_key(self) -> str | None:
        """The key from the environment, or None.

        Raises:
            UsageError: it is not printable ASCII, so it cannot be in an HTTP header.
        """
        key = os.environ.get(self.api_key_env, "").strip()
        if not key:
            return None
        if not (key.isascii() and key.isprintable() and " " not in key):
            raise UsageError(
                f"the environment variable {self.api_key_env} does not contain an API key: expected printable ASCII"
            )
        return key

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float | None:
        """Cost in the currency of the prices; None if a price is unknown."""
        if self.prompt_price is None or self.completion_price is None:
            return None
        return (prompt_tokens * self.prompt_price + completion_tokens * self.completion_price) / 1_000_000


def judge_identity(settings: JudgeSettings, *, images: bool) -> dict[str, Any]:
    """The settings that determine a verdict, for verdict keys and manifests; neither address nor API key."""
    identity: dict[str, Any] = {
        "model": settings.model,
        "temperature": settings.temperature,
        "max_tokens": settings.max_tokens,
        "extra_body": settings.extra_body,
    }
    if images:
        identity |= {"images": True, "image_side": settings.image_side}
    return identity
