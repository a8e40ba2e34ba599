"""Damaged copies of files, drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

INTERESTING = (0, 1, 0x7F, 0x80, 0xFE, 0xFF)


def damaged(data: bytes, draw: random.Random) -> bytes:
    """A copy with a few bytes changed, a part cut off, doubled, removed, zeroed or exchanged."""
    copy = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 4, 12))):
        if not copy:
            break
        # headers decide more than pixels do
        span = draw.choice((16, 64, 400, len(copy)))
        start = draw.randrange(min(span, len(copy)))
        end = min(len(copy), start + draw.choice((1, 2, 4, 30, 500)))
        kind = draw.randrange(7)
        if kind == 0:
            copy[start] = draw.choice(INTERESTING)
        elif kind == 1:
            copy[start] ^= 1 << draw.randrange(8)
        elif kind == 2:
            copy[start:end] = draw.randbytes(end - start)
        elif kind == 3:
            copy[start:end] = bytes(end - start)
        elif kind == 4:
            del copy[start:end]
        elif kind == 5:
            copy[start:start] = copy[start:end]
        else:
            del copy[draw.randrange(len(copy)) :]
    return bytes(copy)


ODD: Sequence[Any] = (
    *(None, True, False, 0, -1, 1, 2**63, 10**30, 0.5, -0.0, 1e308, float("inf"), float("nan")),
    *("", " ", "A", "F", "\x00", "\ud800", "é", "../x", "/etc/passwd", "a" * 3000, "1", "[]", "{}"),
    *([], {}, [None], [[]], {"A": "x"}, {"": ""}, [0, 1], [1, 0], ["a", "a"]),
)


def changed(value: Any, draw: random.Random) -> Any:
    """A copy of a JSON value with one part replaced, removed, renamed or repeated."""
    if isinstance(value, dict) and value and draw.random() < 0.85:
        key = draw.choice(list(value))
        kind = draw.randrange(6)
        if kind == 0:
            return {name: part for name, part in value.items() if name != key}
        if kind == 1:
            return {f"{name}{'_' * (name == key)}": part for name, part in value.items()}
        return {**value, key: changed(value[key], draw)}
    if isinstance(value, list) and value and draw.random() < 0.7:
        place = draw.randrange(len(value))
        kind = draw.randrange(5)
        if kind == 0:
            return [*value, value[place]]
        if kind == 1:
            return [part for number, part in enumerate(value) if number != place]
        return [
            changed(part, draw) if number == place else part for number, part in enumerate(value)
        ]
    return draw.choice(ODD)
