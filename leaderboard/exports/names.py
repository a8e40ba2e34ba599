"""Names from outside, made fit for files."""

from __future__ import annotations

import hashlib
import re

__all__ = ["safe_name"]

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
