"""Large files of the hub: an interrupted download continues where it stopped.

The hub's client starts an interrupted file from scratch, which can cost hours for an archive of
several gigabytes. Here, the part that has arrived is kept in the client's cache under a name of its
own. The finished file gets the name under which the client looks for it, its checksum. Should the
layout of the cache change, the client does not find it, and fetches the file as usual.
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
"""Size in bytes from which a file is fetched here."""
_LARGEST = 50 * 10**9
"""Bytes up to which the hub serves a file over HTTP; its client fetches larger ones by Xet."""

_SHA256 = re.compile(r"[0-9a-f]{64}")


def fetch_large_files(listing: HubListing) -> None:
    """Fetch the large files of a dataset into the hub's cache, unless they are there.

    Raises:
        DataError: the checksum of a fetched file is not the one that the hub states.
    """
    for file in listing.files:
        if file.sha256 is None or _SHA256.fullmatch(file.sha256) is None:
            continue
        is_large = file.bytes is not None and LARGE <= file.bytes <= _LARGEST
        if is_large and not listing.is_cached(file):
            _fetch_into_cache(listing, file, file.sha256)


def arrived_bytes(listing: HubListing, file: ListedFile) -> int:
    """The size of what an interrupted download has left of a file."""
    if file.sha256 is None:
        return 0
    part = _part_path(_blob_path(listing.dataset, file.sha256))
    try:
        return part.stat().st_size
    except FileNotFoundError:
        return 0


def _fetch_into_cache(listing: HubListing, file: ListedFile, sha256: str) -> None:
    """Fetch a file into the cache, unless another process does; then wait for it."""
    blob = _blob_path(listing.dataset, sha256)
    blob.parent.mkdir(parents=True, exist_ok=True)

    def report(holder: str) -> None:
        message = f"medtasks: {file.name} is being downloaded by {holder}; waiting for it"
        print(message, file=sys.stderr, flush=True)

    with held_when_free(blob, "downloaded", report):
        if blob.exists():  # another process has fetched it
            return
        part = _part_path(blob)
        _fetch(listing, file, part)
        if file_sha256(part) != sha256:
            part.unlink()
            raise DataError(
                f"{listing.dataset}: {file.name} was damaged on the way (its SHA-256 is not that "
                "of the hub); run the same command again."
            )
        part.replace(blob)


def _fetch(listing: HubListing, file: ListedFile, part: Path) -> None:
    """Append to ``part`` what it still lacks of a file."""
    from huggingface_hub import hf_hub_url
    from huggingface_hub.file_download import http_get

    # asked again each time: the address of the file's storage, to which it redirects, expires
    url = hf_hub_url(listing.dataset, file.name, repo_type="dataset", revision=listing.commit)
    part.touch()
    if part.stat().st_size > (file.bytes or 0):  # of a server that ignored the range
        part.unlink()
        part.touch()
    # not in append mode: if the server ignores the range, the client rewinds the file
    with part.open("r+b") as stream:
        arrived = stream.seek(0, 2)
        http_get(
            url,
            stream,
            resume_size=arrived,
            headers=_headers(),
            expected_size=file.bytes,
            displayed_filename=file.name,
        )


def _headers() -> dict[str, str]:
    """The headers of a request: the user's token, unless the hub's settings forbid to send it."""
    from huggingface_hub import constants, get_token

    token = None if constants.HF_HUB_DISABLE_IMPLICIT_TOKEN else get_token()
    return {} if token is None else {"authorization": f"Bearer {token}"}


def _blob_path(dataset: str, sha256: str) -> Path:
    """The path at which the hub's client looks for the content of a large file."""
    from huggingface_hub import constants
    from huggingface_hub.file_download import repo_folder_name

    folder = repo_folder_name(repo_id=dataset, repo_type="dataset")
    return Path(constants.HF_HUB_CACHE) / folder / "blobs" / sha256


def _part_path(blob: Path) -> Path:
    """The file of what has arrived of a large file."""
    return blob.with_name(f"{blob.name}.part")
