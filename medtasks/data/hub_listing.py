"""The files of a dataset on the Hugging Face hub: their sizes, and the commit they belong to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from medtasks.catalog.benchmark import HubFiles
from medtasks.core.errors import DataError, first_line
from medtasks.core.text import byte_count

_TIMEOUT = 30.0
"""Seconds after which a hub that does not answer is considered unreachable."""
UNKNOWN_SIZE = "unknown size"


@dataclass(frozen=True)
class ListedFile:
    """A file of a dataset.

    ``bytes`` is None if the hub does not state the size. ``sha256`` is None for small files, which
    the hub does not keep in its storage for large ones.
    """

    name: str
    bytes: int | None
    sha256: str | None = None


@dataclass(frozen=True)
class HubListing:
    """The files of a dataset that match its patterns, at one commit."""

    dataset: str
    commit: str
    files: tuple[ListedFile, ...]

    @property
    def bytes(self) -> int:
        """The size of all files whose size is known."""
        return known_bytes(self.files)

    @property
    def files_to_fetch(self) -> tuple[ListedFile, ...]:
        """The files that are not in the hub's cache on this machine."""
        return tuple(file for file in self.files if not self.is_cached(file))

    def is_cached(self, file: ListedFile) -> bool:
        """Whether a file of the dataset is in the hub's cache on this machine."""
        from huggingface_hub import try_to_load_from_cache

        path = try_to_load_from_cache(
            self.dataset, file.name, revision=self.commit, repo_type="dataset"
        )
        return isinstance(path, str)


def known_bytes(files: Iterable[ListedFile]) -> int:
    """The size of those files whose size the hub states."""
    return sum(file.bytes or 0 for file in files)


def stated_size(files: Sequence[ListedFile], *, is_limit: bool) -> str:
    """The size of the files, for people; ``is_limit`` if not all of them may be needed.

    >>> stated_size([ListedFile("rows.jsonl", 2000)], is_limit=True)
    'up to 2.0 kB'
    >>> stated_size([ListedFile("rows.jsonl", None)], is_limit=True)
    'unknown size'
    """
    if any(file.bytes is None for file in files):
        return UNKNOWN_SIZE
    limit = "up to " if is_limit else ""
    return f"{limit}{byte_count(known_bytes(files))}"


def hub_listing(files: HubFiles) -> HubListing:
    """Ask the hub which files of a dataset match, and how large they are.

    Raises:
        DataError: the hub cannot be reached, or does not have the dataset.
    """
    if Path(files.dataset).is_dir():  # used as it is
        return HubListing(files.dataset, "", ())
    from huggingface_hub import HfApi

    try:
        info = HfApi().dataset_info(
            files.dataset, revision=files.revision, files_metadata=True, timeout=_TIMEOUT
        )
    except Exception as error:  # of many types, as in `hub_tree`
        raise DataError(
            f"{files.dataset}: its files cannot be listed on the hub ({why_not_fetched(error)}); "
            "check the network, or set HF_ENDPOINT to a mirror."
        ) from error
    matching = tuple(_matching_files(info.siblings or (), files.patterns))
    return HubListing(files.dataset, info.sha or "", matching)


def _matching_files(siblings: Iterable[Any], patterns: Sequence[str]) -> Iterator[ListedFile]:
    """Yield the files of the hub's answer that match one of the patterns."""
    for sibling in siblings:
        name = sibling.rfilename
        # as the hub's client matches them
        if any(fnmatch(name, pattern) for pattern in patterns):
            sha256 = None if sibling.lfs is None else sibling.lfs.sha256
            yield ListedFile(name, sibling.size, sha256)


def why_not_fetched(error: Exception) -> str:
    """Why the hub's client failed, in a few words."""
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        LocalEntryNotFoundError,
    )

    if isinstance(error, GatedRepoError):
        return (
            "its terms have to be accepted on its page, and you have to log in with "
            "`hf auth login` or set HF_TOKEN"
        )
    if isinstance(error, LocalEntryNotFoundError):
        return "LocalEntryNotFoundError: it cannot be reached, and its cache lacks the files"
    if isinstance(error, OSError) and error.errno is not None and error.filename is not None:
        return f"{error.filename}: {error.strerror}"  # its cache cannot be written
    # other classes of HTTP errors have telling names
    if type(error) is HfHubHTTPError and error.response is not None:
        return f"HTTP status {error.response.status_code}"
    if type(error) is OSError and error.errno is None:  # raised by the client itself
        return first_line(error).rstrip(".")
    return type(error).__name__
