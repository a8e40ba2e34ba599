"""The cache directory, and an in-memory cache."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Generic, TypeVar

from medtasks.core.settings import current_settings

K = TypeVar("K")
V = TypeVar("V")


def cache_root() -> Path:
    """``$MEDTASKS_CACHE``, or the user's cache directory for medtasks; it may not exist yet."""
    from platformdirs import user_cache_path

    return current_settings().cache or user_cache_path("medtasks")


def can_be_written(folder: Path) -> bool:
    """Whether files can be made in ``folder``, which may not exist yet."""
    existing = next(path for path in (folder, *folder.absolute().parents) if os.path.exists(path))  # noqa: PTH110
    return os.path.isdir(existing) and os.access(existing, os.W_OK)  # noqa: PTH112


def writable_cache() -> Path:
    """A directory for what can be rebuilt and has to be on disk: :func:`cache_root` or, where that
    cannot be written, one of this user's below the system's temporary directory.
    """
    root = cache_root()
    return root if can_be_written(root) else _temporary_cache()


@cache
def _temporary_cache() -> Path:
    """A directory that only this user can write, the same in each process if possible."""
    folder = Path(tempfile.gettempdir()) / f"medtasks-{os.getuid()}"
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    status = folder.lstat()
    is_own = status.st_uid == os.getuid() and not status.st_mode & 0o022
    if is_own and stat.S_ISDIR(status.st_mode):
        return folder
    return Path(tempfile.mkdtemp(prefix="medtasks-"))  # another user made it first


class RecentlyUsed(Generic[K, V]):
    """An in-memory cache whose :meth:`trim` drops the least recently used values; not thread-safe.

    ``most`` is its size in bytes, ``size`` gives that of a value.
    """

    def __init__(self, most: int, size: Callable[[V], int]) -> None:
        self._most = most
        self._size = size
        self._held: dict[K, V] = {}
        self.nbytes = 0

    def __contains__(self, key: K) -> bool:
        return key in self._held

    def get(self, key: K) -> V | None:
        """The value of ``key``, marked as just used; None if it is not cached."""
        if key not in self._held:
            return None
        value = self._held[key] = self._held.pop(key)
        return value

    def add(self, key: K, value: V) -> None:
        """Add the value of a key that is not cached yet."""
        self._held[key] = value
        self.nbytes += self._size(value)

    def trim(self, needed: Collection[K]) -> None:
        """Drop the least recently used values until the rest fits; those in ``needed`` stay."""
        for key in [key for key in self._held if key not in needed]:
            if self.nbytes <= self._most:
                break
            self.nbytes -= self._size(self._held.pop(key))

    def clear(self) -> None:
        self._held.clear()
        self.nbytes = 0
