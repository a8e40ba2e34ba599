"""The files of a release, as its authors published them: rows with their places, and the pictures
that rows name.

Archives are checked against the published one, and unpacked without leaving their directory.
"""

from __future__ import annotations

import hashlib
import re
import stat
import struct
import threading
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from fnmatch import fnmatch
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import urlsplit

from medtasks.catalog.records import Where, is_path_below, wrong
from medtasks.core.errors import DataError, MediaError, UsageError, reading
from medtasks.core.files import MAX_JSON_BYTES, MAX_PICTURE_BYTES, check_regular, file_sha256
from medtasks.core.schema import shown
from medtasks.core.text import first_names
from medtasks.data.media.pictures import decode_image
from medtasks.data.parquet import read_parquet
from medtasks.data.prepared import Source
from medtasks.data.sources import SourceRow, read_csv_rows, read_json, read_jsonl

if TYPE_CHECKING:
    from httpx import Client

Progress = Callable[[int, int], None]  # called with (files or bytes done, files or bytes in all)
_Entry: TypeAlias = "tuple[str, Path | None]"
"""A file's path, and the ZIP archive that it is in; None if it is unpacked."""
_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    RuntimeError,
    ValueError,
    OverflowError,
)
"""Errors of zipfile on damaged bytes, found by tests on tens of thousands of damaged archives."""


def check_published(
    path: Path, size: int, sha256: str, *, allow_other: bool, progress: Progress | None = None
) -> str:
    """SHA-256 of the file ``path``; raises :class:`DataError` if that or the size differ, unless
    ``allow_other``.
    """
    with reading(path, "give the downloaded archive", UsageError):
        found_size = check_regular(path)
        digest = file_sha256(path, progress) if found_size == size or allow_other else ""
    if digest == sha256 or allow_other:
        return digest
    found, expected = f"SHA-256 {digest[:16]}…", f"{sha256[:16]}…"
    if not digest:
        found, expected = f"{found_size:,} bytes", f"{size:,}"
    raise DataError(
        f"{path}: is not the published archive: {found}, expected {expected}; fetch it again, or accept it with "
        "--allow-other-archive."
    )


@contextmanager
def open_archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """The archive in ``path``, none of whose members is a link or outside its directory."""
    try:
        check_regular(path)
        archive = zipfile.ZipFile(path)
    except _DAMAGED as error:
        raise DataError(f"{path}: not a complete ZIP archive ({error}); fetch it again.") from error
    with archive:
        for member in archive.infolist():
            is_drive = member.filename.partition("/")[0].endswith(":")
            if (
                is_drive
                or not is_path_below(member.filename)
                or stat.S_ISLNK(member.external_attr >> 16)
            ):
                name = shown(member.filename)
                raise DataError(
                    f"{path}: member {name} points outside the archive's directory; do not use it."
                )
        yield archive


def read_member(archive: zipfile.ZipFile, name: str) -> bytes:
    """Content of a member, at most `MAX_JSON_BYTES`; raises :class:`DataError` if it is larger or
    damaged.
    """
    return b"".join(member_blocks(archive, name, MAX_JSON_BYTES))


def member_blocks(archive: zipfile.ZipFile, name: str, most: int) -> Iterator[bytes]:
    """A member's content in blocks, so that memory use does not depend on the size it states; at
    most ``most`` bytes.

    Raises:
        DataError: the member is larger or damaged, or its compression has no such blocks.
    """
    member = archive.getinfo(name)
    place = f"{archive.filename}: member {name}"
    if member.file_size > most:
        raise DataError(
            f"{place} has {member.file_size:,} bytes, more than the limit of {most:,}; do not use it."
        )
    if member.compress_type not in (
        zipfile.ZIP_STORED,
        zipfile.ZIP_DEFLATED,
    ):  # zipfile unpacks others in one go
        raise DataError(
            f"{place} is compressed by method {member.compress_type}, expected deflate; compress it again."
        )
    try:
        with archive.open(member) as stream:
            while block := stream.read(2**20):
                yield block
    except _DAMAGED as error:
        raise DataError(f"{place} is damaged ({error}); fetch the archive again.") from error


