"""The hidden folder in which data are prepared, until it takes the place of the finished one."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

import medtasks
from medtasks.data.manifest import PUBLISHED, Coverage, DataManifest, Source, compare, count, fingerprint
from medtasks.data.media import KnownMedia, KnownVideo, MediaEntry, index_media
from medtasks.data.records import Record, is_file_name
from medtasks.data.store import Prepared, open_directory, replaced_folder
from medtasks.errors import DataError, MediaError, UsageError

__all__ = ["Workplace"]

IMAGES_LOG, VIDEOS_LOG, PERTURBED_LOG = "media.progress.jsonl", "videos.progress.jsonl", "perturbed.progress.jsonl"
_SUFFIXES = {b"\xff\xd8\xff": ".jpg", b"\x89PNG": ".png"}


T = TypeVar("T", bound=BaseModel)


class Workplace:
    """A folder beside ``target``; what lies in it from an interrupted preparation is used again.

    Raises:
        UsageError: ``target`` holds something else than prepared data, or the folder cannot be made.
    """

    def __init__(self, target: Path) -> None:
        self.target = target
        self.directory = partial_folder(target)
        self._old = replaced_folder(target)
        self._images: dict[str, str] = {}
        try:
            if self._old.exists() and not target.exists():  # killed between the two renames of `complete`
                self._old.rename(target)
            # it will be replaced as a whole, so it must be ours
            foreign = target.exists() and not (target / "manifest.json").is_file()
            if foreign and (not target.is_dir() or any(target.iterdir())):
                raise UsageError(f"{target}: exists and holds no prepared data; name a new folder with --out.")
            self.directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"{target}: cannot be written ({error.strerror}); name another with --out.") from error

    def keep_image(self, img_id: str, data: bytes, where: object) -> str:
        """Store a picture that came inside the rows, as its original bytes; return its name.

        Raises:
            DataError: the id is no file name, or came with another picture before.
        """
        if not is_file_name(img_id):
            raise DataError(f"{where}: field `img_id` is {img_id!r}, expected a plain file name; mend the row.")
        suffix = next((suffix for magic, suffix in _SUFFIXES.items() if data.startswith(magic)), ".bin")
        name = f"{img_id}{suffix}"
        digest = hashlib.sha256(data).hexdigest()
        if self._images.setdefault(img_id, digest) != digest:
            raise DataError(f"{where}: field `image` differs from that of an earlier row of {img_id}; mend the rows.")
        path = self.directory / "media" / name
        if not path.is_file() or path.read_bytes() != data:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data)
        return name

    def index(
        self, root: Path, names: set[str], workers: int, progress: Callable[[int, int], None] | None
    ) -> tuple[list[MediaEntry], dict[str, MediaError]]:
        """Verify ``names`` below ``root``, going on from what an interrupted pass has verified."""
        log = self.directory / IMAGES_LOG
        known = {media.entry.path: media for media in _read_progress(log, KnownMedia)}
        verified = 0
        with log.open("a", encoding="utf-8") as stream:
            stream.write("\n")  # ends the line that a crash may have cut off

            def done(media: KnownMedia) -> None:
                nonlocal verified
                verified += 1
                if known.get(media.entry.path) != media:
                    stream.write(media.model_dump_json() + "\n")
                    stream.flush()
                if progress is not None:
                    progress(verified, len(names))

            return index_media(root, names, workers=workers, known=known, done=done)

    def known_videos(self) -> dict[str, KnownVideo]:
        """What an interrupted pass has found out about videos, by path."""
        return {video.entry.path: video for video in _read_progress(self.directory / VIDEOS_LOG, KnownVideo)}

    @contextmanager
    def video_log(self) -> Iterator[Callable[[KnownVideo], None]]:
        """A function that writes down a verified video, so that an interrupted pass goes on after it."""
        with (self.directory / VIDEOS_LOG).open("a", encoding="utf-8") as stream:
            stream.write("\n")  # ends the line that a crash may have cut off

            def write(video: KnownVideo) -> None:
                stream.write(video.model_dump_json() + "\n")
                stream.flush()

            yield write

    def complete(
        self,
        *,
        benchmark: str,
        source: Source,
        root: Path,
        records: Sequence[Record],
        media: Sequence[MediaEntry],
        excluded: dict[str, int],
        excluded_samples: tuple[str, ...],
        mini: bool,
        details: dict[str, dict[str, int]] | None = None,
        coverage: tuple[Coverage, ...] = (),
    ) -> Prepared:
        """Write records, media index and manifest, and take the place of ``target``."""
        _remove_others(self.directory / "media", {entry.path for entry in media})
        _write_lines(self.directory / "records.jsonl", records)
        _write_lines(self.directory / "media.jsonl", media)
        counts = count(records, len(media))
        manifest = DataManifest(
            benchmark=benchmark,
            medtasks=medtasks.__version__,
            created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            media_root=str(root),
            source=source,
            counts=counts,
            published=dict(PUBLISHED.get(benchmark, {})),
            differences=compare(benchmark, counts),
            excluded=excluded,
            excluded_samples=excluded_samples,
            details=details or {},
            coverage=coverage,
            mini=mini,
            fingerprint=fingerprint(self.directory),
        )
        text = json.dumps(manifest.model_dump(mode="json"), indent=1, sort_keys=True, ensure_ascii=False)
        (self.directory / "manifest.json").write_text(text + "\n", encoding="utf-8")
        for name in (IMAGES_LOG, VIDEOS_LOG, PERTURBED_LOG):
            (self.directory / name).unlink(missing_ok=True)
        if self._old.exists():
            shutil.rmtree(self._old)
        if self.target.exists():
            self.target.rename(self._old)
        self.directory.rename(self.target)
        shutil.rmtree(self._old, ignore_errors=True)
        return open_directory(self.target)


def partial_folder(target: Path) -> Path:
    """Where the data that shall become ``target`` are prepared."""
    return target.with_name(f".{target.name}.partial")


def _read_progress(log: Path, kind: type[T]) -> list[T]:
    known: list[T] = []
    if log.is_file():
        for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
            with contextlib.suppress(ValidationError):  # the line that the crash cut off
                known.append(kind.model_validate_json(line))
    return known


def _remove_others(folder: Path, names: set[str]) -> None:
    """What an abandoned preparation of another source left in the media folder is no part of this one."""
    if folder.is_dir():
        for path in folder.rglob("*"):
            if path.is_file() and path.relative_to(folder).as_posix() not in names:
                path.unlink()


def _write_lines(path: Path, items: Sequence[Record] | Sequence[MediaEntry]) -> None:
    # None is left out of the media index, so that it reads as before there were videos
    left_out = {"video"} if items and isinstance(items[0], MediaEntry) else set()
    dumped = (item.model_dump(mode="json") for item in items)
    kept = ({key: value for key, value in item.items() if value is not None or key not in left_out} for item in dumped)
    lines = (json.dumps(item, sort_keys=True, ensure_ascii=False) for item in kept)
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
