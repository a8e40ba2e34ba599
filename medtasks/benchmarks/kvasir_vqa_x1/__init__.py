"""Kvasir-VQA-x1: GI endoscopy VQA at complexity levels 1 to 3, scored by text overlap and a judge.

Its transformed track asks the same questions about slightly perturbed pictures. Task files refer to names of this
module, and names are part of a task's hash: do not rename them.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from medtasks.benchmarks.kvasir_vqa_x1.board import KVASIR_VQA_X1
from medtasks.benchmarks.kvasir_vqa_x1.documents import *
from medtasks.benchmarks.kvasir_vqa_x1.documents import BREAKDOWNS, level_rows, mixed
from medtasks.benchmarks.kvasir_vqa_x1.documents import documents as documents_of
from medtasks.benchmarks.kvasir_vqa_x1.errors import ERRORS, contradiction
from medtasks.benchmarks.kvasir_vqa_x1.prepare import prepare_kvasir
from medtasks.benchmarks.kvasir_vqa_x1.records import KvasirRecord
from medtasks.benchmarks.kvasir_vqa_x1.transformed import prepare_transformed
from medtasks.catalog.benchmark import Benchmark, shipped
from medtasks.catalog.registry import Plugin
from medtasks.data.preparation import prepare_command
from medtasks.data.prepared import Prepared


def _prepare_mini_transformed(source: Path, out: Path) -> Prepared:
    original = prepare_kvasir(str(source), out.with_name("original"), mini=True)
    return prepare_transformed(out, original=original, variants=2, mini=True)


BENCHMARK = Benchmark(
    name="kvasir_vqa_x1",
    title="Kvasir-VQA-x1",
    paper="arXiv 2506.09958",
    source="SimulaMet/Kvasir-VQA-x1",
    licence="CC BY-NC 4.0",
    prepare="medtasks prepare kvasir_vqa_x1 --source hub",
    cluster="image",
    visible_fields=frozenset({"question"}),
    breakdowns=BREAKDOWNS,
    parts="question_class",
    errors=ERRORS,
    documents=documents_of,
    record=KvasirRecord,
    doubt=contradiction,
    mini=shipped(__file__),
    prepare_mini=lambda source, out: prepare_kvasir(str(source), out, mini=True),
    command=prepare_command(
        prepare_kvasir, "fetching and verifying pictures", "medtasks prepare kvasir_vqa_x1 --source hub"
    ),
    kinds=lambda record: (f"level{record.complexity}",),
    published={"rows": 16022, "level1": 5548, "level2": 5261, "level3": 5213},  # rows scored in table 6
    figures=Path(__file__).with_name("published.csv"),
    levels=("kvasir_vqa_x1_level1", "kvasir_vqa_x1_level2", "kvasir_vqa_x1_level3"),
)

TRANSFORMED = replace(
    BENCHMARK,
    name="kvasir_vqa_x1_transformed",
    title="Kvasir-VQA-x1, transformed",
    prepare="medtasks prepare kvasir_vqa_x1_transformed",
    prepare_mini=_prepare_mini_transformed,
    command=prepare_command(prepare_transformed, "perturbing pictures", "medtasks prepare kvasir_vqa_x1_transformed"),
    figures=None,
    levels=(),
)

PLUGIN = Plugin(benchmarks=(BENCHMARK, TRANSFORMED), metrics=ERRORS.rates, layouts=(KVASIR_VQA_X1,))

level1, level2, level3 = (level_rows(BENCHMARK.name, level) for level in (1, 2, 3))
transformed_level1, transformed_level2, transformed_level3 = (
    level_rows(TRANSFORMED.name, level) for level in (1, 2, 3)
)
mixed1, mixed2, mixed3 = (
    replace(rows, change=mixed) for rows in (transformed_level1, transformed_level2, transformed_level3)
)
