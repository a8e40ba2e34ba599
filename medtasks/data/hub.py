"""Where the files of a release come from: a directory, a file, or the Hugging Face hub."""

from __future__ import annotations

import re
from pathlib import Path

from medtasks.core.errors import DataError
from medtasks.data.prepared import Source

_COMMIT = re.compile(r"[0-9a-f]{40}")


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


def hub_tree(name: str, *patterns: str, revision: str | None = None) -> tuple[Path, str | None]:
    """Fetch the files of a hub dataset that match a pattern; return their directory and commit.

    A local directory ``name`` is returned as it is, without a commit.

    Raises:
        DataError: the hub cannot be reached, or does not have the dataset.
    """
    if Path(name).is_dir():
        return Path(name), None
    from huggingface_hub import snapshot_download

    try:
        snapshot = snapshot_download(
            name, repo_type="dataset", revision=revision, allow_patterns=list(patterns)
        )
    # The client raises errors of many types: for network, TLS, proxy, a missing repository or file
    except Exception as error:
        raise DataError(
            f"{name}: {', '.join(patterns)} cannot be fetched from the hub "
            f"({type(error).__name__}); to work without the hub, copy the dataset here and give it "
            "with --source."
        ) from error
    folder = Path(snapshot)
    if _COMMIT.fullmatch(folder.name) is None:
        return folder, None
    return folder, folder.name
