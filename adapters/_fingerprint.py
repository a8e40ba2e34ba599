"""A fingerprint of a checkpoint directory that does not depend on where the directory lies."""

from __future__ import annotations

import hashlib
from pathlib import Path

_PATTERNS = ("*.json", "*.jinja", "*.model", "*.txt", "*.safetensors", "*.bin", "*.py")
_WHOLE = 64 * 2**20
_ENDS = 2**20
METHOD = (
    "sha256 over name, size and bytes of configuration, tokenizer and weight files; "
    "of files over 64 MiB the first and last MiB stand for the bytes"
)


def fingerprint_of(checkpoint: str) -> dict[str, str]:
    """``fingerprint`` and ``fingerprint_method`` of a checkpoint in a local directory; empty for any other."""
    directory = Path(checkpoint).expanduser()
    if not directory.is_dir():
        return {}
    return {"fingerprint": fingerprint_directory(directory), "fingerprint_method": METHOD}


def fingerprint_directory(directory: Path) -> str:
    """SHA-256 (hex) over the files of a checkpoint, see :data:`METHOD`; README and the like do not count."""
    total = hashlib.sha256()
    files = {path for pattern in _PATTERNS for path in directory.glob(pattern) if path.is_file()}
    for path in sorted(files, key=lambda path: path.name):
        size = path.stat().st_size
        total.update(f"{path.name}\0{size}\0{_hash(path, size)}\n".encode())
    return total.hexdigest()


def _hash(path: Path, size: int) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        if size > _WHOLE:
            digest.update(file.read(_ENDS))
            file.seek(size - _ENDS)
        while block := file.read(_ENDS):
            digest.update(block)
    return digest.hexdigest()
