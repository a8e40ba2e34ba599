"""What a model was trained on with our rewards: a small file that stays beside its weights."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from medtasks.core.errors import DataError, reading
from medtasks.core.files import canonical_json, is_file, read_regular
from medtasks.core.replacement import replaced
from medtasks.core.schema import Frozen, Text, first_problem

FILE = "medtasks_training.json"
FACT = "medtasks_training"
"""The key of the record among a manifest's facts about the model."""


class RewardUse(Frozen):
    """One reward that a model was trained with.

    ``questions`` are the ids of the task's own questions in the training data, ``fingerprint`` is
    that of their prepared data. ``other_rows`` is whether rows from elsewhere were scored, too.
    """

    task: Text
    benchmark: Text
    metric: Text
    fingerprint: str = ""
    questions: tuple[str, ...] = ()
    other_rows: bool = False

    def merged(self, use: RewardUse) -> RewardUse:
        """Both uses of this reward as one."""
        questions = sorted({*self.questions, *use.questions})
        return self.model_copy(
            update={
                "fingerprint": self.fingerprint or use.fingerprint,
                "questions": tuple(questions),
                "other_rows": self.other_rows or use.other_rows,
            }
        )


class TrainingRecord(Frozen):
    """The content of the file: every reward that a model was trained with."""

    format: Literal[1] = 1
    medtasks: str
    rewards: tuple[RewardUse, ...]

    def merged(self, earlier: TrainingRecord | None) -> TrainingRecord:
        """The rewards of both records, with ``medtasks`` of this one."""
        if earlier is None:
            return self
        rewards = merged_uses([*earlier.rewards, *self.rewards])
        return self.model_copy(update={"rewards": rewards})


def merged_uses(uses: Iterable[RewardUse]) -> tuple[RewardUse, ...]:
    """One use for each task, metric and state of the data, sorted."""
    by_reward: dict[tuple[str, str, str], RewardUse] = {}
    for use in uses:
        key = (use.task, use.metric, use.fingerprint)
        earlier = by_reward.get(key)
        by_reward[key] = use if earlier is None else earlier.merged(use)
    return tuple(use for _, use in sorted(by_reward.items()))


def read_training_record(folder: Path) -> TrainingRecord | None:
    """The record in a checkpoint's directory; None if it has none.

    Raises:
        DataError: the file is damaged; names file and field.
    """
    path = folder / FILE
    if not is_file(path):
        return None
    with reading(path, "restore it, or train again"):
        content = read_regular(path)
    try:
        return TrainingRecord.model_validate_json(content)
    except ValidationError as error:
        problem = first_problem(error, TrainingRecord)
        raise DataError(f"{path}: {problem}; restore it, or train again.") from error


def write_training_record(folder: Path, record: TrainingRecord) -> Path:
    """Write the record into an existing directory; the path of the file."""
    path = folder / FILE
    with replaced(path) as file:
        file.write_text(canonical_json(record.model_dump(), indent=1) + "\n", encoding="utf-8")
    return path