def extract(
    archive: zipfile.ZipFile, names: set[str], folder: Path, progress: Progress | None = None
) -> None:
    """Unpack the members ``names`` below ``folder``; raises :class:`DataError` if one is
    damaged.
    """
    try:
        for number, name in enumerate(sorted(names), start=1):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as stream:
                stream.writelines(member_blocks(archive, name, MAX_PICTURE_BYTES))
            if progress is not None:
                progress(number, len(names))
    except OSError as error:  # a full disk, a name that the file system does not take
        raise DataError(
            f"{error.filename or folder}: cannot be written ({error.strerror}); check the disk and the file's name."
        ) from error


def picture_suffix(data: bytes) -> str:
    """The suffix of a picture's file by its first bytes; ``.bin`` for another format than JPEG and
    PNG.
    """
    if data.startswith(b"\xff\xd8\xff"):
        return ".jpg"
    return ".png" if data.startswith(b"\x89PNG") else ".bin"


class Release:
    """The files of a release, for `Benchmark.read`: the file or directory ``source``, and the
    directory ``media`` of pictures (by default ``source``, or the directory of a file of rows). ZIP
    archives in directories that are named here count as unpacked where they are; no other archive
    is opened. ``keep`` is the directory for pictures that are in archives or rows; None to read
    rows alone.

    Raises:
        UsageError: there is no such file or directory.
    """

    def __init__(self, source: Path, media: Path | None = None, keep: Path | None = None) -> None:
        if not source.exists():
            raise UsageError(
                f"--source {source}: there is no such file or directory; check the path."
            )
        self.source = source
        self.folder = media or (source if self._is_whole else source.parent)
        self._named = media is not None or self._is_whole
        self._keep = keep
        self._packed: dict[Path, set[str]] = defaultdict(set)
        self._kept: dict[str, str] = {}  # SHA-256 of pictures of rows, by the stem of their names

    @property
    def media_root(self) -> Path:
        """Where the pictures are that rows have named so far: ``media`` for those that were
        kept.
        """
        in_archive = self._kept or self._packed or self.folder.is_file()
        return Path("media") if in_archive else self.folder

    @property
    def _is_whole(self) -> bool:
        """Whether the source holds pictures as well as rows."""
        return self.source.is_dir() or self.source.suffix == ".zip"

    def rows(self, *patterns: str) -> Iterator[SourceRow]:
        """The rows of the files that match the first of ``patterns`` that any does, in order of
        their names. Patterns are paths such as ``data/test-*.parquet``, below any directory; files
        are Parquet, CSV, or JSON (lines, or one list).

        Raises:
            UsageError: no file matches.
            DataError: a file cannot be read; names file and line.
        """
        if not self._is_whole:
            yield from _read(self.source)
            return
        everything = (entry for several in self._files.values() for entry in several)
        entries = sorted(everything, key=lambda entry: (entry[0], str(entry[1] or "")))
        for pattern in patterns:
            found = [entry for entry in entries if fnmatch(f"/{entry[0]}", f"*/{pattern}")]
            if found:
                for name, archive in found:
                    yield from (
                        _read(self.source / name)
                        if archive is None
                        else _read_packed(archive, name)
                    )
                return
        raise UsageError(
            f"{self.source}: has no file {' or '.join(patterns)}; give the directory that does."
        )

    def picture(self, value: object, field: str, where: Where, stem: str = "") -> str:
        """The name, in a record's ``media``, of the picture in ``field`` of a row.

        ``value`` is the end of its path, such as ``images/1.png``, its bytes, or a cell of
        ``datasets`` with them. The name of bytes is ``stem`` with a suffix; by default, pictures
        with equal bytes have one name. Raises :class:`DataError` if it is none of these, the path
        fits several files, or the stem several pictures.
        """
        data = value.get("bytes") if isinstance(value, Mapping) else value
        if isinstance(data, bytes) and data:
            digest = hashlib.sha256(data).hexdigest()
            stem = stem or digest[:32]
            name = f"{stem}{picture_suffix(data)}"
            if self._kept.setdefault(stem, digest) != digest:
                raise DataError(
                    f"{where}: field `{field}` differs from that of an earlier row of {stem}; fix the rows."
                )
            file = None if self._keep is None else self._keep / name
            if file is not None and not (file.is_file() and file.read_bytes() == data):
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(data)
            return name
        if isinstance(value, Mapping):
            value = value.get("path")
        if not is_path_below(value):
            raise wrong(
                where,
                field,
                value,
                "a picture, or a path such as pictures/1.png below the media directory",
            )
        name = str(PurePosixPath(value))
        same = self._pictures.get(PurePosixPath(name).name, ())
        found = [entry for entry in same if f"/{entry[0]}".endswith(f"/{name}")]
        found = (
            [entry for entry in found if entry[0] == name]
            or [entry for entry in found if entry[1] is None]
            or found
        )
        if len({path for path, _ in found}) > 1:
            paths = first_names(sorted(path for path, _ in found), 3)
            raise DataError(
                f"{where}: field `{field}` is {name}, which fits several files ({paths}); remove others."
            )
        if not found:
            return name  # missing pictures are refused, or counted, together
        path, archive = found[0]
        if archive is not None:
            self._packed[archive].add(path)
        return path

    def unpack(self, progress: Progress | None = None) -> None:
        """Unpack the pictures in archives that rows have named."""
        for archive, names in self._packed.items():
            if self._keep is not None:
                with open_archive(archive) as opened:
                    extract(opened, names, self._keep, progress)

    @cached_property
    def _files(self) -> dict[str, list[_Entry]]:
        return _listed(self.source)

    @cached_property
    def _pictures(self) -> dict[str, list[_Entry]]:
        if self.folder == self.source:
            return self._files
        return _listed(self.folder, archives=self._named)


