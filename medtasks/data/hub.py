"""Hugging Face hub datasets: single files and directory trees, with their commit."""

from __future__ import annotations

import re
from pathlib import Path

from medtasks.errors import DataError


def hub_file(name: str, file: str, revision: str | None = None) -> tuple[Path, str | None]:
    """A file of a hub dataset, fetched unless cached, and its commit.

    Raises:
        DataError: the hub cannot be reached and there is no local copy.
    """
    from huggingface_hub import hf_hub_download

    try:
        return Path(hf_hub_download(name, file, repo_type="dataset", revision=revision)), revision
    except Exception as error:  # network, TLS, proxy, missing file: the hub's client raises many types
        raise DataError(_unreachable(name, f"{file} cannot be fetched", error)) from error


def hub_tree(name: str, *patterns: str) -> tuple[Path, str | None]:
    """A directory with the files of a hub dataset that match one of ``patterns``, and their commit.

    The hub's client fetches concurrently, resumes after interruptions, and shows its progress. A local directory is
    used directly.

    Raises:
        DataError: the hub cannot be reached and there is no local copy.
    """
    if Path(name).is_dir():
        return Path(name), None
    from huggingface_hub import snapshot_download

    try:
        folder = Path(snapshot_download(name, repo_type="dataset", allow_patterns=list(patterns)))
    except Exception as error:  # network, TLS, proxy, missing repository: the hub's client raises many types
        raise DataError(_unreachable(name, f"{', '.join(patterns)} cannot be fetched", error)) from error
    return folder, folder.name if re.fullmatch(r"[0-9a-f]{40}", folder.name) else None


def _unreachable(name: str, what: str, error: Exception) -> str:
    return (
        f"{name}: {what} from the hub ({type(error).__name__}); to work without the hub, copy the dataset here and "
        "give it with --source."
    )
