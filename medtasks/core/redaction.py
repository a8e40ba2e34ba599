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


def is_secret(name: str) -> bool:
    """Whether a setting of that name is a key (``api_key``, ``token``), which is never shown.

    >>> [is_secret(name) for name in ("api_key", "hf-token", "key", "api_key_env", "max_new_tokens")]
    [True, True, True, False, False]
    """
    return bool(_SECRET_NAME.search(name))


def shown(value: Any) -> str:
    """``value`` as text, local paths cut to their last part, addresses and what looks like a key
    hidden.

    >>> shown("/data/models/Qwen2.5-VL-7B/"), shown("Qwen/Qwen2.5-VL-7B"), shown("at ~/x/judge.yaml: no such file")
    ('Qwen2.5-VL-7B', 'Qwen/Qwen2.5-VL-7B', 'at judge.yaml: no such file')
    """
    text = value if isinstance(value, str) else canonical_json(_redacted(value))
    text = _ADDRESS.sub(HIDDEN, _SECRET.sub(HIDDEN, text))
    stripped = text.strip()
    if re.match(r"(~|\.{1,2}|[A-Za-z]:)?[/\\]", stripped) and not re.search(
        r"[\n,;'\"<>|=()]", stripped
    ):
        return _last(stripped)  # a whole path, which may have spaces
    # a separator alone is not a path
    return _PATH.sub(
        lambda found: found[1] or (found[0] if len(found[0]) == 1 else _last(found[0])), text
    )


def _last(path: str) -> str:
    return re.split(r"[/\\]", path.rstrip("/\\"))[-1] or HIDDEN


def _redacted(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            str(key): HIDDEN if is_secret(str(key)) else _redacted(one)
            for key, one in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_redacted(one) for one in value]
    if isinstance(value, str):
        return shown(value)
    return value if isinstance(value, (int, float, bool)) or value is None else str(value)


def shown_argument(text: str) -> str:
    """Arguments of a back-end, ``key=value,key=value``, redacted.

    >>> shown_argument("pretrained=/data/Qwen,api_key=abc,device=cuda:0")
    'pretrained=Qwen,api_key=…,device=cuda:0'
    """
    entries = [entry.partition("=") for entry in text.split(",")]
    return ",".join(
        f"{key}={HIDDEN if is_secret(key.strip()) else shown(value)}" if equals else shown(key)
        for key, equals, value in entries
    )


def shown_facts(facts: Mapping[str, Any]) -> dict[str, str]:
    """Every fact that is set, as text, by name."""
    found = {}
    for key, value in sorted((str(key), value) for key, value in facts.items()):
        if value not in (None, ""):
            arguments = key == "model_args" and isinstance(value, str)
            found[key] = (
                HIDDEN if is_secret(key) else shown_argument(value) if arguments else shown(value)
            )
    return found
