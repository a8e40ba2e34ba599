"""Planted defects of scoring, also by another package's metrics and filters: each is found under
its own code, and nothing is found where none is planted.
"""

from __future__ import annotations

import copy
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from catalogs import fresh

from medtasks.api import (
    NO_OPTION,
    Benchmark,
    Case,
    Errors,
    FilterInfo,
    Item,
    MeanMetric,
    Plugin,
    Rows,
    sample_value,
    sign,
)
from medtasks.benchmarks.documents import task_documents
from medtasks.catalog.contents import task_files
from medtasks.catalog.items import Joined
from medtasks.catalog.registry import all_benchmarks, get_benchmark
from medtasks.catalog.spec import load_spec
from medtasks.core.findings import Finding
from medtasks.validate.behaviour import check_behaviour
from medtasks.validate.policy_answers import policy_answers
from medtasks.validate.run import validate

MCQ, TEXT, STREAM = "mi_cxr_tel_single", "kvasir_vqa_x1_level1", "medstreambench_proactive"
Documents = list[dict[str, Any]]


def with_rules(benchmark: Benchmark, **changed: Any) -> Benchmark:
    """The benchmark with other scoring rules."""
    return replace(benchmark, scoring=replace(benchmark.scoring, **changed))


def checked(
    task: str,
    change: Callable[[Documents], object] = lambda documents: None,  # noqa: ARG005
    *,
    benchmark: Callable[[Benchmark], Benchmark] = lambda found: found,
    filters: tuple[str, ...] = (),
    metrics: tuple[str, ...] = (),
    **resolved: Any,
) -> list[Finding]:
    """What is found of ``task``, with a dozen documents, if these, the benchmark or the task file
    are changed.
    """
    spec = load_spec(task)
    update: dict[str, Any] = {"resolved": {**spec.resolved, **resolved}}
    update |= {"filters": filters} if filters else {}
    update |= {"metrics": metrics} if metrics else {}
    documents = copy.deepcopy(task_documents(task)[:12])
    change(documents)
    return check_behaviour(
        spec.model_copy(update=update), benchmark(get_benchmark(spec.metadata.benchmark)), documents
    )


def said(findings: Sequence[Finding]) -> set[tuple[str, str]]:
    return {(one.code, one.severity) for one in findings}


def accuracy(
    doc: Mapping[str, Any], *statistics: float, score: float | None = None
) -> dict[str, dict[str, Any]]:
    own = statistics[0] if score is None else score
    return {"accuracy": {"cluster": doc["cluster"], "statistics": list(statistics), "score": own}}


def right(doc: Mapping[str, Any], results: Sequence[str]) -> float:
    return float(results[0] == doc["target"])


def with_its_metrics(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, Any]:
    """All metrics that the document asks for."""
    return {
        name: sample_value(name, results, doc["target"], doc["cluster"]) for name in doc["metrics"]
    }


def every(field: str, value: Any) -> Callable[[Documents], None]:
    def change(documents: Documents) -> None:
        for document in documents:
            document[field] = value

    return change


# --- what a package's process_results may do wrong ---


def correct(
    doc: Mapping[str, Any], results: Sequence[str], *, twice: float = 1.0
) -> dict[str, Any]:
    return accuracy(doc, twice * right(doc, results), 1.0)


def without_statistics(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, Any]:
    return {"accuracy": {"cluster": doc["cluster"], "score": right(doc, results)}}


def metrics_that_vary(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, Any]:
    found = correct(doc, results)
    return found if doc["target"] == "A" else {**found, "exact_match": found["accuracy"]}


def letters(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, Any]:
    return accuracy(doc, float("ABCDE".index(results[0]) == "ABCDE".index(doc["target"])), 1.0)


IN_PROCESS_RESULTS: dict[str, tuple[Callable[..., Any], set[str]]] = {
    "always_right": (lambda doc, _: accuracy(doc, 1.0, 1.0), {"MT502"}),
    "another_field": (
        lambda doc, results: accuracy(doc, float(results[0] == doc["question"]), 1.0),
        {"MT501"},
    ),
    "twice_as_good": (lambda doc, results: correct(doc, results, twice=2.0), {"MT504"}),
    "not_a_number": (
        lambda doc, results: accuracy(doc, right(doc, results) or float("nan"), 1.0),
        {"MT504"},
    ),
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
    assert name != "failing_without_a_letter" or found == {
        ("MT509", "error")
    }  # once, not for each trial


def test_the_message_names_sample_step_and_sentence() -> None:
    (found,) = (
        one for one in checked(MCQ, process_results=f"{__name__}.failing") if one.code == "MT507"
    )
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
    ("an ideal response without its answer", MCQ, _first("ideal_response", "I see."), "MT501"),
    ("a reference that begins like a label", TEXT, _first("target", "Answer: one polyp"), "MT501"),
    ("a reference that ROUGE cannot read", TEXT, _first("target", "所见正常"), "MT501"),
    ("always the same letter", MCQ, every("target", "A"), "MT502"),
    ("always the same answer", TEXT, every("target", "There is one polyp."), "MT502"),
    (
        "abstaining is always right",
        TEXT,
        every("target", "This cannot be told from the image."),
        "MT502",
    ),
    ("a stream's answer in no allowed form", STREAM, every("target", "perhaps"), "MT501"),
    ("no field to score by", STREAM, lambda documents: documents[0].pop("answerable"), "MT507"),
]


