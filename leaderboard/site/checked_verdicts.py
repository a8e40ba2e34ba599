"""People's verdicts on gold answers, compared with the questions in the results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from medtasks.core.errors import MachineError, MedtasksError
from medtasks.scoring.run_cache import RunStore
from medtasks.scoring.run_folder import read_manifest

from ..board.sensitivity import asked_as
from ..intake.collect import find_everything
from ..verify.gold_verdicts import GoldVerdicts, read_verdicts
from ..verify.question_content import QuestionKey, add_contents
from .run_samples import RunSamples


def checked_verdicts(path: Path, results: Sequence[Path], store: RunStore) -> GoldVerdicts:
    """The verdicts at ``path`` that are about questions in ``results`` as they are now.

    Raises:
        UsageError: there are no verdicts.
        DataError: the verdicts cannot be read.
    """
    verdicts = read_verdicts(path)
    contents: dict[QuestionKey, set[str]] = {}
    for folder in find_everything(results).runs:
        try:
            tasks = read_manifest(folder.directory).tasks
            samples = RunSamples(folder, store)
            for task in verdicts.tasks_with(tasks, asked_as):
                add_contents(contents, samples.answers(task).samples)
        except MachineError:
            raise
        except MedtasksError:  # the board lists it as refused
            continue
    return verdicts.compared(contents).found_in(contents, asked_as)
