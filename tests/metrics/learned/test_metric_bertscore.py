"""BERTScore against the library called directly, on a tiny RoBERTa."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import huggingface_hub.constants
import numpy as np
import pytest
from tiny_checkpoints import PAIRS, tiny_roberta

from medtasks.core.errors import MedtasksError, UsageError
from medtasks.metrics.learned.bertscore import BertScore

pytestmark = pytest.mark.slow

bert_score = pytest.importorskip("bert_score")

TEXTS = [
    pair for pair in PAIRS if all(text.strip() for text in pair)
]  # the library refuses others (transformers 5)


def library(pairs: list[tuple[str, str]], model: Path, layer: int, batch: int = 64) -> list[float]:
    predictions, references = ([pair[side] for pair in pairs] for side in (0, 1))
    found = bert_score.score(
        predictions, references, model_type=str(model), num_layers=layer, batch_size=batch
    )
    scores: list[float] = found[2].tolist()
    return scores


@pytest.mark.parametrize("batch", [1, 64])
@pytest.mark.parametrize("layer", [1, 2, 3])
def test_scores_are_the_librarys(roberta: Path, layer: int, batch: int) -> None:
    expected = library(TEXTS, roberta, layer, batch)
    assert np.ptp(expected) > 0.1  # a model that tells nothing apart would agree with anything
    np.testing.assert_allclose(
        BertScore(str(roberta), layer).scores(TEXTS), expected, rtol=0, atol=1e-6
    )


def test_first_word_has_its_space_whatever_the_tokenizer_was_saved_with(
    roberta: Path, plain_roberta: Path
) -> None:
    expected = BertScore(str(roberta), 2).scores(TEXTS)
    np.testing.assert_allclose(
        BertScore(str(plain_roberta), 2).scores(TEXTS), expected, rtol=0, atol=1e-6
    )


def test_text_is_cut_at_the_models_positions_where_the_tokenizer_states_no_limit(
    tmp_path: Path,
) -> None:
    stated = tiny_roberta(
        tmp_path / "stated", prefix_space=True, limit=126
    )  # 128 positions, 2 of them reserved
    silent = tiny_roberta(tmp_path / "silent", prefix_space=True, limit=None)
    expected = library(TEXTS, stated, 2)
    np.testing.assert_allclose(BertScore(str(silent), 2).scores(TEXTS), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("pair", [("", "a polyp"), ("a polyp", " \n"), ("", ""), ("\t", "")])
def test_blank_text_scores_zero(roberta: Path, pair: tuple[str, str]) -> None:
    assert BertScore(str(roberta), 2).statistics(*pair).tolist() == [0.0, 1.0]


def test_signature_follows_the_weights_not_the_place(roberta: Path, tmp_path: Path) -> None:
    moved = Path(shutil.copytree(roberta, tmp_path / "moved"))
    signature = BertScore(str(roberta), 2).signature
    assert BertScore(str(moved), 2).signature == signature
    other = tiny_roberta(tmp_path / "other", prefix_space=True, seed=1)
    assert BertScore(str(other), 2).signature != signature
    name, model, *rest = signature.split("|")
    assert (name, len(model.removeprefix("model:"))) == ("bertscore", 16)
    assert rest[:4] == ["layer:2", "idf:no", "rescale:no", "prefix-space:yes"]
    assert [part.split(":")[0] for part in rest[4:]] == ["bert-score", "transformers"]


def test_replaced_weights_are_not_scored_from_the_cache(roberta: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(roberta, tmp_path / "model"))
    metric = BertScore(str(folder), 2)
    before = metric.scores(TEXTS)
    other = tiny_roberta(tmp_path / "other", prefix_space=True, seed=1)
    shutil.copyfile(other / "model.safetensors", folder / "model.safetensors")
    np.testing.assert_allclose(metric.scores(TEXTS), library(TEXTS, other, 2), rtol=0, atol=1e-6)
    assert not np.allclose(metric.scores(TEXTS), before)


@pytest.mark.parametrize("layer", [0, 4])
def test_layer_the_model_has_not_is_an_error(roberta: Path, layer: int) -> None:
    with pytest.raises(UsageError, match=f"layer {layer} of .* has 1 to 3"):
        BertScore(str(roberta), layer).scores(PAIRS)


def test_absent_package_is_a_reason_with_a_command(
    roberta: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "bert_score", None)
    reason = BertScore(str(roberta), 2).unavailable()
    assert reason == 'the package bert-score is not installed: pip install "medtasks[learned]"'


@pytest.mark.parametrize("gone", ["config.json", "tokenizer.json", "model.safetensors"])
def test_incomplete_directory_is_a_reason_that_names_the_file(
    roberta: Path, tmp_path: Path, gone: str
) -> None:
    folder = Path(shutil.copytree(roberta, tmp_path / "model"))
    for path in (folder / gone, folder / "vocab.json"):
        if path.name == gone or gone == "tokenizer.json":
            path.unlink()
    assert f"{gone}" in str(BertScore(str(folder), 2).unavailable()).replace("*", "model")
    assert BertScore(str(tmp_path / "nowhere"), 2).unavailable() is not None


def test_missing_weights_are_an_error_and_not_random_numbers(roberta: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = Path(shutil.copytree(roberta, tmp_path / "model"))
    weights = load_file(folder / "model.safetensors")
    save_file(
        {name: weight for name, weight in weights.items() if "layer.0." not in name},
        folder / "model.safetensors",
        metadata={"format": "pt"},
    )
    with pytest.raises(MedtasksError, match=r"weight\(s\) missing, first encoder\.layer\.0"):
        BertScore(str(folder), 2).scores(PAIRS)


def publish(model: Path, hub: Path, commit: str) -> None:
    """Put a checkpoint into a hub cache folder, as the newest commit of medtasks-tests/tiny."""
    repository = hub / "models--medtasks-tests--tiny"
    shutil.copytree(model, repository / "snapshots" / commit)
    (repository / "refs").mkdir(exist_ok=True)
    (repository / "refs" / "main").write_text(commit)


def test_model_in_the_hub_cache_is_found_without_a_network_and_told_by_its_commit(
    roberta: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    publish(roberta, tmp_path / "hub", "0" * 40)
    metric = BertScore("medtasks-tests/tiny", 2)
    assert metric.unavailable() is None
    assert "|model:medtasks-tests/tiny|" in metric.signature
    scores = metric.scores(TEXTS)
    assert scores.tolist() == BertScore(str(roberta), 2).scores(TEXTS).tolist()
    publish(tiny_roberta(tmp_path / "other", prefix_space=True, seed=1), tmp_path / "hub", "1" * 40)
    assert not np.allclose(metric.scores(TEXTS), scores)
