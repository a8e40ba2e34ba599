"""Kinds of error that a task file of another lab declares: counted by hand, on the board, refused
if they clash.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from catalogs import fresh
from other_lab import write_site

from medtasks.benchmarks import mi_cxr
from medtasks.catalog.spec import load_spec

TITLE = 'title: "Counting dots"'
DECLARED = f"""{TITLE}
  errors:
    - name: otherlab_bench_missed
      label: Missed dots
      gold: [There are 1 dots, "there are 2 DOTS."]
      answer: no dots
      harms: true
    - {{name: otherlab_bench_other, label: Another number, gold_other_than: There are 6 dots.,
        answer_other_than: [There are 3 dots., no dots]}}
    - {{name: otherlab_bench_right, label: Three found, gold: There are 3 dots., answer: there are 3 dots,
        higher_is_better: true}}"""
SCORES = """
import json
from medtasks.benchmarks.documents import task_documents
from medtasks.catalog.registry import get_benchmark
from medtasks.runs.replies import Reply
from medtasks.runs.samples import Sample
from medtasks.scoring.scored_samples import scored_samples
from medtasks.scoring.group_scores import score_samples
from medtasks.catalog.spec import load_spec

spec = load_spec("otherlab_dots")
for replies in REPLIES:
    answered = [
        Sample.answered("otherlab_dots", document, (Reply("", failed="timeout") if text is None else Reply(text),))
        for document, text in zip(task_documents("otherlab_dots"), replies, strict=True)
    ]
    scores = score_samples(scored_samples(spec, answered), get_benchmark("otherlab_dots")).metrics.items()
    print(json.dumps({name: one.model_dump(mode="json") for name, one in scores if name.endswith(ENDS)}))
""".replace("ENDS", "('_missed', '_other', '_right')")


def test_cases_and_errors_are_counted_by_the_texts_of_gold_and_answer(
    python: Any, tmp_path: Path
) -> None:
    site = write_site(tmp_path / "site", TITLE, DECLARED)
    answers = ("No dots.", "There are 1 dots.", "There are 3 dots", "", "nothing", "no dots")
    failed = (None, "no dots", *["There are 3 dots."] * 4)
    done = python("-c", SCORES.replace("REPLIES", repr([answers, failed])), PYTHONPATH=str(site))
    assert done.returncode == 0, done.stderr
    found, of_failed = map(json.loads, done.stdout.splitlines())
    assert {name: (one["value"], one["samples"]) for name, one in found.items()} == {
        "otherlab_bench_missed": (
            1 / 2,
            2,
        ),  # rows 1 and 2; only the first says that there are none
        "otherlab_bench_other": (
            2 / 4,
            5,
        ),  # all but row 6: "1 dots" and "nothing"; an empty response leaves it open
        "otherlab_bench_right": (1.0, 1),
    }
    assert found["otherlab_bench_missed"]["signature"] == (
        "otherlab_bench_missed|ratio:of-sums|cases:gold=there-are-1-dots,there-are-2-dots|errors:answer=no-dots"
        "|texts:normalised-v2|unanswered:left-out"
    )
    assert found["otherlab_bench_missed"]["interval"] is not None
    missed = of_failed["otherlab_bench_missed"]  # row 1 has no response: neither an error nor none
    assert (missed["value"], missed["samples"], missed["answered"], missed["bounds"]) == (
        1.0,
        2,
        1,
        [0.5, 1.0],
    )


OF_OPTIONS = """
include: _base.yaml
task: otherlab_tel
output_type: generate_until
process_docs: !function medtasks.benchmarks.mi_cxr.tel_single
metadata:
  version: 1.0
  benchmark: mi_cxr
  title: "When?"
  errors:
    - {name: otherlab_bench_null, label: Missed, gold_other_than: None of these intervals, harms: true,
       answer: none of these intervals}
    - {name: otherlab_bench_not_null, label: Invented, gold: None of these intervals, harms: true,
       answer_other_than: None of these intervals}
"""


LAYOUTS = """
import json
from medtasks.benchmarks.layouts import all_layouts

