"""Budgets in operations, not in time: what scoring must not do once for every group, or at all."""

from __future__ import annotations

import gc
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_samples import made_sample

from medtasks.catalog.registry import get_benchmark
from medtasks.harness import run_tasks
from medtasks.metrics.registry import get_metric
from medtasks.runs.samples import Sample
from medtasks.scoring import run_tables
from medtasks.scoring.group_scores import score_samples
from medtasks.scoring.run_folder import RunFolder
from medtasks.scoring.run_tables import RunTables
from medtasks.scoring.verified_runs import scored_record


def sample(number: int, groups: int) -> Sample:
    """One of two samples of a group, each in a cluster of its own."""
    document = {"target": "A", "qtype": f"q{number % groups}", "group_type": "TEL"}
    return made_sample("mi_cxr_tel_single", number, number % 3 == 0, document=document)


def test_a_metric_is_called_a_few_times_per_group_whatever_its_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    metric = get_metric("accuracy")
    score, calls = metric.score, list[int]()

    def counted(totals: Any) -> Any:
        calls.append(np.size(totals) // 2)
        return score(totals)

    monkeypatch.setattr(metric, "score", counted)
    for groups, members in ((2, 4), (2, 80), (40, 80)):
        calls.clear()
        found = score_samples(
            [sample(number, groups) for number in range(members)],
            get_benchmark("mi_cxr"),
            ["qtype"],
        )
        assert len(found.breakdowns["qtype"]) == groups
        # for the whole and each group: the value twice, and the scores without each cluster at once
        assert len(calls) == 3 * (groups + 1)
        assert sum(calls) == 2 * (groups + 1) + 2 * members


def test_few_samples_are_in_memory_while_a_run_is_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = run_tasks("medtasks_baseline", "policy=oracle", ["kvasir_vqa_x1_level1"], tmp_path)
    alive, add = list[int](), RunTables.add

    def counted(tables: RunTables, task: str, samples: Sequence[Sample]) -> None:
        alive.append(sum(type(one) is Sample for one in gc.get_objects()))
        add(tables, task, samples)

    monkeypatch.setattr(run_tables, "PART_SIZE", 3)
    monkeypatch.setattr(RunTables, "add", counted)
    gc.collect()
    before = sum(type(one) is Sample for one in gc.get_objects())
    scored_record(*RunFolder(folder).read(), own=True, whole=True)
    assert len(alive) > 10
    assert (
        max(alive) - before <= 4 * 3
    )  # as read, with its document, and as scored, and a part before


def test_a_copy_of_a_sample_has_no_names_of_fields() -> None:
    assert (
        sample(1, 1).model_copy(update={"status": "none", "filtered": ""}).model_fields_set == set()
    )


SCORED = """
import json, sys
from medtasks.cli.app import main
from medtasks.catalog.marked_yaml import parse_yaml
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
parsed = parse_yaml.cache_info()
loaded = [name for name in ("nltk", "torch", "transformers", "scipy.stats", "matplotlib") if name in sys.modules]
print(json.dumps({"loaded": loaded, "parsed": parsed.misses, "kept": parsed.currsize}))
"""


@pytest.mark.slow
def test_multiple_choice_is_scored_without_a_model_library_and_parses_each_file_once(
    python: Any, tmp_path: Path
) -> None:
    folder = run_tasks("medtasks_baseline", "policy=uniform", ["mi_cxr_tel"], tmp_path / "run")
    for _ in ("first", "again"):
        ended = python("-c", SCORED, "score", str(folder), MEDTASKS_CACHE=str(tmp_path / "cache"))
        found = json.loads(ended.stdout.splitlines()[-1])
        assert found["loaded"] == []
        assert found["parsed"] == found["kept"] > 0
