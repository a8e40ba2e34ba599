"""lmms-eval's back-ends for endpoints, with clients whose every call is an :class:`Exchange`.

For each request, a back-end is copied and its client replaced. What it would change in a request is
undone: pictures that are compressed or made smaller, limits of tokens, and parameters that
endpoints refuse.
"""

from __future__ import annotations

import copy
import inspect
import os
from collections.abc import Callable
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any, NamedTuple

from medtasks.runs.replies import Reply, is_blank

from ..presentation import backend_name, picture_encoding
from .exchange import Exchange
from .responses import reply_of_completion, reply_of_content, reply_of_message

_PATIENCE = 600.0
"""Seconds for one attempt by default, as in the package of OpenAI."""
_IGNORED_TIMEOUTS = {"openai": 10, "litellm": 10, "gemini": 120, "claude": None}
"""lmms-eval's defaults by back-end; it passes them to no package."""
_UNLIMITED_MB = 10**6
_REASONING_MODELS = ("o1", "o3", "o4", "gpt-5")
"""Parts of names of models to which lmms-eval sends no temperature."""
_NO_TOKEN = "\0"
"""A text that is in no prompt."""


class _ClaudeRequest(NamedTuple):
    """A request of ``claude``, which makes its client itself; it is limited to ``most_tokens``."""

    client: Any
    exchange: Exchange
    most_tokens: int | None


_REQUEST: ContextVar[_ClaudeRequest | None] = ContextVar("request", default=None)
"""The request that a thread sends; None where lmms-eval sends those of tasks that are not ours."""


def is_endpoint(lm: Any) -> bool:
    """Whether a back-end's requests are sent here, one by one."""
    is_from_harness = type(lm).__module__.startswith("lmms_eval.models.")
    return is_from_harness and backend_name(lm) in _IGNORED_TIMEOUTS


def reader_of(lm: Any) -> Callable[[Any], Reply]:
    """The function that makes a reply of a response to a back-end."""
    readers = {"gemini": reply_of_content, "claude": reply_of_message}
    if backend_name(lm) == "litellm" and "responses/" in lm.model_version:
        return _reply_of_bridged_response
    return readers.get(backend_name(lm), reply_of_completion)


def _reply_of_bridged_response(response: Any) -> Reply:
    """The reply in a response of OpenAI's responses API, through ``litellm``.

    ``litellm`` (1.110) drops a refusal's text and reports an ordinary end.
    """
    reply = reply_of_completion(response)
    if reply.failed is None and is_blank(reply.text) and reply.finish == "stop":
        return Reply.failure("no content: the endpoint refused, or answered nothing")
    return reply


def provide_client(lm: Any) -> None:
    """Give a back-end the client that its requests share: ``claude`` makes one for each call."""
    if backend_name(lm) == "claude" and not hasattr(lm, "client"):
        import anthropic

        lm.client = anthropic.Anthropic(max_retries=0, timeout=_timeout_of(lm))


def asking_copy(lm: Any, request: Any, exchange: Exchange) -> Any:
    """A copy of a back-end for one request, whose client passes its call to ``exchange``."""
    asker = copy.copy(lm)
    asker.max_retries = 1
    asker.adaptive_concurrency = False
    asker._rank = 1  # without a progress bar of its own
    if hasattr(asker, "max_size_in_mb"):
        asker.max_size_in_mb = _UNLIMITED_MB
    name = backend_name(lm)
    if name == "gemini":
        asker.client = _gemini_client(lm, exchange)
    elif name == "claude":
        _prepare_claude(asker, request, exchange)
    elif name == "litellm":
        asker.client = _litellm_client(lm, exchange)
    else:
        asker.client = _openai_client(lm, exchange)
    return asker


def _timeout_of(lm: Any) -> float:
    """The seconds for one attempt: ``timeout`` of the model's arguments if it was set."""
    timeout = getattr(lm, "timeout", None)
    if timeout is None or timeout == _IGNORED_TIMEOUTS[backend_name(lm)]:
        return _PATIENCE
    return float(timeout)


def _chat_client(create: Callable[..., Any]) -> Any:
    """A client of which back-ends call ``chat.completions.create``."""
    return SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create)))


def _openai_client(lm: Any, exchange: Exchange) -> Any:
    """The client of ``openai``; it does not repeat requests itself."""
    client = lm.client.with_options(max_retries=0, timeout=_timeout_of(lm))

    def create(**payload: Any) -> Any:
        return exchange.send(lambda: client.chat.completions.create(**payload))

    return _chat_client(create)


def _litellm_client(lm: Any, exchange: Exchange) -> Any:
    """The client of ``litellm``; it does not repeat requests itself."""
    litellm = _imported_litellm()
    # it prints advice to report issues after each error
    litellm.suppress_debug_info = True
    shim = type(lm.client)(*_litellm_access(lm, litellm))
    settings = {"num_retries": 0, "max_retries": 0, "timeout": _timeout_of(lm)}
    takes_temperature = _litellm_takes_temperature(lm.model_version)

    def create(**payload: Any) -> Any:
        if not takes_temperature:
            payload.pop("temperature", None)
        return exchange.send(lambda: shim.chat.completions.create(**payload, **settings))

    return _chat_client(create)


