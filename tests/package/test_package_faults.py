"""Another lab's package with a fault: one finding or sentence that names file and line, and
everything else works.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from other_lab import write_site

pytestmark = pytest.mark.slow

HERE = "# here"
"""Marks in a planted text the line that the finding must name."""

PLUGIN = "PLUGIN = Plugin("
READ = "yield Dots("
RUN = [
    "-m",
    "lmms_eval",
    "--model",
    "medtasks_baseline",
    "--model_args",
    "policy=oracle",
    "--tasks",
    "otherlab_dots",
]
PREPARE = ["-m", "medtasks", "prepare", "package", "otherlab_dots", "--source"]
LIST = ("-m", "medtasks", "list", "--json")


def without_it(python: Any, site: Path) -> str:
    """The one sentence on why the package is left out, while everything else works."""
    done = python(*LIST, PYTHONPATH=str(site))
    assert done.returncode == 0, done.stderr
    owners = {one["name"]: one["package"] for one in json.loads(done.stdout)}
    assert len(owners) > 50
    assert owners["mi_cxr_tel_single"] == "medtasks"
    assert "otherlab_dots" not in owners
    (sentence,) = done.stderr.splitlines()
    assert "left out: " in sentence
    return str(sentence)


EXITS = """
class Exits(Plugin):
    benchmarks = property(lambda self: exit(0))  # here


