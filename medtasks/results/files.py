"""Files that are whole or not there: canonical JSON, atomic writing."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

__all__ = ["canonical_json", "write_atomically"]


def canonical_json(value: Any, indent: int | None = None) -> str:
    """JSON with sorted keys, UTF-8 text kept, NaN refused: equal values give equal bytes."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False, indent=indent)


def write_atomically(path: Path, text: str) -> None:
    """Write ``text`` so that a reader, or a crash, sees the old file or the whole new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
