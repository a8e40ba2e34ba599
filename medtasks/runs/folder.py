"""Result directories: writing them atomically, reading them."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from medtasks.catalog.contents import raised_in
from medtasks.catalog.spec import load_spec
from medtasks.core import files
from medtasks.core.errors import DataError, MedtasksError, UsageError, first_line, reading
from medtasks.core.files import canonical_json, recover_directory, replace_directory, temporary_beside
from medtasks.core.schema import first_problem
from medtasks.runs.comparisons import Diagnostics, LevelGap, Paired, comparisons, diagnose, level_gaps
from medtasks.runs.manifest import RunManifest
from medtasks.runs.samples import Sample, read_samples, write_samples
from medtasks.runs.scores import Scores, intervals
from medtasks.runs.table import Lazy, RunTables


@dataclass(frozen=True)
class RunRecord:
    """A finished run: its manifest, its samples by task, its scores by task and group."""

    manifest: RunManifest
    samples: Mapping[str, Sequence[Sample]]
    tasks: dict[str, Scores]
    groups: dict[str, Scores]
    made: RunTables | None = None
    """The tables that the scores were computed from, if available."""
    kept: tuple[dict[str, Paired], dict[str, LevelGap]] | None = None
    """``comparisons`` and ``level_gaps``, if they were computed before."""

    def intervals(self) -> dict[str, dict[str, Any]]:
        """Value and interval by task or group and metric, as plain JSON."""
        return intervals({**self.tasks, **self.groups})

    @cached_property
    def tables(self) -> RunTables:
        """The tables of the run's tasks and groups."""
        return self.made or RunTables(self.samples)

    @cached_property
    def comparisons(self) -> dict[str, Paired]:
        """Tasks and groups compared with their partners (``compare_with``), if the run has both."""
        return comparisons(self.tables, self.tables) if self.kept is None else self.kept[0]

    @cached_property
    def level_gaps(self) -> dict[str, LevelGap]:
        """Gaps between adjacent levels, if the run has both."""
        return level_gaps(self.tables) if self.kept is None else self.kept[1]

    @property
    def results(self) -> dict[str, Any]:
        """The content of ``scores.json``, as plain JSON."""
        parts: dict[str, Mapping[str, BaseModel]] = {
            "tasks": self.tasks,
            "groups": self.groups,
            "comparisons": self.comparisons,
            "diagnostics": self.diagnostics,
            "level_gaps": self.level_gaps,
        }
        return {
            key: {name: one.model_dump(mode="json") for name, one in members.items()} for key, members in parts.items()
        }

    @property
    def diagnostics(self) -> dict[str, Diagnostics]:
        """Diagnostics by task and group."""
        every = {**self.tasks, **self.groups}
        return {
            name: diagnose(scores, load_spec(name).benchmark.null_option, self.readings(name))
            for name, scores in every.items()
        }

    def readings(self, name: str) -> Counter[str]:
        """How often the options of a task's or group's responses were named in which way."""
        facts = self.manifest.tasks
        tasks = self.manifest.groups.get(name, (name,))
        return sum((Counter(facts[task].readings) for task in tasks if task in facts), Counter[str]())


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
    return read_manifest(directory), dict(sample_files(directory))


def sample_files(directory: Path) -> Mapping[str, list[Sample]]:
    """The samples of the run in ``directory`` by task, read anew on each access."""
    files = {file.stem: file for file in sorted((directory / "samples").glob("*.jsonl"))}
    return Lazy(files, lambda task: read_samples(files[task]))


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


def read_scores(directory: Path) -> tuple[dict[str, Scores], dict[str, Scores]]:
    """Scores by task and by group as ``scores.json`` has them; for what counts, compute them from the samples.

    Raises:
        DataError: the file cannot be read.
    """
    path = directory / "scores.json"
    try:
        written = json.loads(files.read_regular(path))
        tasks, groups = (
            {name: Scores.model_validate(one) for name, one in written[kind].items()} for kind in ("tasks", "groups")
        )
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise DataError(
            f"{path}: not the scores of a run; make them again: medtasks score DIR --out NEW_DIR."
        ) from error
    return tasks, groups


def folder_digest(folder: Path) -> str:
    """SHA-256 of the contents of ``manifest.json`` and ``samples/*.jsonl``, independent of the directory's name.

    Raises:
        DataError: a file cannot be read.
    """
    digest = hashlib.sha256()
    for path in (folder / "manifest.json", *sorted((folder / "samples").glob("*.jsonl"))):
        digest.update(f"{path.name}\0{file_sha256(path)}\0".encode())
    return digest.hexdigest()


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's content, as hex digits.

    Raises:
        DataError: the file cannot be read.
    """
    with reading(path, "restore it"):
        return files.file_sha256(path)
