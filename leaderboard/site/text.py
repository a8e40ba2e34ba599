"""Untrusted text: links that may be followed, names that may be part of a file name, data for scripts."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import urlsplit

from medtasks.core.errors import DataError

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+@=~-]*")
_ARXIV = re.compile(r"arXiv[: ]\s*(\d{4}\.\d{4,5}(?:v\d+)?)")
_LINK = re.compile(r"[!-~]+")


def safe_link(text: str | None) -> str | None:
    """``text`` if it is a complete http or https address, else None: other schemes can run scripts."""
    if text is None or not _LINK.fullmatch(text):
        return None
    try:
        parts = urlsplit(text)
    except ValueError:
        return None
    return text if parts.scheme in ("http", "https") and parts.hostname else None


def paper_link(text: str) -> str | None:
    """The address of a citation: an address itself, or the arXiv page of an arXiv number."""
    found = _ARXIV.fullmatch(text)
    return f"https://arxiv.org/abs/{found[1]}" if found else safe_link(text)


def require_name(text: str, what: str) -> str:
    """``text``, if it can be part of file names and addresses.

    Raises:
        DataError: it has characters other than letters, digits and a few signs.
    """
    if not _NAME.fullmatch(text):
        raise DataError(f"board: {what} {text!r} cannot be part of a file name; use letters, digits, `-`, `_` and `.`.")
    return text


def data_script(key: str, value: Any) -> str:
    """A script that stores ``value`` under ``key``: pages opened as files may load scripts, but not fetch data.

    The value is a JSON text in a string literal: no text in it can end the literal or the script, and no key (such
    as ``__proto__``) is special to JavaScript.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return f"(window.medtasks??={{}})['{_literal(key)}']=JSON.parse('{_literal(text)}');\n"


_ESCAPES = {
    "\\": "\\\\", "'": "\\u0027", "<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028",
    "\u2029": "\\u2029", "\ufeff": "\\ufeff", "\n": "\\n", "\r": "\\r",
}  # fmt: skip
"""In this order: a backslash of an escape is not escaped again."""
_SURROGATES = re.compile("[\ud800-\udfff]")


def _literal(text: str) -> str:
    """``text`` as the inside of a JavaScript string in single quotes."""
    for character, escape in _ESCAPES.items():  # a tenth of the time of str.translate
        text = text.replace(character, escape)
    return _SURROGATES.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
