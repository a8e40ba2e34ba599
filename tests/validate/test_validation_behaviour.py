"""Planted defects of scoring: each is found under its own code, and nothing is found where none is planted."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from seeded_behaviour import MCQ, STREAM, TEXT, Documents, accuracy, checked, every, right, said

from medtasks.api import NO_OPTION, Case, Errors, Item, Rows
from medtasks.benchmarks.documents import task_documents
from medtasks.catalog.benchmark import Joined
from medtasks.catalog.contents import task_files
from medtasks.catalog.registry import all_benchmarks
from medtasks.validate.behaviour import policy_answers
from medtasks.validate.run import validate

# --- what a package's process_results may do wrong ---


def correct(doc: Mapping[str, Any], results: Sequence[str], *, twice: float = 1.0) -> dict[str, Any]:
    return accuracy(doc, twice * right(doc, results), 1.0)


def without_statistics(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, Any]:
    return {"accuracy": {"cluster": doc["cluster"], "score": right(doc, results)}}


def metrics_that_vary(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, Any]:
    found = correct(doc, results)
    return found if doc["target"] == "A" else {**found, "exact_match": found["accuracy"]}


def letters(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, Any]:
    return accuracy(doc, float("ABCDE".index(results[0]) == "ABCDE".index(doc["target"])), 1.0)


IN_PROCESS_RESULTS: dict[str, tuple[Callable[..., Any], set[str]]] = {
    "always_right": (lambda doc, _: accuracy(doc, 1.0, 1.0), {"MT502", "MT503"}),
    "another_field": (lambda doc, results: accuracy(doc, float(results[0] == doc["question"]), 1.0), {"MT501"}),
    "twice_as_good": (lambda doc, results: correct(doc, results, twice=2.0), {"MT504"}),
    "not_a_number": (lambda doc, results: accuracy(doc, right(doc, results) or float("nan"), 1.0), {"MT504"}),
    "three_wide": (lambda doc, results: accuracy(doc, right(doc, results), 1.0, 0.0), {"MT508"}),
    "without_statistics": (without_statistics, {"MT508"}),
    "without_the_metric": (
        lambda doc, results: {"exact_match": correct(doc, results)["accuracy"]},
        {"MT507"},
    ),
    "metrics_that_vary": (metrics_that_vary, {"MT507"}),
    "failing": (lambda doc, _: accuracy(doc, float(doc["no such field"]), 1.0), {"MT507"}),
    "failing_without_a_letter": (letters, {"MT509"}),
}


def __getattr__(name: str) -> Any:
    """The function of that name, as a task file's ``!function`` finds it."""
    try:
        return IN_PROCESS_RESULTS[name][0]
    except KeyError:
        raise AttributeError(name) from None


@pytest.mark.parametrize("name", IN_PROCESS_RESULTS)
def test_defects_of_process_results(name: str) -> None:
    found = said(checked(MCQ, process_results=f"{__name__}.{name}"))
    assert {(code, "error") for code in IN_PROCESS_RESULTS[name][1]} <= found
    assert name != "failing_without_a_letter" or found == {("MT509", "error")}  # once, not for each trial


def test_the_message_names_sample_step_and_sentence() -> None:
    (found,) = (one for one in checked(MCQ, process_results=f"{__name__}.failing") if one.code == "MT507")
    first = task_documents(MCQ)[0]["sample_id"]
    assert f"first {first!r}" in found.message
    assert "`process_results` fails on the response" in found.message
    assert "KeyError: 'no such field'" in found.message
    assert found.file.endswith(".yaml")


# --- what documents may do wrong ---


def _first(field: str, value: Any) -> Callable[[Documents], None]:
    def change(documents: Documents) -> None:
        documents[0][field] = value

    return change


IN_DOCUMENTS: list[tuple[str, str, Callable[[Documents], None], str]] = [
    ("a letter that is no option", MCQ, _first("target", "G"), "MT501"),
    ("a target that the filter cannot find", MCQ, _first("target", "the second one"), "MT501"),
    ("an ideal response without its answer", MCQ, _first("ideal_response", "I see."), "MT501"),
    ("a reference that begins like a label", TEXT, _first("target", "Answer: one polyp"), "MT501"),
    ("a reference that ROUGE cannot read", TEXT, _first("target", "所见正常"), "MT501"),
    ("always the same letter", MCQ, every("target", "A"), "MT502"),
    ("always the same answer", TEXT, every("target", "There is one polyp."), "MT502"),
    ("abstaining is always right", TEXT, every("target", "This cannot be told from the image."), "MT502"),
    ("a stream's answer in no allowed form", STREAM, every("target", "perhaps"), "MT501"),
    ("no field to score by", STREAM, lambda documents: documents[0].pop("answerable"), "MT507"),
]


