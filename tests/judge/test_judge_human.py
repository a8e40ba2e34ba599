"""Human labels: both forms of the CSV, and every way in which a file can be wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medtasks.catalog.rubric import load_rubric
from medtasks.core.errors import DataError
from medtasks.judge.human import HUMAN, HumanLabels, read_labels

KVASIR = load_rubric("kvasir_aspects")
MED_CMR = load_rubric("med_cmr_medreason")
DOCUMENTS: dict[tuple[str, str], dict[str, Any]] = {
    ("t", "s1"): {"sample_id": "s1", "question_class": ["polyp_count", "polyp_size"]},
    ("t", "s2"): {"sample_id": "s2", "question_class": ["polyp_count"]},
}
S1, S2 = DOCUMENTS
LONG = "sample_id,aspect,score\n"


@pytest.fixture
def read(tmp_path: Path) -> Any:
    def reader(text: str | bytes, rubric: Any = KVASIR, documents: Any = DOCUMENTS) -> HumanLabels:
        path = tmp_path / "labels.csv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_labels(path, rubric, documents)

    return reader


def test_long_form(read: Any) -> None:
    text = '\ufeffsample_id,rater,note,aspect,score\r\ns1,ann,"a\nb",polyp_count,1\r\ns1,ann,,polyp_size, 0 \r\n'
    found = read(text + "s2,bo,,polyp_count,1.0\r\n\r\n")
    expected = {"ann": {S1: {"polyp_count": 1, "polyp_size": 0}}, "bo": {S2: {"polyp_count": 1}}}
    assert found == HumanLabels(expected, ())


def test_wide_form_says_the_same(read: Any) -> None:
    found = read("sample_id,polyp_size,polyp_count\ns1,0,1\ns2,,1\n")
    expected = {HUMAN: {S1: {"polyp_count": 1, "polyp_size": 0}, S2: {"polyp_count": 1}}}
    assert found == HumanLabels(expected, ())


def test_wide_form_of_fixed_scales(read: Any) -> None:
    text = "sample_id,ground_truth,visual,faithfulness\nopen-0,4,2,\n"
    found = read(text, MED_CMR, {("t", "open-0"): {"sample_id": "open-0"}})
    assert found.ratings == {HUMAN: {("t", "open-0"): {"ground_truth": 4, "visual": 2}}}


def test_unknown_samples_are_returned_not_rated(read: Any) -> None:
    found = read(LONG + "s9,polyp_count,1\ns8,other,0\ns2,polyp_count,0\n")
    assert found.unmatched == ("s8", "s9")
    assert found.ratings == {HUMAN: {S2: {"polyp_count": 0}}}


def test_a_sample_of_two_tasks_needs_its_task(read: Any) -> None:
    """The original and the transformed track ask about the same samples."""
    both = {**DOCUMENTS, ("other", "s1"): DOCUMENTS[S1]}
    text = "task,sample_id,aspect,score\nt,s1,polyp_count,1\nother,s1,polyp_count,0\n,s2,polyp_count,0\n"
    found = read(text, KVASIR, both)
    assert found.ratings == {
        HUMAN: {S1: {"polyp_count": 1}, ("other", "s1"): {"polyp_count": 0}, S2: {"polyp_count": 0}}
    }
    with pytest.raises(DataError, match=r"line 2: sample 's1' is in the tasks 'other', 't', .* column `task`"):
        read(LONG + "s1,polyp_count,1\n", KVASIR, both)
    elsewhere = read("task,sample_id,aspect,score\nthird,s1,polyp_count,1\n")
    assert (elsewhere.ratings, elsewhere.unmatched) == ({}, ("s1",))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        (LONG, "only a header"),
        ("sample_id,aspect\ns1,a\n", "line 1: the header has 'sample_id', 'aspect', expected"),
        ("sample,polyp_count\ns1,1\n", "line 1: the header has 'sample', 'polyp_count', expected `sample_id`"),
        ("sample_id\ns1\n", "a column per aspect"),
        ("sample_id,a,a\ns1,1,1\n", "line 1: column 'a' is duplicated in the header"),
        ("sample_id,a,\ns1,1,\n", "line 1: a column has no name"),
        (LONG + "s1,polyp_count\n", "line 2: found 2 cells, expected 3"),
        (LONG + ",polyp_count,1\n", "line 2: column `sample_id` is empty"),
        (
            LONG + "s1,polyp_count,1\n\ns1,polyp_type,1\n",
            "line 4: column 'aspect': 'polyp_type' is not an aspect of sample s1",
        ),
        (LONG + "s9,,1\n", "line 2: column 'aspect': '' is not an aspect of rubric kvasir_aspects"),
        (LONG + "s1,polyp_count,2\n", "line 2: column 'score' is '2', expected a whole number from 0 to 1"),
        (LONG + "s1,polyp_count,yes\n", "column 'score' is 'yes'"),
        (LONG + "s1,polyp_count,0.5\n", "column 'score' is '0.5'"),
        (LONG + "s1,polyp_count,\u0661\n", "column 'score' is"),
        (LONG + "s9,anything,7\n", "column 'score' is '7'"),
        ("sample_id,polyp_size\ns2,1\n", "line 2: column 'polyp_size': 'polyp_size' is not an aspect of sample s2"),
        ("sample_id,polyp_count\ns2,x\n", "line 2: column 'polyp_count' is 'x'"),
        (LONG + "s1,polyp_count,1\ns1,polyp_count,1\n", "line 3: .* in line 2, expected one label; remove one"),
        (LONG + "s1,polyp_count,\n", "found no score"),
        (LONG + 's1,polyp_count,"1\n', "line 2: not CSV"),
        (LONG.encode() + b"s1,polyp_count\n\xff,1\n", "line 3: byte 0xff is not UTF-8"),
    ],
)
def test_a_wrong_file_is_refused_with_its_place(read: Any, text: str | bytes, message: str) -> None:
    with pytest.raises(DataError, match=f"labels.csv.*{message}"):
        read(text)


def test_a_misspelt_column_of_a_fixed_rubric_is_refused(read: Any) -> None:
    with pytest.raises(DataError, match="column 'visuals' is not an aspect of rubric med_cmr_medreason"):
        read("sample_id,visuals\nopen-0,1\n", MED_CMR)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    for path in (tmp_path / "none.csv", tmp_path):
        with pytest.raises(DataError, match="cannot be read"):
            read_labels(path, KVASIR, DOCUMENTS)


CELLS = st.sampled_from(
    ["sample_id", "aspect", "score", "rater", "task", "s1", "s2", "polyp_count", "1", "0", "x", "", '"', "\x00", "é"]
)


@given(lines=st.lists(st.lists(CELLS, max_size=5).map(",".join), max_size=5), head=st.sampled_from(["", LONG]))
@settings(deadline=None)
def test_any_text_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, lines: list[str], head: str) -> None:
    path = tmp_path_factory.getbasetemp() / "any.csv"
    path.write_text(head + "\n".join(lines), encoding="utf-8")
    try:
        found = read_labels(path, KVASIR, DOCUMENTS)
    except DataError as error:
        said = str(error)
    else:
        said = f"any.csv: {[*found.ratings, *found.unmatched][0]}"
    assert "any.csv" in said
