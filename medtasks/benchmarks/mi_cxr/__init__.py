"""MI-CXR: five-way multiple choice over five-visit chest X-ray timelines (paper, sections 3 and 4,
appendix E).

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
from medtasks.catalog.benchmark import Benchmark, Document, by_fields, shipped
from medtasks.catalog.registry import Plugin
from medtasks.core.errors import DataError
from medtasks.data.prepare_commands import prepare_command
from medtasks.data.store import open_prepared

_INTERVAL = re.compile(
    r"\s*T(?P<first>[1-5])\s*(?:→|->|-|–|to|,)\s*T(?P<last>[1-5])\s*\.?\s*", re.IGNORECASE
)
"""An option that is nothing but an interval (T1 → T2) or a pair of visits (T2, T4)."""


def documents(record: MiCxrRecord) -> list[Document]:
    """The record as a harness document. ``intervals`` are the visits of the options before the null
    option, empty if these are not all intervals: what kinds of error need to know of options that
    must not be published.
    """
    found = [
        _INTERVAL.fullmatch(text)
        for letter, text in sorted(record.choices.items())
        if letter != NULL_OPTION
    ]
    intervals = [[int(match["first"]), int(match["last"])] for match in found if match is not None]
    return [
        {
            **record.model_dump(mode="json", exclude={"answer"}),
            "intervals": intervals if len(intervals) == len(found) else [],
            "target": record.answer,
            "abstention": NULL_OPTION,
        }
    ]


def with_demonstrations(documents: list[Document]) -> list[Document]:
    """Documents that begin with a worked example: another patient's question of the same ``qtype``
    (appendix I.2). The choice depends only on the sample's id.
    """
    of_type: dict[str, list[Document]] = {}
    for document in sorted(documents, key=lambda document: str(document["sample_id"])):
        of_type.setdefault(document["qtype"], []).append(document)
    demonstrated = []
    for document in documents:
        others = of_type[document["qtype"]]
        digest = hashlib.sha256(document["sample_id"].encode()).digest()
        start = int.from_bytes(digest[:8], "big") % len(others)
        in_turn = (
            one
            for one in (*others[start:], *others[:start])
            if one["cluster"] != document["cluster"]
        )
        example = next(in_turn, None)
        if example is None:
            raise DataError(
                f"{document['sample_id']}: no other patient has a question of type {document['qtype']} to show as an "
                "example; prepare more rows."
            )
        shown = {
            "question": example["question"],
            "choices": example["choices"],
            "answer": example["target"],
        }
        media = [*example["media"], *document["media"]]
        demonstrated.append(
            {
                **document,
                "demonstration": shown,
                "demonstration_id": example["sample_id"],
                "media": media,
            }
        )
    return demonstrated


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
    reports = []
    for document in documents:
        target = document["target"]
        summary = target if _no_summary(document) else document["choices"][target]
        kept = {
            key: value for key, value in document.items() if key not in ("choices", "intervals")
        }
        reports.append({**kept, "target": summary, "abstention": "No change can be described."})
    return reports


report = Rows("mi_cxr", lambda row: row["group_type"] == "GTS", _as_reports, _no_summary)
process_results = scored_by("accuracy")


def process_report(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Text metrics of one summary; CIDEr weights words by how many references of the whole task
    have them.
    """
    target, cluster = doc["target"], doc["cluster"]
    values = {
        metric: sample_value(metric, results, target, cluster) for metric in ("rougeL", "meteor")
    }
    corpus = _references(open_prepared("mi_cxr").manifest.fingerprint)
    scores = [corpus.score(text, target) for text in responses_of(results)]
    total, count = math.fsum(scores), float(len(scores))
    cider: dict[str, Any] = {
        "cluster": cluster,
        "statistics": [total, count],
        "score": total / count,
    }
    return {
        **values,
        "cider": {**cider, "repeats": [[score, 1.0] for score in scores]}
        if len(scores) > 1
        else cider,
    }


@functools.lru_cache(maxsize=2)
def _references(fingerprint: str) -> CiderCorpus:
    del fingerprint  # only part of the cache key: other data have other references
    return CiderCorpus([document["target"] for document in report.documents(media=False)])


BENCHMARK = Benchmark(
    name="mi_cxr",
    title="MI-CXR",
    paper="arXiv 2605.15574",
    source="micxr_test.jsonl of the authors' repository (steve9712/MI-CXR on the hub), images of MIMIC-CXR-JPG 2.1.0",
    licence="PhysioNet credentialed access (images and rows)",
    prepare="medtasks prepare mi_cxr --rows micxr_test.jsonl --images MIMIC-CXR-JPG-ROOT",
    cluster="patient",
    visible_fields=frozenset({"question", "choices", "demonstration"}),
    breakdowns={
        **by_fields(family="group_type", qtype="qtype", gold_option="target"),
        "null_option": lambda view: (
            "null option right"
            if view.document["target"] == NULL_OPTION
            else "another option right",
        ),
    },
    options=OPTIONS,
    null_option=NULL_OPTION,
    errors=ERRORS,
    documents=documents,
    record=MiCxrRecord,
    mini=shipped(__file__),
    prepare_mini=lambda source, out: prepare_mi_cxr(
        [source / "micxr_test.jsonl", source / "micxr_icr_variant.jsonl"], source, out, mini=True
    ),
    command=prepare_command(
        prepare_mi_cxr,
        "verifying pictures",
        "medtasks prepare mi_cxr --rows micxr_test.jsonl --images /data/mimic-cxr-jpg",
    ),
    kinds=lambda record: (record.qtype,),
    published={"rows": 5311},
    apart="icr_variant",
    figures=Path(__file__).with_name("published.csv"),
    bibliography=Path(__file__).with_name("paper.bib"),
)

PLUGIN = Plugin(benchmarks=(BENCHMARK,), metrics=(Cider(), *ERRORS.rates), layouts=(MI_CXR,))
