"""Untrusted text: links that may be followed, and data for scripts."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import urlsplit

_ARXIV = re.compile(r"arXiv[: ]\s*(\d{4}\.\d{4,5}(?:v\d+)?)")
_LINK = re.compile(r"[!-~]+")
_MARKUP = re.compile("[<>&]")


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


def data_script(key: str, value: Any) -> str:
    """A script that stores ``value`` under ``key``: pages opened as files may load scripts, but not fetch data.

    The value is a JSON text in a string literal, both in ASCII: no text in it can end the literal, and no key (such as
    ``__proto__``) is special to JavaScript.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    name, literal = (_MARKUP.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(one)) for one in (key, text))
    return f"(window.medtasks??={{}})[{name}]=JSON.parse({literal});\n"
