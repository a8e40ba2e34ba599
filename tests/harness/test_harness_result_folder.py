"""What a run leaves: complete sample lines, a manifest, scores that agree with the reference
libraries.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sacrebleu
from runs import Run, baseline

from medtasks.catalog.prompts import render
from medtasks.metrics import wordnet


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    output = tmp_path_factory.mktemp("folder")
    return baseline("noisy_oracle,accuracy=0.5", ["kvasir_vqa_x1", "mi_cxr_tel"], output)


def test_a_sample_line_is_complete(run: Run) -> None:
    line = run.samples("mi_cxr_tel_single")[0]
    assert set(line) == {
        "sample_id", "task", "cluster", "media", "prompt_hash", "prompt", "target", "responses", "filtered", "reading",
        "status", "failed", "limits", "scores", "statistics", "pending", "repeats", "verdicts", "judged", "document",
    }  # fmt: skip
    document = line["document"]
    assert line["prompt"] == render(
        "mi_cxr/mcq.j2", question=document["question"], choices=document["choices"]
    )
    assert len(line["media"]) == 5


def test_the_manifest_says_what_is_needed_to_repeat_the_run(run: Run) -> None:
    manifest = run.manifest
    facts = manifest["tasks"]["kvasir_vqa_x1_level1"]
    assert manifest["model"]["policy"] == "noisy_oracle"
    assert facts["asked"] == facts["answered"] == 37
    assert facts["filters"] == {"AnswerTextFilter": "5"}
    assert facts["generation"]["temperature"] == 0
    assert manifest["data"]["kvasir_vqa_x1"]["mini"] is True
    assert manifest["versions"]["lmms-eval"].startswith("0.7.")
    assert manifest["settings"]["random_seed"] == 0
    assert manifest["groups"]["mi_cxr_tel"] == [
        "mi_cxr_tel_single",
        "mi_cxr_tel_multiple",
        "mi_cxr_tel_ordered",
    ]


def test_nothing_in_the_folder_names_a_path_of_this_machine(run: Run) -> None:
    home = str(Path.home())
    for name, data in {
        **run.files(),
        "manifest.json": (run.folder / "manifest.json").read_bytes(),
    }.items():
        assert home.encode() not in data, name
        assert str(run.folder.parent).encode() not in data, name


@pytest.mark.parametrize(
    ("metric", "library", "unit"),
    [
        ("bleu", sacrebleu.BLEU(smooth_method="none"), 100),
        ("chrf++", sacrebleu.CHRF(word_order=2), 1),
    ],
)
def test_a_pooled_score_is_the_corpus_score_of_all_rows(
    run: Run, metric: str, library: Any, unit: int
) -> None:
    lines = [line for level in (1, 2, 3) for line in run.samples(f"kvasir_vqa_x1_level{level}")]
    expected = library.corpus_score(
        [line["filtered"] for line in lines], [[line["target"] for line in lines]]
    ).score
    assert run.scores["kvasir_vqa_x1"]["metrics"][metric]["value"] == pytest.approx(
        expected / unit, abs=1e-9
    )


def test_a_missing_wordnet_is_said_and_not_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setattr(wordnet, "FILES", ("nowhere",))
    wordnet.find_corpus.cache_clear()
    request.addfinalizer(wordnet.find_corpus.cache_clear)
    run = baseline("oracle", ["kvasir_vqa_x1_level3"], tmp_path)
    metric = run.scores["kvasir_vqa_x1_level3"]["metrics"]["meteor"]
    assert metric["value"] is None
    assert "medtasks fetch wordnet" in metric["reason"]
    assert all(line["scores"]["meteor"] is None for line in run.samples("kvasir_vqa_x1_level3"))
