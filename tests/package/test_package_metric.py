"""A metric of another package is one class and one line of a task file, and then visible everywhere:
in summaries, on boards, in exports and in Python.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from other_lab import write_site

METRIC = "otherlab_bench_brevity"
LAYOUT = 'BoardLayout("otherlab_dots", (Column("otherlab_dots", Brevity.name, "Shortness"),), shows="text"),'

SELECTS = f"""name = "{METRIC}"
    facts = MetricFacts(label="Shortness", has_floors=True)"""


@pytest.mark.slow
@pytest.mark.parametrize(("layout", "label"), [(LAYOUT, "Shortness"), ("", METRIC)])
def test_a_metric_of_a_package_is_visible_everywhere(
    python: Any, tmp_path: Path, layout: str, label: str
) -> None:
    site = write_site(tmp_path / "site", "" if layout else LAYOUT)
    environment = {"PYTHONPATH": str(site), "MEDTASKS_DATA": "mini"}
    results = tmp_path / "results"
    scored = scored_dots(python, results, **environment)
    assert f"{METRIC} 0.667" in scored  # four of six are not longer than their reference

    page = tmp_path / "page"
    columns = board_columns(python, results, page, **environment)
    assert (METRIC, label) in {(column["metric"], column["label"]) for column in columns}
    exported = "".join(path.read_text("utf-8") for path in (page / "exports").rglob("*.csv"))
    assert METRIC in exported
    code = f"import medtasks; print(medtasks.open({str(results)!r}).scores().to_pandas().metric.tolist())"
    in_python = python("-c", code, **environment)
    assert METRIC in in_python.stdout, in_python.stderr


@pytest.mark.slow
def test_a_multiple_choice_metric_of_a_package_has_floors_and_its_label(
    python: Any, tmp_path: Path
) -> None:
    site = write_site(tmp_path / "site", f'name = "{METRIC}"', SELECTS)
    module = site / "otherlab_bench" / "__init__.py"
    source = module.read_text(encoding="utf-8").replace("MeanMetric,", "MeanMetric, MetricFacts,")
    source = source.replace(LAYOUT, "")
    options = '"choices": {"A": "few", "B": "some", "C": "many"}, "abstention"'
    module.write_text(source.replace('"abstention"', options), encoding="utf-8")
    environment = {"PYTHONPATH": str(site), "MEDTASKS_DATA": "mini"}
    results = tmp_path / "results"
    scored_dots(python, results, **environment)

    columns = board_columns(python, results, tmp_path / "page", **environment)
    (column,) = (one for one in columns if one["label"] == "Shortness")
    floors = column["chance"], column["constant"], column["constant_answer"]
    assert floors == (1 / 3, 1 / 6, "There are 1 dots.")
    assert {one["chance"] for one in columns if one["metric"] == "exact_match"} == {None}


def scored_dots(python: Any, results: Path, **environment: str) -> str:
    """What ``medtasks score`` prints about six answers, whose scores are in ``results``."""
    predictions = results.with_suffix(".csv")
    rows = [f"dots-{number},There are {number} dots{'.' * (number % 3)}" for number in range(1, 7)]
    predictions.write_text("\n".join(["sample_id,response", *rows]) + "\n", encoding="utf-8")
    arguments = (str(predictions), "--task", "otherlab_dots", "--model", "m")
    scored = python("-m", "medtasks", "score", *arguments, "--out", str(results), **environment)
    assert scored.returncode == 0, scored.stderr
    return str(scored.stdout)


def board_columns(
    python: Any, results: Path, page: Path, **environment: str
) -> list[dict[str, Any]]:
    """The columns of the tables on the package's page."""
    arguments = (str(results), "--demonstration", "--out", str(page))
    built = python("-m", "medtasks", "leaderboard", "build", *arguments, **environment)
    assert built.returncode == 0, built.stderr
    board = json.loads((page / "exports" / "board.json").read_text(encoding="utf-8"))
    (benchmark,) = (b for b in board["benchmarks"] if b["name"] == "otherlab_dots")
    return [column for table in benchmark["tables"] for column in table["columns"]]
