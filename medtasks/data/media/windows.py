"""Which frames a window shows: exact arithmetic on presentation times, no decoding.

arXiv 2607.01751 samples one frame every two seconds from the window's start, plus the frame at its
end. A player shows at a time the last frame whose presentation time is not later, so none after the
window's end is ever chosen.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from math import ceil

STEP = 2  # seconds (or frame indices of an image sequence) between two sampled frames

_NUMBER = re.compile(r"(?P<number>[0-9]{1,18})[^0-9]*\Z")


def exact(seconds: float) -> Fraction:
    """The decimal number as written in JSON, not its binary approximation: 0.1 is one tenth.

    >>> exact(198.84)
    Fraction(4971, 25)
    """
    return Fraction(repr(seconds))


def frames_shown(times: Sequence[Fraction], start: Fraction, end: Fraction) -> list[int]:
    """Positions in ``times`` (increasing) of the frames that a window shows, each once: ``start``,
    ``start + STEP``, …, ``end``. After the end of the video its last frame is shown, before the
    first frame nothing. Runs in time proportional to the frames shown, not to the window, which may
    be 1e9 seconds long.

    >>> frames_shown([Fraction(0), Fraction(1), Fraction(3)], Fraction(0), Fraction(9))
    [0, 1, 2]
    """
    shown: list[int] = []
    time = start
    while time <= end:
        following = bisect_right(times, time)  # position of the first frame that is later
        if following:
            shown.append(following - 1)
        if following == len(times):
            return shown
        steps = ceil(
            (times[following] - start) / STEP
        )  # before that frame, the samples show the same as this one
        time = start + steps * STEP
    last = bisect_right(times, end) - 1
    return shown if last < 0 or shown[-1:] == [last] else [*shown, last]


def beyond_end(times: Sequence[Fraction], start: Fraction) -> bool:
    """Whether a window that starts at ``start`` begins more than one step after the last frame and
    so shows nothing.
    """
    return not times or start > times[-1] + STEP


def thin(total: int, most: int | None) -> list[int]:
    """Positions 0 to ``total`` - 1, or ``most`` of them, evenly spread, with the first and the
    last.

    A single position is the last one, at the window's end.

    >>> thin(10, 4), thin(3, 8), thin(5, 1)
    ([0, 3, 6, 9], [0, 1, 2], [4])
    """
    if most is None or total <= most:
        return list(range(total))
    if most == 1:
        return [total - 1]
    # (2ab + c) // 2c is a·b/c rounded half up, in integers
    return [(2 * number * (total - 1) + most - 1) // (2 * (most - 1)) for number in range(most)]


def frame_numbers(names: Sequence[str]) -> tuple[list[str], list[int]]:
    """File names of an image sequence in order, and the frame index of each: the last number in its
    name, or its position in the natural order of names unless all names have a number and all
    differ.
    """
    found = [_NUMBER.search(name.rpartition(".")[0] or name) for name in names]
    numbers = [int(match["number"]) for match in found if match is not None]
    if len(numbers) == len(names) == len(set(numbers)):
        pairs = sorted(zip(numbers, names, strict=True))
        return [name for _, name in pairs], [number for number, _ in pairs]

    def natural(name: str) -> list[tuple[int, int, str]]:
        parts = re.split(r"([0-9]{1,18})", name)
        return [
            (0, int(part), "") if number % 2 else (1, 0, part) for number, part in enumerate(parts)
        ]

    return sorted(names, key=natural), list(range(len(names)))
