"""One task with something planted into it, and what the behaviour checks say of it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from medtasks.api import Benchmark, sample_value
from medtasks.benchmarks.documents import task_documents
from medtasks.catalog.registry import get_benchmark
from medtasks.catalog.spec import load_spec
from medtasks.core.findings import Finding
from medtasks.validate.behaviour import check_behaviour

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
    """What is found of ``task``, with a dozen documents, if these, the benchmark or the task file are changed."""
    spec = load_spec(task)
    update: dict[str, Any] = {"resolved": {**spec.resolved, **resolved}}
    update |= {"filters": filters} if filters else {}
    update |= {"metrics": metrics} if metrics else {}
    documents = copy.deepcopy(task_documents(task)[:12])
    change(documents)
    return check_behaviour(spec.model_copy(update=update), benchmark(get_benchmark(spec.metadata.benchmark)), documents)


def said(findings: Sequence[Finding]) -> set[tuple[str, str]]:
    return {(one.code, one.severity) for one in findings}


def here(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{function.__name__}"


def accuracy(doc: Mapping[str, Any], *statistics: float, score: float | None = None) -> dict[str, dict[str, Any]]:
    own = statistics[0] if score is None else score
    return {"accuracy": {"cluster": doc["cluster"], "statistics": list(statistics), "score": own}}


def right(doc: Mapping[str, Any], results: Sequence[str]) -> float:
    return float(results[0] == doc["target"])


def with_its_metrics(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, Any]:
    """All metrics that the document asks for."""
    return {name: sample_value(name, results, doc["target"], doc["cluster"]) for name in doc["metrics"]}


def every(field: str, value: Any) -> Callable[[Documents], None]:
    def change(documents: Documents) -> None:
        for document in documents:
            document[field] = value

    return change