PLUGIN = object.__new__(Exits)
OTHER = Plugin("""


@pytest.mark.parametrize(
    ("new", "said"),
    [
        (
            f"raise SystemExit(3)  {HERE}\n{PLUGIN}",
            "is left out: otherlab_bench cannot be imported: SystemExit: 3; fix or uninstall it. (PLACE)",
        ),
        (
            "PLUGIN = 3\nOTHER = Plugin(",
            "otherlab_bench.PLUGIN is a int, expected medtasks.api.Plugin",
        ),
        (EXITS, "medtasks: otherlab-bench 2.1 is left out: SystemExit: 0 (PLACE)"),
    ],
    ids=["ends its import", "no plugin", "exits after its import"],
)
def test_code_that_cannot_be_used_is_one_sentence(
    python: Any, tmp_path: Path, new: str, said: str
) -> None:
    site = write_site(tmp_path / "site", PLUGIN, new)
    place = "{}, line {}".format(*marked(site)) if HERE in new else ""
    assert said.replace("PLACE", place) in without_it(python, site)


@pytest.mark.parametrize("text", ["task: [", "include: otherlab_dots.yaml"])
def test_a_task_file_that_cannot_be_read_is_left_out(
    python: Any, tmp_path: Path, text: str
) -> None:
    site = write_site(tmp_path / "site")
    (site / "otherlab_bench/tasks/dots/otherlab_dots.yaml").write_text(f"{text}\n")
    without_it(python, site)


def test_a_name_that_is_taken_is_one_sentence_with_both_owners(python: Any, tmp_path: Path) -> None:
    site = write_site(tmp_path / "site", tasks__dots__mi_cxr_tel_single="task: mi_cxr_tel_single\n")
    taken = (
        "otherlab-bench 2.1 is left out: its task mi_cxr_tel_single is already defined by medtasks"
    )
    assert taken in without_it(python, site)


def test_a_rubric_that_cannot_be_read_is_left_out(python: Any, tmp_path: Path) -> None:
    site = write_site(tmp_path / "site")
    (site / "otherlab_bench/rubrics/otherlab_bench_count.yaml").write_text("name: [\n")
    code = "from medtasks.metrics.registry import get_metric; print(get_metric('open_total').signature)"
    done = python("-c", code, PYTHONPATH=str(site))
    assert "open_total|" in done.stdout
    assert "rubric otherlab_bench_count of otherlab-bench 2.1 is left out: " in done.stderr


def test_its_data_are_prepared_as_ours_are(python: Any, tmp_path: Path) -> None:
    site = {
        "PYTHONPATH": str(write_site(tmp_path / "site")),
        "MEDTASKS_DATA": str(tmp_path / "data"),
    }
    missing = python("-m", "medtasks", "show", "otherlab_dots", **site)
    assert "otherlab_dots is not prepared" in missing.stderr
    assert "medtasks prepare package otherlab_dots" in missing.stderr
    (tmp_path / "empty").mkdir()
    refused = python(*PREPARE, str(tmp_path / "empty"), **site)
    assert refused.returncode == 1
    assert "6 of the pictures cannot be used" in refused.stderr


def test_an_exit_with_0_in_its_functions_is_no_success(python: Any, tmp_path: Path) -> None:
    site = write_site(tmp_path / "site", READ, f"exit(0)  {HERE}\n        {READ}")
    (tmp_path / "source").mkdir()
    done = python(
        *PREPARE,
        str(tmp_path / "source"),
        PYTHONPATH=str(site),
        MEDTASKS_DATA=str(tmp_path / "data"),
    )
    place = "{}, line {}".format(*marked(site))
    assert done.returncode == 1
    assert (
        done.stderr
        == f"medtasks: {place}: the package ended the program (SystemExit(0)); fix or uninstall it.\n"
    )


def test_a_run_of_it_is_one_sentence_and_fails(python: Any, tmp_path: Path) -> None:
    site = write_site(
        tmp_path / "site", PLUGIN, f"raise SystemExit('no licence')  {HERE}\n{PLUGIN}"
    )
    done = python(*RUN, PYTHONPATH=str(site))
    file, line = marked(site)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith(
        "medtasks: task 'otherlab_dots' cannot be used, because otherlab-bench 2.1 is left out: "
    )
    assert "otherlab_bench cannot be imported: SystemExit: no licence; fix or" in last
    assert f"({file}, line {line})" in last


def test_what_it_prints_while_it_is_imported_does_not_reach_standard_output(
    python: Any, tmp_path: Path
) -> None:
    loud = "print('welcome to our bench')"
    site = write_site(tmp_path / "site", PLUGIN, f"{loud}\n{PLUGIN}")
    done = python(*LIST, PYTHONPATH=str(site))
    assert "otherlab_dots" in {one["name"] for one in json.loads(done.stdout)}
    assert done.stderr == "welcome to our bench\n"


@pytest.mark.parametrize("later", ["aaa_bench", "otherlab_bench"])
def test_the_package_that_came_first_keeps_its_task(
    python: Any, tmp_path: Path, later: str
) -> None:
    site = write_site(tmp_path / "site")
    write_site(site, "otherlab_bench", "aaa_bench", module="aaa_bench")
    os.utime(site / f"{later}-2.1.dist-info", (2e9, 2e9))
    done = python(*LIST, PYTHONPATH=str(site))
    (kept,) = (one["package"] for one in json.loads(done.stdout) if one["name"] == "otherlab_dots")
    names = {"aaa-bench", "otherlab-bench"}
    assert kept in names - {later.replace("_", "-")}
    why = f"its task otherlab_dots is already defined by {kept} 2.1; rename"
    assert done.stderr.startswith(f"medtasks: {later.replace('_', '-')} 2.1 is left out: {why}")


def marked(site: Path) -> tuple[str, int]:
    """File and line of the mark."""
    for path in sorted(site.rglob("*.*")):
        for number, line in enumerate(
            path.read_text("utf-8").splitlines() if path.is_file() else (), start=1
        ):
            if HERE in line:
                return str(path), number
    raise AssertionError("nothing is marked")


TARGET = "Reference answer: {{ target }}"


@pytest.mark.parametrize(
    ("old", "new", "code", "said"),
    [
        (
            "sees: [target]",
            "sees: [target, caption]",
            "MT218",
            "6 of 6 documents, first 'dots-1': ",
        ),
        (
            TARGET,
            "{{ 1 / (target | length - 17) }} {{ target }}",
            "MT218",
            "6 of 6 documents, first 'dots-1': ",
        ),
        (
            'name = "otherlab_bench_brevity"',
            'name = "rougeL"',
            "MT150",
            "its metric rougeL has the name of a score of medtasks; call it otherlab_bench_rougeL, or another.",
        ),
    ],
)
def test_validate_finds_it_once(
    python: Any, tmp_path: Path, old: str, new: str, code: str, said: str
) -> None:
    site = write_site(tmp_path / "site", old, new)
    findings = validated(python, site, "--quick")
    (found,) = (one for one in findings if one["code"] == code)
    assert said in found["message"]


@pytest.mark.parametrize(
    ("old", "said"),
    [
        ("import numpy as np\n", "`process_results` fails on the response"),
        ("return [[one.strip()", "the filter otherlab_bench.FirstLineFilter fails on the response"),
    ],
)
def test_a_metric_or_filter_that_fails_is_named_with_its_line(
    python: Any, tmp_path: Path, old: str, said: str
) -> None:
    site = write_site(
        tmp_path / "site", old, f"raise ValueError('a bad day')  {HERE}\n        {old}"
    )
    (found,) = (one for one in validated(python, site) if one["code"] == "MT507")
    assert said in found["message"]
    assert "ValueError: a bad day" in found["message"]
    assert (found["file"], found["line"]) == marked(site)


STATISTICS, APPLY, PROCESS = (
    "def statistics(self, prediction, reference):",
    "def apply(self, resps, docs):",
    "def process_results(doc, results):",
)


@pytest.mark.parametrize(
    ("function", "returned", "said"),
    [
        (
            STATISTICS,
            "0.5",
            "`statistics` of metric otherlab_bench_brevity (PLACE) returned 0.5, expected a numpy",
        ),
        (
            STATISTICS,
            "['1', '1']",
            "returned ['1', '1'], expected a numpy array of 2 numbers, its `width`",
        ),
        (
            APPLY,
            "None",
            "filter otherlab_bench.FirstLineFilter (PLACE) returned None, expected a list with one entry",
        ),
        (
            APPLY,
            "[None for _ in docs]",
            "(PLACE) returned None, expected a filtered response, or a list of them",
        ),
        (
            PROCESS,
            "0.5",
            "`process_results` (PLACE) returned 0.5, expected a mapping of metrics to what",
        ),
    ],
)
def test_a_wrong_return_value_names_function_line_and_what_came_back(
    python: Any, tmp_path: Path, function: str, returned: str, said: str
) -> None:
    indent = " " * (4 if function == PROCESS else 8)
    site = write_site(tmp_path / "site", function, f"{function}  {HERE}\n{indent}return {returned}")
    file, line = marked(site)
    (found,) = (one for one in validated(python, site) if one["code"] == "MT507")
    assert said.replace("PLACE", f"{file}, line {line}") in found["message"]
    assert (found["file"], found["line"]) == (file, line)
    if returned not in ("0.5", "None"):  # a run takes another 15 s: one for each function
        return
    done = python(*RUN, "--output_path", str(tmp_path / "out"), PYTHONPATH=str(site))
    assert done.returncode == 1
    assert f"({file}, line {line}) returned" in done.stderr.strip().splitlines()[-1]


def validated(python: Any, site: Path, *options: str) -> list[dict[str, Any]]:
    """Findings about the package, while a task of ours is checked beside it without one."""
    names = ["otherlab_dots", "med_cmr_open_su"]
    done = python("-m", "medtasks", "validate", *names, "--json", *options, PYTHONPATH=str(site))
    assert "Traceback" not in done.stderr, done.stderr
    report = json.loads(done.stdout)
    findings = [*report["tasks"], *(one for ones in report["data"].values() for one in ones)]
    assert not [one for one in findings if one["where"] == "med_cmr_open_su"]
    assert done.returncode == int(any(one["severity"] == "error" for one in findings))
    return findings
