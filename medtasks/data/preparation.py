"""The hidden directory where data are prepared before it replaces the finished one."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

import medtasks
from medtasks.data.lock import held
from medtasks.data.manifest import DataManifest, Source, count, covered, differences, fingerprint
from medtasks.data.media.images import KnownMedia, MediaEntry, index_media
from medtasks.data.prepared import Prepared, data_root, open_directory
from medtasks.data.records import Record, is_file_name
from medtasks.errors import DataError, MediaError, UsageError
from medtasks.files import recover_directory, replace_directory
from medtasks.registry import get_benchmark
from medtasks.schema import shown

_SUFFIXES = {b"\xff\xd8\xff": ".jpg", b"\x89PNG": ".png"}

T = TypeVar("T", bound=BaseModel)


class Preparation:
    """A directory beside the finished data, as a context manager that locks these against other preparations.

    The files of an interrupted preparation are reused. The finished data are in ``out``, by default below the data
    root; with ``references_only`` they come without media.

    Raises:
        UsageError: on entering: ``out`` is not prepared data, or has media that data without media would replace; the
            directory cannot be made; or another process prepares ``out``.
    """

    def __init__(self, benchmark: str, out: Path | None, *, references_only: bool = False, mini: bool = False) -> None:
        self.benchmark = get_benchmark(benchmark)
        self.target = (out or data_root() / benchmark).resolve()  # `.` has no name
        self.directory = self.target.with_name(f".{self.target.name}.partial")
        self.references_only = references_only
        self.mini = mini
        self._images: dict[str, str] = {}
        self._held = ExitStack()

    def __enter__(self) -> Preparation:
        with ExitStack() as stack:
            try:
                self.target.parent.mkdir(parents=True, exist_ok=True)
                stack.enter_context(held(self.target, "prepared", ", or give another directory with --out"))
                self._make()
            except OSError as error:
                raise UsageError(
                    f"{self.target}: cannot be written ({error.strerror}); give another directory with --out."
                ) from error
            self._held = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def _make(self) -> None:
        target = self.target
        recover_directory(target)
        # it will be replaced as a whole, so it must be ours
        foreign = target.exists() and not (target / "manifest.json").is_file()
        if foreign and (not target.is_dir() or any(target.iterdir())):
            raise UsageError(f"{target}: exists and does not contain prepared data; give a new directory with --out.")
        if self.references_only and self._has_media():
            raise UsageError(f"{target}: already has prepared data with media; give another directory with --out.")
        self.directory.mkdir(parents=True, exist_ok=True)

    def _has_media(self) -> bool:
        try:
            return not open_directory(self.target).manifest.references_only
        except DataError:  # no readable data there
            return False

    def keep_image(self, img_id: str, data: bytes, where: object) -> str:
        """Store the original bytes of a picture that came with the rows; return its name.

        Raises:
            DataError: the id is not a file name, or already belongs to another picture.
        """
        if not is_file_name(img_id):
            raise DataError(f"{where}: field `img_id` is {shown(img_id)}, expected a plain file name; fix the row.")
        suffix = next((suffix for magic, suffix in _SUFFIXES.items() if data.startswith(magic)), ".bin")
        name = f"{img_id}{suffix}"
        digest = hashlib.sha256(data).hexdigest()
        if self._images.setdefault(img_id, digest) != digest:
            raise DataError(f"{where}: field `image` differs from that of an earlier row of {img_id}; fix the rows.")
        path = self.directory / "media" / name
        if not path.is_file() or path.read_bytes() != data:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data)
        return name

    def logged(self, name: str, kind: type[T]) -> list[T]:
        """Entries that interrupted passes wrote to the progress log ``name``."""
        log = self.directory / f"{name}.progress.jsonl"
        known: list[T] = []
        for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if log.is_file() else ():
            with contextlib.suppress(ValidationError):  # the line that a crash cut off
                known.append(kind.model_validate_json(line))
        return known

    @contextmanager
    def log(self, name: str) -> Iterator[Callable[[BaseModel], None]]:
        """A function that appends an entry to the progress log ``name``, for an interrupted pass to continue from."""
        with (self.directory / f"{name}.progress.jsonl").open("a", encoding="utf-8") as stream:
            stream.write("\n")  # ends the line that a crash may have cut off

            def write(entry: BaseModel) -> None:
                stream.write(entry.model_dump_json() + "\n")
                stream.flush()

            yield write

    def index(
        self, root: Path, names: set[str], workers: int, progress: Callable[[int, int], None] | None
    ) -> tuple[list[MediaEntry], dict[str, MediaError]]:
        """Verify ``names`` below ``root``, except those that an interrupted pass has verified."""
        known = {media.entry.path: media for media in self.logged("media", KnownMedia)}
        verified = 0
        with self.log("media") as write:

            def done(media: KnownMedia) -> None:
                nonlocal verified
                verified += 1
                if known.get(media.entry.path) != media:
                    write(media)
                if progress is not None:
                    progress(verified, len(names))

            return index_media(root, names, workers=workers, known=known, done=done)

    def complete(
        self,
        *,
        source: Source,
        root: Path,
        records: Sequence[Record],
        media: Sequence[MediaEntry],
        excluded: Mapping[str, int],
        excluded_samples: Sequence[str],
        details: dict[str, dict[str, int]] | None = None,
        everything: Sequence[Record] = (),
    ) -> Prepared:
        """Write records, media index and manifest, and replace ``target``.

        ``everything`` are all records of the source, including excluded ones.
        """
        _remove_others(self.directory / "media", {entry.path for entry in media})
        _write_lines(self.directory / "records.jsonl", records)
        _write_lines(self.directory / "media.jsonl", media)
        counts = count(self.benchmark, records, len(media))
        manifest = DataManifest(
            benchmark=self.benchmark.name,
            medtasks=medtasks.__version__,
            created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            media_root=str(root),
            source=source,
            counts=counts,
            published=dict(self.benchmark.published),
            differences=differences(self.benchmark, counts),
            excluded=dict(sorted(excluded.items())),
            excluded_samples=tuple(excluded_samples),
            details=details or {},
            coverage=covered(self.benchmark, everything, records),
            references_only=self.references_only,
            mini=self.mini,
            fingerprint=fingerprint(self.directory),
        )
        text = json.dumps(manifest.model_dump(mode="json"), indent=1, sort_keys=True, ensure_ascii=False)
        (self.directory / "manifest.json").write_text(text + "\n", encoding="utf-8")
        for log in self.directory.glob("*.progress.jsonl"):
            log.unlink()
        replace_directory(self.target, self.directory)
        return open_directory(self.target)


def _remove_others(folder: Path, names: set[str]) -> None:
    """Delete what an abandoned preparation of another source left in the media directory."""
    if folder.is_dir():
        for path in folder.rglob("*"):
            if path.is_file() and path.relative_to(folder).as_posix() not in names:
                path.unlink()


def _write_lines(path: Path, items: Sequence[Record] | Sequence[MediaEntry]) -> None:
    dumped = (item.model_dump(mode="json", exclude_none=isinstance(item, MediaEntry)) for item in items)
    lines = (json.dumps(item, sort_keys=True, ensure_ascii=False) for item in dumped)
    try:
        path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    except UnicodeEncodeError as error:  # our records are checked, another package's may not be
        raise DataError(
            f"a string of the records has {error.object[error.start]!r}, half a surrogate pair; fix it in the source."
        ) from error
