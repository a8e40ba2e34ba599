"""A progress bar for terminals and notebooks."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

DELAY = 2
"""Seconds before a bar appears."""


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """A bar while the block runs, to be called with (done, total); none for work that is done within two seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # without ipywidgets a notebook gets a bar of text
        from tqdm.auto import tqdm
    with tqdm(desc=label, delay=DELAY, leave=False) as bar:

        def update(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield update
