"""MI-CXR: accuracy of the option chosen; text metrics of a summary written freely (paper, section 4, appendix H)."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from medtasks.benchmarks.aggregations import responses_of, sample_value
from medtasks.benchmarks.base import SampleView
from medtasks.benchmarks.mi_cxr.cider import CiderCorpus
from medtasks.benchmarks.mi_cxr.documents import NULL_OPTION, report
from medtasks.data.store import open_prepared


def _null_option(view: SampleView) -> tuple[str, ...]:
    return ("null option right" if view.document["target"] == NULL_OPTION else "another option right",)


BREAKDOWNS = {
    "family": lambda view: (view.document["group_type"],),
    "qtype": lambda view: (view.document["qtype"],),
    "gold_option": lambda view: (view.document["target"],),
    "null_option": _null_option,
}


def process_results(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Accuracy of one filtered response: a letter, or a status marker such as ``[none]``, which is wrong."""
    return {"accuracy": sample_value("accuracy", results, doc["target"], doc["cluster"])}


def process_report(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Text metrics of one summary; CIDEr weights words by how many references of the whole task have them."""
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
    """Every reference summary of the task, even if only a part is run."""
    del fingerprint  # only part of the cache key: other data have other references
    return CiderCorpus([document["target"] for document in report.documents()])
