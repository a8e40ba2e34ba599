"""Settings of a run without local paths, addresses and secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from medtasks.core.files import canonical_json

HIDDEN = "…"
"""Replaces redacted text."""

_SECRET_NAME = re.compile(
    r"(^|[_-])(api|access|secret|private|auth)?[_-]?(key|token|secret|password|passwd|credentials?|authorization)$",
    re.I,
)
SECRETS: Mapping[str, re.Pattern[str]] = {
    "an API key": re.compile(r"(?<![A-Za-z0-9_-])(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}"),
    "a hub token": re.compile(r"(?<![A-Za-z0-9])hf_[A-Za-z0-9]{16,}"),
    "a code host's token": re.compile(
        r"(?<![A-Za-z0-9])(?:gh[opsur]_[A-Za-z0-9]{20,}|github_pat_\w{20,})"
    ),
    "a cloud key": re.compile(r"(?<![A-Za-z0-9])(?:AKIA[A-Z0-9]{12,}|AIza[A-Za-z0-9_-]{20,})"),
    "a chat token": re.compile(r"(?<![A-Za-z0-9])xox[abeprs]-[A-Za-z0-9-]{10,}"),
    "a bearer token": re.compile(r"\b[Bb]earer\s+[A-Za-z0-9._~+/-]{16,}"),
    "a private key": re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY"),
    "an api_key": re.compile(
        r"""\b(?i:api|access|secret)[_-]?(?i:key)\\?["']?\s*[:=]\s*\\?["']?(?!null\b)[\w./+-]{8,}"""
    ),
}
"""Patterns of keys and tokens, by kind."""
_SECRET = re.compile("|".join(pattern.pattern for pattern in SECRETS.values()))
_ADDRESS = re.compile(r"\b(https?|wss?|ftp|s3|gs|file)://[^\s'\"<>|]+", re.I)
_PATH = re.compile(
    r"(?<![\w./\\~])(?:(?:~[\w.-]*|\.{1,2}|[A-Za-z]:)?[/\\](?:[^/\\\s,;:'\"<>|=()]+[/\\])*)([^/\\\s,;:'\"<>|=()]*)"
)

_PATH_START = re.compile(r"(~|\.{1,2}|[A-Za-z]:)?[/\\]")
_NO_PATH = re.compile(r"[\n,;'\"<>|=()]")
"""Characters that a path does not have."""


def is_secret(name: str) -> bool:
    """Whether a setting of that name is a key (``api_key``, ``token``), which is never shown.

    >>> names = ("api_key", "hf-token", "key", "api_key_env", "max_new_tokens")
    >>> [is_secret(name) for name in names]
    [True, True, True, False, False]
    """
    return bool(_SECRET_NAME.search(name))


def without_keys(text: str) -> str:
    """The text without what looks like a key or token."""
    return _SECRET.sub(HIDDEN, text)


def shown(value: Any) -> str:
    """``value`` as text, local paths cut to their last part, addresses and what looks like a key
    hidden.

    >>> (shown("/data/models/Qwen2.5-VL-7B/"),
    ...  shown("Qwen/Qwen2.5-VL-7B"),
    ...  shown("at ~/x/judge.yaml: no such file"))
    ('Qwen2.5-VL-7B', 'Qwen/Qwen2.5-VL-7B', 'at judge.yaml: no such file')
    """
    text = value if isinstance(value, str) else canonical_json(_redacted(value))
    text = _ADDRESS.sub(HIDDEN, without_keys(text))
    stripped = text.strip()
    if _PATH_START.match(stripped) and not _NO_PATH.search(stripped):
        return _last_part(stripped)  # a whole path, which may have spaces
    return _PATH.sub(_shortened_path, text)


def _shortened_path(match: re.Match[str]) -> str:
    """The last part of a path in a text; a separator alone is not a path."""
    path, name = match[0], match[1]
    if name or len(path) == 1:
        return name or path
    return _last_part(path)


def _last_part(path: str) -> str:
    return re.split(r"[/\\]", path.rstrip("/\\"))[-1] or HIDDEN


def _redacted(value: Any) -> Any:
    """``value`` with its keys and strings redacted, at any depth, and other objects as text."""
    if isinstance(value, Mapping):
        redacted = {}
        for key, item in value.items():
            redacted[str(key)] = HIDDEN if is_secret(str(key)) else _redacted(item)
        return redacted
    if isinstance(value, list | tuple):
        return [_redacted(item) for item in value]
    if isinstance(value, str):
        return shown(value)
    if value is None or isinstance(value, int | float | bool):
        return value
    return str(value)


def shown_argument(text: str) -> str:
    """Arguments of a back-end, ``key=value,key=value``, redacted.

    >>> shown_argument("pretrained=/data/Qwen,api_key=abc,device=cuda:0")
    'pretrained=Qwen,api_key=…,device=cuda:0'
    """
    arguments = []
    for entry in text.split(","):
        key, equals, value = entry.partition("=")
        if not equals:
            arguments.append(shown(key))
        elif is_secret(key.strip()):
            arguments.append(f"{key}={HIDDEN}")
        else:
            arguments.append(f"{key}={shown(value)}")
    return ",".join(arguments)


def shown_facts(facts: Mapping[str, Any]) -> dict[str, str]:
    """Every fact that is set, as text, by name."""
    texts = {}
    for key, value in sorted((str(key), value) for key, value in facts.items()):
        if value in (None, ""):
            continue
        if is_secret(key):
            texts[key] = HIDDEN
        elif key == "model_args" and isinstance(value, str):
            texts[key] = shown_argument(value)
        else:
            texts[key] = shown(value)
    return texts
