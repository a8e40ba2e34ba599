"""The machine's speed: CPU seconds of a fixed loop of Python and of a fixed loop of NumPy, to state
beside others.
"""

from __future__ import annotations

import time

import numpy as np


def python_seconds() -> float:
    """CPU seconds of ten million additions to a local variable; to a global one they take about
    twice as long.
    """
    start = time.process_time()
    total = 0
    for number in range(10_000_000):
        total += number
    return time.process_time() - start


def numpy_seconds() -> float:
    """CPU seconds of sorting a million numbers twenty times, which no library does in several
    threads.
    """
    numbers = np.random.default_rng(0).random(1_000_000)
    start = time.process_time()
    for _ in range(20):
        np.sort(numbers)
    return time.process_time() - start


def speed() -> str:
    """Both as a line of text, the best of three."""
    python, numpy = (min(loop() for _ in range(3)) for loop in (python_seconds, numpy_seconds))
    return f"yardstick: Python {python:.2f} CPU s, NumPy {numpy:.2f} CPU s"


if __name__ == "__main__":
    print(speed())
