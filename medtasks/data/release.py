"""The files of a release, as its authors published them: rows with their places, and the pictures that rows name."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from fnmatch import fnmatch
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TypeAlias

from medtasks.catalog.records import Where, is_path_below, wrong
from medtasks.core.errors import DataError, UsageError
from medtasks.core.text import first_names
from medtasks.data.archive import extract, open_archive, read_member
from medtasks.data.sources import SourceRow, read_csv_rows, read_json, read_jsonl, read_parquet

_SUFFIXES = {b"\xff\xd8\xff": ".jpg", b"\x89PNG": ".png"}
_Entry: TypeAlias = "tuple[str, Path | None]"
"""A file's path, and the ZIP archive that it is in; None if it is unpacked."""


def picture_suffix(data: bytes) -> str:
    """The suffix of a picture's file by its first bytes; ``.bin`` for another format than JPEG and PNG."""
    return next((suffix for magic, suffix in _SUFFIXES.items() if data.startswith(magic)), ".bin")


class Release:
    """The files of a release, for `Benchmark.read`; ZIP archives among them count as unpacked where they are.

    Args:
        source: a directory, or one file: rows, or a ZIP archive.
        media: directory of the pictures; by default that of the rows.
        keep: directory for pictures that are in archives or rows; None to read rows alone.

    Raises:
        UsageError: there is no such file or directory.
    """

    def __init__(self, source: Path, media: Path | None = None, keep: Path | None = None) -> None:
        if not source.exists():
            raise UsageError(f"--source {source}: there is no such file or directory; check the path.")
        self.source = source
        self.folder = media or (source if source.is_dir() else source.parent)
        self._keep = keep
        self._packed: dict[Path, set[str]] = defaultdict(set)
        self._kept = False

    @property
    def media_root(self) -> Path:
        """Where the pictures are that rows have named so far: ``media`` for those that were kept."""
        return Path("media") if self._kept or self._packed else self.folder

    def rows(self, *patterns: str) -> Iterator[SourceRow]:
        """The rows of the files that match the first of ``patterns`` that any does, in order of their names.

        Patterns are paths such as ``data/test-*.parquet``, which may be below any directory. Files are read by their
        suffix: Parquet, CSV, or JSON (lines, or one list).

        Raises:
            UsageError: no file matches.
            DataError: a file cannot be read; names file and line.
        """
        if not self.source.is_dir() and self.source.suffix != ".zip":
            yield from _read(self.source)
            return
        entries = sorted(entry for several in self._files.values() for entry in several)
        for pattern in patterns:
            found = [entry for entry in entries if fnmatch(f"/{entry[0]}", f"*/{pattern}")]
            if found:
                for name, archive in found:
                    yield from _read(self.source / name) if archive is None else _read_packed(archive, name)
                return
        raise UsageError(f"{self.source}: has no file {' or '.join(patterns)}; give the directory that does.")

    def picture(self, value: object, field: str, where: Where) -> str:
        """The name, in a record's ``media``, of the picture in ``field`` of a row.

        ``value`` is the end of its path, such as ``images/1.png``, or a cell of ``datasets`` with its bytes. Pictures
        with equal bytes have one name.

        Raises:
            DataError: it is neither, or the path fits several files.
        """
        if isinstance(value, Mapping):
            data = value.get("bytes")
            if isinstance(data, bytes) and data:
                return self._stored(data)
            value = value.get("path")
        if not is_path_below(value):
            raise wrong(where, field, value, "a picture, or a path such as pictures/1.png below the media directory")
        name = str(PurePosixPath(value))
        same = self._pictures.get(PurePosixPath(name).name, ())
        found = [entry for entry in same if f"/{entry[0]}".endswith(f"/{name}")]
        found = (
            [entry for entry in found if entry[0] == name] or [entry for entry in found if entry[1] is None] or found
        )
        if len({path for path, _ in found}) > 1:
            paths = first_names(sorted(path for path, _ in found), 3)
            raise DataError(f"{where}: field `{field}` is {name}, which fits several files ({paths}); remove others.")
        if not found:
            return name  # missing pictures are refused, or counted, together
        path, archive = found[0]
        if archive is not None:
            self._packed[archive].add(path)
        return path

    def unpack(self, progress: Callable[[int, int], None] | None = None) -> None:
        """Unpack the pictures in archives that rows have named; what an earlier call unpacked is kept.

        Raises:
            DataError: an archive is damaged, or there is too little space.
        """
        for archive, names in self._packed.items():
            if self._keep is not None:
                with open_archive(archive) as opened:
                    extract(opened, names, self._keep, progress)

    def _stored(self, data: bytes) -> str:
        self._kept = True
        name = f"{hashlib.sha256(data).hexdigest()[:32]}{picture_suffix(data)}"
        if self._keep is not None and not (self._keep / name).is_file():
            self._keep.mkdir(parents=True, exist_ok=True)
            (self._keep / name).write_bytes(data)
        return name

    @cached_property
    def _files(self) -> dict[str, list[_Entry]]:
        """Files of rows and all others by their last name."""
        return _listed(self.source)

    @cached_property
    def _pictures(self) -> dict[str, list[_Entry]]:
        return self._files if self.folder == self.source else _listed(self.folder)


def _listed(folder: Path) -> dict[str, list[_Entry]]:
    files: dict[str, list[_Entry]] = defaultdict(list)
    paths = sorted(path for path in folder.rglob("*") if not path.is_dir()) if folder.is_dir() else [folder]
    with ExitStack() as stack:
        for path in paths:
            if path.suffix == ".zip":
                for member in stack.enter_context(open_archive(path)).infolist():
                    if not member.is_dir():
                        files[PurePosixPath(member.filename).name].append((member.filename, path))
            else:
                files[path.name].append((path.relative_to(folder).as_posix(), None))
    return files


def _read(path: Path) -> Iterator[SourceRow]:
    if path.suffix == ".parquet":
        return read_parquet(path)
    return iter(read_csv_rows(path)) if path.suffix in (".csv", ".tsv") else read_jsonl(path)


def _read_packed(archive: Path, name: str) -> Iterator[SourceRow]:
    if not name.endswith((".json", ".jsonl")):
        raise DataError(f"{archive}: {name} is in the archive, from which only JSON is read; unpack it.")
    with open_archive(archive) as opened:
        yield from read_json(read_member(opened, name), PurePosixPath(name).name)
