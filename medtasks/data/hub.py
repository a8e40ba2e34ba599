"""Where the files of a release come from: a directory, a file, or the Hugging Face hub."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import urlsplit

from medtasks.catalog.benchmark import HubFiles
from medtasks.core.errors import DataError, MedtasksError, machine_fault
from medtasks.data.hub_listing import hub_listing, why_not_fetched
from medtasks.data.large_files import fetch_large_files
from medtasks.data.prepared import Source

_COMMIT = re.compile(r"[0-9a-f]{40}")
_ON = ("1", "ON", "YES", "TRUE")
"""Values that turn on a switch of the hub's libraries."""


def located(
    source: str, hub: str, *patterns: str, revision: str | None = None, file: str = "file"
) -> tuple[Path, Source]:
    """Return the path of a release's files and their origin as the manifest states it.

    If ``source`` is ``hub``, the files of the dataset ``hub`` that match ``patterns`` are fetched.
    ``file`` is the kind of origin of a single file.
    """
    if source == "hub":
        folder, commit = hub_tree(hub, *patterns, revision=revision)
        return folder, Source(kind="hub", name=hub, revision=commit)
    path = Path(source)
    if path.is_dir():
        return path, Source(kind="directory", name=path.resolve().name)
    return path, Source(kind=file, name=path.name)


def offline_switch() -> str | None:
    """The variable that forbids access to the hub (`HF_HUB_OFFLINE`, …); None if none does."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return "HF_HUB_OFFLINE"
    if os.environ.get("HF_DATASETS_OFFLINE", "").upper() in _ON:
        return "HF_DATASETS_OFFLINE"
    return None


def hub_address() -> str:
    """The address of the hub, or of the mirror that is used instead, without a login."""
    from huggingface_hub import constants

    address = urlsplit(constants.ENDPOINT)
    host = address.netloc.rpartition("@")[2]
    return address._replace(netloc=host).geturl()


def hub_tree(name: str, *patterns: str, revision: str | None = None) -> tuple[Path, str | None]:
    """Fetch the files of a hub dataset that match a pattern; return their directory and commit.

    A local directory ``name`` is returned as it is, without a commit. If access to the hub is
    forbidden, the files are taken from the hub's cache.

    Raises:
        DataError: the hub cannot be reached, or does not have the dataset.
        MachineError: the disk is full, or this machine lacks something else.
    """
    if Path(name).is_dir():
        return Path(name), None
    from huggingface_hub import snapshot_download

    switch = offline_switch()
    try:
        if switch is None:
            _fetch_large_files(HubFiles(name, patterns, revision))
        snapshot = snapshot_download(
            name,
            repo_type="dataset",
            revision=revision,
            allow_patterns=list(patterns),
            local_files_only=switch is not None,
        )
    except MedtasksError:
        raise
    # The client raises errors of many types: for network, TLS, proxy, a missing repository or file
    except Exception as error:
        fault = machine_fault(error)
        if fault is not None:  # such as a full disk
            raise fault from error
        reason = why_not_fetched(error)
        if switch is not None:
            reason = f"{switch} is set, and the hub's cache lacks the files"
        raise DataError(
            f"{name}: {', '.join(patterns)} cannot be fetched from the hub ({reason}); to work "
            "without the hub, copy the dataset here and give it with --source."
        ) from error
    folder = Path(snapshot)
    if _COMMIT.fullmatch(folder.name) is None:
        return folder, None
    return folder, folder.name


def _fetch_large_files(files: HubFiles) -> None:
    """Fetch the large files of a dataset, if the hub can be reached."""
    try:
        listing = hub_listing(files)
    except DataError:  # the client finds out whether its cache has the files
        return
    fetch_large_files(listing)
