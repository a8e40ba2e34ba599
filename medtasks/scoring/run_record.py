"""A scored run: the one form of its scores in memory, in the user's cache and on boards; and its
result directory.
"""

from __future__ import annotations

import hashlib
import shutil
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from medtasks.catalog.contents import raised_in
from medtasks.catalog.spec import leaf_tasks, load_spec
from medtasks.core.errors import (
    DataError,
    MedtasksError,
    UsageError,
    first_line,
    machine_fault,
    reading,
)
from medtasks.core.files import (
    canonical_json,
    file_sha256,
    recover_directory,
    replace_directory,
    temporary_beside,
)
from medtasks.core.schema import first_problem
from medtasks.core.strict_json import model_from_json
from medtasks.metrics.timelines import Timeline
from medtasks.runs.manifest import RunManifest, versions
from medtasks.runs.samples import Sample, SampleFile, SampleLines
from medtasks.scoring.comparisons import (
    Diagnostics,
    LevelGap,
    Paired,
    comparisons,
    diagnose,
    level_gaps,
)
from medtasks.scoring.group_scores import scores_of
from medtasks.scoring.run_tables import RunTables
from medtasks.scoring.scores import COVERAGE, Scores


@dataclass(frozen=True)
class Change:
    """One value that differs from before: ``what`` is ``filtered``, ``status`` or a metric's
    name.
    """

    task: str
    sample_id: str
    what: str
    before: Any
    after: Any


@dataclass(frozen=True)
class Verification:
    """The outcome for one task of a run.

    ``verified``: scored from the responses, with the data prepared here. ``unverifiable``: the data
    are not here, so questions and gold answers are taken as submitted, or the scores themselves
    (``claimed``; ``stripped`` if that is because prompts and responses were removed). ``refused``:
    never ranked, because of samples of no document of the task
    (``strangers``) or with another prompt (``other_prompts``, both by id). ``prompts`` is whether
    prompts were compared with the template, ``submitted`` are the metrics whose values are taken as
    submitted.
    """

    outcome: Literal["verified", "unverifiable", "refused"] = "verified"
    reason: str = ""
    claimed: bool = False
    stripped: bool = False
    strangers: tuple[str, ...] = ()
    other_prompts: tuple[str, ...] = ()
    prompts: bool = True
    submitted: tuple[str, ...] = ()

    def doubts(self, sample_id: str) -> str:
        """What pages show of a sample that could not be verified here, and why; empty if all of it
        was.
        """
        doubts = []
        if self.outcome == "unverifiable" and not self.claimed:
            doubts.append(
                "question and reference are as submitted, because the run's data are not prepared here"
            )
        elif sample_id in self.strangers:
            doubts.append(
                "question and reference are as submitted, because the data have no such sample"
            )
        if sample_id in self.other_prompts:
            doubts.append("the prompt is as submitted and differs from the task's template")
        elif not self.prompts:
            doubts.append("the prompt is as submitted, because it is not the template's alone")
        if self.claimed:
            doubts.append("scores are as submitted, because they cannot be computed here")
        elif self.submitted:
            doubts.append(
                f"{', '.join(self.submitted)}: as submitted, because it is not computed here"
            )
        return "; ".join(doubts)


VERIFIED = Verification()


@dataclass(frozen=True)
class Difference:
    """A field of a task's samples that is not what is computed here.

    ``samples`` counts them. ``first`` is the id of the first one, ``found`` what its line has,
    ``expected`` what is computed here; None for a field that is absent.
    """

    task: str
    field: str
    samples: int
    first: str
    found: str | None
    expected: str | None