def _listed(folder: Path, *, archives: bool = True) -> dict[str, list[_Entry]]:
    """The files in a directory or an archive by their names; with ``archives``, also those in
    archives there.
    """
    files: dict[str, list[_Entry]] = defaultdict(list)
    paths = [folder]
    if folder.is_dir():
        paths = sorted(path for path in folder.rglob("*") if not path.is_dir())
    for path in paths:
        if path.suffix != ".zip":
            files[path.name].append((path.relative_to(folder).as_posix(), None))
            continue
        if not archives:
            continue
        with open_archive(path) as archive:
            for member in archive.infolist():
                if not member.is_dir():
                    files[PurePosixPath(member.filename).name].append((member.filename, path))
    return files


def _read(path: Path) -> Iterator[SourceRow]:
    if path.suffix == ".parquet":
        return read_parquet(path)
    return iter(read_csv_rows(path)) if path.suffix in (".csv", ".tsv") else read_jsonl(path)


def _read_packed(archive: Path, name: str) -> Iterator[SourceRow]:
    if not name.endswith((".json", ".jsonl")):
        raise DataError(
            f"{archive}: {name} is in the archive, from which only JSON is read; unpack it."
        )
    with open_archive(archive) as opened:
        yield from read_json(read_member(opened, name), PurePosixPath(name).name)


WORKERS = 8  # maximum number of requests in flight
ATTEMPTS = 5  # per picture, including the first
PAUSE = 0.5  # the n-th pause is random, up to PAUSE * 2**n seconds, at most 30; Retry-After takes precedence
SILENCE, LONGEST = 30.0, 300.0
"""Seconds without a byte after which an attempt fails; the longest wait that a server may ask
for.
"""
GIVE_UP = (
    8  # consecutive pictures without an answer after which the server is considered unreachable
)


def fetch_pictures(
    urls: Mapping[str, str],
    keep: Callable[[str, bytes], None],
    *,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, MediaError]:
    """Fetch the picture at each of ``urls``; return the errors of those that could not be fetched,
    by key. ``keep`` is called with a key and the bytes of its picture, by one thread at a time.
    """
    import httpx
    import tenacity

    stop, lock = threading.Event(), threading.Lock()
    silent = 0  # pictures in a row without an answer
    transient = (httpx.HTTPStatusError, httpx.TransportError)
    backoff = tenacity.wait_random_exponential(multiplier=2 * PAUSE, max=30)

    def pause(state: tenacity.RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome is not None else None
        after = (
            error.response.headers.get("retry-after", "")
            if isinstance(error, httpx.HTTPStatusError)
            else ""
        )
        is_seconds = after.isdecimal() and len(after) < 9  # it may be a date
        return min(float(after), LONGEST) if is_seconds else float(backoff(state))

    def settle(key: str) -> MediaError | None:
        nonlocal silent
        url = urls[key]
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(transient),
            stop=tenacity.stop_after_attempt(ATTEMPTS) | tenacity.stop_when_event_set(stop),
            wait=pause,
            sleep=tenacity.sleep_using_event(stop),
            reraise=True,
        )
        try:
            data = retrying(_download, client, url)
            decode_image(data, url)
        except transient as error:
            reason = str(error) or type(error).__name__
            with lock:
                silent += 1
                if silent >= GIVE_UP:
                    raise DataError(
                        f"{_host(url)}: {GIVE_UP} pictures in a row could not be fetched (the last: {reason}); "
                        "fetched pictures are kept: run the same command again when the server is reachable."
                    ) from error
            return MediaError(f"{url}: cannot be fetched ({reason}); run the same command again.")
        except MediaError as error:
            return error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return MediaError(f"{url}: cannot be fetched ({error}); check the address.")
        with lock:
            silent = 0
            keep(key, data)
        return None

    failed: dict[str, MediaError] = {}
    client = httpx.Client(
        # pictures are compressed already, and a compressed transfer could decompress without bound
        headers={"Accept-Encoding": "identity", "User-Agent": "medtasks"},
        limits=httpx.Limits(max_connections=WORKERS),
        timeout=SILENCE,
        follow_redirects=True,
    )
    with client, ThreadPoolExecutor(max_workers=WORKERS) as pool:
        try:
            for number, (key, error) in enumerate(
                zip(urls, pool.map(settle, urls), strict=True), start=1
            ):
                if error is not None:
                    failed[key] = error
                if progress is not None:
                    progress(number, len(urls))
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)
    return failed


