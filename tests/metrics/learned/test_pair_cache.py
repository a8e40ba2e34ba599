"""The cache of pair scores: what it keeps, between processes and after damage."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from medtasks.metrics.learned import PairCache

MANY = {(f"prediction {number}", f"reference {number % 7}"): number / 3 for number in range(1200)}


def test_scores_come_back_exactly_and_only_those_asked_for(tmp_path: Path) -> None:
    cache = PairCache(tmp_path / "deep" / "pairs.sqlite3")
    assert cache.get("metric|a", list(MANY)) == {}
    cache.put("metric|a", MANY)
    assert PairCache(cache.path).get("metric|a", list(MANY)) == MANY
    pair = ("prediction 8", "reference 1")
    assert cache.get("metric|a", [pair, ("other", "pair"), pair]) == {pair: 8 / 3}


def test_signatures_do_not_share_scores_and_the_first_of_a_pair_stays(tmp_path: Path) -> None:
    cache = PairCache(tmp_path / "pairs.sqlite3")
    cache.put("metric|a", {("x", "y"): 0.25})
    assert [cache.get(other, [("x", "y")]) for other in ("metric|", "metric|b", "METRIC|a")] == [{}, {}, {}]
    cache.put("metric|a", {("x", "y"): 0.25000001})
    assert cache.get("metric|a", [("x", "y")]) == {("x", "y"): 0.25}


@settings(max_examples=30)
@given(left=st.tuples(st.text(), st.text()), right=st.tuples(st.text(), st.text()))
@example(left=("ab", "c"), right=("a", "bc"))
@example(left=("", "3:abc"), right=("3:abc", ""))
def test_no_two_pairs_are_taken_for_one(
    tmp_path_factory: pytest.TempPathFactory, left: tuple[str, str], right: tuple[str, str]
) -> None:
    cache = PairCache(tmp_path_factory.mktemp("pairs") / "pairs.sqlite3")
    cache.put("metric", {left: 1.0})
    assert (cache.get("metric", [right]) == {}) == (left != right)


@pytest.mark.parametrize("damage", ["no database", "cut short", "overwritten inside"])
def test_a_damaged_file_is_a_warning_and_stays(tmp_path: Path, damage: str) -> None:
    cache = PairCache(tmp_path / "pairs.sqlite3")
    cache.put("metric", MANY)
    content = cache.path.read_bytes()
    cache.path.write_bytes(
        {
            "no database": b"not a database, " * 500,
            "cut short": content[: len(content) // 2],
            "overwritten inside": content[:4096] + b"\xff" * (len(content) - 4096),
        }[damage]
    )
    damaged = cache.path.read_bytes()
    with pytest.warns(RuntimeWarning, match="cannot be used .*; if it is damaged, delete it"):
        assert cache.get("metric", list(MANY)) == {}
    assert cache.path.read_bytes() == damaged


def test_unusable_file_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "pairs.sqlite3").mkdir()
    cache = PairCache(tmp_path / "pairs.sqlite3")
    with pytest.warns(RuntimeWarning, match="the score cache cannot be used"):
        cache.put("metric", MANY)
    with pytest.warns(RuntimeWarning, match="the score cache cannot be used"):
        assert cache.get("metric", list(MANY)) == {}


WRITER = """
import sys, warnings
from pathlib import Path
from medtasks.metrics.learned import PairCache
warnings.simplefilter("error")
cache, first = PairCache(Path(sys.argv[1])), int(sys.argv[2])
for number in range(first, first + 40):
    pair = (f"prediction {number}", "reference")
    cache.put("metric", {pair: float(number), ("shared", "pair"): 0.5})
    assert cache.get("metric", [pair, ("shared", "pair")]) == {pair: float(number), ("shared", "pair"): 0.5}
"""


def test_several_processes_write_at_once(tmp_path: Path) -> None:
    path = tmp_path / "pairs.sqlite3"
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(40 * index)], env=dict(os.environ))
        for index in range(4)
    ]
    assert [writer.wait(timeout=300) for writer in writers] == [0] * 4
    pairs = [(f"prediction {number}", "reference") for number in range(160)]
    assert PairCache(path).get("metric", pairs) == {pair: float(number) for number, pair in enumerate(pairs)}
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