@pytest.mark.parametrize(
    ("task", "change", "code"), [one[1:] for one in IN_DOCUMENTS], ids=[o[0] for o in IN_DOCUMENTS]
)
def test_defects_of_documents(task: str, change: Callable[[Documents], None], code: str) -> None:
    findings = checked(task, change)
    assert (code, "error") in said(findings)
    if task == MCQ and code == "MT501":  # the message names the first such response and what became of it
        assert re.search(r"; in sample '\S+' '.+' was filtered to '.+'; check filter", findings[0].message)


def test_an_answer_that_comes_too_late_by_the_records_own_times_is_a_warning() -> None:
    def change(documents: Documents) -> None:
        for document in documents:
            document["expected_time"] = document["query_time"] - 1000

    found = [one for one in checked(STREAM, change) if one.code == "MT501"]
    assert {(one.field, one.severity) for one in found} >= {("responsiveness", "warning")}
    assert {one.severity for one in found} == {"warning"}


def test_documents_without_a_target_are_a_note() -> None:
    assert said(checked(MCQ, lambda documents: [one.pop("target") for one in documents])) == {("MT500", "note")}


def test_of_four_documents_a_constant_may_be_lucky() -> None:
    def change(documents: Documents) -> None:
        del documents[4:]
        every("target", "A")(documents)

    assert checked(MCQ, change) == []


def test_a_join_that_fails() -> None:
    def join(views: Sequence[Any]) -> Joined:
        raise RuntimeError(f"{len(views)} are too many")

    assert ("MT507", "error") in said(checked(MCQ, benchmark=lambda found: replace(found, join=join)))


def test_errors_whose_cases_depend_on_the_response() -> None:
    def cases(item: Item) -> list[Case]:
        return [Case("no_option_rate", False)] * (1 + (item.view.filtered == "A"))

    errors = Errors((NO_OPTION,), cases)
    found = checked(MCQ, benchmark=lambda one: replace(one, errors=errors))
    assert said(found) == {("MT512", "error")}
    assert "no_option_rate has" in found[0].message


def test_errors_that_fail_or_are_not_declared() -> None:
    for cases in (lambda _: [Case("other", True)], lambda item: [item.view.document["no such field"]]):
        errors = Errors((NO_OPTION,), cases)
        assert ("MT507", "error") in said(checked(MCQ, benchmark=lambda one, it=errors: replace(one, errors=it)))


# --- where nothing is planted ---


@pytest.mark.slow
def test_nothing_is_found_in_our_own_tasks() -> None:
    seen: list[tuple[int, int]] = []
    everything = [name for name in task_files() if name not in all_benchmarks()] + list(all_benchmarks())
    found = validate(everything, progress=lambda done, of: seen.append((done, of)))
    assert {one.severity for one in found.all} == {"note"}
    assert found.tasks == []
    assert seen[-1][0] == seen[-1][1] == len(seen)


def test_tasks_without_data_are_one_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEDTASKS_DATA", str(tmp_path))
    (note,) = validate(["mi_cxr_icr", "mi_cxr_tel"]).tasks
    assert (note.code, note.severity) == ("MT300", "note")
    assert "medtasks prepare mi_cxr" in note.message


def test_a_loader_that_fails_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("medtasks.benchmarks.mi_cxr.icr", Rows("mi_cxr", lambda row: row["no such field"]))
    (found,) = validate(["mi_cxr_icr"]).tasks
    assert found.code == "MT301"
    assert "`keep` of rows of mi_cxr fails" in found.message


def test_shuffling_gives_every_document_another_answer_unless_all_are_equal() -> None:
    for answers in ("ABCDE", "AAABBB", "ABABABCC", "AB"):
        perfect, others = policy_answers([{"sample_id": str(n), "target": one} for n, one in enumerate(answers)])
        assert sorted(others["shuffled"]) == sorted(perfect) == sorted(answers)
        assert all(one != other for one, other in zip(others["shuffled"], perfect, strict=True))
    assert "shuffled" not in policy_answers([{"sample_id": str(n), "target": "A"} for n in range(2)])[1]
