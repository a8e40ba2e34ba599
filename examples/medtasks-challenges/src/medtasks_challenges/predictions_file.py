"""``predictions_1.json``: the file that the sample scripts of Medico 2026 and MEDVQA-GI 2026 write.

Medico: ``medvqa/submission_samples/medico-2026/submission_task1.py``; MEDVQA-GI:
``…/gi-2026/submission_task1.py``; both of SushantGautam/MedVQA. The organisers run such a script
themselves and delete any ``predictions_1.json`` before; ours is for checking a model beforehand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import medtasks
from medtasks.api import DataError, Document

from medtasks_challenges import kvasir_rows, medvqa_gi
from medtasks_challenges.json_files import objects_in, read_json
from medtasks_challenges.public_scores import PublicScore, public_scores
from medtasks_challenges.run_answers import ChallengeAnswer
from medtasks_challenges.team import Team

FIELDS = ("index", "img_id", "question", "answer")


@dataclass(frozen=True)
class PredictionsChallenge:
    """A challenge with this file.

    Args:
        name: the name of the command.
        benchmark: the benchmark that has the rows.
        documents: returns the rows in the organisers' order.
        rows: how many there are; None if that is not public, then as many as the run's data have.
        tasks: alternatives of tasks that ask these rows, the first that a run has is used.
        scored_as: the task with these rows and metrics.
        digits: decimal places of the public scores.
    """

    name: str
    benchmark: str
    documents: Callable[[], list[Document]]
    rows: int | None
    tasks: tuple[tuple[str, ...], ...]
    scored_as: str
    digits: int


MEDICO_1 = PredictionsChallenge(
    name="medico-2026-1",
    benchmark=kvasir_rows.BENCHMARK,
    documents=lambda: kvasir_rows.subtask1.documents(media=False),
    rows=kvasir_rows.SELECTED,
    tasks=(
        ("kvasir_vqa_x1_medico2025",),
        ("kvasir_vqa_x1_level1", "kvasir_vqa_x1_level2", "kvasir_vqa_x1_level3"),
    ),
    scored_as="kvasir_vqa_x1_medico2025",
    digits=4,
)
GI_1 = PredictionsChallenge(
    name="gi-2026-1",
    benchmark=medvqa_gi.NAME,
    documents=lambda: medvqa_gi.rows.documents(media=False),
    rows=None,
    tasks=(("medvqa_gi_2026",),),
    scored_as="medvqa_gi_2026",
    digits=2,
)


def predictions_file(
    documents: Sequence[Document],
    answers: Sequence[ChallengeAnswer],
    team: Team,
    scores: Mapping[str, float | None],
    run: medtasks.Run,
) -> dict[str, Any]:
    """The content of the file.

    Args:
        documents: the rows in the organisers' order.
        answers: the answer to each; the text of one with a problem is empty.
        team: who submits.
        scores: the public scores, rounded.
        run: the run, whose versions go into ``debug``.
    """
    predictions = []
    for index, (document, answer) in enumerate(zip(documents, answers, strict=True)):
        row = (index, document["img_id"], document["question"], answer.answer)
        predictions.append(dict(zip(FIELDS, row, strict=True)))
    measured = team.measured
    time_per_item = None
    if measured.total_time is not None:
        time_per_item = measured.total_time / len(predictions)
    versions = run.manifest.versions.items()
    return {
        "submission_info": team.submission_info,
        "public_scores": dict(scores),
        "predictions": predictions,
        "total_time": measured.total_time,
        "time_per_item": time_per_item,
        "memory_used_mb": measured.memory_used_mb,
        "model_memory_mb": measured.model_memory_mb,
        "gpu_name": measured.gpu_name,
        "debug": {
            "packages": [{"name": name, "version": version} for name, version in versions],
            "system": {},
        },
    }


def scores_of_file(challenge: PredictionsChallenge, path: Path) -> dict[str, PublicScore]:
    """The public scores of a file, computed anew.

    Raises:
        DataError: the file is not valid, or a prediction is not for the row at its index.
    """
    documents = challenge.documents()
    answers = _answers_in_order(path, documents)
    return public_scores(challenge.scored_as, answers, model=path.stem)


def _answers_in_order(path: Path, documents: Sequence[Document]) -> list[ChallengeAnswer]:
    """The predictions of a file as answers, checked against the rows."""
    predictions = objects_in(read_json(path), "predictions", path)
    if len(predictions) != len(documents):
        raise DataError(
            f"{path}: field `predictions` has {len(predictions):,} entries, expected "
            f"{len(documents):,}, one for each row; write the file anew."
        )
    answers = []
    for index, (document, prediction) in enumerate(zip(documents, predictions, strict=True)):
        _refuse_other_row(path, index, document, prediction)
        answer = prediction.get("answer")
        if not isinstance(answer, str):
            raise DataError(
                f"{path}: field `answer` of prediction {index} is {answer!r:.80}, expected a text; "
                "fix the prediction."
            )
        answers.append(ChallengeAnswer(str(document["sample_id"]), answer))
    return answers


def _refuse_other_row(
    path: Path, index: int, document: Document, prediction: Mapping[str, Any]
) -> None:
    """Raise an error unless a prediction is for this row."""
    expected = {"index": index, "img_id": document["img_id"], "question": document["question"]}
    for field, value in expected.items():
        found = prediction.get(field)
        if type(found) is not type(value) or found != value:  # True == 1
            raise DataError(
                f"{path}: field `{field}` of prediction {index} is {found!r:.80}, expected "
                f"{value!r:.80}; keep the order of the rows."
            )


def stated_scores(path: Path) -> Mapping[str, Any]:
    """The scores that the file itself states; empty if it states none.

    Raises:
        DataError: the file is not valid JSON, or ``public_scores`` is not an object.
    """
    content = read_json(path)
    stated = content.get("public_scores", {}) if isinstance(content, dict) else {}
    if not isinstance(stated, dict):
        raise DataError(
            f"{path}: field `public_scores` is {stated!r:.80}, expected an object; fix the file."
        )
    return stated
