"""Kvasir-VQA-x1: GI endoscopy VQA at complexity levels 1 to 3, scored by text overlap and a judge.

Its transformed track asks the same questions about slightly perturbed pictures. Task files refer to
names of this module, and names are part of a task's hash: do not rename them.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np

from medtasks.benchmarks.aggregations import scored_by
from medtasks.benchmarks.kvasir_vqa_x1.board import KVASIR_VQA_X1
from medtasks.benchmarks.kvasir_vqa_x1.contradictions import contradiction
from medtasks.benchmarks.kvasir_vqa_x1.error_kinds import ERRORS
from medtasks.benchmarks.kvasir_vqa_x1.prepare import HUB_FILES, prepare_kvasir
from medtasks.benchmarks.kvasir_vqa_x1.records import KvasirRecord
from medtasks.benchmarks.kvasir_vqa_x1.transformed import original_name, prepare_transformed
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
from medtasks.catalog.registry import Plugin
from medtasks.core.errors import DataError
from medtasks.data.prepare_commands import prepare_command
from medtasks.data.prepared import Prepared
from medtasks.data.store import open_prepared


def documents(record: KvasirRecord) -> list[Document]:
    """The record as a harness document; its reference answer is the target."""
    return [{**record.model_dump(mode="json"), "target": record.answer, "abstention": ABSTENTION}]


level1, level2, level3 = (Rows.where("kvasir_vqa_x1", complexity=level) for level in (1, 2, 3))
transformed_level1, transformed_level2, transformed_level3 = (
    replace(rows, benchmark="kvasir_vqa_x1_transformed") for rows in (level1, level2, level3)
)
ORIGINALS = 0.23
"""The share of questions about the original picture in the mixed track (paper, section 2.3)."""


def mixed(documents: list[Document]) -> list[Document]:
    """Documents of the transformed track, of which about 23 % show the original picture.

    These are drawn by the question's id.
    """
    mixture = []
    for document in documents:
        digest = hashlib.sha256(f"mixed|{document['sample_id']}".encode()).digest()
        if int.from_bytes(digest[:8], "big") < ORIGINALS * 2**64:
            media = [original_name(document["img_id"])]
            document = {**document, "media": media}
        mixture.append(document)
    return mixture


mixed1, mixed2, mixed3 = (
    replace(rows, change=mixed)
    for rows in (transformed_level1, transformed_level2, transformed_level3)
)


def medico_subset(documents: list[Document]) -> list[Document]:
    """The public subset of the Medico 2025 challenge: 1,500 shuffled rows of the test split.

    The order is that of ``datasets.Dataset.shuffle(seed=42)``, so data that rows were left out of
    are refused.
    """
    excluded = open_prepared("kvasir_vqa_x1").manifest.excluded
    if excluded:
        raise DataError(
            f"kvasir_vqa_x1_medico2025: {sum(excluded.values())} rows of the split were left out "
            "when it was prepared, so the challenge's subset cannot be drawn; prepare the whole "
            "split."
        )
    order = np.random.default_rng(42).permutation(len(documents))
    return [documents[number] for number in order[:1500].tolist()]


medico2025 = replace(Rows.where("kvasir_vqa_x1"), change=medico_subset)
process_results = scored_by()
process_medico2025 = scored_by()


def _prepare_mini_transformed(source: Path, out: Path) -> Prepared:
    original = prepare_kvasir(str(source), out.with_name("original"), mini=True)
    return prepare_transformed(out, original=original, variants=2, mini=True)


BENCHMARK = Benchmark(
    name="kvasir_vqa_x1",
    title="Kvasir-VQA-x1",
    publication=Publication(
        paper="arXiv 2506.09958",
        source="SimulaMet/Kvasir-VQA-x1",
        licence="CC BY-NC 4.0",
        bibliography=Path(__file__).with_name("paper.bib"),
        figures=Path(__file__).with_name("published.csv"),
    ),
    data=DataSource(
        prepare="medtasks prepare kvasir_vqa_x1 --source hub",
        record=KvasirRecord,
        documents=documents,
        command=prepare_command(
            prepare_kvasir,
            "fetching and verifying pictures",
            "medtasks prepare kvasir_vqa_x1 --source hub",
        ),
        mini=shipped(__file__),
        prepare_mini=lambda source, out: prepare_kvasir(str(source), out, mini=True),
        doubt=contradiction,
        # the rows may name pictures elsewhere: the dataset of pictures has all of them
        automatic=AutomaticPreparation(HUB_FILES, {"source": "hub"}, is_limit=True),
    ),
    cluster="image",
    visible_fields=frozenset({"question"}),
    breakdowns={
        "complexity": lambda view: (f"level{view.document['complexity']}",),
        # a class named twice in one row is one aspect
        "question_class": lambda view: tuple(sorted(set(view.document["question_class"]))),
    },
    scoring=ScoringRules(
        errors=ERRORS,
        parts="question_class",
        levels=("kvasir_vqa_x1_level1", "kvasir_vqa_x1_level2", "kvasir_vqa_x1_level3"),
    ),
    counts=RecordCounts(
        kinds=lambda record: (f"level{record.complexity}",),
        published={
            "rows": 16022,
            "level1": 5548,
            "level2": 5261,
            "level3": 5213,
        },  # rows scored in table 6
    ),
)

TRANSFORMED = replace(
    BENCHMARK,
    name="kvasir_vqa_x1_transformed",
    title="Kvasir-VQA-x1, transformed",
    publication=replace(BENCHMARK.publication, figures=None),
    data=replace(
        BENCHMARK.data,
        prepare="medtasks prepare kvasir_vqa_x1_transformed",
        prepare_mini=_prepare_mini_transformed,
        automatic=AutomaticPreparation(original="kvasir_vqa_x1"),
        command=prepare_command(
            prepare_transformed, "perturbing pictures", "medtasks prepare kvasir_vqa_x1_transformed"
        ),
    ),
    scoring=replace(BENCHMARK.scoring, levels=()),
)

PLUGIN = Plugin(benchmarks=(BENCHMARK, TRANSFORMED), metrics=ERRORS.rates, layouts=(KVASIR_VQA_X1,))
