"""The harness's response cache (``--use_cache``): tied to the prepared data, without failed replies, and never fatal.

Replies to our tasks are stored elsewhere (:mod:`medtasks.results.answers`), so a cache that can no longer be written
only costs later hits.
"""

from __future__ import annotations

import functools
import sqlite3
import sys
from collections.abc import Callable, Mapping
from typing import Any

from medtasks.errors import MedtasksError, first_line
from medtasks.results.replies import FromCache

_TOUCHING_DISK = ("_lookup", "_log_to_audit", "_store", "finalize")


def opened(create: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``ResponseCache.create`` so that its caches report a full disk once and continue.

    Raises:
        MedtasksError: the cache cannot be opened.
    """

    @functools.wraps(create)
    def opening(cache_root: str, **about: Any) -> Any:
        try:
            cache = create(cache_root, **about)
        except _UNUSABLE as error:
            raise MedtasksError(
                f"--use_cache {cache_root}: the response cache cannot be opened ({_reason(error)}); free space there, "
                "name another directory, or leave the option out: replies are stored without it."
            ) from error
        _survive_a_full_disk(cache, cache_root)
        return cache

    return opening


def fit_to_data(cache: Any, states: Mapping[str, str]) -> Any:
    """Make the cache skip failed replies, mark its responses (:class:`FromCache`), and tie its keys to the ``states``
    of the data by task; None stays None."""
    if cache is None:
        return None
    from .requests import reply_of

    for name, state in states.items():
        cache._task_fingerprints[name] = f"{cache._task_fingerprints.get(name, '')}-{state}"

    def is_valid(response: Any, reqtype: str) -> bool:
        del reqtype
        reply = reply_of(response)
        return reply.failed is None and bool(
            reply.text.strip()
        )  # only the text is stored, which does not tell whether a blank one is a response

    cache._is_valid_response = is_valid
    found = cache._lookup

    def lookup(key: str) -> Any:
        response = found(key)
        return FromCache(response) if isinstance(response, str) else response

    cache._lookup = lookup
    return cache


def _survive_a_full_disk(cache: Any, root: str) -> None:
    reported: list[str] = []

    def contained(method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return method(*args, **kwargs)
            except _UNUSABLE as error:
                if not reported:
                    reported.append(root)
                    print(
                        f"medtasks: --use_cache {root}: the response cache can no longer be used ({_reason(error)}); "
                        "the run continues without it and loses nothing.",
                        file=sys.stderr,
                        flush=True,
                    )
                return None

        return call

    for name in _TOUCHING_DISK:
        setattr(cache, name, contained(getattr(cache, name)))


_UNUSABLE = (OSError, sqlite3.Error, UnicodeDecodeError)
"""`UnicodeDecodeError`: raised by sqlite3 while it reports text that is not UTF-8."""


def _reason(error: Exception) -> str:
    # sqlite3 quotes the stored text that it cannot decode
    return str(getattr(error, "strerror", None) or first_line(error).partition(" with text ")[0])
