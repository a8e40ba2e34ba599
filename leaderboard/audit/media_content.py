"""Hashes of the media that questions show, from the data prepared here."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from medtasks.core.errors import MedtasksError
from medtasks.data.miniatures import prepare_mini
from medtasks.data.prepared import open_directory
from medtasks.data.store import open_prepared


@functools.lru_cache(maxsize=8)
def media_hashes(benchmark: str, mini: bool) -> Mapping[str, str]:
    """The SHA-256 of each media file of the prepared data by name; empty if there are none here."""
    try:
        if mini:
            prepared = open_directory(prepare_mini(benchmark))
        else:
            prepared = open_prepared(benchmark)
        return {entry.path: entry.sha256 for entry in prepared.media}
    except MedtasksError:
        return {}
