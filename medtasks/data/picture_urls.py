"""Pictures at URLs that the rows of a benchmark folder name: fetched once, if the user agrees."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from functools import cached_property
from pathlib import Path

from medtasks.core.cache import writable_cache
from medtasks.core.errors import DataError, MediaError
from medtasks.core.replacement import replaced
from medtasks.core.settings import Consent, current_settings
from medtasks.core.text import counted, first_names
from medtasks.data.consent import can_ask, is_agreed_by_run
from medtasks.data.downloads import fetch_pictures, host_of


class PictureUrls:
    """The pictures at ``urls``, which are kept in the cache; ``rows`` names them in messages."""

    def __init__(self, urls: Collection[str], rows: str) -> None:
        self._urls = urls
        self._rows = rows

    def read(self, url: str) -> bytes:
        """The bytes of the picture at one of the URLs.

        Raises:
            MediaError: it cannot be fetched.
            DataError: the user does not agree to the download, or the server is unreachable.
        """
        if url in self._errors:
            raise self._errors[url]
        return _kept(url).read_bytes()

    @cached_property
    def _errors(self) -> dict[str, MediaError]:
        """The errors of those that could not be fetched; the others are in the cache."""
        missing = {url: url for url in sorted(self._urls) if not _kept(url).is_file()}
        if not missing:
            return {}
        self._require_consent(missing)
        _kept("").parent.mkdir(parents=True, exist_ok=True)
        return fetch_pictures(missing, _keep)

    def _require_consent(self, missing: Collection[str]) -> None:
        """Raise an error unless the user agrees to download these pictures."""
        hosts = first_names(dict.fromkeys(map(host_of, missing)))
        what = f"{self._rows}: {counted(len(missing), 'picture')} at URLs of {hosts}"
        consent = current_settings().download
        if consent is Consent.YES:
            return
        if consent is Consent.ASK and can_ask():
            names = "\n".join(sorted(missing))
            if is_agreed_by_run(f"medtasks: {what}\nDownload?", _kept(f"refused: {names}")):
                return
        raise DataError(
            f"{what} are not downloaded without your consent; set MEDTASKS_DOWNLOAD=yes, or save "
            "them in a directory and name their paths."
        )


def _kept(url: str) -> Path:
    """The file in the cache of the picture at ``url``."""
    return writable_cache() / "pictures" / hashlib.sha256(url.encode()).hexdigest()


def _keep(url: str, data: bytes) -> None:
    """Write a picture that was fetched."""
    with replaced(_kept(url)) as temporary:
        temporary.write_bytes(data)
