"""References that contradict their own atomic pairs are found where a rule can see it, and no
others.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from medtasks.benchmarks.documents import task_documents
from medtasks.benchmarks.kvasir_vqa_x1.contradictions import contradiction

TEXT, BOX, FINDING = (
    "Is there text?",
    "Is there a green/black box artefact?",
    "Does this image contain any finding?",
)
POLYPS, FINDINGS = "How many polyps are in the image?", "How many findings are present?"


def document(reference: str, *pairs: tuple[str, str]) -> dict[str, Any]:
    return {
        "target": reference,
        "original": [{"q": question, "a": answer} for question, answer in pairs],
    }


@pytest.mark.parametrize(
    ("contradicts", "reference", "pairs"),
    [
        (True, "No text is visible in the image.", [(TEXT, "Yes")]),
        (True, "Text is present.", [(TEXT, "No")]),
        (True, "The image is free of findings.", [(FINDING, "Yes")]),
        (True, "Two polyps were identified.", [(POLYPS, "1")]),
        (True, "A single small polyp is seen, with text.", [(POLYPS, "3"), (TEXT, "Yes")]),
        (False, "No text is visible, but a green box artifact is.", [(TEXT, "No"), (BOX, "Yes")]),
        (False, "The procedure is a colonoscopy.", [(TEXT, "Yes")]),  # says nothing about it
        (False, "Multiple polyps are present.", [(POLYPS, "4")]),  # not a number
        (
            False,
            "A total of two findings were noted, one of them a polyp.",
            [(FINDINGS, "2"), (POLYPS, "1")],
        ),
        (
            False,
            "Text is visible; no text overlays the lesion.",
            [(TEXT, "Yes")],
        ),  # clauses disagree: for a reader
    ],
)
def test_contradictions_that_a_reader_sees_are_found_and_no_others(
    contradicts: bool, reference: str, pairs: list[tuple[str, str]]
) -> None:
    assert (contradiction(document(reference, *pairs)) is not None) == contradicts


QUESTIONS = {
    "text_presence": TEXT,
    "box_artifact_presence": BOX,
    "finding_presence": FINDING,
    "polyp_count": POLYPS,
    "finding_count": FINDINGS,
    "instrument_count": "How many instrumnets are in the image?",
}
READ = Path(__file__).parents[1] / "answers" / "finding_answers.yaml"


def test_references_are_doubted_only_where_a_reader_sees_a_contradiction() -> None:
    """Answers with a reader's verdict, each as the reference of every possible pair."""
    found: dict[bool, list[bool]] = {True: [], False: []}
    for case in yaml.safe_load(READ.read_text("utf-8")):
        name, count = case["class"], case.get("count")
        if name.endswith("_count"):
            wrong = {str(number): count not in (None, number) for number in range(7)}
        else:
            wrong = {"Yes": case["said"] == "absent", "No": case["said"] == "present"}
        for answer, contradicts in wrong.items() if name in QUESTIONS else ():
            one = document(case["answer"], (QUESTIONS[name], answer))
            found[contradicts].append(contradiction(one) is not None)
    assert sum(found[False]) == 0
    assert sum(found[True]) / len(found[True]) > 0.75  # 231 of 293


def test_the_miniature_references_agree_with_their_pairs() -> None:
    documents = [
        one for level in (1, 2, 3) for one in task_documents(f"kvasir_vqa_x1_level{level}")
    ]
    assert [one["sample_id"] for one in documents if contradiction(one)] == []
