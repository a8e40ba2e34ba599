"""Inspect's logs: a sample without text costs nothing but itself, and how a response ended is
read.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from medtasks.leaderboard.verify.commands import commands

from medtasks.benchmarks.documents import task_documents
from medtasks.core.errors import DataError, UsageError
from medtasks.importers.imported_run import PredictionFile, score_predictions
from medtasks.importers.prediction_files import read_predictions, recognise
from medtasks.importers.predictions import End, Prediction
from medtasks.python_api.scoring import score
from medtasks.scoring.run_record import RunRecord
from medtasks.scoring.summary import summary

TASK = "mi_cxr_icr"
REASONING = [{"type": "reasoning", "reasoning": "Is it B?"}]


def sample(
    sample_id: str = "s", content: object = "B", stop_reason: str = "stop", **changes: Any
) -> dict[str, Any]:
    choice = {"message": {"role": "assistant", "content": content}, "stop_reason": stop_reason}
    return {
        "id": sample_id,
        "epoch": 1,
        "input": "Which?",
        "output": {"model": "m", "choices": [choice]},
        **changes,
    }


def write_json(folder: Path, samples: Sequence[object]) -> Path:
    log = {"version": 2, "status": "success", "eval": {"model": "m"}, "samples": samples}
    (folder / "log.json").write_text(json.dumps(log, indent=1), encoding="utf-8")
    return folder / "log.json"


def write_archive(folder: Path, samples: Sequence[dict[str, Any]]) -> Path:
    with zipfile.ZipFile(folder / "log.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", "{}")
        for one in samples:
            archive.writestr(f"samples/{one['id']}_epoch_{one['epoch']}.json", json.dumps(one))
    return folder / "log.eval"


WRITERS = {"json": write_json, "eval": write_archive}


def read_one(folder: Path, **changes: Any) -> Prediction:
    (found,) = read_predictions(write_json(folder, [sample(**changes)]), "inspect", {})
    return found


def scored(path: Path, epoch: int | None = None) -> RunRecord:
    return score_predictions(PredictionFile(path, recognise(path), TASK, epoch=epoch))


# --- samples without text ---


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"content": []}, "no text in the log"),
        ({"content": None}, "no text in the log"),
        ({"output": {"choices": []}}, "no text in the log"),
        ({"output": None}, "no text in the log"),
        (
            {"output": {"choices": []}, "limit": {"type": "time", "limit": 60}},
            "stopped at the limit of time (60)",
        ),
        ({"error": {"message": "Timed out."}, "output": {"choices": []}}, "Timed out."),
        (
            {"invalidation": {"author": "me", "reason": "wrong picture"}},
            "invalidated in the log (wrong picture)",
        ),
        ({"output": {"choices": [], "error": "Refused."}}, "Refused."),
    ],
    ids=["no-parts", "null", "no-choice", "no-output", "limit", "error", "invalidated", "refused"],
)
def test_a_sample_without_text_has_failed_and_all_others_are_scored(
    kind: str, changes: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    documents = task_documents(TASK)
    samples = [sample(one["sample_id"], one["target"]) for one in documents]
    samples[2] = sample(documents[2]["sample_id"], **changes)
    run = scored(WRITERS[kind](tmp_path, samples))
    facts = run.manifest.tasks[TASK]
    assert facts.answered == len(documents) - 1
    assert [sample.failure for sample in run.samples[TASK] if sample.status == "failed"] == [reason]
    assert run.tasks[TASK].metrics["accuracy"].value == 1
    assert sum(f"no response ({reason})" in note for note in run.notes) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"content": REASONING, "stop_reason": "max_tokens"},
        {"content": REASONING},
        {"content": []} | {"stop_reason": "model_length"},
        {"content": "", "stop_reason": "max_tokens"},
        {"content": ""},
    ],
    ids=["reasoning-cut", "reasoning", "cut", "empty-cut", "empty"],
)
def test_a_model_that_generated_no_text_has_answered_nothing(
    changes: dict[str, Any], tmp_path: Path
) -> None:
    found = read_one(tmp_path, **changes)
    assert (found.response, found.failed) == ("", None)


def test_generated_tokens_are_an_answer(tmp_path: Path) -> None:
    output = sample(content=[])["output"] | {"usage": {"output_tokens": 3}}
    assert read_one(tmp_path, output=output).failed is None


def test_reasoning_is_no_part_of_the_response(tmp_path: Path) -> None:
    parts = [*REASONING, {"type": "text", "text": "C"}, {"type": "text", "text": "So it is."}]
    assert read_one(tmp_path, content=parts).response == "C\nSo it is."


# --- how a response ended ---


@pytest.mark.parametrize(
    ("stop_reason", "end"),
    [
        ("stop", End.WHOLE),
        ("max_tokens", End.TOKEN_LIMIT),
        ("model_length", End.TOKEN_LIMIT),
        ("length", End.TOKEN_LIMIT),
        ("unknown", None),
    ],
)
def test_the_stop_reason_says_how_the_response_ended(
    stop_reason: str, end: End | None, tmp_path: Path
) -> None:
    assert read_one(tmp_path, stop_reason=stop_reason).end is end


@pytest.mark.parametrize("content", ["", "I cannot help with", None])
def test_a_response_that_a_filter_withheld_has_failed(content: str | None, tmp_path: Path) -> None:
    found = read_one(tmp_path, content=content, stop_reason="content_filter")
    assert (found.response, found.failed) == ("", "content_filter")


def test_the_reason_of_the_filter_is_named(tmp_path: Path) -> None:
    output = sample(stop_reason="content_filter")["output"]
    output["choices"][0]["stop_details"] = {"category": "medical", "explanation": "Not allowed."}
    assert read_one(tmp_path, output=output).failed == "content_filter: medical, Not allowed."


def test_cut_responses_are_counted_in_the_manifest(tmp_path: Path) -> None:
    documents = task_documents(TASK)
    samples = [sample(one["sample_id"], one["target"]) for one in documents]
    samples[2] = sample(documents[2]["sample_id"], "The answer is A because", "max_tokens")
    run = scored(write_json(tmp_path, samples))
    assert run.manifest.tasks[TASK].finish == {"length": 1, "stop": len(documents) - 1}
    assert "cut off at the token limit: 1 response (log.json, row 3)" in run.notes
    text = summary(run, None)
    assert f"cut off: {1 / len(documents):.0%} of {TASK}" in text
    assert (
        "warning: answers after the cut are lost; raise the limit where the predictions are made"
        in text
    )


# --- epochs ---


@pytest.fixture(params=WRITERS)
def epochs(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A log of three epochs, of which only the second is right."""
    documents = task_documents(TASK)
    rows = []
    for number in (1, 2, 3):
        for one in documents:
            rows.append(
                sample(one["sample_id"], one["target"] if number == 2 else "None.", epoch=number)
            )
    return WRITERS[request.param](tmp_path, rows)


