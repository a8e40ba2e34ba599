"""Settings of judges, as checked models."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    field_validator,
    model_validator,
)
from typing_extensions import Self

from medtasks.core.cache import cache_root
from medtasks.core.errors import UsageError
from medtasks.runs.verdict import Rule

# hide_input_in_errors: an API key in the wrong field must not be printed
_FROZEN = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, allow_inf_nan=False)


class Budget(BaseModel):
    """Limits over the life of one `JudgeClient`; None is no limit.

    Requests in flight still finish; ``max_requests`` includes retries. If the endpoint reports no
    tokens, ``max_tokens`` ends asking at once.
    """

    model_config = _FROZEN

    max_requests: int | None = Field(default=None, ge=0)
    max_tokens: int | None = Field(default=None, ge=0)


@dataclass(frozen=True)
class TokenLimit:
    """The field of a request that limits the tokens of an answer, and its value."""

    field: str
    most: int


class JudgeSettings(BaseModel):
    """An OpenAI-compatible endpoint and the requests to it.

    A field that is None is left out of the request.
    """

    model_config = _FROZEN

    base_url: str  # ending before /chat/completions
    model: str = Field(min_length=1)
    api_key_env: str = "OPENAI_API_KEY"  # the name of a variable, never the key
    temperature: float | None = Field(default=0.0, ge=0)
    max_tokens: int | None = Field(default=1024, ge=1)
    # in place of max_tokens, as some models demand
    max_completion_tokens: int | None = Field(default=None, ge=1)
    timeout: float = Field(default=120.0, gt=0)  # seconds for one whole attempt
    concurrency: int = Field(default=64, ge=1, le=1000)
    # after a 408, 409, 429, 5xx, timeout, broken connection or unreadable reply
    retries: int = Field(default=5, ge=0)
    # seconds, at most; doubled before every further retry, up to 30 s
    backoff: float = Field(default=0.5, ge=0)
    # response_format with the schema; None: until the server answers 400 or 422
    structured: bool | None = None
    extra_body: dict[str, JsonValue] = Field(default_factory=dict)
    images: bool = False  # rubrics with media: true then show them
    image_side: int = Field(default=1024, ge=16)  # pixels of the longer side
    prompt_price: float | None = Field(default=None, ge=0)  # per million tokens
    completion_price: float | None = Field(default=None, ge=0)
    budget: Budget = Budget()
    batch: bool = False  # the Batch API, without concurrency

    @property
    def in_flight(self) -> int:
        """Maximum number of requests in flight.

        Those of a batch all are, with their images in memory.
        """
        if not self.batch:
            return self.concurrency
        return 1000 if self.images else 10_000

    @property
    def token_limit(self) -> TokenLimit | None:
        """The limit on the tokens of an answer, those of its reasoning included.

        None if the endpoint chooses it.
        """
        limits = {
            "max_completion_tokens": self.max_completion_tokens,
            "max_tokens": self.max_tokens,
        }
        for field, limit in limits.items():
            most = self.extra_body.get(field, limit)
            if isinstance(most, int):
                return TokenLimit(field, most)
        return None

    @model_validator(mode="after")
    def _one_limit(self) -> Self:
        both = self.max_completion_tokens is not None and self.max_tokens is not None
        if both and "max_tokens" in self.model_fields_set:
            raise ValueError("max_tokens and max_completion_tokens exclude each other; remove one")
        return self

    @field_validator("base_url")
    @classmethod
    def _plain_address(cls, value: str) -> str:
        """The address, which has neither credentials nor a query."""
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("expected an address such as http://127.0.0.1:8000/v1")
        _ = parts.port, parts.hostname.encode("idna")  # raise ValueError if malformed
        if parts.username or parts.password or parts.query:
            raise ValueError(
                "expected an address without credentials or query; "
                "name the key's variable in api_key_env"
            )
        return value

    @field_validator("api_key_env")
    @classmethod
    def _name_not_key(cls, value: str) -> str:
        if not value.isidentifier() or not value.isascii() or value != value.upper():
            raise ValueError(
                "expected the name of an environment variable, in capitals, not the key itself"
            )
        return value

    def api_key(self) -> str | None:
        """The key from the environment.

        Raises:
            UsageError: it cannot be in an HTTP header.
        """
        key = os.environ.get(self.api_key_env, "").strip()
        if not (key.isascii() and key.isprintable() and " " not in key):
            raise UsageError(
                f"the environment variable {self.api_key_env} does not contain an API key: "
                "expected printable ASCII"
            )
        return key or None

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float | None:
        """Cost in the currency of the prices; None if a price is unknown."""
        if self.prompt_price is None or self.completion_price is None:
            return None
        cost = prompt_tokens * self.prompt_price + completion_tokens * self.completion_price
        return cost / 1_000_000


def judge_identity(settings: JudgeSettings, *, images: bool) -> dict[str, Any]:
    """The settings that determine a verdict, for verdict keys and manifests.

    Neither address nor API key are among them.
    """
    identity: dict[str, Any] = {
        "model": settings.model,
        "temperature": settings.temperature,
        "max_tokens": settings.max_tokens,
        "extra_body": settings.extra_body,
    }
    if settings.max_completion_tokens is not None:
        identity["max_tokens"] = None
        identity["max_completion_tokens"] = settings.max_completion_tokens
    if images:
        identity["images"] = True
        identity["image_side"] = settings.image_side
    return identity


class JudgeConfig(BaseModel):
    """A panel of judges by name, by default the model's.

    ``rubrics`` are by default the first of every task. Below the coverage ``threshold`` a score is
    marked incomplete.
    """

    model_config = _FROZEN

    judges: Annotated[dict[str, JudgeSettings], Field(min_length=1)]
    combine: Rule = "majority"
    threshold: float = Field(0.99, ge=0, le=1)
    rubrics: tuple[str, ...] = ()
    store: Path = Field(default_factory=lambda: cache_root() / "verdicts.sqlite")