layout = all_layouts()["otherlab_dots"]
tables = {table.name: [[column.metric, column.remark] for column in table.columns] for table in layout.tables}
print(json.dumps([tables, {plot.name: [column.metric for column in plot.columns] for plot in layout.plots}]))
"""


@pytest.mark.slow
def test_a_layout_of_the_package_gets_table_and_figure(python: Any, tmp_path: Path) -> None:
    done = python("-c", LAYOUTS, PYTHONPATH=str(write_site(tmp_path / "site", TITLE, DECLARED)))
    assert done.returncode == 0, done.stderr
    tables, plots = json.loads(done.stdout)
    assert tables == {
        "otherlab-dots-errors": [
            ["otherlab_bench_missed", "could harm a patient"],
            ["otherlab_bench_other", "no harm by itself"],
            ["otherlab_bench_right", ""],
        ],
        "other-metrics": [["exact_match", ""], ["otherlab_bench_judged", ""]],
    }
    assert plots == {"otherlab-dots-errors": ["otherlab_bench_missed", "otherlab_bench_other"]}


WRONG = {
    "otherlab_bench_missed": (
        "dots_missed",
        "its name must start with that of the package; call it otherlab_bench_do",
    ),
    "otherlab_bench_other": ("otherlab_bench_brevity", "another metric has that name; rename it"),
    "otherlab_bench_right": (
        "otherlab_bench_null",
        "otherlab_tel declares it otherwise; rename it, or make them equal",
    ),
}
"""Names that cannot be used, and why, by the declared ones that they replace."""


@pytest.mark.slow
def test_names_that_cannot_be_used_are_refused_by_validation_and_scoring(
    python: Any, tmp_path: Path
) -> None:
    text = DECLARED
    for name, (wrong, _) in WRONG.items():
        text = text.replace(name, wrong)
    base = (Path(mi_cxr.__file__).parent / "tasks" / "mi_cxr" / "_base.yaml").read_text(
        encoding="utf-8"
    )
    tasks = {"tasks__tel__otherlab_tel": OF_OPTIONS, "tasks__tel___base": base}
    site = write_site(tmp_path / "site", TITLE, text, **tasks)
    checked = python("-m", "medtasks", "validate", "otherlab_dots", "--json", PYTHONPATH=str(site))
    found = [one for one in json.loads(checked.stdout)["tasks"] if one["code"] == "MT145"]
    assert [one["field"] for one in found] == [
        f"metadata.errors[{number}].name" for number in range(3)
    ]
    for one, (wrong, why) in zip(found, WRONG.values(), strict=True):
        assert wrong in Path(one["file"]).read_text(encoding="utf-8").splitlines()[one["line"] - 1]
        assert why in one["message"]
    done = python("-c", SCORES.replace("REPLIES", repr([["no dots"] * 6])), PYTHONPATH=str(site))
    wrong, why = WRONG["otherlab_bench_missed"]
    assert (
        f"MedtasksError: task otherlab_dots: error {wrong} is declared in metadata.errors, but {why}"
        in done.stderr
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            DECLARED.replace("otherlab_bench_missed", "dots_missed"),
            "error dots_missed is declared in metadata.errors",
        ),
        (
            f"{TITLE}\n  pooled: [by_dots]",
            "otherlab_dots: metadata.pooled names 'by_dots', but otherlab_dots has none; correct ",
        ),
    ],
    ids=["error", "pooled"],
)
def test_a_name_that_scoring_would_refuse_ends_a_run_before_the_model_is_asked(
    python: Any, tmp_path: Path, given: str, sentence: str
) -> None:
    site = write_site(tmp_path / "site", TITLE, given)
    command = ["-m", "lmms_eval", "--model", "medtasks_baseline", "--model_args", "policy=oracle"]
    done = python(*command, "--tasks", "otherlab_dots", PYTHONPATH=str(site), MEDTASKS_DATA="mini")
    assert done.returncode != 0
    assert sentence in done.stderr
    assert "replies are in" not in done.stderr
    assert "Traceback" not in done.stderr


def test_a_module_that_moves_and_declared_errors_leave_the_hash_of_a_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that earlier runs stay comparable."""
    process = "otherlab_bench.process_results"
    sites = (
        write_site(tmp_path / "plain"),
        write_site(tmp_path / "moved", process, "otherlab_bench.scoring.process_results"),
        write_site(tmp_path / "declared", TITLE, DECLARED),
        write_site(tmp_path / "renamed", process, "otherlab_bench.process_answers"),
    )
    hashes = []
    for site in sites:
        with monkeypatch.context() as patch:
            patch.syspath_prepend(str(site))
            patch.delitem(sys.modules, "otherlab_bench", raising=False)
            with fresh():
                hashes.append(load_spec("otherlab_dots").yaml_hash)
    monkeypatch.delitem(sys.modules, "otherlab_bench")
    plain, moved, declared, renamed = hashes
    assert plain == moved == declared != renamed
