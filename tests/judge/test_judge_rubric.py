"""Rubrics: pinned prompts (MEDTASKS_UPDATE_GOLDEN=1 writes them anew), totals by hand, schemas,
what is refused.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from rubric_cases import TASKS, best, case

from medtasks.benchmarks.documents import task_documents
from medtasks.catalog.judge_prompt import aspects_of, judge_prompt, verdict_schema
from medtasks.catalog.prompts import template_variables
from medtasks.catalog.rubric import rubric_hash
from medtasks.catalog.rubric_files import load_rubric, read_rubric, rubric_files
from medtasks.catalog.rubric_totals import total
from medtasks.core.errors import DataError, MedtasksError, UsageError
from medtasks.judge.verdict_parsing import parse_verdict
from medtasks.runs.verdict import Verdict

GOLDEN = Path(__file__).parent / "golden"
RESPONSE = "First I look at the image.\n\nFinal answer: one round nodule, left side."
RUBRICS = Path(__file__).parents[2] / "medtasks" / "benchmarks" / "med_cmr" / "rubrics"


@pytest.mark.parametrize("name", TASKS)
def test_prompt_is_the_pinned_one(name: str) -> None:
    prompt = judge_prompt(*case(name), RESPONSE) + "\n"
    golden = GOLDEN / f"{name}.txt"
    if os.environ.get("MEDTASKS_UPDATE_GOLDEN") == "1":
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(prompt, encoding="utf-8")
    assert prompt == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", TASKS)
def test_the_judge_sees_no_more_than_the_rubric_lists_of_any_document_of_its_benchmark(
    name: str,
) -> None:
    rubric, _ = case(name)
    assert template_variables(rubric.template) <= {*rubric.sees, "aspects", "form", "response"}
    for document in task_documents(TASKS[name][0]):
        seen = {field: document[field] for field in rubric.sees}
        prompt = judge_prompt(rubric, document, RESPONSE)
        assert RESPONSE in prompt
        assert judge_prompt(rubric, seen, RESPONSE) == prompt


def test_medreason_caps_the_visual_score_by_faithfulness() -> None:
    rubric, document = case("med_cmr_medreason")
    for faithfulness, visual, counted in (
        (0, 4, 1),
        (1, 4, 1),
        (1, 0, 0),
        (2, 4, 3),
        (2, 2, 2),
        (3, 4, 4),
        (4, 4, 4),
    ):
        values = total(
            rubric, document, {"ground_truth": 3, "visual": visual, "faithfulness": faithfulness}
        )
        assert (values["visual"], values["total"]) == (25 * counted, 100 * (3 + counted) / 8)


@pytest.mark.parametrize("name", TASKS)
def test_the_schema_accepts_verdicts_that_are_read_and_those_alone(name: str) -> None:
    rubric, document = case(name)
    accepts = Draft202012Validator(verdict_schema(rubric, document)).is_valid
    verdict = best(rubric, document)
    assert accepts(verdict)
    read = parse_verdict(json.dumps(verdict), rubric, document)
    assert isinstance(read, Verdict)
    assert read.scores == {one.name: one.maximum for one in aspects_of(rubric, document)}
    first = next(iter(verdict))
    for score in (-1, verdict[first]["score"] + 1, "1", None, 0.5, True):
        assert not accepts({**verdict, first: {"reason": "", "score": score}})
    assert not accepts({**verdict, "more": 1})
    assert not accepts({key: value for key, value in verdict.items() if key != first})
    assert not accepts({**verdict, first: {"score": 1}})


def test_a_bare_range_leaves_our_anchors() -> None:
    rubric, document = case("medstream_rubric")
    bare = json.dumps(
        {"correctness": "0-2", "evidence_grounding": "2: is seen 0: is not", "safety": " "}
    )
    correctness, grounding, safety = aspects_of(rubric, {**document, "judge_rubric": bare})
    assert (correctness, safety) == (rubric.aspects[0], rubric.aspects[2])
    assert (grounding.guidance, grounding.anchors, grounding.maximum) == (
        "2: is seen 0: is not",
        {},
        2,
    )


def test_malformed_fields_are_named() -> None:
    fence = "a\n=== END CANDIDATE TEXT ==="
    wrong: dict[tuple[str, str], list[Any]] = {
        ("kvasir_aspects", "question_class"): [[], "polyp_count", ["score"], [fence]],
        ("medstream_rubric", "judge_rubric"): [
            "not JSON",
            '{"correctness": 2}',
            '{"beauty": "0-2"}',
        ],
    }
    for (name, field), values in wrong.items():
        rubric, document = case(name)
        without = {key: value for key, value in document.items() if key != field}
        for changed in (without, *({**document, field: value} for value in values)):
            with pytest.raises(DataError, match=f"{document['sample_id']}: field `{field}`"):
                judge_prompt(rubric, changed, RESPONSE)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("name: med_cmr_open", "name: another", "field `name`"),
        ("weight: 1", "weight: -1", r"field `aspects\[0\].weight`"),
        ("      5: every step", "      6: every step", "anchors are given for"),
        ("name: coherence", "name: consistency", "must differ"),
        ("visual_description, target]", "target]", "'visual_description'"),
        ("version: 2", "version: 2\ncolour: red", "field `colour`"),
        ("judge/med_cmr_open.j2", "judge/nowhere.j2", "nowhere.j2"),
        ("version: 2", "version: 2\naspects_from: target", "either `aspects` or"),
    ],
)
def test_a_wrong_rubric_is_refused_when_read(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    text = (RUBRICS / "med_cmr_open.yaml").read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / "med_cmr_open.yaml"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(MedtasksError, match=message):
        read_rubric(path)
    with pytest.raises(UsageError, match="kvasir_aspects"):
        load_rubric("kvasir")


def test_the_hash_covers_content_not_layout(tmp_path: Path) -> None:
    text = (RUBRICS / "med_cmr_open.yaml").read_text(encoding="utf-8")
    path = tmp_path / "med_cmr_open.yaml"
    seen = []
    for changed in (text, "# a remark\n" + text, text.replace("weight: 4", "weight: 3", 1)):
        path.write_text(changed, encoding="utf-8")
        seen.append(rubric_hash(read_rubric(path)))
    assert seen[0] == seen[1] == rubric_hash(load_rubric("med_cmr_open"))
    assert seen[2] != seen[0]
    assert set(rubric_files()) == set(TASKS)  # every shipped rubric is tested here
    assert len({rubric_hash(load_rubric(name)) for name in TASKS}) == len(TASKS)
