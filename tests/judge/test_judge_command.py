"""``medtasks judge`` where something is wrong: what a user sees of it, and what is done all the
same.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from faulty_judge import FaultyJudge
from judged_run import content, exported, judged, manifest_of, settings_of

from medtasks.core.errors import MedtasksError, UsageError
from medtasks.judge.stub import StubJudge, rule_based

UNSET = "JUDGE_KEY_THAT_NOBODY_SET"
KEY = "sk-planted-0123456789"
BOTH = ["med_cmr_open", "med_cmr_medreason"]


class ShutJudge(StubJudge):
    """Answers every request with an error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__()
        self._answer = status, {"error": {"message": message}}

    async def _respond(self, *_: Any) -> web.StreamResponse:
        status, document = self._answer
        return web.json_response(document, status=status)


def test_a_judge_that_shuts_us_out_is_named_with_its_address_and_asked_no_more(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = content(folder)
    with ShutJudge(401, f"missing key, not {KEY}") as stub:
        options = f"model=m,base_url={stub.url},concurrency=2,api_key_env={UNSET}"
        with pytest.raises(MedtasksError, match=r"not one of .* responses was judged") as raised:
            judged(folder, options, store=tmp_path / "v")
        assert len(stub.requests) <= 2
        assert f"m at {stub.url}: http 401: missing key" in str(raised.value)
        assert f"the environment variable {UNSET} is not set" in str(raised.value)
        monkeypatch.setenv(UNSET, KEY)
        with pytest.raises(MedtasksError, match=r"missing key, not \[API key\]") as raised:
            judged(folder, options, store=tmp_path / "v")
        assert "is not set" not in str(raised.value)
        assert KEY not in str(raised.value)
    with pytest.raises(MedtasksError, match=r"m at http://127\.0\.0\.1:9/v1: connection: "):
        judged(folder, "model=m,base_url=http://127.0.0.1:9/v1,retries=0", store=tmp_path / "v")
    assert content(folder) == before


def test_an_invalid_answer_is_shown_as_it_came_and_exported(folder: Path, tmp_path: Path) -> None:
    before = content(folder)
    with (
        StubJudge(lambda _: "I would\x1b[2J rather\nnot say.") as stub,
        pytest.raises(
            MedtasksError, match=r"not one of .* was judged \(.*invalid after one repair\)"
        ) as raised,
    ):
        judged(folder, settings_of(stub), store=tmp_path / "v", export=tmp_path / "x.jsonl")
    assert "it answered: I would\ufffd[2J rather not say." in str(raised.value)
    assert content(folder) == before
    lines = exported(tmp_path / "x.jsonl")
    assert {line["unjudged"] for line in lines} == {"invalid after one repair"}
    assert {tuple(line["answers"]) for line in lines} == {("I would\x1b[2J rather\nnot say.",) * 2}


def test_problems_of_some_are_shown_beside_the_scores_of_the_others(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with FaultyJudge(server_error=0.3, wrong_keys=0.5) as stub:
        judged(folder, settings_of(stub, retries=0, api_key_env=UNSET), store=tmp_path / "v")
        address = stub.url
    unjudged = manifest_of(folder)["judge"]["med_cmr_open"]["unjudged"]
    assert set(unjudged) == {"http 500", "invalid after one repair"}
    said = capsys.readouterr().out
    assert f"  stub-judge at {address}: http 500: " in said
    assert 'it answered: {"' in said
    assert "is not set" not in said


def test_a_rubric_that_fails_does_not_stop_the_next(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def decide(request: Mapping[str, Any]) -> str:
        wanted = request["response_format"]["json_schema"]["schema"]["properties"]
        return "no" if "visual_accuracy" in wanted else rule_based(request)

    with (
        StubJudge(decide) as stub,
        pytest.raises(MedtasksError, match="rubric med_cmr_open: not one of"),
    ):
        judged(
            folder,
            settings_of(stub),
            store=tmp_path / "v",
            rubrics=BOTH,
            export=tmp_path / "x.jsonl",
        )
    assert set(manifest_of(folder)["judge"]) == {"med_cmr_medreason"}
    said = capsys.readouterr().out
    assert "med_cmr_medreason: " in said
    assert "\nnot judged: rubric med_cmr_open: not one of" in said
    assert {line["rubric"] for line in exported(tmp_path / "x.jsonl")} == set(BOTH)


def test_an_export_may_replace_an_earlier_one_and_nothing_else(
    folder: Path, tmp_path: Path
) -> None:
    path = tmp_path / "x.jsonl"
    with StubJudge() as stub:
        with pytest.raises(UsageError, match="its directory does not exist"):
            judged(
                folder,
                settings_of(stub),
                store=tmp_path / "v",
                export=tmp_path / "none" / "out.jsonl",
            )
        assert stub.requests == []
        judged(folder, settings_of(stub), store=tmp_path / "v", export=path)
        first, asked = path.read_bytes(), len(stub.requests)
        judged(folder, settings_of(stub), store=tmp_path / "v", export=path)
        assert path.read_bytes() == first
        for other in (b"sample_id,score\na,1\n", b"[" * 100_000, b"{}\n"):
            path.write_bytes(other)
            with pytest.raises(UsageError, match="is not an export of verdicts"):
                judged(folder, settings_of(stub), store=tmp_path / "v", export=path)
            assert path.read_bytes() == other
        assert len(stub.requests) == asked


def test_while_a_judge_answers_nobody_the_reason_is_printed(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("medtasks.judge.pipeline.TICK", 0.02)
    with (
        FaultyJudge(too_many=1.0, retry_after=0.05) as stub,
        pytest.raises(MedtasksError, match="429"),
    ):
        judged(folder, settings_of(stub, retries=2, backoff=0), store=tmp_path / "v")
    waiting = [line for line in capsys.readouterr().err.splitlines() if "waiting: http 429" in line]
    assert len(waiting) == 1  # at once, then every 30 seconds
    assert waiting[0].startswith("medtasks: med_cmr_open, stub-judge: 0 of ")


HOLDER = """
import sys, time
from pathlib import Path
from medtasks.core.locks import held
with held(Path(sys.argv[1]), "judged"):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_second_judge_of_one_directory_waits_its_turn(folder: Path, tmp_path: Path) -> None:
    before = content(folder)
    holder = [
        sys.executable,
        "-c",
        HOLDER,
        str(folder),
    ]  # lmms-eval lets a process take a lock twice
    with StubJudge() as stub, subprocess.Popen(holder, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(
            UsageError, match=rf"is being judged by process {other.pid} on .*; wait for it\.$"
        ):
            judged(folder, settings_of(stub), store=tmp_path / "v")
        assert not stub.requests
        other.kill()
    assert content(folder) == before
    with StubJudge() as stub:
        judged(folder, settings_of(stub), store=tmp_path / "v")
    assert content(folder) != before
    assert not list(folder.parent.glob(".*.lock"))
