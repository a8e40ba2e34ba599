"""The hidden folder in which data are prepared, until it takes the place of the finished one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path

from pydantic import ValidationError

import medtasks
from medtasks.data.manifest import PUBLISHED, DataManifest, Source, compare, count, fingerprint
from medtasks.data.media import MediaEntry, index_media
from medtasks.data.records import Record
from medtasks.data.store import Prepared, open_directory
from medtasks.errors import DataError, MediaError

__all__ = ["Workplace"]

_SUFFIXES = {b"\xff\xd8\xff": ".jpg", b"\x89PNG": ".png"}


class Workplace:
    """A folder beside ``target``; what lies in it from an interrupted preparation is used again."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self.directory = target.with_name(f".{target.name}.partial")
        self._old = target.with_name(f".{target.name}.old")
        if self._old.exists() and not target.exists():  # killed between the two renames of `complete`
            self._old.rename(target)
        self.directory.mkdir(parents=True, exist_ok=True)

    def keep_image(self, img_id: str, data: bytes) -> str:
        """Store a picture that came inside the rows, as its original bytes; return its name."""
        if "/" in img_id or img_id.startswith("."):
            raise DataError(f"field `img_id` is {img_id!r}, expected a name without '/'; mend the row.")
        suffix = next((suffix for magic, suffix in _SUFFIXES.items() if data.startswith(magic)), ".bin")
        name = f"{img_id}{suffix}"
        path = self.directory / "media" / name
        if not path.is_file() or path.stat().st_size != len(data):
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data)
        return name

    def index(
        self, root: Path, names: set[str], workers: int, progress: Callable[[int, int], None] | None
    ) -> tuple[list[MediaEntry], dict[str, MediaError]]:
        """Verify ``names`` below ``root``, going on from what an interrupted pass has verified."""
        log = self.directory / "media.progress.jsonl"
        known = _read_progress(log)
        verified = 0
        with log.open("a", encoding="utf-8") as stream:

            def done(entry: MediaEntry) -> None:
                nonlocal verified
                verified += 1
                if known.get(entry.path) != entry:
                    stream.write(entry.model_dump_json() + "\n")
                    stream.flush()
                if progress is not None:
                    progress(verified, len(names))

            return index_media(root, names, workers=workers, known=known, done=done)

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
    ) -> Prepared:
        """Write records, media index and manifest, and take the place of ``target``."""
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
            published=dict(PUBLISHED[benchmark]),
            differences=compare(benchmark, counts),
            excluded=excluded,
            excluded_samples=excluded_samples,
            mini=mini,
            fingerprint=fingerprint(self.directory),
        )
        text = json.dumps(manifest.model_dump(mode="json"), indent=1, sort_keys=True, ensure_ascii=False)
        (self.directory / "manifest.json").write_text(text + "\n", encoding="utf-8")
        (self.directory / "media.progress.jsonl").unlink(missing_ok=True)
        if self._old.exists():
            shutil.rmtree(self._old)
        if self.target.exists():
            self.target.rename(self._old)
        self.directory.rename(self.target)
        shutil.rmtree(self._old, ignore_errors=True)
        return open_directory(self.target)


def _read_progress(log: Path) -> dict[str, MediaEntry]:
    known: dict[str, MediaEntry] = {}
    if log.is_file():
        for line in log.read_text(encoding="utf-8").splitlines():
            try:
                entry = MediaEntry.model_validate_json(line)
            except ValidationError:  # the line that the crash cut off
                continue
            known[entry.path] = entry
    return known


def _write_lines(path: Path, items: Sequence[Record] | Sequence[MediaEntry]) -> None:
    lines = (json.dumps(item.model_dump(mode="json"), sort_keys=True, ensure_ascii=False) for item in items)
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
