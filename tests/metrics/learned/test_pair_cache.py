"""The cache of pair statistics: what it keeps, between processes and after damage."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from medtasks.metrics.learned.pair_statistics import keep_statistics, kept_statistics

pytestmark = pytest.mark.slow  # whole runs, or libraries that take seconds to load

MANY = {
    (f"prediction {number}", f"reference {number % 7}"): (number / 3, 1.0) for number in range(1200)
}


def test_statistics_come_back_exactly_by_signature_and_the_first_of_a_pair_stays() -> None:
    assert kept_statistics("metric|a", list(MANY)) == {}
    keep_statistics("metric|a", MANY)
    keep_statistics("metric|a", dict.fromkeys(MANY, (0.25, 1.0)))
    assert kept_statistics("metric|a", list(MANY)) == MANY
    pair = ("prediction 8", "reference 1")
    assert kept_statistics("metric|a", [pair, ("other", "pair")]) == {pair: (8 / 3, 1.0)}
    assert [kept_statistics(other, [pair]) for other in ("metric|", "metric|b", "METRIC|a")] == [
        {},
        {},
        {},
    ]


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(left=st.tuples(st.text(), st.text()), right=st.tuples(st.text(), st.text()))
@example(left=("ab", "c"), right=("a", "bc"))
@example(left=("", "3:abc"), right=("3:abc", ""))
def test_no_two_pairs_are_taken_for_one(left: tuple[str, str], right: tuple[str, str]) -> None:
    keep_statistics(repr(left), {left: (1.0,)})
    assert (kept_statistics(repr(left), [right]) == {}) == (left != right)


def test_a_damaged_or_unusable_file_is_a_warning_and_stays(cache_folder: Path) -> None:
    keep_statistics("metric", MANY)
    path = cache_folder / "learned" / "statistics.sqlite3"
    content = path.read_bytes()
    for damaged in (
        b"not a database, " * 500,
        content[: len(content) // 2],
        content[:4096] + b"\xff" * 10**5,
    ):
        path.write_bytes(damaged)
        with pytest.warns(RuntimeWarning, match="cannot be used .*; if it is damaged, delete it"):
            assert kept_statistics("metric", list(MANY)) == {}
        assert path.read_bytes() == damaged
    path.unlink()
    path.mkdir()
    with pytest.warns(RuntimeWarning, match="the score cache cannot be used"):
        keep_statistics("metric", MANY)


WRITER = """
import sys, warnings
from medtasks.metrics.learned.pair_statistics import keep_statistics, kept_statistics
warnings.simplefilter("error")
for number in range(int(sys.argv[1]), int(sys.argv[1]) + 40):
    scores = {(f"prediction {number}", "reference"): (number / 3, 2.0), ("shared", "pair"): ()}
    keep_statistics("metric", scores)
    assert kept_statistics("metric", list(scores)) == scores
"""


def test_several_processes_write_at_once() -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(40 * n)], env=dict(os.environ))
        for n in range(4)
    ]
    assert [writer.wait(timeout=300) for writer in writers] == [0] * 4
    pairs = [(f"prediction {number}", "reference") for number in range(160)]
    assert kept_statistics("metric", pairs) == {
        pair: (number / 3, 2.0) for number, pair in enumerate(pairs)
    }
