"""Preparing data in a hidden directory, which replaces the finished data once it is complete."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from medtasks.catalog.records import Record
from medtasks.catalog.registry import get_benchmark
from medtasks.core.errors import DataError, MediaError, UsageError
from medtasks.core.locks import held
from medtasks.core.replacement import recover_directory, replace_directory
from medtasks.core.text import first_names
from medtasks.data.media.images import KnownMedia, MediaIndex, index_media
from medtasks.data.prepared import DataManifest, Prepared, Source, data_root, open_directory
from medtasks.data.progress import Progress
from medtasks.data.writing import Contents, Exclusions, media_of, remove_other_media, write_contents

NAMED = 10
"""Unusable pictures that an error message names."""

_KEPT = Path("media")
"""In the prepared data: pictures that were fetched, unpacked, or taken out of rows."""

T = TypeVar("T", bound=BaseModel)


@dataclass
class Preparation:
    """A directory beside the finished data, as a context manager that locks these data.

    The finished data are in ``out``, by default below the data root; no other preparation can
    replace them meanwhile. The files of an interrupted preparation are reused. Entering raises
    :class:`UsageError` if ``out`` is not prepared data, or has media that data without media would
    replace.
    """

    name: str
    out: Path | None
    _: KW_ONLY
    allow_missing_media: bool = False
    references_only: bool = False
    workers: int = 0
    progress: Progress | None = None
    mini: bool = False

    def __post_init__(self) -> None:
        """Name the directories, without creating any."""
        self.benchmark = get_benchmark(self.name)
        self.target = (self.out or data_root() / self.name).resolve()  # `.` has no name
        self.directory = partial_directory(self.target)
        self._held = ExitStack()

    def __enter__(self) -> Preparation:
        """Lock the finished data, check that they may be replaced, and create the directory."""
        with ExitStack() as stack:
            try:
                self.target.parent.mkdir(parents=True, exist_ok=True)
                lock = held(self.target, "prepared", ", or give another directory with --out")
                stack.enter_context(lock)
                recover_directory(self.target)
                self._refuse_foreign_target()
                self._refuse_to_replace_media()
                self.directory.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise UsageError(
                    f"{self.target}: cannot be written ({error.strerror}); "
                    "give another directory with --out."
                ) from error
            self._held = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def _refuse_foreign_target(self) -> None:
        """Refuse to replace what is not prepared data; an empty directory may be replaced."""
        if not self.target.exists() or (self.target / "manifest.json").is_file():
            return
        if not self.target.is_dir() or any(self.target.iterdir()):
            raise UsageError(
                f"{self.target}: exists and does not contain prepared data; "
                "give a new directory with --out."
            )

    def _refuse_to_replace_media(self) -> None:
        """Refuse to replace data that have media by data without."""
        if not self.references_only:
            return
        try:
            manifest = open_directory(self.target).manifest
        except DataError:  # there are no readable data to replace
            return
        if not manifest.references_only:
            raise UsageError(
                f"{self.target}: already has prepared data with media; "
                "give another directory with --out."
            )

    @contextmanager
    def progress_log(
        self, name: str, kind: type[T]
    ) -> Iterator[tuple[list[T], Callable[[T], None]]]:
        """Yield the entries of the log ``name``, and a function to add one."""
        log = self.directory / f"{name}.progress.jsonl"
        text = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
        entries: list[T] = []
        for line in text.splitlines():
            with suppress(ValidationError):  # a crash may have cut off the line
                entries.append(kind.model_validate_json(line))
        with log.open("a", encoding="utf-8", buffering=1) as stream:
            stream.write("\n")  # ends the line that a crash may have cut off

            def write(entry: T) -> None:
                print(entry.model_dump_json(), file=stream)

            yield entries, write

    def index(self, root: Path, names: set[str], progress: Progress | None = None) -> MediaIndex:
        """Verify ``names`` below ``root``, except those that an interrupted pass has verified."""
        with self.progress_log("media", KnownMedia) as (verified, write):
            return index_media(
                root, names, workers=self.workers, verified=verified, write=write, progress=progress
            )

    def finish(
        self,
        source: Source,
        records: Sequence[Record],
        root: Path = _KEPT,
        *,
        details: Mapping[str, Mapping[str, int]] | None = None,
        unavailable: Mapping[str, MediaError] | None = None,
    ) -> Prepared:
        """Verify the pictures of ``records`` below ``root``, and write the rows that are left.

        With references only, no picture is verified. ``unavailable`` has the errors of the media
        that could not be fetched.

        Raises:
            DataError: there is no record, or none is left.
            MediaError: a picture cannot be used, and `allow_missing_media` is not set.
        """
        if not records:
            raise DataError(f"{source.name}: has no row, expected at least one; fetch it again.")
        files = self._files_below(root)
        index = self._verified_media(records, files, unavailable or {})
        if index.errors and not self.allow_missing_media:
            raise _unusable_pictures_error(records, index.errors)
        left_out = dict(_without_pictures(records, index.errors, files))
        if len(left_out) == len(records):
            raise DataError(
                f"{source.name}: no row is left, because none has a picture; check --images."
            )
        return self.complete(source, records, root, index, details or {}, left_out=left_out)

    def _verified_media(
        self, records: Sequence[Record], files: Path, unavailable: Mapping[str, MediaError]
    ) -> MediaIndex:
        """The index of the pictures of ``records`` below ``files``; empty with references only."""
        names: set[str] = set()
        if not self.references_only:
            for record in records:
                names.update(record.media)
        not_fetched = {name: error for name, error in unavailable.items() if name in names}
        index = self.index(files, names - not_fetched.keys(), self.progress)
        return replace(index, errors={**index.errors, **not_fetched})

    def complete(
        self,
        source: Source,
        records: Sequence[Record],
        root: Path,
        index: MediaIndex,
        details: Mapping[str, Mapping[str, int]],
        *,
        left_out: Mapping[str, str] | None = None,
        original: DataManifest | None = None,
    ) -> Prepared:
        """Write records, media index and manifest, and replace ``target``.

        Records that are ``left_out``, a reason by sample id, are counted, and the media with errors
        are named. ``original`` is the manifest of the prepared data that the records were made of:
        its exclusions are stated again, and all media of ``index`` are kept.
        """
        if original is not None:
            kept = records
            exclusions = Exclusions.of_manifest(original)
        else:
            reasons = left_out or {}
            kept = [record for record in records if record.sample_id not in reasons]
            exclusions = Exclusions.of(records, reasons, index.errors, self._files_below(root))
            index = media_of(kept, index)
        contents = Contents(
            source=source,
            records=kept,
            all_records=records,
            media=index.entries,
            uniform=index.uniform,
            media_root=self._written_root(root),
            exclusions=exclusions,
            details=details,
            references_only=self.references_only,
            mini=self.mini,
        )
        return self._replace_target(contents)

    def _replace_target(self, contents: Contents) -> Prepared:
        """Write ``contents``, replace the finished data with the directory, and open them."""
        remove_other_media(self.directory / _KEPT, contents.media)
        write_contents(self.directory, self.benchmark, contents)
        for log in self.directory.glob("*.progress.jsonl"):
            log.unlink()
        replace_directory(self.target, self.directory)
        return open_directory(self.target)

    def _files_below(self, root: Path) -> Path:
        """The directory of the media while the data are prepared; ``root`` is as in `finish`."""
        return self.directory / _KEPT if root == _KEPT else root.resolve()

    def _written_root(self, root: Path) -> Path:
        """The media root as the manifest states it."""
        if root == _KEPT:
            return root
        if self.mini:  # miniature data are moved with their pictures
            return Path(os.path.relpath(root, self.directory))
        return root.resolve()


def _unusable_pictures_error(
    records: Sequence[Record], errors: Mapping[str, MediaError]
) -> MediaError:
    """The error that names the first pictures that cannot be used, and the rows that show any."""
    rows: list[str] = []
    for row, record in enumerate(records, start=1):
        if not errors.keys().isdisjoint(record.media):
            rows.append(str(row))
    messages = [str(error) for error in errors.values()]
    if len(messages) > NAMED:
        messages = [*messages[:NAMED], f"And {len(errors) - NAMED} more."]
    return MediaError(
        f"{len(errors)} of the pictures cannot be used (rows {first_names(rows)}): "
        f"{' '.join(messages)} Or leave out and count their rows with --allow-missing-media."
    )


def _without_pictures(
    records: Sequence[Record], errors: Mapping[str, MediaError], files: Path
) -> Iterator[tuple[str, str]]:
    """Yield the id of each record that lacks a usable picture, and the reason to leave it out."""
    for record in records:
        unusable = [name for name in record.media if name in errors]
        if not unusable:
            continue
        all_exist = all((files / name).is_file() for name in unusable)
        yield record.sample_id, "unreadable_image" if all_exist else "missing_image"


def partial_directory(target: Path) -> Path:
    """The directory of a preparation that has not finished; ``target`` is that of finished data."""
    return target.with_name(f".{target.name}.partial")