@dataclass(frozen=True)
class RunRecord:
    """A run with the scores of its tasks and groups.

    ``samples`` are by task; empty if they were not asked for. ``made`` are the tables that the
    scores were computed from, ``kept`` the ``comparisons`` and ``level_gaps``; None if they are
    made on first use.

    What follows is there once the run was verified (`medtasks.scoring.verification`). ``signatures`` are by task
    or group and metric, over all items. ``timelines`` are the first streaming items of a task,
    ``verification`` is its outcome, ``responses`` a hash of its responses, ``questions`` hashes of
    its documents by sample id, if they are those of the directory. ``changes`` are the values that
    differ from those in the directory, ``differences`` all fields of samples that do, and
    ``amended`` these samples as they are scored here, by task (`medtasks.scoring.amended`).
    ``problems`` are learned metrics that could not be computed. ``mode`` is ``own`` or
    ``submitted`` if the scores depend on the argument ``own`` of
    `medtasks.scoring.verified_runs.scored_record`. ``predictions`` counts how predictions made elsewhere
    were matched.
    """

    manifest: RunManifest
    samples: Mapping[str, Sequence[Sample]] = field(compare=False)
    tasks: dict[str, Scores]
    groups: dict[str, Scores]
    made: RunTables | None = field(default=None, compare=False)
    kept: tuple[dict[str, Paired], dict[str, LevelGap]] | None = field(default=None, compare=False)
    signatures: dict[str, dict[str, str]] = field(default_factory=dict)
    timelines: dict[str, tuple[Timeline, ...]] = field(default_factory=dict)
    verification: dict[str, Verification] = field(default_factory=dict)
    responses: dict[str, str] = field(default_factory=dict)
    questions: dict[str, dict[str, str]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()
    differences: tuple[Difference, ...] = ()
    amended: Mapping[str, bytes] = field(default_factory=dict, compare=False)
    problems: tuple[str, ...] = ()
    mode: str = ""
    predictions: dict[str, int] = field(default_factory=dict)

    @classmethod
    def scored(
        cls,
        manifest: RunManifest,
        samples: Mapping[str, Sequence[Sample]],
        tables: RunTables | None = None,
    ) -> RunRecord:
        """The run with these scored samples, whose tables may have been made before."""
        tables = tables or RunTables(samples)
        threshold = max((facts.threshold for facts in manifest.judge.values()), default=COVERAGE)
        tasks, groups = scores_of(tables, manifest.groups, threshold=threshold)
        for name, members in manifest.groups.items():
            without = tuple(task for task in leaf_tasks(name) if task not in members)
            groups[name] = groups[name].model_copy(update={"without": without})
        return RunRecord(manifest, samples, tasks, groups, tables)

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(arbitrary_types_allowed=True)

    @property
    def rescored(self) -> RunRecord:
        """The run as ``medtasks score`` writes it: its manifest has the versions that score it
        now.
        """
        scoring = ("medtasks", "sacrebleu", "nltk", "numpy", "transformers", "torch")
        scored = {name: version for name, version in versions().items() if name in scoring}
        update = {"scored": scored, "problems": self.problems}
        return replace(self, manifest=self.manifest.model_copy(update=update))

    @property
    def scores(self) -> dict[str, Scores]:
        """The scores of tasks, then of groups."""
        return {**self.tasks, **self.groups}

    def intervals(self) -> dict[str, dict[str, Any]]:
        """Value, interval and its method by task or group and metric, as plain JSON."""
        fields = {"value", "interval", "interval_method", "reason"}
        intervals: dict[str, dict[str, Any]] = {}
        for name, scores in self.scores.items():
            intervals[name] = {}
            for metric, score in scores.metrics.items():
                intervals[name][metric] = score.model_dump(include=fields)
        return intervals

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
        results: dict[str, Any] = {}
        for part, entries in parts.items():
            results[part] = {name: entry.model_dump(mode="json") for name, entry in entries.items()}
        return results

    @property
    def diagnostics(self) -> dict[str, Diagnostics]:
        return {
            name: diagnose(scores, load_spec(name).benchmark.null_option, self.readings(name))
            for name, scores in self.scores.items()
        }

    def readings(self, name: str) -> Counter[str]:
        """How often the options of a task's or group's responses were named in which way."""
        readings: Counter[str] = Counter()
        for task in self.manifest.groups.get(name, (name,)):
            if task in self.manifest.tasks:
                readings.update(self.manifest.tasks[task].readings)
        return readings


# --- result directories ---


def write_run(directory: Path, run: RunRecord) -> Path:
    """Write ``run`` to the new directory ``directory`` and return it; a crash leaves no partial
    result.

    Raises:
        UsageError: the directory exists; finished results are never overwritten.
    """
    if directory.exists():
        raise UsageError(
            f"{directory}: exists already, and results are never overwritten; choose another directory."
        )
    directory.parent.mkdir(parents=True, exist_ok=True)
    with temporary_beside(directory) as partial:
        _write(partial, run)
        partial.rename(directory)
    return directory


def replace_run(directory: Path, run: RunRecord) -> None:
    """Replace the run in ``directory``, where other files are kept; a crash or an OSError leaves
    the old run.
    """
    with temporary_beside(directory) as partial:
        shutil.copytree(directory, partial, dirs_exist_ok=True)
        _write(partial, run)
        replace_directory(directory, partial)


def _write(folder: Path, run: RunRecord) -> None:
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
