"""Datasets of the Hugging Face hub: the commit, single files, trees of files, and the rows of a split."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from medtasks.data.records import Where
from medtasks.data.sources import SourceRow
from medtasks.errors import DataError

__all__ = [
    "BY_HAND",
    "KVASIR_HUB",
    "KVASIR_IMAGES_HUB",
    "MEDSTREAM_HUB",
    "MED_CMR_HUB",
    "MED_CMR_REVISION",
    "dataset_rows",
    "hub_commit",
    "hub_file",
    "hub_rows",
    "hub_tree",
]

KVASIR_HUB = "SimulaMet/Kvasir-VQA-x1"
KVASIR_IMAGES_HUB = "SimulaMet-HOST/Kvasir-VQA"
MED_CMR_HUB = "aaassddaadf/Med-CMR"
MED_CMR_REVISION = "a9b2d6e610c6c5dcf4f3e5aa89c7ec9fd7a05b73"
MEDSTREAM_HUB = "Venn2024/MedStreamBench"
BY_HAND = (
    "to go on without the hub, copy the dataset here and run: medtasks prepare kvasir_vqa_x1 --source DIR "
    "(DIR holds test.jsonl or test*.parquet, and images/<img_id>.jpg)"
)


def hub_commit(name: str, revision: str | None = None) -> str | None:
    """The commit that ``revision`` means now; None for a local folder, or where the hub is switched off.

    Raises:
        DataError: the hub cannot be reached.
    """
    if Path(name).is_dir():
        return None
    from huggingface_hub import HfApi
    from huggingface_hub.errors import OfflineModeIsEnabled

    try:
        return HfApi().dataset_info(name, revision=revision, timeout=10).sha
    except OfflineModeIsEnabled:
        return revision  # the local copy serves, if there is one
    except Exception as error:  # network, TLS, proxy, missing repository: the hub's client has many families
        raise DataError(f"{name}: the hub cannot be reached ({type(error).__name__}); {BY_HAND}.") from error


def hub_file(name: str, file: str, revision: str | None = None) -> tuple[Path, str | None]:
    """A file of a hub dataset, fetched unless it is in the hub's cache already, and the commit it came from.

    Raises:
        DataError: the hub cannot be reached and there is no local copy.
    """
    from huggingface_hub import hf_hub_download

    try:
        return Path(hf_hub_download(name, file, repo_type="dataset", revision=revision)), revision
    except Exception as error:  # network, TLS, proxy, missing file: the hub's client has many families
        raise DataError(_unreachable(name, f"{file} cannot be fetched", error)) from error


def hub_tree(name: str, pattern: str, revision: str | None = None) -> tuple[Path, str | None]:
    """A folder with the files of a hub dataset that fit ``pattern``, and the commit they came from.

    The hub's client fetches several at a time, goes on where it was interrupted, and shows its progress. A local folder
    of the same layout stands for itself.

    Raises:
        DataError: the hub cannot be reached and there is no local copy.
    """
    if Path(name).is_dir():
        return Path(name), None
    from huggingface_hub import snapshot_download

    try:
        folder = Path(snapshot_download(name, repo_type="dataset", revision=revision, allow_patterns=pattern))
    except Exception as error:
        raise DataError(_unreachable(name, f"{pattern} cannot be fetched", error)) from error
    return folder, folder.name if re.fullmatch(r"[0-9a-f]{40}", folder.name) else revision


def _unreachable(name: str, what: str, error: Exception) -> str:
    return (
        f"{name}: {what} from the hub ({type(error).__name__}); to go on without the hub, copy the dataset here and "
        "name it with --source."
    )


def hub_rows(name: str, *, split: str = "test") -> tuple[Iterator[SourceRow], str | None]:
    """Rows of ``split`` of a hub dataset (or of a local folder of the same layout), and the commit they came from.

    Raises:
        DataError: the hub cannot be reached and there is no local copy; says how to go on by hand.
    """
    from datasets import load_dataset

    commit = hub_commit(name)
    try:
        dataset = load_dataset(name, split=split, revision=commit)
    except Exception as error:
        raise DataError(
            f"{name}: split {split!r} cannot be loaded ({type(error).__name__}: {error}); {BY_HAND}."
        ) from error
    return dataset_rows(dataset, Path(name).name), commit or _commit_of(dataset)


def dataset_rows(dataset: Any, name: str) -> Iterator[SourceRow]:
    """Rows of a ``datasets.Dataset``; a picture stays as it is stored: its bytes, its path, or both."""
    from datasets import Image

    if isinstance(dataset.features.get("image"), Image):
        dataset = dataset.cast_column("image", Image(decode=False))
    for number, row in enumerate(dataset, start=1):
        yield SourceRow(Where(name, number, unit="row"), row)


def _commit_of(dataset: Any) -> str | None:
    """The commit in the addresses that the dataset was once downloaded from; None for a local folder."""
    for address in dataset.info.download_checksums or ():
        commit = re.search(r"@([0-9a-f]{40})/", str(address))
        if commit is not None:
            return commit[1]
    return None
