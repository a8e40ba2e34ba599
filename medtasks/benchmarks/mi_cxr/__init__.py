"""MI-CXR: five-way multiple choice over five-visit chest X-ray timelines (paper, sections 3 and 4, appendix E).

Task files refer to names of this module, and names are part of a task's hash: do not rename them.
"""

from __future__ import annotations

from pathlib import Path

from medtasks.benchmarks.mi_cxr.board import MI_CXR
from medtasks.benchmarks.mi_cxr.cider import Cider
from medtasks.benchmarks.mi_cxr.documents import *
from medtasks.benchmarks.mi_cxr.documents import BREAKDOWNS, NULL_OPTION
from medtasks.benchmarks.mi_cxr.documents import documents as documents_of
from medtasks.benchmarks.mi_cxr.errors import ERRORS
from medtasks.benchmarks.mi_cxr.prepare import prepare_mi_cxr
from medtasks.benchmarks.mi_cxr.records import OPTIONS, MiCxrRecord
from medtasks.catalog.benchmark import Benchmark, shipped
from medtasks.catalog.registry import Plugin
from medtasks.data.preparation import prepare_command

BENCHMARK = Benchmark(
    name="mi_cxr",
    title="MI-CXR",
    paper="arXiv 2605.15574",
    source="micxr_test.jsonl of the authors' repository, images of MIMIC-CXR-JPG 2.1.0",
    licence="PhysioNet credentialed access (images and rows)",
    prepare="medtasks prepare mi_cxr --rows micxr_test.jsonl --images MIMIC-CXR-JPG-ROOT",
    cluster="patient",
    visible_fields=frozenset({"question", "choices", "demonstration"}),
    breakdowns=BREAKDOWNS,
    options=OPTIONS,
    null_option=NULL_OPTION,
    errors=ERRORS,
    documents=documents_of,
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
)

PLUGIN = Plugin(benchmarks=(BENCHMARK,), metrics=(Cider(), *ERRORS.rates), layouts=(MI_CXR,))
