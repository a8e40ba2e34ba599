"""The cache directory."""

from __future__ import annotations

import os
from pathlib import Path


def cache_root() -> Path:
    """``$MEDTASKS_CACHE``, else the user's cache directory for medtasks; it may not exist yet."""
    from platformdirs import user_cache_path

    named = os.environ.get("MEDTASKS_CACHE")
    return Path(named).expanduser() if named else user_cache_path("medtasks")
