"""Med-CMR: multiple-choice and judged open-ended questions over three dimensions of vision and four of reasoning.

Task files refer to names of this module, and names are part of a task's hash: do not rename them.
"""

from __future__ import annotations

from pathlib import Path

from medtasks.benchmarks.med_cmr.board import MED_CMR
from medtasks.benchmarks.med_cmr.documents import *
from medtasks.benchmarks.med_cmr.documents import ACCURACY_DIMENSION_MEAN, BREAKDOWNS, dimension_mean
from medtasks.benchmarks.med_cmr.documents import documents as documents_of
from medtasks.benchmarks.med_cmr.errors import ERRORS
from medtasks.benchmarks.med_cmr.prepare import prepare_med_cmr
from medtasks.benchmarks.med_cmr.records import OPTIONS, MedCmrRecord
from medtasks.catalog.benchmark import Benchmark, shipped
from medtasks.catalog.registry import Plugin
from medtasks.data.preparation import prepare_command

BENCHMARK = Benchmark(
    name="med_cmr",
    title="Med-CMR",
    paper="arXiv 2512.00818",
    source="aaassddaadf/Med-CMR",
    licence="Apache-2.0",
    prepare="medtasks prepare med_cmr --source hub",
    cluster="image",
    visible_fields=frozenset({"question", "choices"}),
    breakdowns=BREAKDOWNS,
    options=OPTIONS,
    pooled={"accuracy_dimension_mean": dimension_mean},
    errors=ERRORS,
    documents=documents_of,
    record=MedCmrRecord,
    mini=shipped(__file__),
    prepare_mini=lambda source, out: prepare_med_cmr(str(source), out, mini=True),
    command=prepare_command(prepare_med_cmr, "verifying pictures", "medtasks prepare med_cmr --source dataset.zip"),
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
    figures=Path(__file__).with_name("published.csv"),
)

PLUGIN = Plugin(benchmarks=(BENCHMARK,), metrics=(ACCURACY_DIMENSION_MEAN, *ERRORS.rates), layouts=(MED_CMR,))