def _download(client: Client, url: str) -> bytes:
    """The content of ``url``; raises `httpx.HTTPStatusError` for statuses after which it is
    requested again.
    """
    import httpx
    from huggingface_hub import constants, get_token

    login = {}
    if (
        urlsplit(url)[:2] == urlsplit(constants.ENDPOINT)[:2]
    ):  # httpx strips the token from redirects to other hosts
        if constants.HF_HUB_OFFLINE:
            raise DataError(
                f"{_host(url)}: HF_HUB_OFFLINE is set, so {url} cannot be fetched; unset it, or "
                "give the directory of the pictures with --images."
            )
        if token := get_token():
            login = {"Authorization": f"Bearer {token}"}
    data = bytearray()
    with client.stream("GET", url, headers=login) as response:
        status = response.status_code
        if status in (408, 425, 429) or status >= 500:
            raise httpx.HTTPStatusError(
                f"status {status}", request=response.request, response=response
            )
        if status in (401, 403):
            raise DataError(
                f"{_host(url)}: refuses {url} (status {status}); accept the dataset's terms on its page and log in "
                "with `hf auth login` (or set HF_TOKEN), or give the directory of the pictures with --images."
            )
        if status != 200:
            raise MediaError(f"{url}: cannot be fetched (status {status}); check the address.")
        for part in response.iter_raw():
            data += part
            if len(data) > MAX_PICTURE_BYTES:
                limit = f"has more than {MAX_PICTURE_BYTES:,} bytes, the limit for a picture"
                raise MediaError(f"{url}: {limit}; check the address.")
    return bytes(data)


def _host(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2] or url


def located(
    source: str, hub: str, *patterns: str, revision: str | None = None, file: str = "file"
) -> tuple[Path, Source]:
    """The files of a release, fetched from the ``hub`` if so asked, and what the manifest says of
    their origin.
    """
    if source == "hub":
        folder, commit = hub_tree(hub, *patterns, revision=revision)
        return folder, Source(kind="hub", name=hub, revision=commit)
    path = Path(source)
    if path.is_dir():
        return path, Source(kind="directory", name=path.resolve().name)
    return path, Source(kind=file, name=path.name)


def hub_tree(name: str, *patterns: str, revision: str | None = None) -> tuple[Path, str | None]:
    """The files of a hub dataset that match one of ``patterns``, and their commit; a local
    directory ``name`` stays as it is.
    """
    if Path(name).is_dir():
        return Path(name), None
    from huggingface_hub import snapshot_download

    try:
        folder = Path(
            snapshot_download(
                name, repo_type="dataset", revision=revision, allow_patterns=list(patterns)
            )
        )
    except Exception as error:  # network, TLS, proxy, missing repository or file: the hub's client raises many types
        raise DataError(
            f"{name}: {', '.join(patterns)} cannot be fetched from the hub ({type(error).__name__}); to work without "
            "the hub, copy the dataset here and give it with --source."
        ) from error
    return folder, folder.name if re.fullmatch(r"[0-9a-f]{40}", folder.name) else None
