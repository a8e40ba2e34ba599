"""Scores of samples: by hand, whatever their order, and never of nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medtasks.errors import DataError, MedtasksError, UsageError
from medtasks.registry import get_benchmark
from medtasks.results.folder import RunRecord, write_run
from medtasks.results.manifest import RunManifest
from medtasks.results.samples import Sample, duplicate_ids, read_samples, write_samples
from medtasks.results.scoring import score_samples

MI_CXR = get_benchmark("mi_cxr")
TASK = "mi_cxr_tel_single"


def sample(number: int, filtered: str, target: str, patient: str = "p1") -> Sample:
    right = float(filtered == target)
    return Sample(
        sample_id=f"tel-{number}",
        task="mi_cxr_tel_single",
        cluster=patient,
        media=(),
        prompt_hash="0",
        prompt="When?",
        target=target,
        responses=(filtered,),
        filtered=filtered,
        status="ok" if len(filtered) == 1 else filtered.strip("[]"),
        scores={"accuracy": right},
        statistics={"accuracy": (right, 1.0)},
        document={"target": target, "qtype": "single_emergence", "group_type": "TEL"},
    )


FOUR = [
    sample(0, "A", "A", "p1"),
    sample(1, "E", "B", "p1"),
    sample(2, "[none]", "E", "p2"),
    sample(3, "C", "E", "p2"),
]


def test_accuracy_counts_unextracted_answers_as_wrong() -> None:
    scores = score_samples(FOUR, MI_CXR, ["null_option"])
    assert scores.metrics["accuracy"].value == 0.25
    assert scores.metrics["accuracy"].margin_over_chance == pytest.approx(0.05)
    assert scores.status == {"none": 1, "ok": 3}
    assert scores.breakdowns["null_option"]["null option right"].metrics["accuracy"].value == 0.0
    assert scores.breakdowns["null_option"]["another option right"].metrics["accuracy"].value == 0.5


def test_letters_abstention_and_commitment() -> None:
    letters = score_samples(FOUR, MI_CXR).letters
    assert letters is not None
    assert letters.chosen == {"A": 1, "B": 0, "C": 1, "D": 0, "E": 1, "[none]": 1}
    assert (letters.null_chosen_when_wrong, letters.null_missed_when_right) == (1, 1)


def test_one_cluster_has_no_interval_and_says_why() -> None:
    accuracy = score_samples(FOUR[:2], MI_CXR).metrics["accuracy"]
    assert accuracy.interval is None
    assert accuracy.reason is not None
    assert "at least 2" in accuracy.reason


@settings(max_examples=20, deadline=None)
@given(st.permutations(FOUR))
def test_the_order_of_samples_changes_nothing(samples: list[Sample]) -> None:
    assert score_samples(samples, MI_CXR) == score_samples(FOUR, MI_CXR)


def test_nothing_has_no_score() -> None:
    with pytest.raises(MedtasksError, match="no sample to score"):
        score_samples([], MI_CXR)


def test_a_breakdown_must_be_known() -> None:
    with pytest.raises(MedtasksError, match="breakdown 'mood' is unknown"):
        score_samples(FOUR, MI_CXR, ["mood"])


def test_a_document_answered_twice_is_noticed() -> None:
    assert duplicate_ids([*FOUR, FOUR[2]]) == ["tel-2"]


def test_samples_survive_writing(tmp_path: Path) -> None:
    write_samples(tmp_path / "x.jsonl", reversed(FOUR))
    assert read_samples(tmp_path / "x.jsonl") == FOUR


def test_whatever_a_model_says_can_be_read_again(tmp_path: Path) -> None:
    """Among it the characters that end a line of text for some, but not of JSON."""
    said = "one\u2028two\u2029three\x85four\x0bfive\x1c\r\nsix"
    samples = [FOUR[0].model_copy(update={"responses": (said,)}), *FOUR[1:]]
    write_samples(tmp_path / "x.jsonl", samples)
    assert read_samples(tmp_path / "x.jsonl") == sorted(samples, key=lambda one: one.sample_id)


@pytest.mark.parametrize("content", [b"\xff\xfe", b'{"sample_id": "\xe9"}', b"\n{"])
def test_a_line_that_is_no_text_is_named(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes(content)
    with pytest.raises(DataError, match=r"x\.jsonl, line [12]: not valid JSON (.*); restore it\.$"):
        read_samples(tmp_path / "x.jsonl")


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"x\.jsonl: cannot be read \(No such file or directory\); restore it"):
        read_samples(tmp_path / "x.jsonl")


def test_a_broken_line_is_named(tmp_path: Path) -> None:
    write_samples(tmp_path / "x.jsonl", FOUR)
    first, second, *rest = (tmp_path / "x.jsonl").read_text().splitlines()
    broken = second.replace('"cluster": "p1"', '"cluster": 7')
    (tmp_path / "x.jsonl").write_text("\n".join([first, broken, *rest]))
    with pytest.raises(DataError, match=r"x\.jsonl, line 2: field `cluster`"):
        read_samples(tmp_path / "x.jsonl")


def test_finished_results_are_never_overwritten(tmp_path: Path) -> None:
    manifest = RunManifest(created="now", processes=1, versions={}, model={}, settings={}, tasks={}, groups={}, data={})
    run = RunRecord(manifest=manifest, samples={TASK: FOUR}, tasks={TASK: score_samples(FOUR, MI_CXR)}, groups={})
    write_run(tmp_path / "run", run)
    with pytest.raises(UsageError, match="never overwritten"):
        write_run(tmp_path / "run", run)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]
