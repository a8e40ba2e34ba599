"""The replay back-end: every requested sample has exactly one recorded answer, or the run says why
not.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from adapter_bench import Bench, texts
from medtasks.adapters.replay import MedtasksReplay

from medtasks.core.errors import UsageError


def row(sample_id: str, response: str, **more: Any) -> dict[str, Any]:
    return {"sample_id": sample_id, "response": response, **more}


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text(
        "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows), encoding="utf-8"
    )
    return path


def replay(bench: Bench, path: Path, **arguments: Any) -> MedtasksReplay:
    model = MedtasksReplay(path=str(path), **arguments)
    model.task_dict = bench.task_dict
    return model


def docs(count: int) -> list[dict[str, Any]]:
    return [{"sample_id": f"s{i}", "media": []} for i in range(count)]


def test_responses_are_found_by_sample_id_whatever_their_order(
    bench: Bench, tmp_path: Path
) -> None:
    path = write(tmp_path / "old.jsonl", [row(f"s{i}", f"Ödem {i}\nnext") for i in (2, 0, 1)])
    model = replay(bench, path)

    assert texts(model.replies(bench.task("t", docs(3)))) == [f"Ödem {i}\nnext" for i in range(3)]
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    counts = {"rows": 3, "identical_repeats": 0, "unmatched": 0}
    about = {
        "model": "medtasks_replay",
        "file": "old.jsonl",
        "sha256": sha256,
        "missing_policy": "error",
    }
    about["prompts"] = "unknown"
    assert model.describe() == {**about, **counts}


def test_a_row_that_names_the_task_goes_first(bench: Bench, tmp_path: Path) -> None:
    path = write(
        tmp_path / "p.jsonl", [row("s0", "any"), row("s0", "plain", task="a"), row("s1", "any")]
    )
    requests = bench.task("a", docs(2)) + bench.task("b", docs(2))

    assert texts(replay(bench, path).replies(requests)) == ["plain", "any", "any", "any"]


def test_rows_are_counted_when_repeated_or_unmatched_but_never_by_replica(
    bench: Bench, tmp_path: Path
) -> None:
    rows = [row(f"s{i}", "x") for i in (0, 1, 2, 3, 1)] + [
        row("other", "y"),
        row("s0", "z", task="b"),
    ]
    requests = bench.task("a", docs(4))
    replicas = [replay(bench, write(tmp_path / "p.jsonl", rows)) for _ in range(2)]
    for rank, model in enumerate(replicas):
        model.replies(requests[rank::2])

    for counts in (model.describe() for model in replicas):
        assert (counts["unmatched"], counts["identical_repeats"]) == (2, 1)


def test_a_missing_sample_stops_the_run_before_any_answer(bench: Bench, tmp_path: Path) -> None:
    path = write(tmp_path / "p.jsonl", [row("s0", "x")])

    with pytest.raises(
        UsageError, match="no response for 2 of 3 requested samples, first 's1' of task t"
    ):
        replay(bench, path).replies(bench.task("t", docs(3)))


def test_missing_samples_can_count_as_not_answered_while_a_blank_row_is_an_answer(
    bench: Bench, tmp_path: Path
) -> None:
    model = replay(
        bench, write(tmp_path / "p.jsonl", [row("s0", ""), row("s1", "x")]), missing="failed"
    )

    responses = model.replies(bench.task("t", docs(4)))
    assert texts(responses) == ["", "x", "", ""]
    assert [response.failed is None for response in responses] == [True, True, False, False]


def test_a_null_response_and_one_that_a_filter_withheld_have_failed(
    bench: Bench, tmp_path: Path
) -> None:
    rows = [
        {"sample_id": "s0", "response": None},
        row("s1", "I cannot", finish_reason="content_filter"),
        row("s2", "x"),
    ]
    replies = replay(bench, write(tmp_path / "p.jsonl", rows)).replies(bench.task("t", docs(3)))
    assert [(reply.text, reply.failed) for reply in replies] == [
        ("", "none in the file"),
        ("", "content_filter"),
        ("x", None),
    ]


def test_blanks_around_an_id_do_not_matter(bench: Bench, tmp_path: Path) -> None:
    path = write(tmp_path / "p.jsonl", [row(" s0\t", "x")])
    assert texts(replay(bench, path).replies(bench.task("t", docs(1)))) == ["x"]


def test_blank_lines_and_foreign_fields_are_left_alone(bench: Bench, tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    path.write_bytes(b'\n{"sample_id": "s0", "response": "x", "score": 3, "task": null}\r\n\n')

    assert texts(replay(bench, path).replies(bench.task("t", docs(1)))) == ["x"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (
            b'{"sample_id": "s0", "response": "x"}\n{"sample_id": "s1", ',
            "p.jsonl, line 2, column 21: not valid JSON",
        ),
        (
            b'{"sample_id": 7.5, "response": "x"}',
            "line 1: field `sample_id` is 7.5, expected a non-empty string",
        ),
        (
            b'{"sample_id": null, "response": "x"}',
            "line 1: field `sample_id` is null, expected a sample id",
        ),
        (
            b'{"img_id": "a", "question": "Why?", "response": "x"}',
            "line 1: field `sample_id` is missing, expected the id",
        ),
        (
            b'{"sample_id": "s0", "response": "x"}\n\n{"sample_id": "s0", "response": "y"}',
            "line 3: another response for sample 's0' than in line 1",
        ),
    ],
)
def test_a_broken_file_ends_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, expected: str
) -> None:
    path = tmp_path / "p.jsonl"
    path.write_bytes(content)

    with pytest.raises(SystemExit) as ended:
        MedtasksReplay(path=str(path))
    assert ended.value.code == 1
    [line] = capsys.readouterr().err.splitlines()
    assert "p.jsonl" in line
    assert expected in line


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"path": "nowhere.jsonl"}, "nowhere.jsonl: cannot be read (No such file"),
        ({"path": "x", "missing": "skip"}, "`missing` is 'skip', expected 'error' or 'failed'"),
    ],
)
def test_wrong_arguments_end_in_one_sentence(
    capsys: pytest.CaptureFixture[str], arguments: dict[str, Any], expected: str
) -> None:
    with pytest.raises(SystemExit):
        MedtasksReplay(**arguments)
    assert expected in capsys.readouterr().err
