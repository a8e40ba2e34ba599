"""The verdict store: durable, shared, and honest about damage."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from medtasks.core.errors import DataError, UsageError
from medtasks.judge.settings import JudgeSettings
from medtasks.judge.store import StoredVerdict, VerdictStore
from medtasks.judge.verdict_request import verdict_key

WRITER = """
import sys
from medtasks.judge.store import StoredVerdict, VerdictStore

path, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
store = VerdictStore(path)
for number in range(count):
    key = f"{name}{number:06}"
    store.put(StoredVerdict(key, "p " * 200, "a", f'{{"n": {number}}}', None, 1, 2))
    print(key, flush=True)
"""


def put(store: VerdictStore, key: str, **fields: Any) -> bool:
    return store.put(
        StoredVerdict(key, f"prompt of {key}", "{}", '{"ok": true}', None, 10, 3)._replace(**fields)
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "judge" / "verdicts.sqlite3"


def filled(path: Path, count: int = 50) -> None:
    with VerdictStore(path) as store:
        for number in range(count):
            put(store, f"k{number:03}", answer=f"answer {number} " * 100)


def writer(path: Path, name: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(path), name, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_what_was_put_is_got_and_lone_surrogates_are_no_crash(path: Path) -> None:
    with VerdictStore(path) as store:
        put(store, "b", answer="a\nb\x00c é \U0001f600")
        put(store, "a", answer="a\ud800", prompt="\udfff", parsed=None, reason="no JSON \ud800")
        put(store, "b:repair", answer="{}")
    with VerdictStore(path) as store:
        first, repair = store.get("b")
        (other,) = store.get("a")
        assert store.get("missing") == []
    assert (first.key, repair.key) == ("b", "b:repair")
    assert first == StoredVerdict(
        "b", "prompt of b", "a\nb\x00c é \U0001f600", '{"ok": true}', None, 10, 3
    )
    assert other == StoredVerdict("a", "\ufffd", "a\ufffd", None, "no JSON \ufffd", 10, 3)


def test_the_first_valid_verdict_stays_and_put_says_whether_it_wrote(path: Path) -> None:
    with VerdictStore(path) as store:
        assert put(store, "k", parsed=None, reason="invalid")
        assert put(store, "k", answer="repaired")
        assert not put(store, "k", parsed="{}", answer="late")
        assert not put(store, "k", parsed=None, reason="invalid again")
        assert store.get("k")[0].answer == "repaired"


@pytest.mark.slow
def test_several_processes_write_one_store(path: Path) -> None:
    writers = [
        writer(path, name, 60) for name in ("a", "b", "c")
    ]  # and all of them race to make the file
    for process in writers:
        process.communicate(timeout=120)
        assert process.returncode == 0
    with VerdictStore(path) as store:
        assert all(store.get(f"{name}{number:06}") for name in "abc" for number in range(60))


def test_a_killed_process_loses_nothing_that_it_had_put(path: Path) -> None:
    process = writer(path, "k", 1_000_000)
    assert process.stdout is not None
    seen = [process.stdout.readline().strip() for _ in range(100)]
    os.kill(process.pid, signal.SIGKILL)
    seen += process.stdout.read().split()  # what it had reported before it died
    process.wait(timeout=60)
    seen = [key for key in seen if len(key) == 7]
    with VerdictStore(path) as store:
        for key in seen:
            (verdict,) = store.get(key)
            assert verdict.parsed == f'{{"n": {int(key[1:])}}}'
        put(store, "after")


def database(path: Path, *commands: str) -> bytes:
    with sqlite3.connect(path) as connection:
        for command in commands:
            connection.execute(command)
    connection.close()
    return path.read_bytes()


def test_what_is_not_a_store_of_this_version_is_refused_and_left_as_it_is(path: Path) -> None:
    path.parent.mkdir()
    theirs = database(path, "CREATE TABLE theirs (x)")
    path.unlink()
    filled(path)
    truncated = path.read_bytes()[: path.stat().st_size // 2]
    later = database(path, "PRAGMA user_version = 7")
    for content, said in (
        (b"not a database at all, only a text" * 100, r"verdicts\.sqlite3.*damaged"),
        (b"SQLite format 3\x00" + b"\xff" * 5000, "damaged"),
        (truncated, "damaged"),
        (later, "schema version 7, expected 1"),
        (theirs, "another kind of database"),
    ):
        path.write_bytes(content)
        with pytest.raises(DataError, match=said), VerdictStore(path) as store:
            _ = [store.get(f"k{number:03}") for number in range(50)]
        assert path.read_bytes()[:16] == content[:16]
        assert content == truncated or path.read_bytes() == content
    with pytest.raises(UsageError, match="give a file on a local disk"):
        VerdictStore(path / "verdicts.sqlite3")


@pytest.mark.parametrize("texts", ["prompt of k", "answer 7"])
def test_damage_is_reported_without_prompts_and_answers(path: Path, texts: str) -> None:
    filled(path)
    data = path.read_bytes()
    path.write_bytes(data.replace(b"answer 7 answer", b"answer 8 answer", 1))
    with VerdictStore(path) as store:
        assert len(store.get("k006")) == 1
        with pytest.raises(DataError, match=r"damaged \(row 'k007' does not match its digest\)"):
            store.get("k007")
    for at in range(len(texts)):  # at some places sqlite3 fails on its own message
        damaged = data.replace(
            texts.encode(), texts[:at].encode() + b"\xeb" + texts[at + 1 :].encode()
        )
        assert damaged != data
        path.write_bytes(damaged)
        with (
            VerdictStore(path) as store,
            pytest.raises(DataError, match=r"store is damaged .*(UTF-8|digest)") as error,
        ):
            _ = [store.get(f"k{number:03}") for number in range(50)]
        assert "prompt of" not in str(error.value)
        assert "answer 7" not in str(error.value)


def test_a_store_of_any_earlier_release_stays_valid(path: Path) -> None:
    """Its schema, keys and digests are pinned: people paid for what is in it."""
    path.parent.mkdir()
    database(
        path,
        "CREATE TABLE verdicts (key TEXT PRIMARY KEY, prompt TEXT NOT NULL, answer TEXT NOT NULL, parsed TEXT, reason "
        "TEXT, prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, digest BLOB NOT NULL)",
        """INSERT INTO verdicts VALUES ('k', 'p é', '{"a": 1}', '{"b": {"reason": "\\u00e9", "score": 1}}', NULL, 10, 3,
        X'e986bc6dd5a4b1c3fbe466410fc21c21')""",
        "PRAGMA user_version = 1",
        "PRAGMA application_id = 1836340804",
    )
    parsed = r'{"b": {"reason": "\u00e9", "score": 1}}'
    expected = StoredVerdict("k", "p é", '{"a": 1}', parsed, None, 10, 3)
    with VerdictStore(path) as store:
        assert store.get("k") == [expected]

    settings = JudgeSettings(base_url="http://x/v1", model="Qwen3-235B", extra_body={"a": {"b": 1}})
    rubric, prompt = "0123456789abcdef", "Is it é?"
    assert (
        verdict_key(settings, rubric, prompt)
        == "b49533fc6b26549a11101e540cbbd0c72140a15bad1ac7322137af488fc071ba"
    )
    other_limit = settings.model_copy(update={"max_completion_tokens": 1024})
    assert verdict_key(other_limit, rubric, prompt) != verdict_key(settings, rubric, prompt)
    seeing = settings.model_copy(update={"temperature": None, "max_tokens": None})
    assert (
        verdict_key(seeing, rubric, prompt, ["i1", "i2"])
        == "85f40d23ba00b79d8e0c59805099a1d043d95df971462d6a7e88da2b59af075d"
    )
