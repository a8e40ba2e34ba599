"""MI-CXR: five-way multiple choice over five-visit chest X-ray timelines.

Paper: sections 3 and 4, appendix E.

Task files refer to names of this module, and names are part of a task's hash: do not rename them.
"""

from __future__ import annotations

import functools
import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from medtasks.benchmarks.aggregations import responses_of, sample_value, scored_by
from medtasks.benchmarks.mi_cxr.board import MI_CXR
from medtasks.benchmarks.mi_cxr.cider import Cider, CiderCorpus
from medtasks.benchmarks.mi_cxr.error_kinds import ERRORS
from medtasks.benchmarks.mi_cxr.records import (
    NULL_OPTION,
    OPTIONS,
    SUBTASKS,
    MiCxrRecord,
    prepare_mi_cxr,
)
from medtasks.benchmarks.rows import Rows
from medtasks.catalog.benchmark import (
    Benchmark,
    DataSource,
    Document,
    Publication,
    RecordCounts,
    ScoringRules,
    shipped,
)
from medtasks.catalog.items import SampleView, by_fields
from medtasks.catalog.registry import Plugin
from medtasks.core.errors import DataError
from medtasks.data.prepare_commands import prepare_command
from medtasks.data.store import open_prepared

_INTERVAL = re.compile(
    r"\s*T(?P<first>[1-5])\s*(?:→|->|-|–|to|,)\s*T(?P<last>[1-5])\s*\.?\s*", re.IGNORECASE
)
"""An option that is nothing but an interval (T1 → T2) or a pair of visits (T2, T4)."""


def documents(record: MiCxrRecord) -> list[Document]:
    """The record as a harness document.

    ``intervals`` are the visits of the options before the null option, empty if these are not all
    intervals: what kinds of error need to know of options that must not be published.
    """
    return [
        {
            **record.model_dump(mode="json", exclude={"answer"}),
            "intervals": _intervals(record.choices),
            "target": record.answer,
            "abstention": NULL_OPTION,
        }
    ]


def _intervals(choices: Mapping[str, str]) -> list[list[int]]:
    """The first and last visit of each option; empty unless all are intervals."""
    intervals = []
    for letter, text in sorted(choices.items()):
        if letter == NULL_OPTION:
            continue
        interval = _INTERVAL.fullmatch(text)
        if interval is None:
            return []
        intervals.append([int(interval["first"]), int(interval["last"])])
    return intervals


def with_demonstrations(documents: list[Document]) -> list[Document]:
    """Documents that begin with a worked example (appendix I.2).

    The example is another patient's question of the same ``qtype``. Which one depends only on the
    sample's id.
    """
    of_type: dict[str, list[Document]] = {}
    for document in sorted(documents, key=lambda document: str(document["sample_id"])):
        of_type.setdefault(document["qtype"], []).append(document)
    demonstrated = []
    for document in documents:
        example = _example_for(document, of_type[document["qtype"]])
        demonstration = {
            "question": example["question"],
            "choices": example["choices"],
            "answer": example["target"],
        }
        demonstrated.append(
            {
                **document,
                "demonstration": demonstration,
                "demonstration_id": example["sample_id"],
                "media": [*example["media"], *document["media"]],
            }
        )
    return demonstrated


def _example_for(document: Document, candidates: list[Document]) -> Document:
    """Another patient's question, the first one from a place that depends on the sample's id."""
    digest = hashlib.sha256(document["sample_id"].encode()).digest()
    start = int.from_bytes(digest[:8], "big") % len(candidates)
    for candidate in (*candidates[start:], *candidates[:start]):
        if candidate["cluster"] != document["cluster"]:
            return candidate
    raise DataError(
        f"{document['sample_id']}: no other patient has a question of type {document['qtype']} to "
        "show as an example; prepare more rows."
    )


def _subtask(name: str) -> Rows:
    return Rows("mi_cxr", lambda row: row["qtype"] in SUBTASKS[name])


