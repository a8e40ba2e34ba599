"""Med-CMR rows as records: every field of the release, and one sentence for each that is wrong."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from release_rows import med_cmr_row

from medtasks.benchmarks.med_cmr.records import DIMENSIONS, MedCmrRecord, dimension_of, parse_med_cmr_row
from medtasks.data.records import Where
from medtasks.errors import DataError

HERE = Where("rows.json", 3, unit="row")


def parsed(**changes: Any) -> MedCmrRecord:
    return parse_med_cmr_row(med_cmr_row(**changes), "mcq", HERE)


def test_a_row_becomes_a_record() -> None:
    record = parsed()

    assert (record.sample_id, record.cluster, record.media) == (
        "mcq-7",
        "dataset/imgs/one.png",
        ("dataset/imgs/one.png",),
    )
    assert (record.dimension, record.question_type, record.organ_system) == ("sod", "location", "Respiratory")
    assert record.choices == {letter: f"option {letter}" for letter in "ABCDE"}
    assert record.prefixed == 0


def test_an_open_row_has_a_text_for_an_answer_and_no_options() -> None:
    record = parse_med_cmr_row(med_cmr_row(answer="A nodule, upper left."), "open", HERE)
    assert (record.sample_id, record.choices, record.answer) == ("open-7", {}, "A nodule, upper left.")


def test_one_own_letter_is_taken_off_an_option() -> None:
    record = parsed(A="A) Normal study", B="(B) B) lymphocytes", C="C. ", D="A) not mine", E="E: fluid")

    assert record.choices == {
        "A": "Normal study",
        "B": "B) lymphocytes",
        "C": "C.",
        "D": "A) not mine",
        "E": "fluid",
    }
    assert record.prefixed == 3


def test_an_option_that_only_begins_like_a_letter_stays() -> None:
    assert parsed(A="A small nodule", B="B-cell lymphoma", C="C.difficile").choices["A"] == "A small nodule"
    assert parsed(A="A small nodule", B="B-cell lymphoma", C="C.difficile").prefixed == 0


@pytest.mark.parametrize("name", ["C. difficile colitis", "C. Difficile Colitis", "C. albicans", "C. auris"])
def test_the_abbreviated_genus_of_a_species_is_no_letter_of_the_option(name: str) -> None:
    record = parsed(C=name, E="E. E. coli abscess")
    assert (record.choices["C"], record.choices["E"], record.prefixed) == (name, "E. coli abscess", 1)


@pytest.mark.parametrize("name", [*DIMENSIONS.values(), *DIMENSIONS, "Subtle Object Detection"])
def test_dimensions_are_known_by_release_name_paper_name_and_abbreviation(name: str) -> None:
    assert dimension_of(name) in DIMENSIONS
    assert dimension_of(name.upper().replace(" ", "_")) == dimension_of(name)


def test_descriptive_fields_may_be_missing() -> None:
    assert parsed(subtype=None, modality=None).subtype == ""


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"index": None}, "field `index` is missing"),
        ({"index": True}, "field `index` is True"),
        ({"task": "Counting"}, "field `task` is 'Counting', expected one of the dimensions Small-object Detection"),
        ({"answer": "F"}, "field `answer` is 'F', expected one letter from A to E"),
        ({"answer": ""}, "field `answer`"),
        ({"C": None}, "field `C` is missing"),
        ({"C": "  "}, "field `C`"),
        ({"F": "one more"}, "field `F` is 'one more', expected no such field"),
        ({"image_path": "/etc/passwd"}, "field `image_path`"),
        ({"image_path": "dataset/../../x.png"}, "field `image_path`"),
        ({"image_path": ["a", "b"]}, "field `image_path`"),
        ({"question": None}, "field `question` is missing"),
        ({"modality": 3}, "field `modality` is 3"),
        ({"organ__system": ["x"]}, "field `organ system`"),
        ({"question": "half \ud83d"}, "field `question`"),
    ],
)
def test_a_wrong_field_is_named(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError) as caught:
        parsed(**changes)
    assert str(caught.value).startswith(f"rows.json, row 3: {said}")


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(field=st.sampled_from(sorted(med_cmr_row())), value=anything)
def test_any_value_is_a_record_or_one_sentence(field: str, value: Any) -> None:
    said, record = None, None
    try:
        record = parse_med_cmr_row({**med_cmr_row(), field: value}, "mcq", HERE)
    except DataError as error:
        said = str(error)
    if record is None:
        assert said is not None
        assert said.startswith("rows.json, row 3: ")
    else:
        assert MedCmrRecord.model_validate_json(record.model_dump_json()) == record
