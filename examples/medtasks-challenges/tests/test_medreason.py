"""MedReason: public cases in, the ZIP file out, and the public scores of such a file."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import jsonschema
import medtasks
import pytest
from conftest import Command, saved_run
from medtasks.api import DataError, Release
from PIL import Image

from medtasks_challenges import medreason
from medtasks_challenges.medreason_scores import JudgedCase, medreason_scores

GROUP = "medreason_2026"
TEXT = {"type": "string", "pattern": r"\S"}
RESULTS = {
    "type": "object",
    "additionalProperties": False,
    "required": ["name", "type", "answers", "version"],
    "properties": {
        "name": TEXT,
        "type": {"const": "Medical visual reasoning"},
        "version": {"const": {"major": 1, "minor": 0}},
        "answers": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["case_id", "task_type", "answer"],
                "properties": {
                    "case_id": TEXT,
                    "task_type": {"enum": ["mcq", "open"]},
                    "answer": TEXT,
                    "reasoning_trace": TEXT,
                },
                "if": {"properties": {"task_type": {"const": "open"}}},
                "then": {"required": ["reasoning_trace"]},
            },
        },
    },
}
"""``MedReason-Evaluation/docs/submission_format.md`` of
medreason26/MedReason-Challenge-Docker@9a22d80.
"""
MCQ_CASE = {
    "case_id": "m1",
    "task_type": "mcq",
    "question": "Which one?",
    "image_path": "images/1.png",
    "options": [{"label": "A", "text": "polyp"}, {"label": "B", "text": "ulcer"}],
}
OPEN_CASE = {
    "case_id": "o1",
    "task_type": "open",
    "question": "What is it?",
    "image_paths": ["images/1.png"],
}


def replies() -> list[dict[str, str]]:
    """The ideal reply to each miniature case."""
    rows = []
    for document in medreason.all_rows.documents():
        rows.append({"sample_id": document["sample_id"], "response": document["ideal_response"]})
    return rows


def test_the_archive_follows_the_public_format(command: Command, tmp_path: Path) -> None:
    run = saved_run(replies(), GROUP, tmp_path)
    out, again = tmp_path / "submission.zip", tmp_path / "again.zip"
    printed = command("medreason", run, "-o", out, "--name", "Examples")
    assert "note on the run: miniature data (medreason_2026)" in printed
    command("medreason", run, "-o", again, "--name", "Examples")
    assert out.read_bytes() == again.read_bytes()
    with zipfile.ZipFile(out) as file:
        assert file.namelist() == ["results.json"]
        content = json.loads(file.read("results.json"))
    jsonschema.validate(content, RESULTS)
    assert content["name"] == "Examples"
    cases = medreason.all_rows.documents()
    assert [answer["case_id"] for answer in content["answers"]] == [
        case["sample_id"] for case in cases
    ]
    for case, answer in zip(cases, content["answers"], strict=True):
        assert answer["task_type"] == case["task_type"]
        assert answer["answer"] == case["target"]
        assert answer["reasoning_trace"] == "What the picture shows."


def test_an_open_case_may_be_left_unanswered_in_words_and_a_choice_may_not(
    command: Command, tmp_path: Path
) -> None:
    rows = replies()
    by_id = {row["sample_id"]: row for row in rows}
    by_id["open03"]["response"] = '{"answer": "Grey."}'
    by_id["open04"]["response"] = "I cannot tell."
    run = saved_run(rows, GROUP, tmp_path)
    out = tmp_path / "submission.zip"
    with pytest.raises(SystemExit, match="open03: status no_explanation; open04: status no_answer"):
        command("medreason", run, "-o", out)
    printed = command("medreason", run, "-o", out, "--allow-missing")
    assert "2 missing answers, stated in words:" in printed
    with zipfile.ZipFile(out) as file:
        content = json.loads(file.read("results.json"))
    jsonschema.validate(content, RESULTS)
    answers = {answer["case_id"]: answer for answer in content["answers"]}
    assert answers["open03"]["answer"] == "Grey."
    assert answers["open03"]["reasoning_trace"] == "No reasoning was given."
    assert answers["open04"]["answer"] == "No answer was given."

    by_id["mcq05"]["response"] = '{"reasoning_trace": "Grey.", "answer": "D"}'
    run = saved_run(rows, GROUP, tmp_path / "second")
    with pytest.raises(SystemExit, match="mcq05: D is not one of the options A, B, C.; repeat"):
        command("medreason", run, "-o", tmp_path / "no.zip", "--allow-missing")


def test_a_subset_of_the_cases_is_refused(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = saved_run(replies(), GROUP, tmp_path)
    monkeypatch.setenv("MEDTASKS_SUBSET", "0.5@1")
    with pytest.raises(SystemExit, match=r"have \d+ of the challenge's rows, expected 48"):
        command("medreason", run, "-o", tmp_path / "submission.zip")


def written_cases(folder: Path, content: object, truth: object = None) -> Path:
    """The cases as files, with a picture."""
    (folder / "images").mkdir(parents=True)
    Image.new("L", (16, 16), 90).save(folder / "images" / "1.png")
    (folder / "cases.json").write_text(json.dumps(content), encoding="utf-8")
    if truth is not None:
        (folder / "ground_truth.json").write_text(json.dumps(truth), encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    "content",
    [
        [MCQ_CASE, OPEN_CASE],
        {"cases": [MCQ_CASE, OPEN_CASE]},
        [{**MCQ_CASE, "task_type": "Closed-Ended"}, {**OPEN_CASE, "task_type": "free_text"}],
        [{**MCQ_CASE, "options": ["polyp", "ulcer"]}, OPEN_CASE],
    ],
)
def test_cases_are_read_in_every_public_layout(content: object, tmp_path: Path) -> None:
    folder = written_cases(tmp_path / "cases", content)
    choice, open_case = medreason.read(Release(folder))
    assert choice.choices == {"A": "polyp", "B": "ulcer"}
    assert (choice.task_type, open_case.task_type) == ("mcq", "open")
    assert (choice.answer, open_case.answer) == ("[unknown]", "[unknown]")
    assert choice.media == open_case.media == ("images/1.png",)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"task_type": "essay"}, "cases.json, case 1: field `task_type`"),
        ({"options": []}, "cases.json, case 1: field `options`"),
        ({"options": [{"label": "AB", "text": "x"}]}, "different letters from A to Z"),
        ({"options": [{"label": "A", "text": " "}]}, "a text for option A"),
        ({"image_path": None}, "field `image_path`"),
        ({"question": ""}, "field `question`"),
        ({"case_id": "o1"}, "case 2: field `case_id`"),
    ],
)
def test_a_wrong_case_is_named(change: dict[str, Any], expected: str, tmp_path: Path) -> None:
    folder = written_cases(tmp_path / "cases", [{**MCQ_CASE, **change}, OPEN_CASE])
    with pytest.raises(DataError, match=expected):
        list(medreason.read(Release(folder)))


def test_cases_with_hidden_answers_are_not_scored_as_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEDTASKS_DATA", str(tmp_path / "data"))
    folder = written_cases(tmp_path / "cases", [MCQ_CASE, OPEN_CASE])
    prepare_cases(folder)
    run = medtasks.score(replies(), GROUP, out=tmp_path / "run")
    scores = [row for row in run.scores().arrow.to_pylist() if row["breakdown"] is None]
    assert scores
    for score in scores:
        assert score["value"] is None
        assert "applies to no item" in score["reason"]


def test_answers_to_other_cases_with_the_same_ids_are_refused(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEDTASKS_DATA", str(tmp_path / "data"))
    prepare_cases(written_cases(tmp_path / "cases", [MCQ_CASE, OPEN_CASE]))
    run = saved_run(replies(), GROUP, tmp_path)
    swapped = {**MCQ_CASE, "options": ["ulcer", "polyp"]}
    prepare_cases(written_cases(tmp_path / "next", [swapped, OPEN_CASE]))
    with pytest.raises(SystemExit, match="case m1: the run was asked with `choices` {'A': 'polyp'"):
        command("medreason", run, "-o", tmp_path / "submission.zip")


def prepare_cases(folder: Path) -> None:
    """Prepare the cases as users do."""
    import subprocess
    import sys

    command = ["-m", "medtasks", "prepare", "package", GROUP, "--source", str(folder)]
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("va_answer", "rvf_trace", "expected"),
    [(4, 0, 1), (4, 1, 1), (0.5, 1, 0.5), (4, 2, 3), (2, 2, 2), (4, 3, 4), (4, 1.5, 4), (5, 5, 5)],
)
def test_the_trace_limits_visual_accuracy(
    va_answer: float, rvf_trace: float, expected: float
) -> None:
    assert JudgedCase(2, va_answer, rvf_trace).va_final == expected


def answer(case_id: str, task_type: str, text: str, trace: str = "Seen.") -> dict[str, str]:
    """An entry of ``answers``."""
    entry = {"case_id": case_id, "task_type": task_type, "answer": text}
    return {**entry, "reasoning_trace": trace}


ANSWERS = [
    answer("m1", "mcq", "A"),
    answer("m2", "mcq", "B"),
    answer("m3", "closed_ended", "C "),
    answer("o1", "open", "Polyp."),
    answer("o2", "open_ended", "Ulcer."),
]
TRUTH = [
    {"case_id": "m1", "task_type": "mcq", "answer": "A"},
    {"case_id": "m2", "task_type": "mcq", "answer": "A"},
    {"case_id": "m3", "task_type": "mcq", "answer": "C"},
    {"case_id": "o1", "task_type": "open"},
    {"case_id": "o2", "task_type": "open"},
]
JUDGED = [
    {"case_id": "o1", "gt_final": 3, "va_answer": 5, "rvf_trace": 2},
    {"case_id": "o2", "gt_final": 4, "va_answer": 4, "rvf_trace": 1},
]


def write(folder: Path, name: str, content: object) -> Path:
    """A JSON file."""
    (folder / name).write_text(json.dumps(content), encoding="utf-8")
    return folder / name


def test_the_scores_are_those_worked_out_by_hand(command: Command, tmp_path: Path) -> None:
    results = write(tmp_path, "results.json", {"answers": ANSWERS})
    truth = write(tmp_path, "ground_truth.json", {"cases": TRUTH})
    judged = write(tmp_path, "judge_scores.json", {"scores": JUDGED})
    printed = command(
        "score", "medreason", results, "--ground-truth", truth, "--judge-scores", judged
    )
    # two of three; (3 + 4) / 2; (min(5, 3) + min(4, 1)) / 2
    assert printed.splitlines() == [
        "MCQ Accuracy (3 cases): 0.6667",
        "Open-ended GT (2 of 2 cases): 3.5000",
        "Open-ended VA (2 of 2 cases): 2.0000",
    ]
    printed = command("score", "medreason", results, "--ground-truth", truth)
    assert "Open-ended VA (0 of 2 cases): not computed, because" in printed


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        (ANSWERS[1:], "lacks 1 cases and has 0 unknown ones .m1."),
        ([*ANSWERS, answer("x", "mcq", "A")], "lacks 0 cases and has 1 unknown ones .x."),
        ([*ANSWERS, ANSWERS[0]], "field `case_id` is 'm1'"),
        ([answer("m1", "open", "A"), *ANSWERS[1:]], "field `task_type` is 'open'"),
        ([*ANSWERS[:4], answer("o2", "open", "x", "")], "field `reasoning_trace`"),
        ([answer("m1", "mcq", " "), *ANSWERS[1:]], "field `answer`"),
    ],
)
def test_a_wrong_submission_is_refused(
    answers: list[dict[str, str]], expected: str, tmp_path: Path
) -> None:
    results = write(tmp_path, "results.json", {"answers": answers})
    truth = write(tmp_path, "ground_truth.json", {"cases": TRUTH})
    with pytest.raises(DataError, match=expected):
        medreason_scores(results, truth)


def test_judges_must_score_all_open_cases_or_none(tmp_path: Path) -> None:
    results = write(tmp_path, "results.json", {"answers": ANSWERS})
    truth = write(tmp_path, "ground_truth.json", {"cases": TRUTH})
    judged = write(tmp_path, "judge_scores.json", {"scores": JUDGED[:1]})
    with pytest.raises(DataError, match="field `scores` has 1 of 2 open cases, expected all"):
        medreason_scores(results, truth, judged)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"case_id": "m1"}, "1 cases that are not open cases of the ground truth .m1., expected"),
        ({"case_id": "x9"}, "1 cases that are not open cases of the ground truth .x9., expected"),
        ({"gt_final": "3"}, "entry 2, record o2: field `gt_final` is '3', expected a finite num"),
        ({"va_answer": float("nan")}, "field `va_answer` is nan, expected a finite number"),
        ({"rvf_trace": 10**400}, "field `rvf_trace` is 1000.*, expected a finite number"),
        ({"rvf_trace": True}, "field `rvf_trace` is True, expected a finite number"),
    ],
)
def test_a_wrong_score_of_the_judges_is_named(
    change: dict[str, object], expected: str, tmp_path: Path
) -> None:
    results = write(tmp_path, "results.json", {"answers": ANSWERS})
    truth = write(tmp_path, "ground_truth.json", {"cases": TRUTH})
    judged = write(tmp_path, "judge.json", {"scores": [JUDGED[0], {**JUDGED[1], **change}]})
    with pytest.raises(DataError, match=expected):
        medreason_scores(results, truth, judged)


def test_a_damaged_archive_is_refused(tmp_path: Path) -> None:
    archive = tmp_path / "submission.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("results.json", json.dumps({"answers": ANSWERS}))
    truth = write(tmp_path, "ground_truth.json", {"cases": TRUTH})
    intact = archive.read_bytes()
    flipped = bytearray(intact)
    flipped[60] ^= 0xFF
    for damaged in (bytes(flipped), intact[:-30], b""):
        archive.write_bytes(damaged)
        with pytest.raises(DataError, match=r"submission\.zip: is not a readable ZIP file"):
            medreason_scores(archive, truth)


def test_an_archive_with_other_files_is_refused(tmp_path: Path) -> None:
    archive = tmp_path / "submission.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("folder/results.json", json.dumps({"answers": ANSWERS}))
    truth = write(tmp_path, "ground_truth.json", {"cases": TRUTH})
    with pytest.raises(DataError, match=r"contains folder/results\.json, expected results\.json"):
        medreason_scores(archive, truth)
