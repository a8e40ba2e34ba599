"""Result directories: writing them atomically, reading them."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from medtasks.catalog.contents import raised_in
from medtasks.core import files
from medtasks.core.errors import DataError, MedtasksError, UsageError, first_line, reading
from medtasks.core.files import canonical_json, recover_directory, replace_directory, temporary_beside
from medtasks.core.schema import first_problem
from medtasks.runs.manifest import RunManifest
from medtasks.runs.record import RunRecord
from medtasks.runs.samples import Sample, read_samples, write_samples
from medtasks.runs.table import Lazy


def write_run(directory: Path, run: RunRecord) -> Path:
    """Write ``run`` to the new directory ``directory`` and return it; a crash leaves no partial result.

    Raises:
        UsageError: the directory exists; finished results are never overwritten.
    """
    if directory.exists():
        raise UsageError(f"{directory}: exists already, and results are never overwritten; choose another directory.")
    directory.parent.mkdir(parents=True, exist_ok=True)
    with temporary_beside(directory) as partial:
        _write(partial, run)
        partial.rename(directory)
    return directory


def replace_run(directory: Path, run: RunRecord) -> None:
    """Replace the run in ``directory`` atomically; other files in it are kept.

    A crash leaves either the old run or the new one, complete.

    Raises:
        OSError: the directory cannot be written; the old run is kept.
    """
    with temporary_beside(directory) as partial:
        shutil.copytree(directory, partial, dirs_exist_ok=True)
        _write(partial, run)
        replace_directory(directory, partial)


def _write(folder: Path, run: RunRecord) -> None:
    (folder / "samples").mkdir(exist_ok=True)
    for task, samples in sorted(run.samples.items()):
        write_samples(folder / "samples" / f"{task}.jsonl", samples)
    (folder / "scores.json").write_text(canonical_json(run.results, indent=1) + "\n", encoding="utf-8")
    manifest = run.manifest.model_dump(mode="json")
    (folder / "manifest.json").write_text(canonical_json(manifest, indent=1) + "\n", encoding="utf-8")


def read_run(directory: Path) -> tuple[RunManifest, dict[str, list[Sample]]]:
    """Manifest and samples by task from a directory that :func:`write_run` wrote.

    Raises:
        UsageError: the directory does not exist or is not a run's.
        DataError: the manifest or a sample line cannot be read; names file, line and field.
    """
    manifest, samples = RunFolder(directory).read()
    return manifest, dict(samples)


@contextmanager
def as_data_error(directory: Path) -> Iterator[None]:
    """Report whatever the content of ``directory`` makes fail in the block.

    Anybody may have edited it: every file can follow its schema although they do not fit together, or not the task.

    Raises:
        DataError: the block raises something other than a `MedtasksError` or an OSError; names the directory and the
            line of code.
    """
    try:
        yield
    except (MedtasksError, OSError):
        raise
    except Exception as error:
        raise DataError(
            f"{directory}: its samples and manifest do not fit together or not their tasks ({first_line(error)[:200]}, "
            f"raised {raised_in(error)}); restore the directory."
        ) from error


def read_manifest(directory: Path) -> RunManifest:
    """The manifest of the run in ``directory``.

    Raises:
        UsageError: the directory does not exist or is not a run's.
        DataError: the manifest cannot be read; names the field.
    """
    recover_directory(directory)
    path = directory / "manifest.json"
    if not directory.exists():
        raise UsageError(f"{directory}: no such directory; give a result directory (…_medtasks).")
    if not path.is_file():
        raise UsageError(f"{directory}: contains no manifest.json; give a directory …_medtasks.")
    try:
        return RunManifest.model_validate_json(path.read_text(encoding="utf-8"))
    except ValidationError as error:
        raise DataError(f"{path}: not the manifest of a run ({first_problem(error)}); restore it.") from error
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: not the manifest of a run; restore it.") from error


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's content, as hex digits.

    Raises:
        DataError: the file cannot be read.
    """
    with reading(path, "restore it"):
        return files.file_sha256(path)


def contents_hash(files: Mapping[str, Path]) -> str:
    """SHA-256 of the contents of files, by the names that count.

    Raises:
        DataError: a file cannot be read.
    """
    digest = hashlib.sha256()
    for name, path in files.items():
        digest.update(f"{name}\0{file_sha256(path)}\0".encode())
    return digest.hexdigest()


@dataclass(frozen=True)
class RunFolder:
    """The result directory ``directory``."""

    directory: Path

    @property
    def name(self) -> str:
        """The name of the directory."""
        return self.directory.resolve().name

    @property
    def files(self) -> list[Path]:
        """All files that are scored."""
        return [self.directory / "manifest.json", *sorted((self.directory / "samples").glob("*.jsonl"))]

    @property
    def content(self) -> str:
        """SHA-256 of the contents of all files, independent of the directory's name.

        Raises:
            DataError: a file cannot be read.
        """
        recover_directory(self.directory)
        return contents_hash({path.name: path for path in self.files})

    def contains(self) -> tuple[Collection[str], Mapping[str, bool]]:
        """The names of the tasks, and by benchmark whose data were used whether they are miniature data."""
        manifest = read_manifest(self.directory)
        return manifest.tasks, {name: facts.mini for name, facts in manifest.data.items()}

    def read(self) -> tuple[RunManifest, Mapping[str, list[Sample]]]:
        """The manifest, and the samples by task, read anew on each access.

        Raises:
            UsageError: the directory does not exist or is not a run's.
            DataError: the manifest or a sample line cannot be read; names file, line and field.
        """
        manifest = read_manifest(self.directory)
        files = {file.stem: file for file in self.files[1:]}
        return manifest, Lazy(files, lambda task: read_samples(files[task]))
