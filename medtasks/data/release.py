"""The files of a release as published: rows with their places, and the pictures that rows name."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatch
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from medtasks.catalog.records import Where, is_path_below, wrong
from medtasks.core.errors import DataError, UsageError
from medtasks.core.text import first_names
from medtasks.data.archives import extract, open_archive, read_member
from medtasks.data.csv_rows import read_csv_rows
from medtasks.data.parquet import read_parquet
from medtasks.data.progress import Progress
from medtasks.data.sources import SourceRow, read_json, read_jsonl


class ReleaseFile(NamedTuple):
    """A file's path below the release, and the ZIP archive that it is in; None if unpacked."""

    path: str
    archive: Path | None


def picture_suffix(data: bytes) -> str:
    """The suffix of a picture's file by its first bytes; ``.bin`` unless they are JPEG or PNG."""
    if data.startswith(b"\xff\xd8\xff"):
        return ".jpg"
    if data.startswith(b"\x89PNG"):
        return ".png"
    return ".bin"


class Release:
    """The files of a release, for `DataSource.read`.

    ``source`` is the file or directory of rows, and ``media`` the directory of pictures (by default
    ``source``, or the directory of a file of rows). ZIP archives in directories that are named here
    count as unpacked where they are; no other archive is opened. ``keep`` is the directory for
    pictures that are in archives or rows; None to read rows alone.

    Raises:
        UsageError: there is no such file or directory.
    """

    def __init__(self, source: Path, media: Path | None = None, keep: Path | None = None) -> None:
        """Name the files of a release; none is read yet."""
        if not source.exists():
            raise UsageError(
                f"--source {source}: there is no such file or directory; check the path."
            )
        self.source = source
        self.folder = media or self._folder_of_source()
        self._opens_archives = media is not None or self._is_whole
        self._keep = keep
        self._packed: dict[Path, set[str]] = defaultdict(set)
        # SHA-256 of the pictures that rows hold, by the stem of their names
        self._kept: dict[str, str] = {}

    def _folder_of_source(self) -> Path:
        """The directory or archive of the pictures if none is given."""
        return self.source if self._is_whole else self.source.parent

    @property
    def media_root(self) -> Path:
        """The directory of the pictures named so far: ``media`` if they were or will be kept."""
        if self._kept or self._packed or self.folder.is_file():
            return Path("media")
        return self.folder

    @property
    def _is_whole(self) -> bool:
        """Whether the source holds pictures as well as rows."""
        return self.source.is_dir() or self.source.suffix == ".zip"

    def rows(self, *patterns: str) -> Iterator[SourceRow]:
        """Yield the rows of the files that match a pattern, in order of their names.

        Only the first of ``patterns`` that matches any file counts. Patterns are paths such as
        ``data/test-*.parquet``, below any directory; files are Parquet, CSV, or JSON (lines, or one
        list).

        Raises:
            UsageError: no file matches.
            DataError: a file cannot be read; names file and line.
        """
        if not self._is_whole:
            yield from _rows_of_file(self.source)
            return
        for file in self._matching_files(patterns):
            if file.archive is None:
                yield from _rows_of_file(self.source / file.path)
            else:
                yield from _rows_of_member(file.archive, file.path)

    def _matching_files(self, patterns: Iterable[str]) -> list[ReleaseFile]:
        """The files that the first pattern with a match matches, in order of their paths."""
        files: list[ReleaseFile] = []
        for files_of_name in self._files.values():
            files.extend(files_of_name)
        files.sort(key=lambda file: (file.path, str(file.archive or "")))
        for pattern in patterns:
            matching = [file for file in files if fnmatch(f"/{file.path}", f"*/{pattern}")]
            if matching:
                return matching
        raise UsageError(
            f"{self.source}: has no file {' or '.join(patterns)}; give the directory that does."
        )

    def picture(self, value: object, field: str, where: Where, stem: str = "") -> str:
        """The name, in a record's ``media``, of the picture in ``field`` of a row.

        ``value`` is the end of its path, such as ``images/1.png``, its bytes, or a cell of
        ``datasets`` with them. The name of bytes is ``stem`` with a suffix; by default, pictures
        with equal bytes have one name.

        Raises:
            DataError: ``value`` is none of these, the path fits several files, or the stem several
                pictures.
        """
        data, path = value, value
        if isinstance(value, Mapping):
            data, path = value.get("bytes"), value.get("path")
        if isinstance(data, bytes) and data:
            return self._picture_in_row(data, field, where, stem)
        if not is_path_below(path):
            raise wrong(
                where,
                field,
                path,
                "a picture, or a path such as pictures/1.png below the media directory",
            )
        return self._picture_in_file(str(PurePosixPath(path)), field, where)

    def _picture_in_row(self, data: bytes, field: str, where: Where, stem: str) -> str:
        """The name of a picture given by its bytes, which are written to ``keep``."""
        digest = hashlib.sha256(data).hexdigest()
        stem = stem or digest[:32]
        name = f"{stem}{picture_suffix(data)}"
        if self._kept.setdefault(stem, digest) != digest:
            raise DataError(
                f"{where}: field `{field}` differs from that of an earlier row of {stem}; "
                "fix the rows."
            )
        if self._keep is None:
            return name
        file = self._keep / name
        is_written = file.is_file() and file.read_bytes() == data
        if not is_written:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
        return name

    def _picture_in_file(self, name: str, field: str, where: Where) -> str:
        """The path of the only file whose path ends with ``name``; ``name`` itself if none does."""
        candidates = self._files_ending_with(name)
        if not candidates:
            return name  # missing pictures are refused, or counted, together
        paths = sorted(file.path for file in candidates)
        if len(set(paths)) > 1:
            raise DataError(
                f"{where}: field `{field}` is {name}, which fits several files "
                f"({first_names(paths, 3)}); remove others."
            )
        path, archive = candidates[0]
        if archive is not None:
            self._packed[archive].add(path)
        return path

    def _files_ending_with(self, name: str) -> list[ReleaseFile]:
        """The files whose path ends with ``name``.

        Files whose whole path is ``name`` have precedence, then those outside of archives.
        """
        files_of_name = self._pictures.get(PurePosixPath(name).name, ())
        candidates = [file for file in files_of_name if f"/{file.path}".endswith(f"/{name}")]
        exact = [file for file in candidates if file.path == name]
        unpacked = [file for file in candidates if file.archive is None]
        return exact or unpacked or candidates

    def unpack(self, progress: Progress | None = None) -> None:
        """Unpack the pictures in archives that rows have named."""
        if self._keep is None:
            return
        for path, names in self._packed.items():
            with open_archive(path) as archive:
                extract(archive, names, self._keep, progress)

    @cached_property
    def _files(self) -> dict[str, list[ReleaseFile]]:
        """The files of the source by their names."""
        return _files_by_name(self.source)

    @cached_property
    def _pictures(self) -> dict[str, list[ReleaseFile]]:
        """The files in the directory of pictures by their names."""
        if self.folder == self.source:
            return self._files
        return _files_by_name(self.folder, archives=self._opens_archives)


