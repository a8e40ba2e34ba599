"""Progress bars of transformers, which are switched for the whole process only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from transformers.utils import logging

__all__ = ["progress_bars"]


@contextmanager
def progress_bars(shown: bool) -> Iterator[None]:
    """Inside the block transformers shows its bars only where ``shown`` is true and they were on before."""
    were_on = logging.is_progress_bar_enabled()
    if not shown:
        logging.disable_progress_bar()
    try:
        yield
    finally:
        if were_on:
            logging.enable_progress_bar()
