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
    """Positions in ``times`` (increasing) of the frames that a window shows, without repeats.

    The window is sampled at ``start``, ``start + STEP``, …, ``end``. After the end of the video its
    last frame is shown, before the first frame nothing. Runs in time proportional to the frames
    shown, not to the window, which may be 1e9 seconds long.

    >>> frames_shown([Fraction(0), Fraction(1), Fraction(3)], Fraction(0), Fraction(9))
    [0, 1, 2]
    """
    positions: list[int] = []
    time = start
    while time <= end:
        following = bisect_right(times, time)  # position of the first frame that is later
        if following:
            positions.append(following - 1)
        if following == len(times):
            return positions
        # all samples before that frame show the same as this one
        steps = ceil((times[following] - start) / STEP)
        time = start + steps * STEP
    last = bisect_right(times, end) - 1
    if last >= 0 and last not in positions[-1:]:
        positions.append(last)
    return positions


def beyond_end(times: Sequence[Fraction], start: Fraction) -> bool:
    """Whether a window begins more than one step after the last frame, and so shows nothing."""
    return not times or start > times[-1] + STEP


def thin(total: int, most: int | None) -> list[int]:
    """Positions 0 to ``total`` - 1, or ``most`` of them, evenly spread.

    They include the first and the last; a single position is the last one, at the window's end.

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
    """File names of an image sequence in order, and the frame index of each.

    The index is the last number in the name. Unless all names have a number and all numbers differ,
    it is the position in the natural order of the names.
    """
    name_by_number: dict[int, str] = {}
    for name in names:
        stem = name.rpartition(".")[0] or name
        match = _NUMBER.search(stem)
        if match is not None:
            name_by_number[int(match["number"])] = name
    if len(name_by_number) == len(names):
        numbers = sorted(name_by_number)
        return [name_by_number[number] for number in numbers], numbers
    return sorted(names, key=_natural_order), list(range(len(names)))


def _natural_order(name: str) -> list[tuple[int, int, str]]:
    """A sort key by which ``frame9`` comes before ``frame10``, and digits before other text."""
    key: list[tuple[int, int, str]] = []
    # with a group in the pattern, every second part is a number
    for position, part in enumerate(re.split(r"([0-9]{1,18})", name)):
        is_number = position % 2 == 1
        key.append((0, int(part), "") if is_number else (1, 0, part))
    return key
