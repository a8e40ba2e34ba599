"""MI-CXR: five-way multiple choice over five-visit chest X-ray timelines (paper sections 3 and 4, appendix E)."""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from medtasks.benchmarks.aggregations import responses_of, sample_value
from medtasks.benchmarks.base import Benchmark, Document, SampleView
from medtasks.benchmarks.documents import Rows
from medtasks.data.records import MiCxrRecord
from medtasks.data.store import PREPARE_COMMANDS, open_prepared
from medtasks.errors import DataError
from medtasks.metrics.cider import CiderCorpus

__all__ = ["BENCHMARK", "documents", "process_report", "process_results", "with_demonstrations"]

OPTIONS = ("A", "B", "C", "D", "E")
NULL_OPTION = "E"

SUBTASKS: Mapping[str, tuple[str, ...]] = {
    "tel_single": ("single_emergence", "single_resolution"),
    "tel_multiple": (
        "multiple_emergence_1",
        "multiple_emergence_2",
        "multiple_resolution_1",
        "multiple_resolution_2",
    ),
    "tel_ordered": ("emergence_to_resolution", "resolution_to_emergence"),
    "icr": ("icr_multi_abn",),
    "gts_single": ("single_entity_interval_summary",),
    "gts_multi": ("multi_entity_interval_summary",),
}
"""The ``qtype`` values of each subtask; those of the variant start with ``icr_variant``."""


def documents(record: MiCxrRecord) -> list[Document]:
    """The record as a harness document; the right option's letter is the target."""
    return [
        {
            **record.model_dump(mode="json", exclude={"answer"}),
            "target": record.answer,
            "abstention": NULL_OPTION,
        }
    ]


def _null_option(view: SampleView) -> tuple[str, ...]:
    return ("null option right" if view.document["target"] == NULL_OPTION else "another option right",)


BENCHMARK = Benchmark(
    name="mi_cxr",
    documents=documents,
    record=MiCxrRecord,
    title="MI-CXR",
    paper="arXiv 2605.15574",
    source="micxr_test.jsonl of the authors' repository, images of MIMIC-CXR-JPG 2.1.0",
    licence="PhysioNet credentialed access (images and rows)",
    prepare=PREPARE_COMMANDS["mi_cxr"],
    cluster="patient",
    visible_fields=frozenset({"question", "choices", "demonstration"}),
    breakdowns={
        "family": lambda view: (view.document["group_type"],),
        "qtype": lambda view: (view.document["qtype"],),
        "gold_option": lambda view: (view.document["target"],),
        "null_option": _null_option,
    },
    options=OPTIONS,
    null_option=NULL_OPTION,
)


def _subtask(name: str, change: Callable[[list[Document]], list[Document]] | None = None) -> Rows:
    return Rows("mi_cxr", lambda row: row["qtype"] in SUBTASKS[name], change)


def with_demonstrations(documents: list[Document]) -> list[Document]:
    """Documents that begin with a worked example: another patient's question of the same ``qtype`` (appendix I.2).

    Which one follows from the sample's id alone, so a run on part of the rows shows the same examples. Its five
    images stand before the question's own.

    Raises:
        DataError: a question type has rows of one patient only.
    """
    alike: dict[str, list[Document]] = {}
    for document in sorted(documents, key=lambda document: str(document["sample_id"])):
        alike.setdefault(document["qtype"], []).append(document)
    return [_demonstrated(document, alike[document["qtype"]]) for document in documents]


def _demonstrated(document: Document, alike: list[Document]) -> Document:
    digest = hashlib.sha256(document["sample_id"].encode()).digest()
    start = int.from_bytes(digest[:8], "big") % len(alike)
    for example in (*alike[start:], *alike[:start]):
        if example["cluster"] != document["cluster"]:
            shown = {key: example[key] for key in ("question", "choices")}
            return {
                **document,
                "demonstration": {**shown, "answer": example["target"]},
                "demonstration_id": example["sample_id"],
                "media": [*example["media"], *document["media"]],
            }
    raise DataError(
        f"{document['sample_id']}: no other patient has a question of type {document['qtype']} to show as an example; "
        "prepare more rows."
    )


def _no_summary(document: Document) -> str:
    """A row whose right option says that none applies has no reference summary (appendix H.3)."""
    return "null_option_right" if document["target"] == NULL_OPTION else ""


def _as_reports(documents: list[Document]) -> list[Document]:
    """The right option's text becomes the reference summary; the options are no part of these documents."""
    return [
        {
            **{key: value for key, value in document.items() if key != "choices"},
            "target": document["choices"][document["target"]] if not _no_summary(document) else document["target"],
            "abstention": "No change can be described.",
        }
        for document in documents
    ]


tel_single = _subtask("tel_single")
tel_multiple = _subtask("tel_multiple")
tel_ordered = _subtask("tel_ordered")
icr = _subtask("icr")
gts_single = _subtask("gts_single")
gts_multi = _subtask("gts_multi")
icr_variant = Rows("mi_cxr", lambda row: row["qtype"].startswith("icr_variant"))

tel_single_1shot = _subtask("tel_single", with_demonstrations)
tel_multiple_1shot = _subtask("tel_multiple", with_demonstrations)
tel_ordered_1shot = _subtask("tel_ordered", with_demonstrations)
icr_1shot = _subtask("icr", with_demonstrations)
gts_single_1shot = _subtask("gts_single", with_demonstrations)
gts_multi_1shot = _subtask("gts_multi", with_demonstrations)
icr_variant_1shot = Rows("mi_cxr", lambda row: row["qtype"].startswith("icr_variant"), with_demonstrations)

report = Rows("mi_cxr", lambda row: row["group_type"] == "GTS", _as_reports, _no_summary)


def process_results(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Accuracy of one filtered response: a letter, or a status marker such as ``[none]``, which is wrong."""
    return {"accuracy": sample_value("accuracy", results, doc["target"], doc["cluster"])}


def process_report(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Text metrics of one summary; CIDEr weighs words by how many references of the whole task hold them."""
    target, cluster = doc["target"], doc["cluster"]
    values = {metric: sample_value(metric, results, target, cluster) for metric in ("rougeL", "meteor")}
    corpus = _references(open_prepared("mi_cxr").manifest.fingerprint)
    scores = [corpus.score(text, target) for text in responses_of(results)]
    statistics = [[score, 1.0] for score in scores]
    cider: dict[str, Any] = {
        "cluster": cluster,
        "statistics": [math.fsum(scores), float(len(scores))],
        "score": math.fsum(scores) / len(scores),
    }
    return {**values, "cider": {**cider, "repeats": statistics} if len(scores) > 1 else cider}


@functools.lru_cache(maxsize=2)
def _references(fingerprint: str) -> CiderCorpus:
    """Every reference summary of the task, whichever part of it is run."""
    del fingerprint  # part of the key alone: other data have other references
    return CiderCorpus([document["target"] for document in report.documents()])
