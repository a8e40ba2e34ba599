"""Local transformers checkpoints: a directory, or a snapshot in the hub's local cache.

Nothing is downloaded: the error about a missing checkpoint has the command that fetches it.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from medtasks.core.errors import MedtasksError, first_line
from medtasks.core.files import file_sha256
from medtasks.metrics.base import MetricUnavailableError

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
TOKENIZER = ("tokenizer.json", "vocab.json", "vocab.txt", "*.model")
SCORING_FILES = ("*.json", "*.txt", "*.model", *WEIGHTS)


@dataclass(frozen=True)
class Checkpoint:
    """``directory`` has the files; ``label`` is for signatures; ``identity`` changes with any weight or setting."""

    directory: Path
    label: str
    identity: str


def find_checkpoint(name: str, variable: str) -> Checkpoint:
    """The checkpoint called ``name``, a directory or a hub id; messages suggest ``variable`` to name another.

    The label is the hub id, or the first 16 hex digits of the directory's fingerprint; the identity of a hub id is
    its commit.

    Raises:
        MetricUnavailableError: it is not on this machine, or lacks configuration, tokenizer or weights.
    """
    named, fix = Path(name).expanduser(), f"name a complete checkpoint directory in {variable}"
    directory: Path | None = named
    if not named.is_dir():
        if not HUB_ID.fullmatch(name):
            raise MetricUnavailableError(
                f"{name} is neither a checkpoint directory nor a hub id (owner/name); name one in {variable}"
            )
        fix = f"run `hf download {name}`, or name a checkpoint directory in {variable}"
        directory = _hub_snapshot(name)
        if directory is None:
            raise MetricUnavailableError(f"the model {name} is not on this machine; {fix}")
    kinds = {"config.json": ("config.json",), "tokenizer": TOKENIZER, "weights": WEIGHTS}
    for kind, patterns in kinds.items():
        if not any(path.is_file() for pattern in patterns for path in directory.glob(pattern)):
            raise MetricUnavailableError(f"{directory} contains no {kind} ({' or '.join(patterns)}); {fix}")
    if directory != named:
        return Checkpoint(directory, name, directory.name)
    # weights count in full: a cached score of another fine-tuning would be a wrong score
    files = {path for pattern in SCORING_FILES for path in directory.glob(pattern) if path.is_file()}
    total = hashlib.sha256()
    for path in sorted(files, key=lambda path: path.name):
        facts = path.stat()
        total.update(f"{path.name}\0{_file_digest(path, facts.st_size, facts.st_mtime_ns)}\n".encode())
    return Checkpoint(directory, total.hexdigest()[:16], total.hexdigest())


@lru_cache(maxsize=256)
def _file_digest(path: Path, _size: int, _changed: int) -> str:
    return file_sha256(path)


def _hub_snapshot(name: str) -> Path | None:
    from huggingface_hub import constants

    if not (Path(constants.HF_HUB_CACHE) / f"models--{name.replace('/', '--')}").is_dir():
        return None  # without the import of the hub's client, which takes longer than scoring a few samples
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, local_files_only=True))
    except LocalEntryNotFoundError:
        return None


def load_weights(auto_class: Any, config: Any, checkpoint: Checkpoint, optional: str | None = None) -> Any:
    """The model in single precision and evaluation mode, on the GPU if there is one.

    Weights with the word ``optional`` in their name may be missing, because no score depends on them.

    Raises:
        MedtasksError: weights are missing (transformers would fill them with random numbers) or unreadable.
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
        raise MedtasksError(f"{checkpoint.directory}: the model cannot be loaded: {first_line(error)}") from error
    missing = sorted(key for key in map(str, report.get("missing_keys", ())) if optional is None or optional not in key)
    if missing:
        raise MedtasksError(
            f"{checkpoint.directory}: {len(missing)} weight(s) missing, first {missing[0]}; "
            f"expected a complete {type(model).__name__}, take another checkpoint"
        )
    model.eval()
    return model.to("cuda" if torch.cuda.is_available() else "cpu")


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
