"""Planted defects of scoring: each is found under its own code, and nothing is found where none is planted."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from medtasks import packages, plugin
from medtasks.api import Benchmark, FilterInfo, MeanMetric, Plugin, Rows, sample_items, sample_value, sign
from medtasks.benchmarks import get_benchmark
from medtasks.benchmarks.base import Joined
from medtasks.benchmarks.documents import task_documents
from medtasks.errors import UsageError
from medtasks.spec import load_spec
from medtasks.validation.answers import shuffled
from medtasks.validation.behaviour import behaviour_findings, validate_behaviour
from medtasks.validation.findings import Finding
from medtasks.validation.processes import validate_processes

MCQ, TEXT, STREAM = "mi_cxr_tel_single", "kvasir_vqa_x1_level1", "medstreambench_proactive"
Documents = list[dict[str, Any]]


def checked(
    task: str,
    change: Callable[[Documents], object] = lambda documents: None,  # noqa: ARG005
    *,
    benchmark: Callable[[Benchmark], Benchmark] = lambda found: found,
    filters: tuple[str, ...] = (),
    metrics: tuple[str, ...] = (),
    **resolved: Any,
) -> list[Finding]:
    """What is found of ``task`` with other documents, another benchmark, or another task file."""
    spec = load_spec(task)
    update: dict[str, Any] = {"resolved": {**spec.resolved, **resolved}}
    update |= {"filters": filters} if filters else {}
    update |= {"metrics": metrics} if metrics else {}
    documents = copy.deepcopy(task_documents(task))
    change(documents)
    return behaviour_findings(
        spec.model_copy(update=update), benchmark(get_benchmark(spec.metadata.benchmark)), documents
    )


def said(findings: Sequence[Finding]) -> set[tuple[str, str]]:
    return {(one.code, one.severity) for one in findings}


def here(function: Callable[..., Any]) -> str:
    return f"{__name__}.{function.__name__}"


def accuracy(doc: Mapping[str, Any], *statistics: float, score: float | None = None) -> dict[str, dict[str, Any]]:
    own = statistics[0] if score is None else score
    return {"accuracy": {"cluster": doc["cluster"], "statistics": list(statistics), "score": own}}


def right(doc: Mapping[str, Any], results: Sequence[str]) -> float:
    return float(results[0] == doc["target"])


# --- what a package's process_results may do wrong ---


def always_right(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, Any]:
    del results
    return accuracy(doc, 1.0, 1.0)


def another_field(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, Any]:
    return accuracy(doc, float(results[0] == doc["question"]), 1.0)


def twice_as_good(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, Any]:
    return accuracy(doc, 2 * right(doc, results), 1.0)


def not_a_number(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, Any]:
    return accuracy(doc, right(doc, results) or float("nan"), 1.0)


def score_of_its_own(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, Any]:
    return accuracy(doc, right(doc, results), 1.0, score=0.25)


def three_wide(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, Any]:
    return accuracy(doc, right(doc, results), 1.0, 0.0)


def without_statistics(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, Any]:
    return {"accuracy": {"cluster": doc["cluster"], "score": right(doc, results)}}


def without_the_metric(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, Any]:
    return {"exact_match": accuracy(doc, right(doc, results), 1.0)["accuracy"]}


def metrics_that_vary(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, Any]:
    found = accuracy(doc, right(doc, results), 1.0)
    return found if doc["target"] == "A" else {**found, "exact_match": found["accuracy"]}


def failing(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, Any]:
    del results
    return accuracy(doc, float(doc["no such field"]), 1.0)


def failing_without_a_letter(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, Any]:
    return accuracy(doc, float("ABCDE".index(results[0]) == "ABCDE".index(doc["target"])), 1.0)


CALLS = itertools.count()


def worse_every_time(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, Any]:
    return accuracy(doc, right(doc, results) / (1 + next(CALLS)), 1.0)


def with_its_metrics(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, Any]:
    """All metrics that the document asks for."""
    return {name: sample_value(name, results, doc["target"], doc["cluster"]) for name in doc["metrics"]}


IN_PROCESS_RESULTS: list[tuple[Callable[..., Any], str]] = [
    (always_right, "MT502"),
    (always_right, "MT503"),
    (another_field, "MT501"),
    (twice_as_good, "MT504"),
    (not_a_number, "MT504"),
    (score_of_its_own, "MT505"),
    (three_wide, "MT508"),
    (without_statistics, "MT508"),
    (without_the_metric, "MT507"),
    (metrics_that_vary, "MT507"),
    (failing, "MT507"),
    (failing_without_a_letter, "MT509"),
    (worse_every_time, "MT506"),
]


@pytest.mark.parametrize(("function", "code"), IN_PROCESS_RESULTS, ids=lambda value: getattr(value, "__name__", value))
def test_defects_of_process_results(function: Callable[..., Any], code: str) -> None:
    assert (code, "error") in said(checked(MCQ, process_results=here(function)))


def test_the_message_names_sample_step_and_sentence() -> None:
    (found,) = (one for one in checked(MCQ, process_results=here(failing)) if one.code == "MT507")
    first = task_documents(MCQ)[0]["sample_id"]
    assert f"first {first!r}" in found.message
    assert "`process_results` fails on the response" in found.message
    assert "KeyError: 'no such field'" in found.message
    assert found.file.endswith(".yaml")


# --- what documents may do wrong ---


def _all(field: str, value: Any) -> Callable[[Documents], None]:
    def change(documents: Documents) -> None:
        for document in documents:
            document[field] = value

    return change


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
    ("always the same letter", MCQ, _all("target", "A"), "MT502"),
    ("always the same answer", TEXT, _all("target", "There is one polyp."), "MT502"),
    ("abstaining is always right", TEXT, _all("target", "This cannot be told from the image."), "MT502"),
    ("a stream's answer in no allowed form", STREAM, _all("target", "perhaps"), "MT501"),
    ("no field to score by", STREAM, lambda documents: documents[0].pop("answerable"), "MT507"),
]


@pytest.mark.parametrize(
    ("task", "change", "code"), [one[1:] for one in IN_DOCUMENTS], ids=[o[0] for o in IN_DOCUMENTS]
)
def test_defects_of_documents(task: str, change: Callable[[Documents], None], code: str) -> None:
    assert (code, "error") in said(checked(task, change))


def test_an_unreachable_top_names_the_response_and_what_became_of_it() -> None:
    (found,) = (one for one in checked(MCQ, _first("target", "G")) if one.code == "MT501")
    assert "'G' was filtered to '[out_of_range]'" in found.message


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
        _all("target", "A")(documents)

    assert checked(MCQ, change) == []


def test_a_join_that_fails() -> None:
    def join(views: Sequence[Any]) -> Joined:
        raise RuntimeError(f"{len(views)} are too many")

    assert ("MT507", "error") in said(checked(MCQ, benchmark=lambda found: replace(found, join=join)))


def test_a_join_that_keeps_count() -> None:
    calls = itertools.count()

    def join(views: Sequence[Any]) -> Joined:
        return sample_items(views[next(calls) % 3 :])

    found = checked(MCQ, benchmark=lambda found: replace(found, join=join))
    assert any("scores differ" in one.message for one in found if one.code == "MT506")


def test_what_fails_on_an_empty_response_is_said_once() -> None:
    assert said(checked(MCQ, process_results=here(failing_without_a_letter))) == {("MT509", "error")}


def test_an_aggregation_of_another_metric() -> None:
    listed = copy.deepcopy(load_spec(TEXT).resolved["metric_list"])
    listed[-1]["aggregation"] = "medtasks.benchmarks.aggregations.rouge2"
    listed[0]["aggregation"] = f"{__name__}.first_value"
    found = checked(TEXT, metric_list=listed)
    assert [(one.code, one.field) for one in found] == [("MT505", "rouge1")]


def first_value(values: Sequence[Mapping[str, Any]]) -> float:
    return float(values[0]["statistics"][0]) / 2


# --- another package's metrics and filters, registered as any package registers its own ---


class Exact(MeanMetric):
    """Right; the others are defective copies of it."""

    name = "lab_exact"
    bounds = (0.0, 1.0)

    @property
    def signature(self) -> str:
        return sign(self.name)

    def statistics(self, prediction: str, reference: str) -> Any:
        return np.array([float(prediction == reference), 1.0])


class Doubled(Exact):
    name = "lab_doubled"

    def statistics(self, prediction: str, reference: str) -> Any:
        return np.array([2.0 * (prediction == reference), 1.0])


class Percent(Exact):
    name = "lab_percent"
    bounds = None  # type: ignore[assignment]

    def statistics(self, prediction: str, reference: str) -> Any:
        return np.array([100.0 * (prediction == reference), 1.0])


class Infinite(Exact):
    name = "lab_infinite"

    def statistics(self, prediction: str, reference: str) -> Any:
        return np.array([float(prediction == reference) if prediction else float("inf"), 1.0])


class Wide(Exact):
    name = "lab_wide"
    width = 3


class OneAtATime(Exact):
    """Its score looks at the first axis, so several totals at once come out wrong."""

    name = "lab_one_at_a_time"

    def score(self, totals: Any) -> Any:
        first = np.ravel(totals)
        return np.full(np.shape(totals)[:-1], first[0] / first[1] if np.ndim(totals) == 1 else 0.5)


class Squared(Exact):
    """A mean of two numbers whose score is no mean."""

    name = "lab_squared"

    def score(self, totals: Any) -> Any:
        return (totals[..., 0] / totals[..., 1]) ** 2


class Forgetful(Exact):
    """Its statistics depend on how often it was asked."""

    name = "lab_forgetful"

    def __init__(self) -> None:
        self.asked = 0

    def statistics(self, prediction: str, reference: str) -> Any:
        self.asked += 1
        return np.array([float(prediction == reference) / self.asked, 1.0])


class Polite(Exact):
    """Gives every answer the same."""

    name = "lab_polite"

    def statistics(self, prediction: str, reference: str) -> Any:
        del prediction, reference
        return np.array([1.0, 1.0])


class Brittle(Exact):
    """Cannot read what is long."""

    name = "lab_brittle"

    def statistics(self, prediction: str, reference: str) -> Any:
        if len(prediction) > 5000:
            raise ValueError("too long")
        return super().statistics(prediction, reference)


class Unscored(Exact):
    name = "lab_unscored"

    def score(self, totals: Any) -> Any:
        raise ZeroDivisionError(len(totals))


class Drifting(Exact):
    """Its score depends on how often it was asked."""

    name = "lab_drifting"

    def __init__(self) -> None:
        self.asked = 0

    def score(self, totals: Any) -> Any:
        self.asked += 1
        return super().score(totals) / self.asked


class Flat(Exact):
    """Gives one number, whatever it is asked."""

    name = "lab_flat"

    def score(self, totals: Any) -> Any:
        return np.float64(np.ravel(totals)[0] / np.ravel(totals)[1])


class Overflowing(Exact):
    """Keeps something that cannot be summed, which its score does not even need."""

    name = "lab_overflowing"
    width = 3

    def statistics(self, prediction: str, reference: str) -> Any:
        return np.array([*super().statistics(prediction, reference), np.inf])


METRICS = (
    Flat,
    Overflowing,
    Drifting,
    Exact,
    Doubled,
    Percent,
    Infinite,
    Wide,
    OneAtATime,
    Squared,
    Forgetful,
    Polite,
    Brittle,
    Unscored,
)


class Plain:
    def apply(self, responses: list[list[str]], documents: Any) -> list[list[str]]:
        del documents
        return [[one.strip() for one in said] for said in responses]


class FirstWord(Plain):
    def apply(self, responses: list[list[str]], documents: Any) -> list[list[str]]:
        return [[one.split()[0] for one in said] for said in super().apply(responses, documents)]


class Lossy(Plain):
    """Leaves out what it has seen."""

    def apply(self, responses: list[list[str]], documents: Any) -> list[list[str]]:
        return [list(said) for said in dict.fromkeys(map(tuple, super().apply(responses, documents)))]


class Crowded(Plain):
    """Lets every response begin with how many there are."""

    def apply(self, responses: list[list[str]], documents: Any) -> list[list[str]]:
        return [[one[: len(responses)] for one in said] for said in super().apply(responses, documents)]


class Latin(Plain):
    def apply(self, responses: list[list[str]], documents: Any) -> list[list[str]]:
        return [[one.encode("latin-1").decode() for one in said] for said in super().apply(responses, documents)]


class Mute(Plain):
    def apply(self, responses: list[list[str]], documents: Any) -> list[list[str]]:
        raise OSError(f"no filter today for {len(responses)} of {len(documents)}")


class Upper(Plain):
    def apply(self, responses: list[list[str]], documents: Any) -> list[list[str]]:
        return [[one.upper() for one in said] for said in super().apply(responses, documents)]


FILTERS = (Plain, FirstWord, Lossy, Crowded, Latin, Mute, Upper)

PLUGIN = Plugin(
    metrics=tuple(kind() for kind in METRICS),
    filters=tuple(FilterInfo(kind, "1", lambda text: "ok" if text else "empty") for kind in FILTERS),
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
    monkeypatch.delitem(__import__("sys").modules, "seeded_lab", raising=False)
    caches = (packages.task_packages, plugin._plugins)
    for one in caches:
        one.cache_clear()
    yield
    for one in caches:
        one.cache_clear()


def with_metrics(*names: str) -> list[Finding]:
    listed = [{"metric": name, "aggregation": f"medtasks.benchmarks.aggregations.{name}"} for name in names]
    return checked(
        TEXT,
        _all("metrics", names),
        filters=("Plain",),
        metrics=names,
        metric_list=listed,
        process_results=here(with_its_metrics),
    )


IN_METRICS: list[tuple[type[Exact], str, str]] = [
    (Doubled, "MT504", "error"),
    (Percent, "MT504", "warning"),
    (Infinite, "MT504", "error"),
    (Wide, "MT508", "error"),
    (OneAtATime, "MT505", "error"),
    (Forgetful, "MT506", "error"),
    (Flat, "MT505", "error"),
    (Overflowing, "MT504", "error"),
    (Drifting, "MT505", "error"),
    (Drifting, "MT506", "error"),
    (Polite, "MT502", "error"),
    (Polite, "MT503", "error"),
    (Brittle, "MT509", "error"),
    (Unscored, "MT507", "error"),
]


@pytest.mark.usefixtures("lab")
@pytest.mark.parametrize(("kind", "code", "severity"), IN_METRICS, ids=lambda value: getattr(value, "__name__", value))
def test_defects_of_metrics(kind: type[Exact], code: str, severity: str) -> None:
    assert (code, severity) in said(with_metrics(kind.name))


@pytest.mark.usefixtures("lab")
def test_a_sound_metric_of_another_package_is_fine() -> None:
    assert with_metrics("lab_exact", "rouge1") == []


@pytest.mark.usefixtures("lab")
def test_a_metric_that_tells_nothing_beside_one_that_does_is_a_warning() -> None:
    (found,) = with_metrics("lab_exact", "lab_polite")
    assert (found.code, found.severity, found.field) == ("MT502", "warning", "lab_polite")


@pytest.mark.usefixtures("lab")
def test_a_score_that_is_no_mean() -> None:
    def change(documents: Documents) -> None:
        _all("metrics", ("lab_squared",))(documents)
        documents[0]["ideal_response"] = "nothing"

    listed = [{"metric": "lab_squared", "aggregation": "medtasks.benchmarks.aggregations.lab_squared"}]
    found = checked(
        TEXT,
        change,
        filters=("Plain",),
        metrics=("lab_squared",),
        metric_list=listed,
        process_results=here(with_its_metrics),
    )
    assert "the mean of the samples' own scores" in next(one.message for one in found if one.code == "MT505")


IN_FILTERS: list[tuple[type[Plain], str]] = [
    (FirstWord, "MT509"),
    (FirstWord, "MT501"),
    (Lossy, "MT507"),
    (Crowded, "MT506"),
    (Latin, "MT509"),
    (Mute, "MT507"),
    (Upper, "MT501"),
]


@pytest.mark.usefixtures("lab")
@pytest.mark.parametrize(("kind", "code"), IN_FILTERS, ids=lambda value: getattr(value, "__name__", value))
def test_defects_of_filters(kind: type[Plain], code: str) -> None:
    assert (code, "error") in said(checked(TEXT, filters=(kind.__name__,)))


@pytest.mark.usefixtures("lab")
def test_a_filter_that_fails_is_named() -> None:
    found = checked(TEXT, filters=("Mute",))
    assert "the filter Mute fails" in found[0].message
    assert "OSError: no filter today" in found[0].message


# --- where nothing is planted ---


def test_nothing_is_found_in_our_own_tasks() -> None:
    seen: list[tuple[int, int]] = []
    assert validate_behaviour(progress=lambda done, of: seen.append((done, of))) == []
    assert seen[-1][0] == seen[-1][1] == len(seen)


def test_tasks_without_data_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEDTASKS_DATA", str(tmp_path))
    assert validate_behaviour(["mi_cxr"]) == []
    assert validate_processes(["mi_cxr"]) == []


def test_an_unknown_task_is_an_error() -> None:
    with pytest.raises(UsageError, match="mi_cxr_none"):
        validate_behaviour(["mi_cxr_none"])


def test_a_loader_that_fails_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("medtasks.benchmarks.mi_cxr.icr", Rows("mi_cxr", lambda row: row["no such field"]))
    (note,) = validate_behaviour(["mi_cxr_icr"])
    assert (note.code, note.severity) == ("MT500", "note")


@pytest.mark.parametrize("answers", ["ABCDE", "AAABBB", "ABABABCC", "AB"])
def test_shuffling_gives_every_document_another_answer(answers: str) -> None:
    mixed = shuffled(list(answers))
    assert mixed is not None
    assert sorted(mixed) == sorted(answers)
    assert all(one != other for one, other in zip(mixed, answers, strict=True))


def test_equal_answers_cannot_be_shuffled() -> None:
    assert shuffled(["A", "A"]) is None


# --- several processes ---


@pytest.mark.subprocess_run
def test_a_run_that_depends_on_the_number_of_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # what a process imports at its start may do anything; this one changes a filter where there are several
    (tmp_path / "sitecustomize.py").write_text(DEPENDING)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    found = validate_processes(["mi_cxr_icr", "kvasir_vqa_x1_medico2025"], limit=4)
    assert {one.code for one in found} == {"MT510"}
    assert {one.where for one in found} == {"mi_cxr_icr", "scores.json"}  # two processes equal one for the other


DEPENDING = """
import os
if os.environ.get("WORLD_SIZE", "1") != "1":
    from medtasks.filters import option_letter
    option_letter.OptionLetterFilter.apply = lambda self, resps, docs: ["[none]" for _ in resps]
"""


@pytest.mark.subprocess_run
def test_a_run_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEDTASKS_BLIND", "perhaps")
    (found,) = validate_processes(["mi_cxr_icr"])
    assert found.code == "MT510"
    assert "MEDTASKS_BLIND is 'perhaps'" in found.message
