"""Human labels: what is read of them, and every way in which a file can be wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from medtasks.catalog.rubric_files import load_rubric
from medtasks.core.errors import DataError
from medtasks.judge.csv_labels import HUMAN
from medtasks.judge.human_labels import read_labels
from medtasks.judge.labels import HumanLabels, LabelledRun, Labels

KVASIR = load_rubric("kvasir_aspects")
MED_CMR = load_rubric("med_cmr_medreason")
DOCUMENTS: dict[tuple[str, str], dict[str, Any]] = {
    ("t", "s1"): {"sample_id": "s1", "question_class": ["polyp_count", "polyp_size"]},
    ("t", "s2"): {"sample_id": "s2", "question_class": ["polyp_count"]},
}
S1, S2 = DOCUMENTS
LONG = "sample_id,aspect,score\n"


def read_csv(
    folder: Path, text: str | bytes, rubric: Any = KVASIR, documents: Any = DOCUMENTS
) -> HumanLabels:
    path = folder / "labels.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_labels(path, rubric, LabelledRun("this-run", documents, {}))


@pytest.fixture
def read(tmp_path: Path) -> Any:
    def reader(
        text: str | bytes, rubric: Any = KVASIR, documents: Any = DOCUMENTS
    ) -> tuple[Labels, list[str]]:
        found = read_csv(tmp_path, text, rubric, documents)
        return found.by_rater, [*found.absent]

    return reader


def test_labels_are_read_and_those_of_unknown_samples_returned(read: Any) -> None:
    text = '\ufeffsample_id,rater,note,aspect,score\r\ns1,ann,"a\nb",polyp_count,1\r\ns1,ann,,polyp_size, 0 \r\n'
    found = read(
        text
        + "s2,bo,,polyp_count,1.0\r\n\r\ns2,,,polyp_count,0\r\ns9,,,other,1\r\ns8,,,other,0\r\n,,,,\r\n"
    )
    ann, bo, nobody = {"polyp_count": 1, "polyp_size": 0}, {"polyp_count": 1}, {"polyp_count": 0}
    expected = {"ann": {S1: ann}, "bo": {S2: bo}, HUMAN: {S2: nobody}}
    assert found == (expected, ["s8", "s9"])
    fixed = read(LONG + "open-0,visual,2\nopen-0,faithfulness,\n", MED_CMR, {("t", "open-0"): {}})
    assert fixed[0] == {HUMAN: {("t", "open-0"): {"visual": 2}}}


def test_a_sample_of_two_tasks_needs_its_task(read: Any) -> None:
    """The original and the transformed track ask about the same samples."""
    both = {**DOCUMENTS, ("other", "s1"): DOCUMENTS[S1]}
    text = "task,sample_id,aspect,score\nt,s1,polyp_count,1\nother,s1,polyp_count,0\n,s2,polyp_count,0\n"
    found = read(text, KVASIR, both)
    assert found[0] == {
        HUMAN: {S1: {"polyp_count": 1}, ("other", "s1"): {"polyp_count": 0}, S2: {"polyp_count": 0}}
    }
    with pytest.raises(
        DataError, match=r"line 2: sample 's1' is in the tasks 'other', 't', .* column `task`"
    ):
        read(LONG + "s1,polyp_count,1\n", KVASIR, both)
    assert read("task,sample_id,aspect,score\nthird,s1,polyp_count,1\n") == ({}, ["s1"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        (
            "sample_id,aspect\ns1,a\n",
            "line 1: the header has 'sample_id', 'aspect', expected `sample_id`",
        ),
        ("sample_id,a,a\ns1,1,1\n", "line 1: column 'a' is duplicated in the header"),
        (LONG + ",polyp_count,1\n", "line 2: field `sample_id` is missing"),
        (
            LONG + "s1,polyp_count,1\n\ns1,polyp_type,1\n",
            "line 4: field `aspect` is 'polyp_type', expected .* 'polyp_count'",
        ),
        (
            LONG + "s9,,1\n",
            "line 2: field `aspect` is '', expected an aspect of rubric kvasir_aspects: a name",
        ),
        (
            LONG + "s1,polyp_count,2\n",
            "line 2: field `score` is '2', expected a whole number from 0 to 1",
        ),
        *(
            (LONG + f"s1,polyp_count,{score}\n", f"`score` is '{score}'")
            for score in ("0.5", "\u0661")
        ),
        (LONG + "s9,anything,7\n", "field `score` is '7'"),
        (
            LONG + "s1,polyp_count,1\ns1,polyp_count,1\n",
            "line 3: .* in line 2, expected one label; remove one",
        ),
        (LONG + "s1,polyp_count,\n", "found no score"),
        (LONG.encode() + b"s1,polyp_count\n\xff,1\n", "line 3: byte 0xff is not UTF-8"),
    ],
)
def test_a_wrong_file_is_refused_with_its_place(read: Any, text: str | bytes, message: str) -> None:
    with pytest.raises(DataError, match=f"labels.csv.*{message}"):
        read(text)
    with pytest.raises(
        DataError, match="'visuals', expected an aspect of rubric med_cmr_medreason: 'ground_truth'"
    ):
        read(LONG + "open-0,visuals,1\n", MED_CMR)


def test_a_row_of_another_run_is_skipped(read: Any) -> None:
    text = "sample_id,aspect,score,run\ns1,polyp_count,1,this-run\ns2,polyp_count,1,another\n"
    assert read(text) == ({HUMAN: {S1: {"polyp_count": 1}}}, [])


PROBABILITY = "rater,sample_id,aspect,score,probability,stratum\n"


def weights(found: HumanLabels) -> dict[tuple[str, str], float | None]:
    return {(label.rater, label.unit[1]): label.weight for label in found.labels}


def test_labels_weigh_what_their_probabilities_say(tmp_path: Path) -> None:
    """Two raters of one stratum: Ann was to see a fourth of its answers, Bo half of them."""
    alone = read_csv(tmp_path, PROBABILITY + ",s1,polyp_count,1,.25,\n,s2,polyp_count,0,.5,\n")
    assert weights(alone) == {(HUMAN, "s1"): 4, (HUMAN, "s2"): 2}
    both = read_csv(
        tmp_path,
        PROBABILITY
        + "ann,s1,polyp_count,1,.25,a\nbo,s1,polyp_count,1,.5,a\nbo,s2,polyp_count,0,.5,a\n",
    )
    assert weights(both) == pytest.approx(
        {("ann", "s1"): 1 / 0.75, ("bo", "s1"): 1 / 0.75, ("bo", "s2"): 1 / 0.75}
    )
    for text, why in [
        (LONG + "s1,polyp_count,1\n", "does not state the `probability`"),
        (PROBABILITY + "ann,s1,polyp_count,1,.25,\nbo,s1,polyp_count,1,.5,\n", "`stratum`"),
    ]:
        found = read_csv(tmp_path, text)
        assert why in found.why_unweighted
        assert set(weights(found).values()) == {None}
    for rows, message in [
        (",s1,polyp_count,1,0,\n", "line 2: field `probability` is '0'"),
        (",s1,polyp_count,1,often,\n", "line 2: field `probability` is 'often'"),
        (",s1,polyp_count,1,.5,\n,s1,polyp_size,1,.4,\n", "line 3: .* expected 0.5 as in line 2"),
        (",s1,polyp_count,1,.5,a\n,s2,polyp_count,1,.4,a\n", "line 3: .* expected 0.5 as in its"),
    ]:
        with pytest.raises(DataError, match=message):
            read_csv(tmp_path, PROBABILITY + rows)
