"""What BERTScore and BLEURT share: batches, the cache, and where the checkpoint is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_checkpoints import PAIRS, SENTENCES

from medtasks.core.errors import UsageError
from medtasks.metrics.base import MetricUnavailableError
from medtasks.metrics.learned import METRICS

pytestmark = pytest.mark.slow
LEARNED = {metric.name: metric for metric in METRICS}


@pytest.fixture(params=sorted(LEARNED))
def new(request: pytest.FixtureRequest) -> Any:
    """Makes the metric, by default of its tiny checkpoint."""
    folder, kind = (
        request.getfixturevalue({"bertscore": "roberta"}.get(request.param, "bleurt")),
        LEARNED[request.param],
    )
    layer = {"layer": 2} if request.param == "bertscore" else {}
    return lambda model=folder: type(kind)(str(model), **layer)


def test_batch_is_single_and_order_does_not_matter(
    new: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    together = new().scores(PAIRS)
    monkeypatch.setenv("MEDTASKS_CACHE", str(tmp_path / "reversed"))
    assert new().scores(PAIRS[::-1]).tolist() == together[::-1].tolist()
    monkeypatch.setenv("MEDTASKS_CACHE", str(tmp_path / "single"))
    metric = new()
    single = [metric.statistics(*pair) for pair in PAIRS]
    np.testing.assert_allclose(single, [(score, 1) for score in together], rtol=0, atol=1e-6)


def test_many_pairs_share_forward_passes_and_cached_ones_need_none(new: Any) -> None:
    metric, again = new(), new()
    assert set(metric.scores([(SENTENCES[0], SENTENCES[1])] * 500)) == {
        metric.scores([PAIRS[1]])[0]
    }
    assert metric.model_calls == 1
    pairs = [(f"{number} polyps", SENTENCES[2]) for number in range(200)]
    scores = metric.scores(pairs)
    assert again.scores(pairs).tolist() == scores.tolist()
    assert metric.model_calls <= 1 + 4  # batches of 64
    assert again.model_calls == 0
    again.scores([*pairs, ("a new pair", SENTENCES[2])])
    assert again.model_calls == 1
    assert metric.scores([]).shape == (0,)


def test_scores_survive_a_cache_that_cannot_be_written(
    new: Any, cache_folder: Path, tmp_path: Path
) -> None:
    expected = new().scores(PAIRS)
    cache_folder.rename(tmp_path / "elsewhere")
    cache_folder.write_text("a file where the folder should be")
    with pytest.warns(RuntimeWarning, match="the score cache cannot be used"):
        assert new().scores(PAIRS).tolist() == expected.tolist()


def test_absent_model_is_a_reason_with_a_command(new: Any) -> None:
    metric = new("medtasks-tests/never-published")
    assert metric.unavailable() == (
        "the model medtasks-tests/never-published is not on this machine; run `hf download "
        f"medtasks-tests/never-published`, or name a checkpoint directory in MEDTASKS_{metric.name.upper()}_MODEL"
    )
    assert "neither a checkpoint directory nor a hub id" in str(
        new("./no/such/folder").unavailable()
    )
    with pytest.raises(MetricUnavailableError, match="not on this machine"):
        metric.statistics("a polyp", "a polyp")


HEADS = {
    "bertscore": "bertscore|model:roberta-large|layer:17|idf:no|rescale:no|prefix-space:yes|bert-score:",
    "bleurt": "bleurt|model:Elron/bleurt-base-128|max-tokens:128|transformers:",
}


def test_the_environment_names_model_and_layer(new: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    given = new()
    metric = LEARNED[given.name]
    assert metric.signature.startswith(HEADS[given.name])
    monkeypatch.setenv(f"MEDTASKS_{given.name.upper()}_MODEL", given.model)
    monkeypatch.setenv("MEDTASKS_BERTSCORE_LAYER", "2")
    assert metric.unavailable() is None
    assert metric.signature == given.signature
    assert len(metric.signature.split("|")[1].removeprefix("model:")) == 16
    monkeypatch.setenv("MEDTASKS_BERTSCORE_LAYER", "last")
    with pytest.raises(UsageError, match="MEDTASKS_BERTSCORE_LAYER is 'last'"):
        metric.scores(PAIRS)
