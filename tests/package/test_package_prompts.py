"""Another lab's open question with paraphrased prompts: a YAML file of a few lines and one more
template.
"""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from other_lab import write_site

pytestmark = pytest.mark.slow

TASK = "otherlab_dots_prompts"
FILE = """
    include: otherlab_dots.yaml
    task: otherlab_dots_prompts
    process_docs: !function medtasks.benchmarks.variants.otherlab_dots_prompts
    metadata:
      version: 1.0
      benchmark: otherlab_dots
      title: "Counting dots, two prompts"
      compare_with: otherlab_dots
      prompts: [otherlab_bench/dots.j2, otherlab_bench/dots_2.j2]
    """

ENTRY = """- metric: exact_match
    aggregation: !function medtasks.benchmarks.aggregations.exact_match"""


def site_of(folder: Path, template: str, *change: str) -> dict[str, str]:
    site = write_site(folder / "site", *change, tasks__dots__otherlab_dots_prompts=dedent(FILE))
    path = site / "otherlab_bench" / "templates" / "otherlab_bench" / "dots_2.j2"
    path.write_text(template, encoding="utf-8")
    return {"PYTHONPATH": str(site)}


def test_it_is_validated_and_run(python: Any, tmp_path: Path) -> None:
    site = site_of(tmp_path, "Please count. {{ question }} Use one sentence.")
    checked = python("-m", "medtasks", "validate", TASK, "--strict", **site)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    shown = python("-m", "medtasks", "show", TASK, "--doc", "1", **site)
    assert "Please count. How many dots are there? Use one sentence." in shown.stdout
    assert "otherlab_bench/dots.j2 (prompt hash" in shown.stdout.replace(str(tmp_path), "")
    run = [
        "-m",
        "lmms_eval",
        "--model",
        "medtasks_baseline",
        "--model_args",
        "policy=oracle",
        "--tasks",
        TASK,
    ]
    done = python(*run, "--output_path", str(tmp_path / "out"), **site)
    assert done.returncode == 0, done.stderr[-2000:]
    (folder,) = (tmp_path / "out").rglob("*_medtasks")
    scores = json.loads((folder / "scores.json").read_text(encoding="utf-8"))["tasks"][TASK]
    values = {name: score["value"] for name, score in scores["metrics"].items()}
    assert (values["exact_match"], values["prompt_1"], values["prompt_2"]) == (1.0, 1.0, 1.0)
    assert (scores["items"], scores["samples"]) == (6, 12)
    assert values["prompt_agreement"] is None  # open answers have no options
    assert scores["metrics"]["prompt_agreement"]["reason"] == "it applies to no item here"


def test_what_is_wrong_is_one_finding(python: Any, tmp_path: Path) -> None:
    change = (ENTRY, ENTRY.replace("exact_match", "bleu"))
    site = site_of(tmp_path, "Please count. {{ question }}", *change)
    done = python("-m", "medtasks", "validate", TASK, "--json", **site)
    found = {one["code"]: one["message"] for one in json.loads(done.stdout)["tasks"]}
    assert "the first metric is bleu, expected a mean of values from 0 to 1" in found["MT143"]
