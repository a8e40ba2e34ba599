"""How a judge is reached and what it may cost."""

from __future__ import annotations

import json
import os
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator

from medtasks.errors import UsageError

__all__ = ["Budget", "JudgeSettings", "judge_identity"]

# hide_input_in_errors: a key that was put into the wrong field must not be printed by the error that says so
_FROZEN = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class Budget(BaseModel):
    """Where a `JudgeClient` stops asking; None is no limit. What is in flight then still finishes.

    Args:
        max_requests: HTTP requests sent, retries among them; never exceeded.
        max_tokens: tokens of prompts and completions, as the endpoint reports them; exceeded by at most the tokens of
            the requests in flight. An endpoint that reports none is stopped after its first answers.
    """

    model_config = _FROZEN

    max_requests: int | None = Field(default=None, ge=0)
    max_tokens: int | None = Field(default=None, ge=0)


class JudgeSettings(BaseModel):
    """An OpenAI-compatible endpoint and how to ask it.

    Args:
        base_url: of the API, ending before ``/chat/completions`` (for most servers in ``/v1``), without credentials.
        model: as the endpoint names it.
        api_key_env: name of the environment variable that holds the key, never the key; a variable that is not set
            means an endpoint without key.
        temperature, max_tokens: None leaves them out of the request, for models that refuse them.
        timeout: seconds for one attempt as a whole.
        concurrency: the most requests in flight.
        retries: further attempts after a 408, 409, 429, 5xx, timeout, broken connection or unreadable reply.
        backoff: seconds; the n-th retry waits a random time up to ``backoff * 2**(n - 1)``, at most 30 s.
        structured: whether to send ``response_format`` with the schema; None tries, and goes on without where the
            server answers 400 or 422 to it.
        extra_body: further fields of the request, such as ``{"chat_template_kwargs": {"enable_thinking": False}}``.
        images: whether the judge can see: rubrics with ``media: true`` then show it the images.
        image_side: pixels; images with a longer side are made smaller.
        prompt_price, completion_price: currency per million tokens; None is unknown.
        budget: over the life of one client.
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

    @field_validator("base_url")
    @classmethod
    def _plain_address(cls, value: str) -> str:
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("expected an address such as http://127.0.0.1:8000/v1")
        _ = parts.port, parts.hostname.encode("idna")  # a ValueError says what is wrong
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
        """The key of the environment, or None.

        Raises:
            UsageError: it is no printable ASCII, so no HTTP header can carry it.
        """
        key = os.environ.get(self.api_key_env, "").strip()
        if not key:
            return None
        if not (key.isascii() and key.isprintable() and " " not in key):
            raise UsageError(f"the environment variable {self.api_key_env} holds no API key: expected printable ASCII")
        return key

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float | None:
        """What so many tokens cost, in the currency of the prices; None where a price is unknown."""
        if self.prompt_price is None or self.completion_price is None:
            return None
        return (prompt_tokens * self.prompt_price + completion_tokens * self.completion_price) / 1_000_000


def judge_identity(settings: JudgeSettings, *, images: bool | None = None) -> dict[str, Any]:
    """What of ``settings`` determines a verdict: for verdict keys and manifests. Neither address nor API key.

    ``images`` says whether images are shown; None means wherever a rubric allows it, as ``settings.images`` has it.
    """
    identity: dict[str, Any] = {
        "model": settings.model,
        "temperature": settings.temperature,
        "max_tokens": settings.max_tokens,
        "extra_body": settings.extra_body,
    }
    if settings.images if images is None else images:
        identity |= {"images": True, "image_side": settings.image_side}
    return identity
