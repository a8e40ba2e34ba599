"""JSON that fits a JSON schema, as good as a mark says."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from medtasks.errors import UsageError

__all__ = ["UnfillableError", "filled"]

_HALF = Fraction(1, 2)
_GOOD = {"yes", "true", "correct", "pass", "full", "covered", "met"}
_BAD = {"no", "false", "incorrect", "fail", "none", "missing", "wrong", "not met"}


class UnfillableError(UsageError):
    """The verdict's schema is no JSON schema that can be filled."""


def filled(schema: Any, mark: Fraction, reason: str) -> Any:
    """A value that the JSON ``schema`` allows, as good as ``mark``, from 0 to 1, says.

    Whole numbers and enumerations of numbers get the value at that share of their range, rounded half up (open ends
    are 0 and 1), other numbers the value itself; booleans are true from a half on, and enumerations of words then give
    a known good word, else a bad one, or else their first or last; arrays have the fewest items but at least one;
    texts are the ``reason``. ``UnfillableError`` where the schema refers to itself without end.
    """
    try:
        return _filled(schema, schema, mark, reason)
    except RecursionError:
        raise UnfillableError("the schema refers to itself without end") from None


def _filled(schema: Any, root: Any, mark: Fraction, reason: str) -> Any:
    if not isinstance(schema, dict):
        return reason
    if "$ref" in schema:
        target = root
        for step in filter(None, str(schema["$ref"]).lstrip("#").split("/")):
            target = target.get(step, {})
        return _filled(target, root, mark, reason)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return _picked(schema["enum"], mark)
    for key in ("anyOf", "oneOf", "allOf"):
        if schema.get(key):
            return _filled(next((one for one in schema[key] if one != {"type": "null"}), {}), root, mark, reason)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), "null")
    if kind == "object":
        properties = schema.get("properties") or {}
        names: Sequence[str] = schema.get("required") or list(properties)
        return {name: _filled(properties.get(name), root, mark, reason) for name in names}
    if kind == "array":
        first = [_filled(one, root, mark, reason) for one in schema.get("prefixItems") or ()]
        items = schema.get("items")
        least = min(max(schema.get("minItems", 0), 1), schema.get("maxItems", math.inf)) if items else 0
        return first + [_filled(items, root, mark, reason) for _ in range(least - len(first))]
    if kind in ("integer", "number"):
        return _number(schema, kind == "integer", mark)
    return {"boolean": mark >= _HALF, "null": None}.get(kind, reason[: schema.get("maxLength")])


def _number(schema: Mapping[str, Any], whole: bool, mark: Fraction) -> float:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is None and "exclusiveMinimum" in schema:
        bound = schema["exclusiveMinimum"]
        low = bound + 1 if whole else math.nextafter(bound, math.inf)
    if high is None and "exclusiveMaximum" in schema:
        bound = schema["exclusiveMaximum"]
        high = bound - 1 if whole else math.nextafter(bound, -math.inf)
    if low is None:
        low = min(0, high if high is not None else 0)
    if high is None:
        high = max(1, low)
    if whole:
        return int(low) + _step(int(high) - int(low), mark)
    if mark in (0, 1):
        return high if mark else low
    return float(Fraction(low) + mark * (Fraction(high) - Fraction(low)))


def _picked(values: Sequence[Any], mark: Fraction) -> Any:
    some = [value for value in values if value is not None] or [None]
    if all(isinstance(value, (bool, int, float)) for value in some):
        return sorted(some)[_step(len(some) - 1, mark)]
    good = mark >= _HALF
    named = [value for value in some if str(value).casefold().replace("_", " ") in (_GOOD if good else _BAD)]
    return named[0] if named else some[0 if good else -1]


def _step(steps: int, mark: Fraction) -> int:
    return math.floor(steps * mark + _HALF)
