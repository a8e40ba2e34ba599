"""Med-CMR: multiple-choice and judged open-ended questions on vision and reasoning.

There are three dimensions of vision and four of reasoning. Task files refer to names of this
module, and names are part of a task's hash: do not rename them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from medtasks.benchmarks.aggregations import pending_value, scored_by
from medtasks.benchmarks.med_cmr.board import MED_CMR
from medtasks.benchmarks.med_cmr.error_kinds import ERRORS
from medtasks.benchmarks.med_cmr.records import (
    ARCHIVE,
    DIMENSIONS,
    OPTIONS,
    MedCmrRecord,
    prepare_med_cmr,
)
from medtasks.benchmarks.rows import Rows
from medtasks.catalog.benchmark import (
    ABSTENTION,
    AutomaticPreparation,
    Benchmark,
    DataSource,
    Document,
    Publication,
    RecordCounts,
    ScoringRules,
    shipped,
)
from medtasks.catalog.items import Item, SampleView, Value, by_fields
from medtasks.catalog.registry import Plugin
from medtasks.data.prepare_commands import prepare_command
from medtasks.metrics.base import Array, means
from medtasks.metrics.facts import MetricFacts
from medtasks.metrics.item_metrics import ItemScore, sum_in_order


def documents(record: MedCmrRecord) -> list[Document]:
    """The record as a harness document.

    The target is the right option's letter, or the reference answer.
    """
    document: Document = {
        **record.model_dump(mode="json", exclude={"answer", "choices", "prefixed"}),
        "ability": "vision" if record.dimension in ("sod", "fdd", "su") else "reasoning",
        "target": record.answer,
        "abstention": ABSTENTION,
    }
    if record.format == "mcq":
        document["choices"] = dict(record.choices)
    else:
        response = f"This is what the image shows.\nFinal answer: {record.answer}"
        document["ideal_response"] = response
    return [document]


mcq_sod, mcq_fdd, mcq_su, mcq_tp, mcq_cr, mcq_ltg, mcq_msi = (
    Rows.where("med_cmr", format="mcq", dimension=name) for name in DIMENSIONS
)
open_sod, open_fdd, open_su, open_tp, open_cr, open_ltg, open_msi = (
    Rows.where("med_cmr", format="open", dimension=name) for name in DIMENSIONS
)
process_mcq = scored_by()


def process_open(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The value of an open-ended response, which awaits a judge."""
    del results
    return {"open_total": pending_value(doc["cluster"])}


def _mean_of_dimensions(totals: Array) -> Array:
    """Unweighted mean of the dimensions' means.

    Statistics are ``(sum of values, items)`` per dimension.
    """
    sums = totals.reshape(*totals.shape[:-1], len(DIMENSIONS), 2)
    by_dimension = means(sums[..., 0], sums[..., 1])
    present = ~np.isnan(by_dimension)
    total = sum_in_order(np.where(present, by_dimension, 0.0))
    return means(total, sum_in_order(present.astype(np.float64)))


ACCURACY_DIMENSION_MEAN = ItemScore(
    "accuracy_dimension_mean",
    2 * len(DIMENSIONS),
    _mean_of_dimensions,
    {"mean": "dimensions-unweighted", "dimensions": ",".join(DIMENSIONS)},
    facts=MetricFacts(headline=2),
)
"""Beside the pooled accuracy; each dimension has equal weight, however many items it has."""


def dimension_statistics(dimension: str, accuracy: float) -> tuple[float, ...]:
    """An item's statistics for the unweighted mean of dimensions."""
    statistics: list[float] = []
    for name in DIMENSIONS:
        statistics += (accuracy, 1.0) if name == dimension else (0.0, 0.0)
    return tuple(statistics)


def _dimension_mean(item: Item) -> Value | None:
    """The item's part in the mean of dimensions; None for open-ended questions."""
    accuracy = item.values.get("accuracy")
    if accuracy is None:
        return None
    dimension = item.view.document["dimension"]
    return accuracy.mapped(lambda row: dimension_statistics(dimension, row[0]))


def _gold_options(sample: SampleView) -> tuple[str, ...]:
    """The group of a multiple-choice question: its right letter."""
    if sample.document["format"] != "mcq":
        return ()
    return (sample.document["target"],)


BENCHMARK = Benchmark(
    name="med_cmr",
    title="Med-CMR",
    publication=Publication(
        paper="arXiv 2512.00818",
        source="aaassddaadf/Med-CMR",
        licence="Apache-2.0",
        bibliography=Path(__file__).with_name("paper.bib"),
        figures=Path(__file__).with_name("published.csv"),
    ),
    data=DataSource(
        prepare="medtasks prepare med_cmr --source hub",
        record=MedCmrRecord,
        documents=documents,
        command=prepare_command(
            prepare_med_cmr, "verifying pictures", "medtasks prepare med_cmr --source dataset.zip"
        ),
        mini=shipped(__file__),
        prepare_mini=lambda source, out: prepare_med_cmr(str(source), out, mini=True),
        automatic=AutomaticPreparation((ARCHIVE,), {"source": "hub"}),
    ),
    cluster="image",
    visible_fields=frozenset({"question", "choices"}),
    breakdowns={
        **by_fields("format", "dimension", "ability", "modality", "organ_system", "question_type"),
        "gold_option": _gold_options,
    },
    options=OPTIONS,
    scoring=ScoringRules(
        pooled={"accuracy_dimension_mean": _dimension_mean},
        errors=ERRORS,
    ),
    counts=RecordCounts(
        kinds=lambda record: (record.format, f"{record.format}_{record.dimension}"),
        published={  # rows of the release; the paper has one open row less
            "rows": 20654,
            "mcq": 16655,
            "mcq_sod": 1024,
            "mcq_fdd": 711,
            "mcq_su": 371,
            "mcq_tp": 336,
            "mcq_cr": 1922,
            "mcq_ltg": 11582,
            "mcq_msi": 709,
            "open": 3999,
        },
    ),
)

PLUGIN = Plugin(
    benchmarks=(BENCHMARK,), metrics=(ACCURACY_DIMENSION_MEAN, *ERRORS.rates), layouts=(MED_CMR,)
)
