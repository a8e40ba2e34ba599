"""The verdict store: durable, shared, and honest about damage."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from medtasks.errors import DataError, UsageError
from medtasks.judge.store import StoredVerdict, VerdictStore

WRITER = """
import sys
from medtasks.judge.store import VerdictStore

path, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
store = VerdictStore(path)
for number in range(count):
    key = f"{name}{number:06}"
    verdict = {"prompt": "p " * 200, "answer": "a", "parsed": {"n": number}, "reason": None}
    store.put(key, **verdict, prompt_tokens=1, completion_tokens=2)
    print(key, flush=True)
"""


def put(store: VerdictStore, key: str, **fields: Any) -> None:
    ordinary = {"prompt": f"prompt of {key}", "answer": "{}", "parsed": {"ok": True}, "reason": None}
    store.put(key, **{**ordinary, "prompt_tokens": 10, "completion_tokens": 3, **fields})


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


def test_what_was_put_is_got(path: Path) -> None:
    with VerdictStore(path) as store:
        put(store, "b", parsed={"z": [1, 2.5, None, "é\x00"]}, answer="a\nb\x00c é \U0001f600")
        put(store, "a", parsed=None, reason="no JSON in the answer")
    with VerdictStore(path) as store:
        got = store.get(["b", "missing", "a", "b"])
        assert len(store) == 2
    assert list(got) == ["b", "a"]
    content = {"z": [1, 2.5, None, "é\x00"]}
    assert got["b"] == StoredVerdict("b", "prompt of b", "a\nb\x00c é \U0001f600", content, None, 10, 3)
    assert (got["a"].parsed, got["a"].reason) == (None, "no JSON in the answer")


def test_many_keys_at_once(path: Path) -> None:
    filled(path, 40)
    with VerdictStore(path) as store:
        assert len(store.get(f"k{number:03}" for number in range(3000))) == 40


def test_the_first_valid_verdict_stays(path: Path) -> None:
    with VerdictStore(path) as store:
        put(store, "k", parsed=None, reason="invalid")
        put(store, "k", parsed={"ok": True}, answer="repaired")
        put(store, "k", parsed={"ok": False}, answer="late")
        put(store, "k", parsed=None, reason="invalid again")
        assert store.get(["k"])["k"].answer == "repaired"


def test_lone_surrogates_are_no_crash(path: Path, tmp_path: Path) -> None:
    with VerdictStore(path) as store:
        put(store, "k", answer="a\ud800", prompt="\udfff", parsed={"t": "\ud800"}, reason="\ud800")
        assert store.get(["k"])["k"].answer == "a\ufffd"
        store.export(tmp_path / "out.jsonl")
    assert json.loads((tmp_path / "out.jsonl").read_text("utf-8"))["parsed"] == {"t": "\ud800"}


def test_a_verdict_that_is_no_json_is_refused(path: Path) -> None:
    with VerdictStore(path) as store, pytest.raises(UsageError, match="no JSON"):
        put(store, "k", parsed={"score": float("nan")})


def test_export_is_sorted_complete_and_the_same_for_any_order(tmp_path: Path) -> None:
    exports = []
    for name, keys in (("one", ["b", "é", "a"]), ("two", ["é", "a", "b"])):
        with VerdictStore(tmp_path / f"{name}.sqlite3") as store:
            for key in keys:
                put(store, key, answer="raw é")
            assert store.export(tmp_path / f"{name}.jsonl") == 3
        exports.append((tmp_path / f"{name}.jsonl").read_bytes())
    assert exports[0] == exports[1]
    rows = [json.loads(line) for line in exports[0].decode().splitlines()]
    assert [row["key"] for row in rows] == ["a", "b", "é"]
    assert rows[0] == {
        "key": "a",
        "prompt": "prompt of a",
        "answer": "raw é",
        "parsed": {"ok": True},
        "reason": None,
        "prompt_tokens": 10,
        "completion_tokens": 3,
    }
    assert sorted(file.name for file in tmp_path.iterdir() if file.suffix == ".jsonl") == ["one.jsonl", "two.jsonl"]


def test_an_export_may_be_of_given_keys(path: Path, tmp_path: Path) -> None:
    filled(path, 1200)
    keys = [f"k{number:03}" for number in range(0, 1200, 2)]
    with VerdictStore(path) as store:
        assert store.export(tmp_path / "all.jsonl") == 1200
        assert store.export(tmp_path / "half.jsonl", [*reversed(keys), keys[0], "not stored"]) == 600
        assert store.export(tmp_path / "none.jsonl", []) == 0
    lines = (tmp_path / "all.jsonl").read_bytes().splitlines(keepends=True)
    assert (tmp_path / "half.jsonl").read_bytes() == b"".join(
        line for line in lines if json.loads(line)["key"] in set(keys)
    )


def test_put_says_whether_it_wrote(path: Path) -> None:
    verdict = {"prompt": "p", "answer": "a", "prompt_tokens": 1, "completion_tokens": 1}
    with VerdictStore(path) as store:
        assert store.put("k", parsed=None, reason="invalid", **verdict)
        assert store.put("k", parsed={"ok": True}, reason=None, **verdict)
        assert not store.put("k", parsed={"ok": False}, reason=None, **verdict)


def test_several_processes_write_one_store(path: Path) -> None:
    writers = [writer(path, name, 60) for name in ("a", "b", "c")]  # and all of them race to make the file
    for process in writers:
        process.communicate(timeout=120)
        assert process.returncode == 0
    with VerdictStore(path) as store:
        assert len(store.get(f"{name}{number:06}" for name in "abc" for number in range(60))) == 180


def test_a_killed_process_loses_nothing_that_it_had_put(path: Path) -> None:
    process = writer(path, "k", 1_000_000)
    assert process.stdout is not None
    seen = [process.stdout.readline().strip() for _ in range(100)]
    os.kill(process.pid, signal.SIGKILL)
    seen += process.stdout.read().split()  # what it had reported before it died
    process.wait(timeout=60)
    seen = [key for key in seen if len(key) == 7]
    with VerdictStore(path) as store:
        got = store.get(seen)
        assert list(got) == seen
        assert all(verdict.parsed == {"n": int(key[1:])} for key, verdict in got.items())
        put(store, "after")
        assert len(store) in (len(seen) + 1, len(seen) + 2)  # perhaps one was put and not yet reported


@pytest.mark.parametrize(
    "content", [b"not a database at all, only a text" * 100, b"SQLite format 3\x00" + b"\xff" * 5000]
)
def test_a_file_that_is_no_database_is_an_error_and_stays(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"verdicts\.sqlite3.*damaged"):
        VerdictStore(path)
    assert path.read_bytes() == content


def test_a_truncated_store_is_an_error(path: Path) -> None:
    filled(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(DataError, match="damaged"), VerdictStore(path) as store:
        store.get(f"k{number:03}" for number in range(50))


def test_damage_inside_a_text_is_an_error(path: Path) -> None:
    filled(path)
    content = path.read_bytes()
    path.write_bytes(content.replace(b"answer 7 answer", b"answer 8 answer", 1))
    with VerdictStore(path) as store:
        assert len(store.get(["k006"])) == 1
        with pytest.raises(DataError, match=r"damaged \(row 'k007' does not match its digest\)"):
            store.get(["k007"])
        with pytest.raises(DataError, match="k007"):
            store.export(path.parent / "out.jsonl")
    assert not list(path.parent.glob("*out.jsonl*"))


def test_another_schema_version_is_an_error(path: Path) -> None:
    filled(path, 1)
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 7")
    with pytest.raises(DataError, match="schema version 7, expected 1"):
        VerdictStore(path)


def test_somebody_elses_database_is_left_alone(path: Path) -> None:
    path.parent.mkdir()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(DataError, match="something else"):
        VerdictStore(path)
    assert path.read_bytes() == before


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="verdict store"):
        VerdictStore(tmp_path / "file" / "verdicts.sqlite3")


def test_many_are_put_at_once_and_each_by_the_rules_for_one(path: Path) -> None:
    def verdict(key: str, **more: Any) -> StoredVerdict:
        fields: dict[str, Any] = {"prompt": "p", "answer": "a", "parsed": {"ok": 1}, "reason": None, **more}
        return StoredVerdict(key, **fields, prompt_tokens=1, completion_tokens=2)

    with VerdictStore(path) as store:
        put(store, "old")
        assert store.put_all([]) == []
        put_now = [verdict("new"), verdict("old"), verdict("none", parsed=None, reason="why"), verdict("none")]
        assert store.put_all(put_now) == [True, False, True, True]
        assert store.get(["new", "none"]) == {"new": put_now[0], "none": put_now[3]}
        with pytest.raises(UsageError, match="is no JSON"):
            store.put_all([verdict("fine"), verdict("odd", parsed={"x": float("nan")})])
        assert len(store) == 3


def test_nobody_waits_for_another_process_that_is_writing(tmp_path: Path) -> None:
    row = StoredVerdict("k", "prompt", "answer", {"a": 1}, None, 1, 1)
    with VerdictStore(tmp_path / "store") as store, VerdictStore(tmp_path / "store") as other:
        other._connection.execute("BEGIN IMMEDIATE")
        assert store.put_now([row]) is None
        assert store.get(["k"]) == {}
        other._connection.execute("ROLLBACK")
        assert store.put_now([row]) == [True]
        assert store.put_now([row]) == [False]
        assert store.put_now([]) == []
        assert other.get(["k"]) == {"k": row}
