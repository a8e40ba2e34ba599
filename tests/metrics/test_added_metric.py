"""A metric of ours is one module and one line of a task file, and then visible everywhere: in
scores, summaries, boards, exports, Python and the documentation.
"""

from __future__ import annotations

import csv
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import medtasks.adapters
import medtasks.leaderboard
import medtasks.templates
import pytest

import medtasks

DOCS = Path(__file__).parent.parent.parent / "docs"
METRIC, TASK = "same_length", "kvasir_vqa_x1_level1"
MODULE = '''"""Answers as long as their references."""

import numpy as np

from medtasks.metrics.base import MeanMetric, mean_table, sign


class SameLength(MeanMetric):
    """Share of answers with as many words as the reference (0..1)."""

    name = "same_length"
    signature = sign(name, unit="words")

    def table(self, pairs):
        return mean_table([len(answer.split()) == len(gold.split()) for answer, gold in pairs])


METRICS = (SameLength(),)
'''
LINE = (
    f"  - {{metric: {METRIC}, aggregation: !function medtasks.benchmarks.aggregations.{METRIC}, "
    "higher_is_better: true}\n"
)

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Copy:
    """A copy of medtasks with one more metric; ``results`` are its scores of three answers."""

    python: Any
    environment: dict[str, str]
    printed: str
    results: Path

    def run(self, *arguments: str) -> str:
        """What a Python process with the copy prints."""
        done = self.python(*arguments, **self.environment)
        assert done.returncode == 0, done.stdout + done.stderr
        return str(done.stdout)


@pytest.fixture
def copy(new_python: Any, tmp_path: Path) -> Copy:
    tree = tmp_path / "tree" / "medtasks"
    shutil.copytree(medtasks.__path__[0], tree)
    for package in (medtasks.adapters, medtasks.leaderboard, medtasks.templates):
        name = package.__name__.rpartition(".")[2]
        shutil.copytree(package.__path__[0], tree / name, dirs_exist_ok=True)
    (tree / "metrics" / "same_length.py").write_text(MODULE, encoding="utf-8")
    task_file = tree / "benchmarks/kvasir_vqa_x1/tasks/kvasir_vqa_x1/_base.yaml"
    before = task_file.read_text(encoding="utf-8")
    assert before.count("cluster_key:") == 1
    after = before.replace("cluster_key:", f"{LINE}cluster_key:")
    task_file.write_text(after, encoding="utf-8")
    environment = {"PYTHONPATH": str(tree.parent), "MEDTASKS_DATA": "mini"}
    return scored(Copy(new_python, environment, "", tmp_path / "results"))


def scored(copy: Copy) -> Copy:
    """The copy with scores of one answer in two that is as long as its reference."""
    code = f"""
import json
from medtasks.benchmarks.documents import task_documents
for number, document in enumerate(task_documents({TASK!r})):
    words = ["word"] * (len(document["target"].split()) + number % 2)
    print(json.dumps({{"sample_id": document["sample_id"], "response": " ".join(words)}}))
"""
    predictions = copy.results.with_suffix(".jsonl")
    predictions.write_text(copy.run("-c", code), encoding="utf-8")
    arguments = [str(predictions), "--task", TASK, "--model", "m", "--out", str(copy.results)]
    printed = copy.run("-m", "medtasks", "score", *arguments)
    return Copy(copy.python, copy.environment, printed, copy.results)


def test_a_metric_in_one_module_and_one_line_is_visible_everywhere(
    copy: Copy, tmp_path: Path
) -> None:
    (file,) = copy.results.rglob("scores.json")
    score = json.loads(file.read_text(encoding="utf-8"))["tasks"][TASK]["metrics"][METRIC]
    assert score["value"] == pytest.approx(0.5, abs=0.1)
    assert f"{METRIC} {score['value']:.3f}" in copy.printed

    page = tmp_path / "page"
    copy.run("-m", "medtasks", "leaderboard", "build", str(copy.results), "--demonstration",
             "--out", str(page))  # fmt: skip
    html = (page / "benchmark-kvasir_vqa_x1.html").read_text(encoding="utf-8")
    assert "Other metrics" in html
    exports = page / "exports" / "kvasir_vqa_x1"
    lines = csv.DictReader((exports / "scores.csv").read_text(encoding="utf-8").splitlines())
    values = {line["value"] for line in lines if line["metric"] == METRIC}
    assert values == {repr(score["value"])}
    markdown = (exports / "other-metrics.md").read_text(encoding="utf-8")
    assert METRIC in markdown.replace("\\", "")

    code = f"import medtasks; run, = medtasks.open({str(copy.results)!r}); print(run.scores().to_pandas().metric.tolist())"
    assert METRIC in copy.run("-c", code)

    code = f"import sys; sys.path.append({str(DOCS)!r}); import hooks; print(hooks.metrics())"
    assert f"| `{METRIC}` | fraction | highest | Share of answers" in copy.run("-c", code)
    assert TASK in copy.run("-m", "medtasks", "show", TASK)
    validated = copy.run("-m", "medtasks", "validate", "kvasir_vqa_x1", "--strict")
    assert "0 errors, 0 warnings" in validated