def _imported_litellm() -> Any:
    """The package, which would download a table of prices when it is imported."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    import litellm

    return litellm


def _litellm_access(lm: Any, litellm: Any) -> tuple[str | None, str | None]:
    """Key and address for ``litellm``.

    lmms-eval takes those of OpenAI from the environment by default, for any provider.
    """
    completions = lm.client.chat.completions
    key, address = completions._api_key, completions._base_url
    _, provider, *_ = litellm.get_llm_provider(lm.model_version)
    if provider == "openai":
        return key, address
    if key == os.environ.get("OPENAI_API_KEY"):
        key = None
    if address == os.environ.get("OPENAI_API_BASE"):
        address = None
    return key, address


def _gemini_client(lm: Any, exchange: Exchange) -> Any:
    """The client of ``gemini``; it does not repeat requests itself."""
    from lmms_eval.models.simple.gemini import types

    once = types.HttpOptions(
        timeout=int(1000 * _timeout_of(lm)),  # milliseconds
        retry_options=types.HttpRetryOptions(attempts=1),
    )

    def generate_content(model: str, contents: Any, config: Any) -> Any:
        settings = config.model_copy(update={"http_options": once})
        return exchange.send(
            lambda: lm.client.models.generate_content(
                model=model, contents=contents, config=settings
            )
        )

    models = SimpleNamespace(generate_content=generate_content)
    return SimpleNamespace(models=models, files=lm.client.files)


def _prepare_claude(asker: Any, request: Any, exchange: Exchange) -> None:
    """Make a copy of ``claude`` send pictures as they are, by a client of ours.

    lmms-eval compresses them (JPEG, quality 85), makes large ones smaller, and lowers limits above
    4,096 tokens.
    """
    from lmms_eval.models.model_utils.media_encoder import encode_image_to_base64
    from lmms_eval.models.simple import claude

    picture_format, quality = picture_encoding()

    def encode(picture: Any) -> str:
        is_lossy = picture_format != "PNG"
        text: str = encode_image_to_base64(
            picture, image_format=picture_format, convert_rgb=is_lossy, quality=quality
        )
        return text

    asker.image_token = _NO_TOKEN
    asker.encode_image = encode
    asker.shrink_image_to_file_size = lambda picture: picture
    claude.anthropic = SimpleNamespace(Anthropic=_claude_client)
    _, settings, *_ = request.args
    _REQUEST.set(_ClaudeRequest(asker.client, exchange, settings.get("max_new_tokens")))


def _claude_client() -> Any:
    """The client of the request that this thread sends, or the vendor's own."""
    request = _REQUEST.get()
    if request is None:
        import anthropic

        return anthropic.Anthropic()
    client, exchange, most_tokens = request

    def create(**payload: Any) -> Any:
        body = _accepted_by_claude(payload, client)
        if most_tokens is not None:
            body["max_tokens"] = most_tokens
        return exchange.send(lambda: client.messages.create(**body))

    return SimpleNamespace(messages=SimpleNamespace(create=create))


def _accepted_by_claude(payload: dict[str, Any], client: Any) -> dict[str, Any]:
    """A request without what current models refuse: an empty system prompt, and ``top_p`` beside
    the temperature; lmms-eval sends ``top_p=1``, which excludes no token.

    Version 2 of ``anthropic`` takes no temperature: its version of the API refuses it.
    """
    body = dict(payload)
    if not body["system"]:
        del body["system"]
    if body["top_p"] == 1:
        del body["top_p"]
    if not _takes_temperature(client):
        del body["temperature"]
    picture_format, _ = picture_encoding()
    for part in body["messages"][0]["content"]:
        if part["type"] == "image":
            part["source"]["media_type"] = f"image/{picture_format.lower()}"
    return body


def _takes_temperature(client: Any) -> bool:
    """Whether a client of ``anthropic`` sends a temperature."""
    return "temperature" in inspect.signature(client.messages.create).parameters


def leaves_out_temperature(lm: Any) -> bool:
    """Whether a back-end sends no temperature, because the model or the package takes none."""
    name = backend_name(lm)
    if name == "claude":
        provide_client(lm)
        return not _takes_temperature(lm.client)
    if name == "litellm" and not _litellm_takes_temperature(lm.model_version):
        return True
    if name in ("openai", "litellm", "async_openai") and not lm.is_simple:
        return takes_no_temperature(lm.model_version)
    return False


def takes_no_temperature(model: str) -> bool:
    """Whether lmms-eval's ``openai`` sends no temperature to a model of this name."""
    return any(part in model for part in _REASONING_MODELS)


def _litellm_takes_temperature(model: str) -> bool:
    """Whether ``litellm`` passes a temperature to a model; it refuses it for some."""
    litellm = _imported_litellm()
    parameters = litellm.get_supported_openai_params(model)
    return parameters is None or "temperature" in parameters