@pytest.mark.parametrize(
    ("task", "change", "code"), [one[1:] for one in IN_DOCUMENTS], ids=[o[0] for o in IN_DOCUMENTS]
)
def test_defects_of_documents(task: str, change: Callable[[Documents], None], code: str) -> None:
    findings = checked(task, change)
    assert (code, "error") in said(findings)
    if (
        task == MCQ and code == "MT501"
    ):  # the message names the first such response and what became of it
        assert re.search(
            r"; in sample '\S+' '.+' was filtered to '.+'; check filter", findings[0].message
        )


def test_an_answer_that_comes_too_late_by_the_records_own_times_is_a_warning() -> None:
    def change(documents: Documents) -> None:
        for document in documents:
            document["expected_time"] = document["query_time"] - 1000

    found = [one for one in checked(STREAM, change) if one.code == "MT501"]
    assert {(one.field, one.severity) for one in found} >= {("responsiveness", "warning")}
    assert {one.severity for one in found} == {"warning"}


def test_documents_without_a_target_are_a_note() -> None:
    assert said(checked(MCQ, lambda documents: [one.pop("target") for one in documents])) == {
        ("MT500", "note")
    }


def test_of_four_documents_a_constant_may_be_lucky() -> None:
    def change(documents: Documents) -> None:
        del documents[4:]
        every("target", "A")(documents)

    assert checked(MCQ, change) == []


def test_a_join_that_fails() -> None:
    def join(views: Sequence[Any]) -> Joined:
        raise RuntimeError(f"{len(views)} are too many")

    assert ("MT507", "error") in said(
        checked(MCQ, benchmark=lambda benchmark: with_rules(benchmark, join=join))
    )


def test_errors_whose_cases_depend_on_the_response() -> None:
    def cases(item: Item) -> list[Case]:
        return [Case("no_option_rate", False)] * (1 + (item.view.filtered == "A"))

    errors = Errors((NO_OPTION,), cases)
    found = checked(MCQ, benchmark=lambda benchmark: with_rules(benchmark, errors=errors))
    assert said(found) == {("MT512", "error")}
    assert "no_option_rate has" in found[0].message


def test_errors_that_fail_or_are_not_declared() -> None:
    for cases in (
        lambda _: [Case("other", True)],
        lambda item: [item.view.document["no such field"]],
    ):
        errors = Errors((NO_OPTION,), cases)
        assert ("MT507", "error") in said(
            checked(
                MCQ, benchmark=lambda benchmark, kinds=errors: with_rules(benchmark, errors=kinds)
            )
        )


# --- where nothing is planted ---


@pytest.mark.slow
def test_nothing_is_found_in_our_own_tasks() -> None:
    seen: list[tuple[int, int]] = []
    everything = [name for name in task_files() if name not in all_benchmarks()] + list(
        all_benchmarks()
    )
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
    monkeypatch.setattr(
        "medtasks.benchmarks.mi_cxr.icr", Rows("mi_cxr", lambda row: row["no such field"])
    )
    (found,) = validate(["mi_cxr_icr"]).tasks
    assert found.code == "MT301"
    assert "`keep` of rows of mi_cxr fails" in found.message


def test_shuffling_gives_every_document_another_answer_unless_all_are_equal() -> None:
    for answers in ("ABCDE", "AAABBB", "ABABABCC", "AB"):
        perfect, others = policy_answers(
            [{"sample_id": str(n), "target": one} for n, one in enumerate(answers)]
        )
        assert sorted(others["shuffled"]) == sorted(perfect) == sorted(answers)
        assert all(one != other for one, other in zip(others["shuffled"], perfect, strict=True))
    assert (
        "shuffled"
        not in policy_answers([{"sample_id": str(n), "target": "A"} for n in range(2)])[1]
    )


# --- what the metrics and filters of another package, registered as any package registers its own,
# may do wrong ---


class Exact(MeanMetric):
    """Right; the others are defective copies of it."""

    name = "seeded_lab_exact"
    bounds: Any = (0.0, 1.0)

    @property
    def signature(self) -> str:
        return sign(self.name)

    def statistics(self, prediction: str, reference: str) -> Any:
        return np.array([float(prediction == reference), 1.0])


def unreadable(prediction: str, reference: str) -> Any:
    if len(prediction) > 5000:
        raise ValueError("too long")
    return np.array([float(prediction == reference), 1.0])


def divided(_: Any, totals: Any) -> Any:
    raise ZeroDivisionError(len(totals))


def wrong(name: str, statistics: Callable[[str, str], Any] | None = None, **changed: Any) -> Exact:
    """A copy of `Exact` with other statistics or attributes."""
    own = {} if statistics is None else {"statistics": lambda _, *texts: statistics(*texts)}
    metric: Exact = type(name.title(), (Exact,), {"name": f"seeded_lab_{name}", **own, **changed})()
    return metric


