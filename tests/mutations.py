"""Damaged and hostile versions of a file, drawn from a seed: bytes that changed, and JSON values of
other kinds.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from typing import Any

VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 10**30, 1.5, -0.0, 1e308, "", " ", "0", "null", "\ud800", "\x00\u202e",
    "../../etc/passwd", "x" * 100_000, [], {}, [None], [[[[]]]], {"": None}, {"__proto__": 1},
)  # fmt: skip
"""What a value is replaced by."""
TOKENS = (
    b"NaN", b"Infinity", b"-", b"{", b"}", b"[", b"]", b'"', b",", b":", b"\\", b"\\u12", b"\\geq", b"\x00", b"\xff",
    b"\n", b"\xef\xbb\xbf", b"[" * 5000, b'{"a":' * 2000, b"9" * 5000, b"<think>", b"```", "\u2028".encode(),
)  # fmt: skip
"""What is put between bytes."""


def mutated(content: bytes, draw: random.Random) -> bytes:
    """``content`` with one to three changes: of a JSON value, or of bytes."""
    for _ in range(draw.randint(1, 3)):
        change = draw.choice(
            (_with_other_value, _with_other_value, _with_token, _with_flip, _shortened, _repeated)
        )
        content = change(content, draw)
    return content


def mutated_line(content: bytes, draw: random.Random) -> bytes:
    """``content`` with a change in one of its lines, or of its lines."""
    lines = content.splitlines(keepends=True)
    place = draw.randrange(len(lines))
    if draw.random() < 0.2:
        return b"".join(draw.sample(lines, draw.randrange(len(lines) + 1)))
    lines[place] = mutated(lines[place], draw)
    return b"".join(lines)


def _with_other_value(content: bytes, draw: random.Random) -> bytes:
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return _with_token(content, draw)
    places = list(_places(document))
    if not places:
        return content
    *above, last = draw.choice(places)
    parent = document
    for key in above:
        parent = parent[key]
    kind = draw.randrange(4)
    if kind == 0 and isinstance(parent, dict):
        del parent[last]
    elif kind == 1 and isinstance(parent, dict):
        parent[f"{last}{draw.choice(('', ' ', 's'))}"] = parent.pop(last)
    else:
        parent[last] = draw.choice(VALUES)
    return json.dumps(document).encode() + b"\n" * content.endswith(b"\n")


def _places(value: Any, above: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths to all values in a JSON document."""
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    else:
        return
    for key, one in inner:
        yield (*above, key)
        yield from _places(one, (*above, key))


def _with_token(content: bytes, draw: random.Random) -> bytes:
    place = draw.randint(0, len(content))
    return content[:place] + draw.choice(TOKENS) + content[place:]


def _with_flip(content: bytes, draw: random.Random) -> bytes:
    if not content:
        return content
    changed = bytearray(content)
    changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def _shortened(content: bytes, draw: random.Random) -> bytes:
    return content[: draw.randint(0, len(content))]


def _repeated(content: bytes, draw: random.Random) -> bytes:
    first, last = sorted((draw.randint(0, len(content)), draw.randint(0, len(content))))
    return content[:last] + content[first:]
