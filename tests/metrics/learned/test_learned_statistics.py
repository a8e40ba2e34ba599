"""A learned metric of a package: any statistics, several scores of one model, and pairs about which
the model says nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from medtasks.api import (
    Checkpoint,
    LearnedMetric,
    MedtasksError,
    MetricUnavailableError,
    Pair,
    PairStatistics,
    find_checkpoint,
    sign,
)

CONTENTS = {"words": ("words.txt",), "weights": ("parts/*.bin",)}


class WordShare(LearnedMetric):
    """Recall or precision of the words in a checkpoint's ``words.txt``."""

    packages = ()
    variable = "OTHERLAB_WORDS"
    width = 3

    def __init__(self, name: str, place: int, model: str = "") -> None:
        super().__init__(model)
        self.name = name
        self._place = place

    @property
    def signature(self) -> str:
        return sign(self.name, model=self.label(), version=1)

    @property
    def statistics_key(self) -> str:
        return "otherlab_words|version:1"

    def checkpoint(self) -> Checkpoint:
        return find_checkpoint(self.model, self.variable, CONTENTS)

    def load(self, checkpoint: Checkpoint) -> frozenset[str]:
        return frozenset((checkpoint.directory / "words.txt").read_text("utf-8").split())

    def compute(self, loaded: frozenset[str], pairs: Sequence[Pair]) -> list[PairStatistics]:
        self.model_calls += 1
        rows: list[PairStatistics] = []
        for prediction, reference in pairs:
            said, expected = (loaded & set(text.split()) for text in (prediction, reference))
            if "unreadable" in prediction:
                rows.append(())
            else:
                rows.append((float(len(said & expected)), float(len(said)), float(len(expected))))
        return rows

    def score(self, totals: np.ndarray) -> np.ndarray:
        with np.errstate(invalid="ignore"):
            return np.asarray(totals[..., 0] / totals[..., self._place])


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    folder = tmp_path / "words"
    (folder / "parts").mkdir(parents=True)
    (folder / "words.txt").write_text("polyp ulcer blood", encoding="utf-8")
    (folder / "parts" / "1.bin").write_bytes(b"1")
    return folder


PAIRS = [("polyp ulcer", "polyp"), ("unreadable", "ulcer"), ("blood", "ulcer"), ("none", "none")]


def test_two_scores_of_one_model_are_computed_together(checkpoint: Path) -> None:
    recall = WordShare("recall", 2, str(checkpoint))
    precision = WordShare("precision", 1, str(checkpoint))
    table = recall.table(tuple(PAIRS))
    nothing = [np.nan] * 3
    np.testing.assert_equal(table, [[1, 2, 1], nothing, [0, 1, 1], [0, 0, 0]])
    np.testing.assert_equal(recall.scores(PAIRS), [1, np.nan, 0, np.nan])
    np.testing.assert_equal(precision.scores(PAIRS), [0.5, np.nan, 0, np.nan])
    assert (recall.model_calls, precision.model_calls) == (1, 0)
    assert recall.score(np.nansum(table, axis=0)) == 1 / 2


def test_every_needed_file_counts_in_the_identity(checkpoint: Path) -> None:
    metric = WordShare("recall", 2, str(checkpoint))
    before = metric.signature
    (checkpoint / "parts" / "1.bin").write_bytes(b"2")
    assert metric.signature != before
    metric.scores(PAIRS)
    assert metric.model_calls == 1
    (checkpoint / "parts" / "1.bin").write_bytes(b"3")
    metric.scores(PAIRS)
    assert metric.model_calls == 2  # other weights, so nothing that was kept counts
    (checkpoint / "parts" / "1.bin").unlink()
    assert str(metric.unavailable()).startswith(f"{checkpoint} contains no weights (parts/*.bin)")


def test_the_metrics_own_variable_names_the_checkpoint(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metric = WordShare("recall", 2, "otherlab/never-published")
    assert "otherlab/never-published is not on this machine" in str(metric.unavailable())
    with pytest.raises(MetricUnavailableError):
        metric.scores(PAIRS)
    monkeypatch.setenv("OTHERLAB_WORDS", str(checkpoint))
    assert metric.unavailable() is None
    assert metric.scores([("ulcer", "ulcer")]).tolist() == [1]


@pytest.mark.parametrize(
    ("numbers", "problem"),
    [((1.0,), "gave 1 statistics of a pair, expected 3"), ((1.0, 1.0, np.inf), "not a finite")],
)
def test_unusable_statistics_are_an_error(
    checkpoint: Path, numbers: tuple[float, ...], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    metric = WordShare("faulty", 2, str(checkpoint))
    monkeypatch.setattr(metric, "compute", lambda _, pairs: [numbers] * len(pairs))
    with pytest.raises(MedtasksError, match=problem):
        metric.scores(PAIRS)
