"""Replies: text that no file can hold never costs a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import medtasks
from medtasks.runs.replies import Reply
from medtasks.scoring.finished_run import score_unfinished

HALF = "\ud83d"
ANY_CHARACTER = st.characters(exclude_categories=())


@given(st.text(ANY_CHARACTER), st.text(ANY_CHARACTER))
def test_a_reply_can_be_written_whatever_a_back_end_returned(text: str, reason: str) -> None:
    for reply in (Reply(text), Reply("", reason), Reply.failure(reason)):
        written = f"{reply.text}{reply.failed}"
        assert written.encode("utf-8").decode("utf-8") == written


def test_a_lone_surrogate_becomes_the_replacement_character_and_nothing_else_changes() -> None:
    assert Reply(f"an arrow {HALF} B").text == "an arrow \ufffd B"
    assert Reply.failure(f"broken {HALF} pipe").failed == "broken \ufffd pipe"
    assert Reply("\ud83d\ude00 B").text == "\U0001f600 B"
    assert Reply("résumé → 日本").text == "résumé → 日本"


def test_a_run_with_a_lone_surrogate_in_a_response_and_in_an_error_is_written(
    tmp_path: Path,
) -> None:
    answers = [f"The arrow {HALF} is here.\nB", ValueError(f"boom {HALF}")]

    def answer(_: object) -> str:
        given = answers.pop(0) if answers else "B"
        if isinstance(given, Exception):
            raise given
        return given

    run = medtasks.evaluate(answer, "mi_cxr_icr", output_path=tmp_path)
    samples = run.samples().arrow.to_pylist()
    assert [sample["response"] for sample in samples if sample["response"] not in ("B", "")] == [
        "The arrow \ufffd is here.\nB"
    ]
    assert sorted(sample["status"] for sample in samples) == [
        "failed",
        "ok",
        "ok",
        "ok",
        "ok",
        "ok",
    ]


def test_an_unfinished_run_whose_replies_have_a_lone_surrogate_is_scored(tmp_path: Path) -> None:
    def stops(_: object) -> str:
        if asked:
            raise KeyboardInterrupt
        asked.append(1)
        return "B"

    asked: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        medtasks.evaluate(stops, "mi_cxr_icr", output_path=tmp_path)
    (folder,) = tmp_path.rglob("*_unfinished")
    (replies,) = folder.glob("*.jsonl")
    replies.write_bytes(replies.read_bytes().replace(b'"text": "B"', rb'"text": "B \ud83d"'))
    assert json.loads(replies.read_bytes().strip().splitlines()[0])["reply"]["text"] == f"B {HALF}"

    samples = score_unfinished(folder, created="now").samples["mi_cxr_icr"]
    (answered,) = [sample for sample in samples if sample.status != "failed"]
    assert answered.responses == ("B \ufffd",)
