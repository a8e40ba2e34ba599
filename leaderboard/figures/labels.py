"""Labels of figures, cut to the room that there is."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence

from medtasks.core.text import first_names, one_line


def short(text: str, most: int = 30) -> str:
    """``text`` on one line of at most ``most`` characters.

    A long text is cut in the middle, because names of models end with their size and version.
    """
    line = one_line(text)
    if len(line) <= most:
        return line
    tail = (most - 1) * 2 // 5
    head = most - 1 - tail
    return f"{line[:head]}…{line[len(line) - tail :]}"


def distinct(texts: Sequence[str], most: int = 30) -> list[str]:
    """The texts, each shortened by :func:`short`; those that are then equal are numbered."""
    shortened = [short(text, most) for text in texts]
    totals = Counter(shortened)
    counts: Counter[str] = Counter()
    labels = []
    for text in shortened:
        counts[text] += 1
        labels.append(f"{text} ({counts[text]})" if totals[text] > 1 else text)
    return labels


def wrapped(text: str, width: int) -> str:
    """``text`` in at most three lines of ``width`` characters."""
    lines = textwrap.wrap(one_line(text), width, max_lines=3, placeholder=" …")
    return "\n".join(lines)


def joined(texts: Iterable[str], most: int = 8) -> str:
    """The first ``most`` texts separated by semicolons, and how many more there are."""
    return first_names(texts, most, separator="; ")
