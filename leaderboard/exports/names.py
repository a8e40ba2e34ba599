"""Names from outside, made fit for files and for one line of text."""

from __future__ import annotations

import hashlib
import re

__all__ = ["one_line", "safe_name"]

_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")


def safe_name(text: str) -> str:
    """``text`` as (part of) a file name: itself where that is safe, else with a hash, so that none takes another's.

    >>> safe_name("mi_cxr"), safe_name("../etc")
    ('mi_cxr', 'etc-f7f9121f')
    """
    kept = _UNSAFE.sub("-", text).strip("-.")[:80]
    if kept == text and text:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{kept}-{digest}".lstrip("-")


def one_line(text: str) -> str:
    """``text`` on one line: white space as single spaces, control and formatting characters as U+FFFD."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in " ".join(text.split()))
