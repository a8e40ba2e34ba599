"""RadEval's classes score local checkpoints, and the numbers are RadEval's own."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
from medtasks.api import MedtasksError, MetricUnavailableError
from tiny_checkpoints import tiny_green, tiny_radgraph, tiny_ratescore

from medtasks_radiology import METRICS, PLUGIN
from medtasks_radiology.chexbert import CHEXBERT, CONDITIONS, FIVE
from medtasks_radiology.radgraph import RADGRAPH
from medtasks_radiology.ratescore import RaTEScore

REPORTS = (
    "There is a small left pleural effusion. The heart is enlarged.",
    "There is no left pleural effusion. The heart is enlarged.",
    "There is no pulmonary edema. There is no rib fracture.",
    "There is a right apical pneumothorax.",
    "There is pulmonary edema.",
)
PAIRS = [(left, right) for left in REPORTS for right in REPORTS[::2]]
needs_radeval = pytest.mark.skipif(
    importlib.util.find_spec("radeval") is None, reason="radeval is not installed"
)


def test_every_metric_is_absent_without_weights_and_says_what_to_do() -> None:
    assert len(PLUGIN.metrics) == 10
    for metric in METRICS:
        reason = metric.unavailable()
        assert reason, metric.name
        assert "MEDTASKS_RADIOLOGY" in reason or "install" in reason or "STANZA" in reason
        with pytest.raises(MetricUnavailableError):
            metric.scores([("The heart is enlarged.", "The heart is enlarged.")])


def test_the_tasks_are_those_that_the_environment_names(monkeypatch: pytest.MonkeyPatch) -> None:
    assert RaTEScore().tasks == ("mi_cxr_report",)
    monkeypatch.setenv("MEDTASKS_RADIOLOGY_TASKS", "acme_reports, other_reports,")
    assert RaTEScore().tasks == ("acme_reports", "other_reports")


@needs_radeval
@pytest.mark.usefixtures("chexbert")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
def test_chexbert_f1_is_that_of_scikit_learn_as_radeval_calls_it() -> None:
    from sklearn.metrics import classification_report

    metric, *_ = CHEXBERT
    evaluator = metric.load(metric.checkpoint())
    assert tuple(evaluator.TARGET_NAMES) == CONDITIONS
    assert tuple(evaluator.TOP5) == FIVE
    predictions, references = (list(texts) for texts in zip(*PAIRS, strict=True))
    predicted = np.array(evaluator.get_labels(predictions))
    expected = np.array(evaluator.get_labels(references))
    scores = []
    for places in (range(len(CONDITIONS)), evaluator.top5_idx):
        report = classification_report(expected[:, places], predicted[:, places], output_dict=True)
        scores += [report[average]["f1-score"] for average in ("micro avg", "macro avg")]
    totals = metric.table(tuple(PAIRS)).sum(axis=0)
    found = [float(one.score(totals)) for one in CHEXBERT]
    assert found == pytest.approx(scores, abs=1e-12)
    assert 0 < found[0] < 1


@needs_radeval
def test_chexbert_labels_each_text_once_for_all_four_scores(chexbert: Path) -> None:
    before = [metric.model_calls for metric in CHEXBERT]
    text = f"{chexbert.name}: there is a rib fracture ."  # not in the cache yet
    for metric in CHEXBERT:
        metric.scores([(text, text)] * 9)
    calls = [metric.model_calls - old for metric, old in zip(CHEXBERT, before, strict=True)]
    assert calls == [1, 0, 0, 0]


@needs_radeval
@pytest.mark.parametrize(
    ("content", "problem"),
    [(b"no weights", "cannot be read as CheXbert's weights"), (None, "does not fit")],
)
def test_weights_that_cannot_be_used_are_an_error(
    chexbert: Path,
    content: bytes | None,
    problem: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import torch

    for name in ("config.json", "vocab.txt"):
        (tmp_path / name).write_bytes((chexbert / name).read_bytes())
    weights = tmp_path / "chexbert.pth"
    if content is None:
        torch.save({"model_state_dict": {"module.bert.pooler.dense.bias": torch.ones(1)}}, weights)
    else:
        weights.write_bytes(content)
    monkeypatch.setenv("MEDTASKS_RADIOLOGY_CHEXBERT", str(tmp_path))
    with pytest.raises(MedtasksError, match=problem):
        CHEXBERT[0].scores([("a", "b")])


@needs_radeval
def test_radgraph_f1_is_radevals_and_an_empty_report_scores_0(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tiny_radgraph(tmp_path / "radgraph-xl")
    monkeypatch.setenv("MEDTASKS_RADIOLOGY_RADGRAPH", str(folder))
    simple, _, complete = RADGRAPH
    assert simple.scores([("", REPORTS[0]), (" ", "")]).tolist() == [0, 0]
    pairs = PAIRS[:4]
    predictions, references = (list(texts) for texts in zip(*pairs, strict=True))
    loaded = simple.load(simple.checkpoint())
    means, *_ = loaded(hyps=predictions, refs=references)
    for metric, mean in zip(RADGRAPH, means, strict=True):
        assert np.mean(metric.scores(pairs)) == pytest.approx(mean, abs=1e-12)
    assert complete.scores([(REPORTS[0], REPORTS[0])]).tolist() == [1]
    identity = simple.checkpoint().identity
    encoder = tmp_path / "encoder" / "config.json"
    encoder.write_text(json.dumps({**json.loads(encoder.read_text()), "hidden_act": "relu"}))
    assert simple.checkpoint().identity != identity


@needs_radeval
def test_an_answer_of_green_in_no_form_is_no_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    green = METRICS[-1]
    monkeypatch.setenv("MEDTASKS_RADIOLOGY_GREEN", str(tiny_green(tmp_path / "green")))
    if green.unavailable() is not None:
        pytest.skip(str(green.unavailable()))
    assert np.isnan(green.scores([(REPORTS[0], REPORTS[0])])).all()


@needs_radeval
def test_ratescore_on_random_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entities, encoder = tmp_path / "entities", tmp_path / "encoder"
    tiny_ratescore(entities, encoder)
    monkeypatch.setenv("MEDTASKS_RADIOLOGY_RATESCORE_NER", str(entities))
    monkeypatch.setenv("MEDTASKS_RADIOLOGY_RATESCORE_ENCODER", str(encoder))
    metric = RaTEScore()
    if metric.unavailable() is not None:
        pytest.skip(str(metric.unavailable()))
    pairs = [("", REPORTS[0]), ("x", REPORTS[0]), (REPORTS[0], REPORTS[0])]
    empty, without_entity, same = metric.scores(pairs).tolist()
    assert (empty, without_entity) == (0, 0.5)
    loaded = metric.load(metric.checkpoint())
    (expected,), *_ = loaded.scorer.compute_score([REPORTS[0]], [REPORTS[0]])
    assert same == pytest.approx(expected, abs=1e-6)
