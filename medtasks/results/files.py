"""Canonical JSON: equal values give equal bytes."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["canonical_json"]


def canonical_json(value: Any, indent: int | None = None) -> str:
    """JSON with sorted keys, UTF-8 text kept, NaN refused: equal values give equal bytes."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False, indent=indent)
