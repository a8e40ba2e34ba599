"""The result directory of a scored run: written whole or not at all, and read again."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from medtasks.catalog.guest_code import raised_in
from medtasks.core.errors import (
    DataError,
    MedtasksError,
    UsageError,
    first_line,
    machine_fault,
    reading,
)
from medtasks.core.files import canonical_json, file_sha256
from medtasks.core.replacement import recover_directory, replace_directory, temporary_beside
from medtasks.core.schema import first_problem
from medtasks.core.strict_json import model_from_json
from medtasks.runs.manifest import RunManifest
from medtasks.runs.sample_files import SampleFile, SampleLines
from medtasks.runs.samples import Sample
from medtasks.runs.times import (
    NO_TIMES,
    FoundTimes,
    Times,
    has_times,
    of_tasks,
    write_times,
)
from medtasks.scoring.latency import run_latency, write_latency
from medtasks.scoring.run_record import RunRecord


def write_run(directory: Path, run: RunRecord, times: Times = NO_TIMES) -> Path:
    """Write ``run`` to the new directory ``directory`` and return it; a crash leaves no partial
    result.

    If any of the ``times`` of its requests are known, they and its latency are written, too.

    Raises:
        UsageError: the directory exists; finished results are never overwritten.
    """
    if directory.exists():
        raise UsageError(
            f"{directory}: exists already, and results are never overwritten; "
            "choose another directory."
        )
    directory.parent.mkdir(parents=True, exist_ok=True)
    with temporary_beside(directory) as partial:
        _write_files(partial, run)
        kept = of_tasks(times, run.samples)
        if has_times(kept):
            write_times(partial, kept)
            write_latency(partial, run_latency(run, kept))
        partial.rename(directory)
    return directory


def replace_run(directory: Path, run: RunRecord) -> None:
    """Replace the run in ``directory``, where other files are kept; a crash or an OSError leaves
    the old run.

    Its latency is computed again: overall scores of streams with computing depend on verdicts.
    """
    with temporary_beside(directory) as partial:
        shutil.copytree(directory, partial, dirs_exist_ok=True)
        _write_files(partial, run)
        times = FoundTimes.of(partial).times
        if has_times(times):
            write_latency(partial, run_latency(run, times))
        replace_directory(directory, partial)


def _write_files(folder: Path, run: RunRecord) -> None:
    """Write samples, scores and manifest into ``folder``, which exists."""
    (folder / "samples").mkdir(exist_ok=True)
    for task, samples in sorted(run.samples.items()):
        lines = samples if isinstance(samples, SampleLines) else SampleLines(samples)
        lines.write(folder / "samples" / f"{task}.jsonl")
    (folder / "scores.json").write_text(
        canonical_json(run.results, indent=1) + "\n", encoding="utf-8"
    )
    manifest = run.manifest.model_dump(mode="json")
    (folder / "manifest.json").write_text(
        canonical_json(manifest, indent=1) + "\n", encoding="utf-8"
    )


def read_run(directory: Path) -> tuple[RunManifest, dict[str, list[Sample]]]:
    """Manifest and samples by task from a directory that :func:`write_run` wrote.

    Raises:
        UsageError: the directory does not exist or is not a run's.
        DataError: the manifest or a sample line cannot be read; names file, line and field.
    """
    manifest, samples = RunFolder(directory).read()
    return manifest, {task: [*of_task] for task, of_task in samples.items()}


@contextmanager
def as_data_error(directory: Path) -> Iterator[None]:
    """Report whatever the content of ``directory`` makes fail in the block: every file can follow
    its schema although they do not fit together, or not the task.
    """
    try:
        yield
    except (MedtasksError, OSError):
        raise
    except MemoryError as error:
        raise DataError(
            f"{directory}: takes more memory than this machine has; read it on a larger one."
        ) from error
    except Exception as error:
        raise machine_fault(error) or DataError(
            f"{directory}: its samples and manifest do not fit together or not their tasks "
            f"({first_line(error)[:200]}, raised {raised_in(error)}); restore the directory."
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
        with reading(path, "restore it"):
            return model_from_json(RunManifest, path.read_bytes())
    except ValidationError as error:
        raise DataError(
            f"{path}: not the manifest of a run ({first_problem(error)}); restore it."
        ) from error


def contents_hash(files: Mapping[str, Path]) -> str:
    """SHA-256 of the contents of files, by the names that count."""
    digest = hashlib.sha256()
    for name, path in files.items():
        with reading(path, "restore it"):
            digest.update(f"{name}\0{file_sha256(path)}\0".encode())
    return digest.hexdigest()


@dataclass(frozen=True)
class RunFolder:
    """The result directory ``directory``; ``below`` is its path below a root that was searched for
    runs.
    """

    directory: Path
    below: str = ""

    @property
    def name(self) -> str:
        return self.below or self.directory.resolve().name

    @property
    def files(self) -> list[Path]:
        return [
            self.directory / "manifest.json",
            *sorted((self.directory / "samples").glob("*.jsonl")),
        ]

    @property
    def content(self) -> str:
        """SHA-256 of the contents of all files, independent of the directory's name."""
        recover_directory(self.directory)
        return contents_hash({path.name: path for path in self.files})

    def contains(self) -> tuple[Collection[str], Mapping[str, bool]]:
        """The names of the tasks, and by benchmark whose data were used whether they are miniature
        data.
        """
        manifest = read_manifest(self.directory)
        return manifest.tasks, {name: facts.mini for name, facts in manifest.data.items()}

    def read(self) -> tuple[RunManifest, Mapping[str, SampleFile]]:
        """The manifest, and the samples by task."""
        manifest = read_manifest(self.directory)
        files = {file.stem: file for file in self.files[1:]}
        return manifest, {task: SampleFile(file) for task, file in files.items()}
