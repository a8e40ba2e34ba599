"""Large files of the hub, fetched in a way that continues after an interruption.

The hub's client begins a file again that was interrupted, which for an archive of several gigabytes
may be hours. Here, what has arrived is kept beside the client's cache. The finished file is moved
into the cache, where the client finds it by its checksum; if the layout of the cache changes, the
client fetches the file as usual.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from medtasks.core.errors import DataError
from medtasks.core.files import file_sha256
from medtasks.core.locks import held_when_free
from medtasks.data.hub_listing import HubListing, ListedFile

LARGE = 64 * 2**20
"""Bytes from which a file is fetched here."""

_SHA256 = re.compile(r"[0-9a-f]{64}")


def fetch_large_files(listing: HubListing) -> None:
    """Fetch the large files of a dataset into the hub's cache, unless they are there.

    Raises:
        DataError: a file differs from the one on the hub.
    """
    for file in listing.files:
        if file.sha256 is None or _SHA256.fullmatch(file.sha256) is None:
            continue
        if (file.bytes or 0) >= LARGE and not listing.is_cached(file):
            _fetch_into_cache(listing, file, file.sha256)


def _fetch_into_cache(listing: HubListing, file: ListedFile, sha256: str) -> None:
    """Fetch a file into the cache, by one process at a time."""
    blob = _blob_path(listing.dataset, sha256)
    blob.parent.mkdir(parents=True, exist_ok=True)

    def report(holder: str) -> None:
        message = f"medtasks: {file.name} is being downloaded by {holder}; waiting for it"
        print(message, file=sys.stderr, flush=True)

    with held_when_free(blob, "downloaded", report):
        if blob.exists():  # another process has fetched it
            return
        part = blob.with_name(f"{blob.name}.part")
        _fetch(listing, file, part)
        if file_sha256(part) != sha256:
            part.unlink()
            raise DataError(
                f"{listing.dataset}: {file.name} was damaged on the way (its SHA-256 is not that "
                "of the hub); run the same command again."
            )
        part.replace(blob)


def _fetch(listing: HubListing, file: ListedFile, part: Path) -> None:
    """Fetch what ``part`` still lacks of a file."""
    from huggingface_hub import get_token, hf_hub_url
    from huggingface_hub.file_download import http_get

    url = hf_hub_url(listing.dataset, file.name, repo_type="dataset", revision=listing.commit)
    token = get_token()
    headers = {"authorization": f"Bearer {token}"} if token else {}
    part.touch()
    if part.stat().st_size > (file.bytes or 0):
        part.unlink()
        part.touch()
    # not for appending: if the server ignores the range, the client begins at the start
    with part.open("r+b") as stream:
        arrived = stream.seek(0, 2)
        http_get(
            url,
            stream,
            resume_size=arrived,
            headers=headers,
            expected_size=file.bytes,
            displayed_filename=file.name,
        )


def _blob_path(dataset: str, sha256: str) -> Path:
    """Where the hub's client keeps the content of a large file."""
    from huggingface_hub import constants
    from huggingface_hub.file_download import repo_folder_name

    folder = repo_folder_name(repo_id=dataset, repo_type="dataset")
    return Path(constants.HF_HUB_CACHE) / folder / "blobs" / sha256
