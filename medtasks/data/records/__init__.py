"""What all records share: an id, a cluster, media; and the words in which a wrong field is refused."""

from __future__ import annotations

from medtasks.data.records.base import Record, Where, is_file_name

__all__ = ["Record", "Where", "is_file_name"]
