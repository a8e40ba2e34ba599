"""Kinds of error: closed forms of policies, counts by hand, and what is never counted as an
answer.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from medtasks.adapters.policies import PolicyQuestion, make_policy

from medtasks.benchmarks import mi_cxr
from medtasks.benchmarks.documents import task_documents
from medtasks.benchmarks.error_kinds import Case, Errors
from medtasks.benchmarks.med_cmr.error_kinds import ranks_of
from medtasks.benchmarks.mi_cxr.error_kinds import FAILURES
from medtasks.catalog.items import Item, SampleView
from medtasks.catalog.registry import get_benchmark
from medtasks.catalog.spec import load_spec
from medtasks.core.errors import DataError
from medtasks.data.store import open_prepared
from medtasks.metrics.item_metrics import ErrorRate
from medtasks.runs.replies import Reply
from medtasks.runs.samples import Sample
from medtasks.scoring.group_scores import score_samples
from medtasks.scoring.scored_samples import scored_samples
from medtasks.scoring.scores import Scores
from medtasks.scoring.summary import format_score

Document = dict[str, Any]
TEL = "mi_cxr_tel_single"
LETTERS = "ABCDE"


def scores_of(
    task: str, documents: Sequence[Document], replies: Sequence[str | Reply], *by: str
) -> Scores:
    benchmark = get_benchmark(load_spec(task).metadata.benchmark)
    assert benchmark.scoring.errors is not None
    pairs = zip(
        documents, [one if isinstance(one, Reply) else Reply(one) for one in replies], strict=True
    )
    samples = scored_samples(
        load_spec(task), [Sample.answered(task, document, (one,)) for document, one in pairs]
    )
    names = [rate.name for rate in benchmark.scoring.errors.rates]
    return score_samples(samples, benchmark, by, names)


def rates(scores: Scores) -> dict[str, float | None]:
    return {name: score.value for name, score in scores.metrics.items()}


def asked(task: str, changes: Sequence[Mapping[str, Any]]) -> list[Document]:
    """The task's first document, changed in several ways; each is the question of another
    patient.
    """
    first = task_documents(task)[0]
    return [
        {**first, "sample_id": f"q-{number}", "cluster": f"c-{number}", **change}
        for number, change in enumerate(changes)
    ]


# --- MI-CXR: five options, four intervals and none of them, each the right one equally often ---

GRID = list(itertools.product(LETTERS, LETTERS))
"""Every right letter with every answer: what uniform guessing does on average."""


def tel(pairs: Sequence[tuple[str, str]]) -> dict[str, float | None]:
    documents = asked(TEL, [{"target": gold} for gold, _ in pairs])
    return rates(scores_of(TEL, documents, [answer for _, answer in pairs]))


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        # of 25 answers 5 are right, 4 the null option and 4 other ones where it is right; 12 are a
        # third option
        (TEL, {"abstention": 4, "forced_choice": 4, "exclusivity": 12, "integration": 0}),
        ("mi_cxr_icr", {"abstention": 4, "forced_choice": 16, "exclusivity": 0, "integration": 0}),
        (
            "mi_cxr_gts_single",
            {"abstention": 4, "forced_choice": 4, "exclusivity": 0, "integration": 12},
        ),
    ],
)
def test_every_wrong_option_is_one_of_the_paper_s_failures(
    task: str, expected: dict[str, int]
) -> None:
    """arXiv 2605.15574, appendix G: uniform guessing over every right letter."""
    documents = asked(task, [{"target": gold} for gold, _ in GRID])
    found = rates(scores_of(task, documents, [answer for _, answer in GRID]))
    assert {name: found[name] for name in FAILURES} == {
        f"{kind}_failure_rate": pytest.approx(count / 25) for kind, count in expected.items()
    }


def test_uniform_guessing_constant_letters_and_an_oracle_have_the_rates_of_their_closed_forms() -> (
    None
):
    found = tel(GRID)
    assert found["missed_change_rate"] == pytest.approx(1 / 5)
    assert found["invented_change_rate"] == pytest.approx(4 / 5)
    # of four intervals, 3 pairs are neighbours and 3 are not; each counts twice among 4 x 5 answers
    assert (
        found["interval_off_by_one_rate"]
        == found["interval_off_by_more_rate"]
        == pytest.approx(6 / 20)
    )
    for letter in LETTERS:
        found, null = tel([(gold, letter) for gold in LETTERS]), letter == "E"
        far = [0 if null else abs(ord(gold) - ord(letter)) for gold in "ABCD"]
        assert (found["missed_change_rate"], found["invented_change_rate"]) == (
            float(null),
            float(not null),
        )
        assert found["interval_off_by_one_rate"] == far.count(1) / 4
        assert found["interval_off_by_more_rate"] == sum(one > 1 for one in far) / 4
    found = tel([(letter, letter) for letter in LETTERS])
    assert {
        found[name] for name in found if name.endswith("_rate") and name != "wrong_change_rate"
    } == {0.0}
    assert found["wrong_change_rate"] is None  # all options of these questions are intervals


def test_no_option_is_neither_missed_nor_invented() -> None:
    """A rate over the answered questions has their number beside it, and no value without any."""
    found = tel([(gold, "I cannot tell.") for gold in LETTERS])
    assert found.pop("no_option_rate") == 1.0
    assert {name for name, value in found.items() if value is not None} == {"accuracy", *FAILURES}
    documents = asked(TEL, [{"target": gold} for gold in "ABCD"])
    missed = scores_of(TEL, documents, ["A", "E", "I cannot tell.", ""]).metrics[
        "missed_change_rate"
    ]
    assert (missed.value, missed.samples, missed.answered, missed.incomplete) == (0.5, 4, 2, True)
    assert missed.bounds == (0.25, 0.75)
    assert format_score("missed_change_rate", missed).endswith(
        "(incomplete: 0.250 to 0.750, 2 of 4 answered)"
    )


def test_a_failed_response_bounds_the_rates_and_is_no_error() -> None:
    documents = asked(TEL, [{"target": gold} for gold in ("A", "B", "C", "D")])
    score = scores_of(TEL, documents, ["A", "E", "C", Reply.failure("gone")]).metrics[
        "missed_change_rate"
    ]
    assert (score.value, score.samples, score.answered) == (pytest.approx(1 / 3), 4, 3)
    assert score.bounds == (pytest.approx(1 / 4), pytest.approx(2 / 4))
    (failed,) = scored_samples(
        load_spec(TEL), [Sample.answered(TEL, documents[0], (Reply.failure("gone"),))]
    )
    assert (failed.scores, failed.statistics, failed.limits["accuracy"]) == (
        {"accuracy": None},
        {},
        ((0, 1), (1, 1)),
    )


def test_ordered_events_are_off_by_the_visit_that_is_further_away_and_texts_have_no_distance() -> (
    None
):
    options = [[2, 3], [2, 4], [3, 4], [2, 5]]
    documents = asked("mi_cxr_tel_ordered", [{"intervals": options, "target": "A"}] * 4)
    found = rates(scores_of("mi_cxr_tel_ordered", documents, list("ABCD")))
    assert (found["interval_off_by_one_rate"], found["interval_off_by_more_rate"]) == (0.5, 0.25)
    documents = task_documents("mi_cxr_gts_single")
    wrong = ["B" if document["target"] == "A" else "A" for document in documents]
    found = rates(scores_of("mi_cxr_gts_single", documents, wrong))
    assert (found["interval_off_by_one_rate"], found["wrong_change_rate"]) == (None, 1.0)


@pytest.mark.parametrize(
    ("option", "visits"),
    [
        ("T1 → T2", (1, 2)),
        ("T4->T5", (4, 5)),
        ("T2 to T3", (2, 3)),
        ("T2, T4", (2, 4)),
        ("Between T1 and T2", None),
    ],
)
def test_only_options_that_are_nothing_but_visits_are_intervals(
    option: str, visits: tuple[int, int] | None
) -> None:
    record = next(iter(open_prepared("mi_cxr").records()))
    (document,) = mi_cxr.documents(
        record.model_copy(update={"choices": dict.fromkeys(LETTERS, option)})
    )
    assert document["intervals"] == ([list(visits)] * 4 if visits else [])
    assert all(one["intervals"] == [[1, 2], [2, 3], [3, 4], [4, 5]] for one in task_documents(TEL))


# --- Kvasir-VQA-x1: by hand, from the atomic pairs ---

QUESTIONS = {
    "text_presence": "Is there text?",
    "instrument_presence": "Are there any instruments in the image? Check all that are present.",
    "abnormality_presence": "Are there any abnormalities in the image? Check all that are present.",
    "polyp_count": "How many polyps are in the image?",
}


def kvasir(*rows: tuple[dict[str, str], str]) -> Scores:
    """Scores of (gold answer by class, answer of a model)."""
    made = [
        {
            "original": [{"q": QUESTIONS[name], "a": answer} for name, answer in gold.items()],
            "question_class": list(gold),
            "question": "What can be seen?",
        }
        for gold, _ in rows
    ]
    return scores_of(
        "kvasir_vqa_x1_level1",
        asked("kvasir_vqa_x1_level1", made),
        [said for _, said in rows],
        "question_class",
    )


def test_the_reference_answers_of_the_release_contain_no_error() -> None:
    for level in (1, 2, 3):
        documents = task_documents(f"kvasir_vqa_x1_level{level}")
        oracle = make_policy("oracle")
        replies = [
            oracle(PolicyQuestion.of(document, document["sample_id"], ())) for document in documents
        ]
        found = rates(scores_of(f"kvasir_vqa_x1_level{level}", documents, replies))
        harmful = ("missed_finding_rate", "hallucination_rate", "overcount_rate", "undercount_rate")
        assert [found[name] for name in harmful] == [0.0] * 4
        assert (found["sensitivity"], found["specificity"], found["exact_count_rate"]) == (
            1.0,
            1.0,
            1.0,
        )


def test_findings_by_hand() -> None:
    found = kvasir(
        # a miss and an invention: other instruments than those that are there
        ({"instrument_presence": "polyp snare"}, "Biopsy forceps are visible."),
        # both named
        ({"instrument_presence": "polyp snare; tube"}, "A polyp snare and a tube."),
        # one of two missed, nothing invented
        ({"instrument_presence": "polyp snare; tube"}, "A polyp snare."),
        # nothing is there: denied, invented, not stated
        ({"instrument_presence": "none"}, "No instruments."),
        ({"instrument_presence": "none"}, "A metal clip."),
        ({"instrument_presence": "none"}, "The mucosa is pink."),
        # two classes in one question
        (
            {"text_presence": "yes", "abnormality_presence": "polyp"},
            "There is no text, and a polyp is seen.",
        ),
        ({"text_presence": "no"}, "Yes."),
    )
    values = rates(found)
    # present: snare, snare, tube, snare, tube, text, polyp
    assert values["sensitivity"] == pytest.approx(4 / 7)
    assert values["missed_finding_rate"] == pytest.approx(3 / 7)
    # absent: one case a pair about lists (7), and the text that is not there
    assert values["specificity"] == pytest.approx(4 / 8)
    assert values["hallucination_rate"] == pytest.approx(3 / 8)
    assert values["unread_presence_rate"] == pytest.approx(1 / 15)
    parts = {name: rates(one) for name, one in found.breakdowns["question_class"].items()}
    assert parts["text_presence"]["missed_finding_rate"] == 1.0
    assert parts["abnormality_presence"]["missed_finding_rate"] == 0.0
    assert parts["instrument_presence"]["hallucination_rate"] == pytest.approx(2 / 6)
    # to deny a finding that is there says nothing of the others
    denials = ("No polyps are visible.", "The polyp is absent.")
    values = rates(kvasir(*(({"abnormality_presence": "polyp"}, answer) for answer in denials)))
    assert (
        values["missed_finding_rate"],
        values["sensitivity"],
        values["unread_presence_rate"],
    ) == (1.0, 0.0, 0.5)
    assert (values["specificity"], values["hallucination_rate"]) == (0.0, 0.0)


def test_counts_by_hand() -> None:
    said = ["Two polyps.", "One polyp.", "3", "Several polyps.", "No polyps.", "A sessile polyp."]
    found = rates(kvasir(*(({"polyp_count": "2"}, one) for one in said)))
    assert found["exact_count_rate"] == pytest.approx(1 / 6)
    assert found["undercount_rate"] == pytest.approx(3 / 6)
    assert found["overcount_rate"] == found["unread_count_rate"] == pytest.approx(1 / 6)
    assert (found["sensitivity"], found["missed_finding_rate"]) == (
        pytest.approx(5 / 6),
        pytest.approx(1 / 6),
    )
    assert found["hallucination_rate"] is None  # there is no polyp too few of


# --- Med-CMR: where the options show which is more abnormal ---

SEVERITY = {
    "A": "No stenosis",
    "B": "Mild stenosis",
    "C": "Moderate stenosis",
    "D": "Severe stenosis",
}
MCQ = "med_cmr_mcq_sod"


def test_over_and_under_calls_of_uniform_guessing() -> None:
    pairs = list(itertools.product("ABCD", "ABCD"))
    changes = [{"choices": SEVERITY, "target": gold} for gold, _ in pairs]
    found = rates(scores_of(MCQ, asked(MCQ, changes), [answer for _, answer in pairs]))
    # gold A, B, C can be over-called by 3, 2, 1 of 4 answers; gold B, C, D under-called by 1, 2, 3
    assert found["overcall_rate"] == found["undercall_rate"] == pytest.approx(6 / 12)
    assert found["direction_known_rate"] == 1.0


def test_normal_against_abnormal_has_a_direction_and_errors_among_abnormal_options_have_none() -> (
    None
):
    choices = {"A": "Normal study", "B": "Pneumonia", "C": "Pneumothorax"}
    changes = [{"choices": choices, "target": gold} for gold in "ABBB"]
    found = rates(scores_of(MCQ, asked(MCQ, changes), ["B", "A", "C", "neither"]))
    assert (found["overcall_rate"], found["undercall_rate"]) == (1.0, 1 / 2)
    assert (found["no_option_rate"], found["direction_known_rate"]) == (pytest.approx(1 / 4), 1.0)
    unknown = dict(zip("ABC", ["Cyst", "Stroke", "Tumour"], strict=True))
    changes = [{"choices": SEVERITY, "target": "A"}, *[{"choices": unknown, "target": "A"}] * 3]
    assert rates(scores_of(MCQ, asked(MCQ, changes), ["A"] * 4))["direction_known_rate"] == 0.25


@pytest.mark.parametrize(
    ("question", "options", "ranks"),
    [
        ("Which stage?", ["Stage I", "Stage III", "Stage II"], [1, 3, 2]),
        ("How large is it?", ["3 mm", "12 mm", "7 mm"], [3, 12, 7]),
        ("How many nodules are there?", ["none", "two", "one"], [0, 2, 1]),
        ("Where does it lie?", ["1 o'clock", "3 o'clock", "6 o'clock"], None),
        ("Which rib is broken?", ["4", "5", "6"], None),
        ("Which type?", ["Type I", "Type II", "Type III"], None),
        ("What is it?", ["Mild colitis", "Severe gastritis", "Moderate colitis"], None),
        ("What is it?", ["Normal pressure hydrocephalus", "Stroke", "Tumour"], None),
        ("What is it?", ["Normal heart", "Normal lung", "Tumour"], None),
        ("What is it?", ["No finding", "Pneumonia with normal heart", "Tumour"], None),
        ("What is it?", ["Cyst", "Stroke", "Tumour"], None),
    ],
)
def test_what_shows_a_direction(question: str, options: list[str], ranks: list[int] | None) -> None:
    found = ranks_of(question, tuple(zip("ABC", options, strict=True)))
    assert found == (None if ranks is None else dict(zip("ABC", ranks, strict=True)))


# --- what holds for every benchmark ---


def test_a_case_of_an_undeclared_rate_is_an_error() -> None:
    errors = Errors(
        (ErrorRate("declared", "Declared", cases="all"),), lambda _: [Case("other", False)]
    )
    benchmark = get_benchmark("mi_cxr")
    benchmark = replace(benchmark, scoring=replace(benchmark.scoring, errors=errors))
    view = SampleView("q", "c", {}, "A", "ok")
    item = Item("q", "c", (view,), {})
    with pytest.raises(DataError, match="'other', expected one of declared"):
        benchmark.scoring.errors.values(benchmark, item)  # type: ignore[union-attr]


def test_every_rate_has_a_signature_of_its_cases() -> None:
    for name in ("kvasir_vqa_x1", "mi_cxr", "med_cmr", "medstreambench"):
        errors = get_benchmark(name).scoring.errors
        assert errors is not None
        assert all("|ratio:of-sums|cases:" in rate.signature for rate in errors.rates)
        assert any(rate.harms for rate in errors.rates)
