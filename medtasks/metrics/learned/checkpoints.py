"""Checkpoints of models: found on this machine, identified, and loaded.

They are directories, or snapshots in the hub's local cache. Nothing is downloaded: the error about
a missing checkpoint has the command that fetches it.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from medtasks.core.errors import MedtasksError, first_line
from medtasks.core.files import file_sha256, file_state
from medtasks.metrics.base import MetricUnavailableError

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
TOKENIZER = ("tokenizer.json", "vocab.json", "vocab.txt", "*.model")
Contents: TypeAlias = Mapping[str, Sequence[str]]
"""The patterns of the files that a checkpoint needs, by kind; it needs one file of each kind."""
CONTENTS: Contents = {"config.json": ("config.json",), "tokenizer": TOKENIZER, "weights": WEIGHTS}
"""Those of a transformers checkpoint."""


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint on this machine.

    ``identity`` changes with any weight or setting: the commit, or the fingerprint of the
    directory. ``label``, in signatures, is the hub id, or the first 16 hex digits of the identity.
    """

    directory: Path
    label: str
    identity: str


def find_checkpoint(name: str, variable: str, contents: Contents = CONTENTS) -> Checkpoint:
    """The checkpoint called ``name``, a directory or a hub id; messages suggest ``variable`` to
    name another.

    Args:
        name: the directory, or ``owner/name`` on the hub; its snapshot must be in the local cache.
        variable: the environment variable that names it.
        contents: patterns of the files that it needs, relative to its directory, by kind. All
            files that match one count in a directory's identity.

    Raises:
        MetricUnavailableError: it is not on this machine, or lacks a kind of file.
    """
    directory = Path(name).expanduser()
    if name and directory.is_dir():
        _require_contents(
            directory, f"name a complete checkpoint directory in {variable}", contents
        )
        identity = _directory_identity(directory, contents)
        return Checkpoint(directory, identity[:16], identity)
    if not HUB_ID.fullmatch(name):
        raise MetricUnavailableError(
            f"{name} is neither a checkpoint directory nor a hub id (owner/name); name one in "
            f"{variable}"
        )
    fix = f"run `hf download {name}`, or name a checkpoint directory in {variable}"
    snapshot = _hub_snapshot(name)
    if snapshot is None:
        raise MetricUnavailableError(f"the model {name} is not on this machine; {fix}")
    _require_contents(snapshot, fix, contents)
    return Checkpoint(snapshot, name, snapshot.name)


def _hub_snapshot(name: str) -> Path | None:
    """The directory of a model in the hub's local cache, named by its commit; None without one."""
    from huggingface_hub import constants

    if not (Path(constants.HF_HUB_CACHE) / f"models--{name.replace('/', '--')}").is_dir():
        return None
    # imported late, because it takes longer than scoring a few samples
    from huggingface_hub import try_to_load_from_cache

    config = try_to_load_from_cache(name, "config.json")
    return Path(config).parent if isinstance(config, str) else None


def _require_contents(directory: Path, fix: str, contents: Contents) -> None:
    """Raise `MetricUnavailableError` if a kind of file is missing."""
    for kind, patterns in contents.items():
        if not _files(directory, patterns):
            raise MetricUnavailableError(
                f"{directory} contains no {kind} ({' or '.join(patterns)}); {fix}"
            )


def _directory_identity(directory: Path, contents: Contents) -> str:
    """The fingerprint of the needed files, and of all that may be settings or vocabularies."""
    patterns = ["*.json", "*.txt", "*.model"]
    for needed in contents.values():
        patterns.extend(needed)
    files = []
    for path in _files(directory, patterns):
        files.append((path, str(path.relative_to(directory)), file_state(path.stat())))
    return _fingerprint(tuple(files))


def _files(directory: Path, patterns: Sequence[str]) -> list[Path]:
    """The directory's files that match a pattern, each once, sorted."""
    files: set[Path] = set()
    for pattern in patterns:
        files.update(path for path in directory.glob(pattern) if path.is_file())
    return sorted(files)


@lru_cache(maxsize=8)
def _fingerprint(files: tuple[tuple[Path, str, tuple[int, ...]], ...]) -> str:
    """The hash of the files' names and contents, computed once for files of the same states.

    Weights count in full: a cached score of another fine-tuning would be a wrong score.
    """
    lines = [f"{name}\0{file_sha256(path)}\n" for path, name, _ in files]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def load_weights(
    auto_class: Any, config: Any, checkpoint: Checkpoint, optional: str | None = None
) -> Any:
    """The model in single precision and evaluation mode, on the GPU if there is one.

    Weights with the word ``optional`` in their name may be missing, because no score depends on
    them.

    Raises:
        MedtasksError: the model cannot be loaded, or lacks weights.
    """
    import torch

    try:
        with no_progress_bars():
            model, report = auto_class.from_pretrained(
                str(checkpoint.directory),
                config=config,
                dtype=torch.float32,
                local_files_only=True,
                output_loading_info=True,
            )
    except Exception as error:  # transformers, safetensors and pickle raise a dozen unrelated types
        raise MedtasksError(
            f"{checkpoint.directory}: the model cannot be loaded: {first_line(error)}"
        ) from error
    _require_weights(report, type(model).__name__, checkpoint, optional)
    model.eval()
    return model.to("cuda" if torch.cuda.is_available() else "cpu")


def _require_weights(
    report: Mapping[str, Any], model_class: str, checkpoint: Checkpoint, optional: str | None
) -> None:
    """Refuse a model with missing weights, which transformers fills with random numbers."""
    missing = sorted(str(key) for key in report.get("missing_keys", ()))
    if optional is not None:
        missing = [key for key in missing if optional not in key]
    if missing:
        raise MedtasksError(
            f"{checkpoint.directory}: {len(missing)} weight(s) missing, first {missing[0]}; "
            f"expected a complete {model_class}, take another checkpoint"
        )


@contextlib.contextmanager
def no_progress_bars() -> Iterator[None]:
    """Disable transformers' progress bars inside the block; the setting is process-wide."""
    from transformers.utils import logging

    was_on = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if was_on:
            logging.enable_progress_bar()
