"""Records: an id, a cluster, media."""

from __future__ import annotations

from medtasks.data.records.base import Record, Where, is_file_name

__all__ = ["Record", "Where", "is_file_name"]
