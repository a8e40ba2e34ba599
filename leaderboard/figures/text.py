"""Text for figures: anything may come in, what goes out is short and on one line."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from medtasks.text import one_line

__all__ = ["distinct", "listed", "short", "wrapped"]


def short(text: str, most: int = 30) -> str:
    """``text`` on one line; of a long one the beginning and the end, because sizes and versions stand there.

    >>> short("laboratory/Very-Long-Model-Name-72B-Instruct", 24)
    'laboratory/Ve…B-Instruct'
    """
    plain = one_line(text)
    if len(plain) <= most:
        return plain
    end = (most - 1) * 2 // 5
    return f"{plain[: most - 1 - end]}…{plain[len(plain) - end :]}"


def distinct(texts: Sequence[str], most: int = 30) -> list[str]:
    """`short` of each, with a number behind what would otherwise be equal."""
    cut = [short(text, most) for text in texts]
    return [
        f"{text} ({cut[: place + 1].count(text)})" if cut.count(text) > 1 else text for place, text in enumerate(cut)
    ]


def wrapped(text: str, width: int, lines: int = 3) -> str:
    """``text`` in at most ``lines`` lines of ``width`` characters."""
    found = textwrap.wrap(one_line(text), width, max_lines=lines, placeholder=" …")
    return "\n".join(found)


def listed(parts: Sequence[str], most: int = 8) -> str:
    """The parts as a list in a sentence; of many the first, and how many there are besides."""
    more = f" and {len(parts) - most:,} more" if len(parts) > most else ""
    return "; ".join(parts[:most]) + more