tel_single, tel_multiple, tel_ordered, icr, gts_single, gts_multi = map(_subtask, SUBTASKS)
icr_variant = Rows("mi_cxr", lambda row: row["qtype"].startswith("icr_variant"))
(
    tel_single_1shot,
    tel_multiple_1shot,
    tel_ordered_1shot,
    icr_1shot,
    gts_single_1shot,
    gts_multi_1shot,
) = (
    replace(rows, change=with_demonstrations)
    for rows in (tel_single, tel_multiple, tel_ordered, icr, gts_single, gts_multi)
)
icr_variant_1shot = replace(icr_variant, change=with_demonstrations)


def _no_summary(document: Document) -> str:
    """Why a row has no reference summary (appendix H.3); empty if it has one."""
    return "null_option_right" if document["target"] == NULL_OPTION else ""


def _as_reports(documents: list[Document]) -> list[Document]:
    """The questions without options; the text of the right one is the reference summary."""
    reports = []
    for document in documents:
        report = dict(document)
        choices = report.pop("choices")
        del report["intervals"]
        if not _no_summary(document):
            report["target"] = choices[document["target"]]
        report["abstention"] = "No change can be described."
        reports.append(report)
    return reports


report = Rows("mi_cxr", lambda row: row["group_type"] == "GTS", _as_reports, _no_summary)
process_results = scored_by()


def process_report(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Text metrics of one summary.

    CIDEr weights words by how many references of the whole task have them.
    """
    target, cluster = doc["target"], doc["cluster"]
    return {
        "rougeL": sample_value("rougeL", results, target, cluster),
        "meteor": sample_value("meteor", results, target, cluster),
        "cider": _cider_value(results, target, cluster),
    }


def _cider_value(results: Sequence[str], target: str, cluster: str) -> dict[str, Any]:
    """One sample's entry for CIDEr, as `sample_value` makes it for other metrics."""
    corpus = _references(open_prepared("mi_cxr").manifest.fingerprint)
    scores = [corpus.score(text, target) for text in responses_of(results)]
    total, count = math.fsum(scores), float(len(scores))
    value: dict[str, Any] = {
        "cluster": cluster,
        "statistics": [total, count],
        "score": total / count,
    }
    if len(scores) > 1:
        value["repeats"] = [[score, 1.0] for score in scores]
    return value


@functools.lru_cache(maxsize=2)
def _references(fingerprint: str) -> CiderCorpus:
    del fingerprint  # only part of the cache key: other data have other references
    return CiderCorpus([document["target"] for document in report.documents(media=False)])


def _right_option(sample: SampleView) -> tuple[str, ...]:
    if sample.document["target"] == NULL_OPTION:
        return ("null option right",)
    return ("another option right",)


BENCHMARK = Benchmark(
    name="mi_cxr",
    title="MI-CXR",
    publication=Publication(
        paper="arXiv 2605.15574",
        source="micxr_test.jsonl of the authors' repository (steve9712/MI-CXR on the hub), images "
        "of MIMIC-CXR-JPG 2.1.0",
        licence="PhysioNet credentialed access (images and rows)",
        bibliography=Path(__file__).with_name("paper.bib"),
        figures=Path(__file__).with_name("published.csv"),
    ),
    data=DataSource(
        prepare="medtasks prepare mi_cxr --rows micxr_test.jsonl --images MIMIC-CXR-JPG-ROOT",
        record=MiCxrRecord,
        documents=documents,
        command=prepare_command(
            prepare_mi_cxr,
            "verifying pictures",
            "medtasks prepare mi_cxr --rows micxr_test.jsonl --images /data/mimic-cxr-jpg",
        ),
        mini=shipped(__file__),
        prepare_mini=lambda source, out: prepare_mi_cxr(
            [source / "micxr_test.jsonl", source / "micxr_icr_variant.jsonl"],
            source,
            out,
            mini=True,
        ),
    ),
    cluster="patient",
    visible_fields=frozenset({"question", "choices", "demonstration"}),
    breakdowns={
        **by_fields(family="group_type", qtype="qtype", gold_option="target"),
        "null_option": _right_option,
    },
    options=OPTIONS,
    null_option=NULL_OPTION,
    scoring=ScoringRules(
        errors=ERRORS,
    ),
    counts=RecordCounts(
        kinds=lambda record: (record.qtype,),
        published={"rows": 5311},
        apart="icr_variant",
    ),
)

PLUGIN = Plugin(benchmarks=(BENCHMARK,), metrics=(Cider(), *ERRORS.rates), layouts=(MI_CXR,))
