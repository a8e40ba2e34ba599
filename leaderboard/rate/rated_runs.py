"""The runs whose answers people rate, and the samples of those that were drawn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from medtasks.catalog.rubric import Rubric
from medtasks.catalog.spec import load_specs
from medtasks.core.cache import cache_root
from medtasks.core.errors import DataError, UsageError
from medtasks.core.files import short_hash
from medtasks.core.schema import shown
from medtasks.judge.ratable import Ratable, ratable_answers, rated_text, tasks_under
from medtasks.judge.rating_records import AnswerKey, DrawnAnswer, RatedRun
from medtasks.runs.find import no_run, require_directory
from medtasks.runs.manifest import RunManifest
from medtasks.runs.samples import Sample
from medtasks.scoring.run_cache import RunStore
from medtasks.scoring.run_folder import read_manifest

from ..intake.collect import Progress, find_everything
from ..site.run_samples import RunSamples
from ..verify.model_identity import model_name


@dataclass(frozen=True)
class RunToRate:
    """A run, its identity, its model's name, and its samples as they are scored here."""

    manifest: RunManifest
    identity: str
    model: str
    folder: Path
    samples: RunSamples

    @property
    def tasks(self) -> list[str]:
        """The tasks of the run that are installed here."""
        installed = load_specs()
        return [task for task in self.manifest.tasks if task in installed]

    def samples_of(self, task: str) -> Sequence[Sample]:
        """The samples of a task; none if it is not installed here or not in the run."""
        if task not in self.tasks:
            return ()
        return self.samples.answers(task).samples


class RunsToRate:
    """The runs in result directories.

    Args:
        paths: result directories, or directories that contain some.

    Raises:
        UsageError: a path is not a directory, there is no run, or one is there twice.
        DataError: a manifest cannot be read.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self.by_identity: dict[str, RunToRate] = {}
        for path in paths:
            require_directory(path)
        store = RunStore(cache_root() / "scores")
        for folder in find_everything(paths).runs:
            manifest = read_manifest(folder.directory)
            samples = RunSamples(folder, store)
            run = RunToRate(
                manifest, manifest.identity, model_name(manifest), folder.directory, samples
            )
            earlier = self.by_identity.setdefault(run.identity, run)
            if earlier is not run:
                raise UsageError(
                    f"{folder.directory}: is the same run as {earlier.folder}, expected every run "
                    "once; give one of them."
                )
        if not self.by_identity:
            raise no_run(paths[0])

    def __iter__(self) -> Iterator[RunToRate]:
        return iter(self.by_identity.values())

    @property
    def facts(self) -> tuple[RatedRun, ...]:
        """The runs as a plan names them."""
        return tuple(RatedRun(id=run.identity, model=run.model) for run in self)

    def ratable(self, rubric: Rubric, progress: Progress) -> Ratable:
        """All answers of the runs that can be rated under the rubric.

        Raises:
            UsageError: there is none.
        """
        ratable = Ratable()
        total = len(self.by_identity)
        for number, run in enumerate(self):
            progress(number, total)
            for task in tasks_under(rubric, run.tasks):
                samples = {task: run.samples.answers(task).samples}
                of_task = ratable_answers(run.manifest, run.model, samples, rubric)
                ratable.answers += of_task.answers
                ratable.left_out.update(of_task.left_out)
        progress(total, total)
        if not ratable.answers:
            raise UsageError(
                f"--rubric {rubric.name}: none of the answers in these results can be rated under "
                "it; give another rubric, or other results."
            )
        return ratable

    def samples_of(self, answers: Iterable[DrawnAnswer], path: Path) -> dict[AnswerKey, Sample]:
        """The samples of drawn answers.

        Args:
            answers: those of a plan.
            path: the file of the plan, for errors.

        Raises:
            UsageError: a run of the plan is not among these.
            DataError: an answer has another text than when it was drawn, or does not exist.
        """
        wanted: dict[tuple[str, str], dict[str, DrawnAnswer]] = {}
        for answer in answers:
            wanted.setdefault((answer.run, answer.task), {})[answer.sample_id] = answer
        samples: dict[AnswerKey, Sample] = {}
        for (identity, task), by_id in wanted.items():
            run = self._run(identity, path)
            for sample in run.samples_of(task):
                drawn = by_id.pop(sample.sample_id, None)
                if drawn is None:
                    continue
                if short_hash(rated_text(sample)) != drawn.response_hash:
                    raise _changed(path, task, sample.sample_id)
                samples[drawn.key] = sample
            if by_id:
                raise _changed(path, task, next(iter(by_id)))
        return samples

    def _run(self, identity: str, path: Path) -> RunToRate:
        """The run of an identity that a plan names."""
        if identity not in self.by_identity:
            raise UsageError(
                f"{path}: was drawn from a run ({identity}) that is not in the given results; give "
                "all results that it was begun with, or another folder with --ratings."
            )
        return self.by_identity[identity]


def _changed(path: Path, task: str, sample_id: str) -> DataError:
    """The error that an answer is not what was drawn."""
    return DataError(
        f"{path}: the answer to sample {shown(sample_id)} of {task} has changed since it was "
        "drawn; restore the results as they were, or give another folder with --ratings."
    )