IN_METRICS: dict[Exact, set[tuple[str, str]]] = {
    wrong("doubled", lambda said, gold: np.array([2.0 * (said == gold), 1.0])): {
        ("MT504", "error")
    },
    wrong("percent", lambda said, gold: np.array([100.0 * (said == gold), 1.0]), bounds=None): {
        ("MT504", "warning")
    },
    wrong(
        "infinite",
        lambda said, gold: np.array([float(said == gold) if said else float("inf"), 1.0]),
    ): {("MT504", "error")},
    wrong("wide", width=3): {("MT508", "error")},
    # one number, whatever it is asked
    wrong("flat", score=lambda _, totals: np.float64(np.ravel(totals)[0] / np.ravel(totals)[1])): {
        ("MT507", "error")
    },
    # something that cannot be summed, which the score does not even need
    wrong(
        "overflowing", lambda said, gold: np.array([float(said == gold), 1.0, np.inf]), width=3
    ): {("MT504", "error")},
    wrong("polite", lambda _, __: np.array([1.0, 1.0])): {("MT502", "error")},
    wrong("brittle", unreadable): {("MT509", "error")},
    wrong("unscored", score=divided): {("MT507", "error")},
}


class Plain:
    @staticmethod
    def read(text: str) -> str:
        return text

    def apply(self, responses: list[list[str]], documents: Any) -> list[list[str]]:
        del documents
        return [[self.read(one.strip()) for one in said] for said in responses]


class FirstWord(Plain):
    read = staticmethod(lambda text: text.split()[0])


class Latin(Plain):
    read = staticmethod(lambda text: text.encode("latin-1").decode())


class Lossy(Plain):
    """Leaves out what it has seen."""

    def apply(self, responses: list[list[str]], documents: Any) -> list[list[str]]:
        return [
            list(said) for said in dict.fromkeys(map(tuple, super().apply(responses, documents)))
        ]


class Mute(Plain):
    def apply(self, responses: list[list[str]], documents: Any) -> list[list[str]]:
        raise OSError(f"no filter today for {len(responses)} of {len(documents)}")


FILTERS = (Plain, FirstWord, Lossy, Latin, Mute)

PLUGIN = Plugin(
    metrics=(Exact(), *IN_METRICS),
    filters=tuple(
        FilterInfo(kind, "1", lambda text: "ok" if text else "empty") for kind in FILTERS
    ),
)


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The metrics and filters above as those of an installed package."""
    folder = tmp_path / "seeded_lab"
    (folder / "tasks/seeded").mkdir(parents=True)
    (folder / "tasks/seeded/seeded_lab_task.yaml").write_text("task: seeded_lab_task\n")
    (folder / "__init__.py").write_text(f"from {__name__} import PLUGIN\n")
    info = tmp_path / "seeded_lab-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: seeded-lab\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[medtasks.tasks]\nseeded = seeded_lab\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "seeded_lab", raising=False)
    with fresh():
        yield


def with_metrics(*names: str) -> list[Finding]:
    listed = [
        {"metric": name, "aggregation": f"medtasks.benchmarks.aggregations.{name}"}
        for name in names
    ]
    return checked(
        TEXT,
        every("metrics", names),
        filters=(f"{__name__}.Plain",),
        metrics=names,
        metric_list=listed,
        process_results=f"{__name__}.with_its_metrics",
    )


@pytest.mark.usefixtures("lab")
@pytest.mark.parametrize("metric", IN_METRICS, ids=lambda metric: metric.name)
def test_defects_of_metrics(metric: Exact) -> None:
    assert said(with_metrics(metric.name)) >= IN_METRICS[metric]


@pytest.mark.usefixtures("lab")
def test_a_sound_metric_of_another_package_is_fine() -> None:
    assert with_metrics("seeded_lab_exact", "rouge1") == []


@pytest.mark.usefixtures("lab")
def test_a_metric_that_tells_nothing_beside_one_that_does_is_a_warning() -> None:
    (found,) = with_metrics("seeded_lab_exact", "seeded_lab_polite")
    assert (found.code, found.severity, found.field) == ("MT502", "warning", "seeded_lab_polite")


IN_FILTERS: dict[type[Plain], set[str]] = {
    FirstWord: {"MT501", "MT509"},
    Lossy: {"MT507"},
    Latin: {"MT509"},
    Mute: {"MT507"},
}


@pytest.mark.usefixtures("lab")
@pytest.mark.parametrize("kind", IN_FILTERS, ids=lambda kind: kind.__name__)
def test_defects_of_filters(kind: type[Plain]) -> None:
    findings = checked(TEXT, filters=(f"{__name__}.{kind.__name__}",))
    assert {(code, "error") for code in IN_FILTERS[kind]} <= said(findings)
    if kind is Mute:
        assert f"the filter {__name__}.Mute fails" in findings[0].message
        assert "OSError: no filter today" in findings[0].message