def _files_by_name(folder: Path, *, archives: bool = True) -> dict[str, list[ReleaseFile]]:
    """The files in a directory or an archive by their names.

    With ``archives``, also the files in archives there.
    """
    files: dict[str, list[ReleaseFile]] = defaultdict(list)
    paths = [folder]
    if folder.is_dir():
        paths = sorted(path for path in folder.rglob("*") if not path.is_dir())
    for path in paths:
        if path.suffix != ".zip":
            relative = path.relative_to(folder).as_posix()
            files[path.name].append(ReleaseFile(relative, None))
        elif archives:
            for member in _member_names(path):
                files[PurePosixPath(member).name].append(ReleaseFile(member, path))
    return files


def _member_names(path: Path) -> list[str]:
    """The files in an archive."""
    with open_archive(path) as archive:
        return [member.filename for member in archive.infolist() if not member.is_dir()]


def _rows_of_file(path: Path) -> Iterator[SourceRow]:
    """The rows of a file, whose format is that of its suffix, JSON by default."""
    if path.suffix == ".parquet":
        return read_parquet(path)
    if path.suffix in (".csv", ".tsv"):
        return iter(read_csv_rows(path))
    return read_jsonl(path)


def _rows_of_member(path: Path, name: str) -> Iterator[SourceRow]:
    """Yield the rows of a JSON file in an archive."""
    if not name.endswith((".json", ".jsonl")):
        raise DataError(
            f"{path}: {name} is in the archive, from which only JSON is read; unpack it."
        )
    with open_archive(path) as archive:
        yield from read_json(read_member(archive, name), PurePosixPath(name).name)
