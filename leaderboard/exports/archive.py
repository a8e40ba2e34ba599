"""All exports of a site as one ZIP file."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

_EARLIEST = (1980, 1, 1, 0, 0, 0)
"""The earliest date that a ZIP file can state: the time of the build must not change its bytes."""
_UNIX = 3
_READABLE = 0o644 << 16
_LEVEL = 9


def zip_archive(files: Mapping[str, Callable[[], bytes]]) -> bytes:
    """A ZIP file of ``files``, by their paths in it. The same files give the same bytes on every
    system with the same zlib, in whichever order they come."""
    stream = io.BytesIO()
    with ZipFile(stream, "w") as archive:
        for path, make in sorted(files.items()):
            member = ZipInfo(path, _EARLIEST)
            member.compress_type = ZIP_DEFLATED
            member.create_system = _UNIX
            member.external_attr = _READABLE
            archive.writestr(member, make(), compresslevel=_LEVEL)
    return stream.getvalue()
