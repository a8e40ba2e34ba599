"""Settings of judges: a YAML file, or ``field=value`` pairs on the command line or in the
environment.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    field_validator,
    model_validator,
)
from typing_extensions import Self

from medtasks.core.cache import cache_root
from medtasks.core.errors import UsageError
from medtasks.core.schema import problems
from medtasks.core.settings import current_settings
from medtasks.runs.verdict import Rule

# hide_input_in_errors: an API key in the wrong field must not be printed
_FROZEN = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, allow_inf_nan=False)

VARIABLE = "MEDTASKS_JUDGE"
"""Environment variable that configures judges for runs of the harness: a file, or
``model=…,base_url=…``.
"""


class Budget(BaseModel):
    """Limits over the life of one `JudgeClient`; None is no limit. Requests in flight still finish;
    ``max_requests`` includes retries. If the endpoint reports no tokens, ``max_tokens`` ends asking
    at once.
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
    """An OpenAI-compatible endpoint and the requests to it; None leaves a field out of the
    request.
    """

    model_config = _FROZEN

    base_url: str  # ending before /chat/completions
    model: str = Field(min_length=1)
    api_key_env: str = "OPENAI_API_KEY"  # the name of a variable, never the key
    temperature: float | None = Field(default=0.0, ge=0)
    max_tokens: int | None = Field(default=1024, ge=1)
    max_completion_tokens: int | None = Field(
        default=None, ge=1
    )  # in place of max_tokens, as some models demand
    timeout: float = Field(default=120.0, gt=0)  # seconds for one whole attempt
    concurrency: int = Field(default=64, ge=1, le=1000)
    retries: int = Field(
        default=5, ge=0
    )  # after a 408, 409, 429, 5xx, timeout, broken connection or unreadable reply
    backoff: float = Field(
        default=0.5, ge=0
    )  # seconds, at most; doubled before every further retry, up to 30 s
    structured: bool | None = (
        None  # response_format with the schema; None: until the server answers 400 or 422
    )
    extra_body: dict[str, JsonValue] = Field(default_factory=dict)
    images: bool = False  # rubrics with media: true then show them
    image_side: int = Field(default=1024, ge=16)  # pixels of the longer side
    prompt_price: float | None = Field(default=None, ge=0)  # per million tokens
    completion_price: float | None = Field(default=None, ge=0)
    budget: Budget = Budget()
    batch: bool = False  # the Batch API, without concurrency

    @property
    def in_flight(self) -> int:
        """Maximum number of requests in flight; those of a batch all are, with their images in
        memory.
        """
        return (1000 if self.images else 10_000) if self.batch else self.concurrency

    @property
    def token_limit(self) -> TokenLimit | None:
        """The limit on the tokens of an answer, those of its reasoning included; None if the
        endpoint chooses it."""
        for name in ("max_completion_tokens", "max_tokens"):
            most = self.extra_body.get(name, getattr(self, name))
            if isinstance(most, int):
                return TokenLimit(name, most)
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
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("expected an address such as http://127.0.0.1:8000/v1")
        _ = parts.port, parts.hostname.encode("idna")  # raise ValueError if malformed
        if parts.username or parts.password or parts.query:
            raise ValueError(
                "expected an address without credentials or query; name the key's variable in api_key_env"
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
        """The key from the environment; raises :class:`UsageError` if it cannot be in an HTTP
        header.
        """
        key = os.environ.get(self.api_key_env, "").strip()
        if not (key.isascii() and key.isprintable() and " " not in key):
            raise UsageError(
                f"the environment variable {self.api_key_env} does not contain an API key: expected printable ASCII"
            )
        return key or None

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float | None:
        """Cost in the currency of the prices; None if a price is unknown."""
        if self.prompt_price is None or self.completion_price is None:
            return None
        return (
            prompt_tokens * self.prompt_price + completion_tokens * self.completion_price
        ) / 1_000_000


def judge_identity(settings: JudgeSettings, *, images: bool) -> dict[str, Any]:
    """The settings that determine a verdict, for verdict keys and manifests; neither address nor
    API key.
    """
    fields = ["model", "temperature", "max_tokens", "extra_body"]
    identity = {name: getattr(settings, name) for name in fields}
    if settings.max_completion_tokens is not None:
        identity |= {"max_tokens": None, "max_completion_tokens": settings.max_completion_tokens}
    return identity | ({"images": True, "image_side": settings.image_side} if images else {})


class JudgeConfig(BaseModel):
    """A panel of judges by name, by default the model's; ``rubrics`` are by default the first of
    every task. Below the coverage ``threshold`` a score is marked incomplete.
    """

    model_config = _FROZEN

    judges: Annotated[dict[str, JudgeSettings], Field(min_length=1)]
    combine: Rule = "majority"
    threshold: float = Field(0.99, ge=0, le=1)
    rubrics: tuple[str, ...] = ()
    store: Path = Field(default_factory=lambda: cache_root() / "verdicts.sqlite")


def configured_judges() -> JudgeConfig | None:
    """The configuration in ``MEDTASKS_JUDGE``, if it is set; raises :class:`UsageError` as
    :func:`read_judges`.
    """
    given = current_settings().judge
    if not given:
        return None
    config = read_judges([given])
    if batched := next((name for name, one in config.judges.items() if one.batch), None):
        raise UsageError(
            f"{VARIABLE}: judge {batched!r} has batch: true, which may take a day and would keep the model waiting; "
            "judge the finished run with `medtasks judge`."
        )
    return config


def read_judges(given: Sequence[str], **more: Any) -> JudgeConfig:
    """The panel of judges in ``given``, each a YAML file or a text such as ``model=…,base_url=…``.

    A file has one judge's settings, or ``judges`` (a list of them) and other fields of
    :class:`JudgeConfig`. ``more`` are such fields too, and take precedence unless they are None.
    What is wrong is a :class:`UsageError` with file and field.
    """
    merged: dict[str, Any] = {}
    judges: dict[str, Any] = {}
    sources = [
        text if "=" not in text else "the judge's settings" for text in given
    ]  # a text may contain a key
    for text, source in zip(given, sources, strict=True):
        content = _content(text)
        several, content = (
            (content.pop("judges"), content) if "judges" in content else ([content], {})
        )
        if not isinstance(several, list) or not all(isinstance(one, dict) for one in several):
            raise UsageError(
                f"{source}: field `judges` must be a list of judges, each with base_url and model."
            )
        for one in several:
            name = str(one.pop("name", None) or one.get("model") or "judge")
            if name in judges:
                raise UsageError(
                    f"{source}: two judges are called {name!r}; give each a `name` of its own."
                )
            judges[name] = one
        merged |= {field: value for field, value in content.items() if value is not None}
    merged |= {field: value for field, value in more.items() if value is not None}
    try:
        return JudgeConfig.model_validate({**merged, "judges": judges})
    except ValidationError as error:
        # secret: a key may be in the wrong field; unknown fields first: one that is missing may
        # only be misspelt
        found = min(
            problems(error, JudgeConfig, secret=True), key=lambda one: one.kind != "extra_forbidden"
        )
        field = str(found.keys[0])
        source = f"--{field}" if more.get(field) is not None else ", ".join(sources)
        raise UsageError(f"{source}: {found.message}; correct the judge's settings.") from None


def _content(text: str) -> dict[str, Any]:
    content: Any = {}
    if "=" in text and not Path(text).is_file():
        for entry in text.split(","):
            field, equals, value = entry.partition("=")
            if not equals or not field.strip():
                raise UsageError(
                    "give a judge as field=value pairs separated by commas, such as "
                    "model=NAME,base_url=http://127.0.0.1:8000/v1, or as a YAML file."
                )
            try:
                content[field.strip()] = yaml.safe_load(value)
            except (yaml.YAMLError, ValueError, RecursionError):  # for example an invalid date
                content[field.strip()] = value
        return {**content, "model": str(content["model"])} if "model" in content else content
    try:
        content = yaml.safe_load(Path(text).read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        why = error.strerror if isinstance(error, OSError) else "not valid YAML"
        raise UsageError(
            f"{text}: the judge's settings cannot be read ({why}); give a YAML file, or model=NAME,base_url=ADDRESS."
        ) from None
    if not isinstance(content, Mapping):
        found = "is empty" if content is None else f"has a {type(content).__name__}"
        raise UsageError(f"{text}: {found}, expected a mapping with base_url and model.")
    return dict(content)
