"""What a download from the Hugging Face hub consists of: files, their sizes, and their commit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from medtasks.catalog.benchmark import HubFiles
from medtasks.core.errors import DataError

_TIMEOUT = 30.0
"""Seconds after which a hub that does not answer is considered unreachable."""


@dataclass(frozen=True)
class ListedFile:
    """A file of a dataset.

    ``bytes`` is None if the hub does not state the size, and ``sha256`` unless it is a large file.
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
        return sum(file.bytes or 0 for file in self.files)

    @property
    def bytes_to_fetch(self) -> int:
        """The size of the files that are not in the hub's cache on this machine."""
        return sum(file.bytes or 0 for file in self.files if not self.is_cached(file))

    def is_cached(self, file: ListedFile) -> bool:
        """Whether a file of the dataset is in the hub's cache on this machine."""
        from huggingface_hub import try_to_load_from_cache

        path = try_to_load_from_cache(
            self.dataset, file.name, revision=self.commit, repo_type="dataset"
        )
        return isinstance(path, str)


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
    from huggingface_hub.errors import GatedRepoError, LocalEntryNotFoundError

    if isinstance(error, GatedRepoError):
        return (
            "its terms have to be accepted on its page, and you have to log in with "
            "`hf auth login` or set HF_TOKEN"
        )
    if isinstance(error, LocalEntryNotFoundError):
        return "LocalEntryNotFoundError: it cannot be reached, and its cache lacks the files"
    if isinstance(error, OSError) and error.errno is not None and error.filename is not None:
        return f"{error.filename}: {error.strerror}"  # its cache cannot be written
    return type(error).__name__