def test_several_epochs_are_refused_unless_one_is_chosen(epochs: Path) -> None:
    with pytest.raises(
        UsageError, match="several responses to a question, those of the epochs 1, 2, 3; choose one"
    ):
        scored(epochs)


def test_the_chosen_epoch_is_scored_and_the_others_are_counted(epochs: Path) -> None:
    run = scored(epochs, 2)
    assert run.tasks[TASK].metrics["accuracy"].value == 1
    count = 2 * len(task_documents(TASK))
    assert run.predictions["of_other_epochs"] == count
    assert any(
        note.startswith(f"left out, because of another epoch: {count} predictions (")
        for note in run.notes
    )


def test_the_board_shows_the_command_with_the_epoch(epochs: Path) -> None:
    (*_, line) = commands(scored(epochs, 2).manifest, "folder")
    assert "--epoch 2 --out" in line


def test_an_epoch_can_be_chosen_from_python(epochs: Path) -> None:
    scores = score(epochs, TASK, epoch=1).scores().arrow
    assert scores.filter(pc.equal(scores["metric"], "accuracy"))["value"].to_pylist()[0] == 0


def test_an_epoch_can_be_chosen_on_the_command_line(epochs: Path, medtasks: Any) -> None:
    done = medtasks("score", str(epochs), "--task", TASK, "--epoch", "2", "--json")
    assert json.loads(done.stdout)["tasks"][TASK]["metrics"]["accuracy"]["value"] == 1


def test_an_epoch_that_the_log_does_not_have_is_wrong_usage(epochs: Path) -> None:
    with pytest.raises(
        UsageError, match="has only the epochs 1, 2, 3, expected epoch 4; choose another"
    ):
        scored(epochs, 4)


def test_an_epoch_of_a_file_without_epochs_is_wrong_usage(tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").write_text('{"sample_id": "icr-33", "response": "A"}\n')
    with pytest.raises(UsageError, match="has no epochs, expected epoch 1"):
        scored(tmp_path / "p.jsonl", 1)


def test_a_log_of_a_single_later_epoch_is_scored(tmp_path: Path) -> None:
    assert read_one(tmp_path, epoch=2).epoch == 2


# --- what is not a log ---


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"output": 7}, "`output` is 7, expected the model's output with a list `choices`"),
        ({"output": {"choices": "x"}}, "`output` is .*, expected the model's output"),
        (
            {"output": {"choices": ["x"]}},
            r"`output.choices\[0\]` is 'x', expected an object with the model's",
        ),
        ({"stop_reason": 7}, "`stop_reason` is 7, expected a reason"),
        ({"epoch": "1"}, "`epoch` is '1', expected a whole number from 1"),
        ({"epoch": None}, "`epoch` is null, expected a whole number from 1"),
        ({"epoch": True}, "`epoch` is True"),
    ],
)
def test_a_sample_that_is_none_of_inspect_is_refused_by_row_and_field(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=f"log.json, row 1: field {message}"):
        read_one(tmp_path, **changes)
