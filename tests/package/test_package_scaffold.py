"""``medtasks new``: what it writes is installed, validated, tested and run as it stands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from medtasks.cli.scaffold import names_of, write_package
from medtasks.core.errors import UsageError
from medtasks.judge.stub import StubJudge

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).parent.parent.parent
DOCS = REPOSITORY / "docs"
LABS = ("acme", "beta")
TOP = {
    "acme_open": {"chrf": 100.0, "acme_open_judged": 1.0},
    "beta_open": {"chrf": 100.0, "beta_open_judged": 1.0},
    "acme_streaming": {"exact_match": 1.0, "acme_streaming_on_time": 1.0},
    "beta_streaming": {"exact_match": 1.0, "beta_streaming_on_time": 1.0},
}
"""Of two labs that use the same variants, and so give the same names to their filters, metrics,
rubrics, templates.
"""
PACKAGES = {name: name.title().replace("_", "-") for name in TOP}
"""The packages by their tasks."""
PIP = ["-m", "pip", "install", "-q", "--no-deps", "--no-index", "--no-build-isolation", "--target"]


def test_the_tutorial_can_be_followed(tmp_path: Path) -> None:
    """Every command of the tutorial's block, but that pip installs into a folder of the test's
    own; the page's task with rotated options is added first.
    """
    text = (DOCS / "third-parties.md").read_text(encoding="utf-8")
    block = text.split("<!-- tutorial commands -->\n```bash\n")[1].split("```")[0]
    circular = text.split("```yaml\ninclude: acme_dots.yaml\n")[1].split("```")[0]
    (tmp_path / "circular.yaml").write_text("include: acme_dots.yaml\n" + circular)
    script = f"""
        set -euo pipefail
        pip() {{
            cp circular.yaml acme-bench/src/acme_bench/tasks/acme_dots/acme_dots_circular.yaml
            "$PYTHON" {" ".join(PIP)} "$PYTHONPATH" "${{@: -1}}"
        }}
        medtasks() {{ "$PYTHON" -m medtasks "$@"; }}
        python() {{ "$PYTHON" "$@"; }}
        {block}
        python -m lmms_eval --model medtasks_baseline --model_args policy=oracle \\
          --tasks acme_dots_circular --output_path results/circular"""
    site = {"PYTHON": sys.executable, "PYTHONPATH": str(tmp_path / "site")}
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env={**os.environ, **site},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    assert "no score has changed" in done.stdout
    assert task_scores(tmp_path / "results" / "oracle", "acme_dots") == {"accuracy": 1.0}
    guessed = task_scores(tmp_path / "results" / "uniform", "acme_dots")
    assert 0.05 < guessed["accuracy"] < 0.5
    rotated = task_scores(tmp_path / "results" / "circular", "acme_dots_circular")
    assert rotated["accuracy"] == 1.0
    page = (tmp_path / "board" / "benchmark-acme_dots.html").read_text(encoding="utf-8")
    assert page.index(">oracle<") < page.index(
        ">uniform (seed 0)<"
    )  # two rows, the better one first
    assert "sign-flip" in done.stdout  # of the comparison


def task_scores(folder: Path, task: str) -> dict[str, float]:
    """The scores of a task in the one run below ``folder``."""
    (run,) = folder.rglob("*_medtasks")
    tasks = json.loads((run / "scores.json").read_text(encoding="utf-8"))["tasks"]
    return {name: score["value"] for name, score in tasks[task]["metrics"].items()}


def test_two_packages_work_as_generated_side_by_side(
    python: Any, new_python: Any, tmp_path: Path
) -> None:
    alone: dict[str, str] = {}
    for lab in LABS:
        names = [name for name in TOP if name.startswith(lab)]
        for name in names:
            write_package(tmp_path / name, PACKAGES[name], name.partition("_")[2])
        built = python(*PIP, str(tmp_path / "site"), *(str(tmp_path / name) for name in names))
        assert built.returncode == 0, built.stderr
        alone = alone or hashes(python, tmp_path / "site")
    site = {"PYTHONPATH": str(tmp_path / "site")}

    listed = python("-m", "medtasks", "list", "--json", **site)
    assert listed.stderr == ""
    brought = {
        one["name"]: one["package"]
        for one in json.loads(listed.stdout)
        if one["package"] != "medtasks"
    }
    assert brought == PACKAGES
    shown = python("-c", "from medtasks.cli.demo import groups; print(*sorted(groups()))", **site)
    assert shown.stdout.split() == [
        "kvasir_vqa_x1",
        "med_cmr",
        "medstreambench",
        "mi_cxr",
    ]  # no guest's
    both = hashes(python, tmp_path / "site")
    assert {
        name: both.get(name) for name in alone
    } == alone  # the second lab's change nothing of the first's

    checked = python("-m", "medtasks", "validate", *TOP, "--strict", "--json", **site)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    report = json.loads(checked.stdout)
    findings = [*report["tasks"], *(one for ones in report["data"].values() for one in ones)]
    assert [one for one in findings if one["severity"] != "note"] == []

    for name in ("acme_open", "beta_streaming"):
        tested = new_python(
            "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path / name), **site
        )
        assert tested.returncode == 0, tested.stdout + tested.stderr

    with StubJudge() as stub:
        done = python(
            "-c", RUNS, *TOP, **site, MEDTASKS_JUDGE=f"model=stub-judge,base_url={stub.url}"
        )
    assert done.returncode == 0, done.stderr[-2000:]
    for name, scores in TOP.items():
        assert task_scores(tmp_path / "out", name) == scores
        own = [metric for metric in scores if metric.startswith(name)]
        assert all(
            f"{metric} 1.000" in done.stdout for metric in own
        )  # they are in the summary, too

    build = [
        "leaderboard",
        "build",
        str(tmp_path / "out"),
        "--demonstration",
        "--out",
        str(tmp_path / "page"),
    ]
    built = python("-m", "medtasks", *build, **site)
    assert built.returncode == 0, built.stderr
    assert all((tmp_path / "page" / f"benchmark-{name}.html").is_file() for name in TOP)

    strip = [
        "leaderboard",
        "strip",
        str(tmp_path / "guessed"),
        "--out",
        str(tmp_path / "stripped/20261124_medtasks"),
    ]
    stripped = python("-m", "medtasks", *strip, **site)
    assert stripped.stdout.startswith("written:"), stripped.stdout + stripped.stderr
    guessed = task_scores(tmp_path / "guessed", "beta_streaming")
    assert guessed == task_scores(tmp_path / "stripped", "beta_streaming")
    assert guessed["beta_streaming_on_time"] != 1.0


RUNS = """
import sys
from pathlib import Path
from medtasks.harness import run_tasks

run_tasks("medtasks_baseline", "policy=oracle", sys.argv[1:], Path("out"), limit=8)
# its own score is made of the answers of rounds
run_tasks("medtasks_baseline", "policy=uniform,seed=1", ["beta_streaming"], Path("guessed"))
"""


HASHES = """
import json
from medtasks.runs.protocol import protocol_hash
from medtasks.catalog.spec import load_specs

print(json.dumps({n: protocol_hash(s, {}) for n, s in load_specs().items() if s.kind == "task"}))
"""


def hashes(python: Any, site: Path) -> dict[str, str]:
    """The protocol hash of every task of the packages in ``site``."""
    done = python("-c", HASHES, PYTHONPATH=str(site))
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_an_editable_installation_is_found_from_the_directory_above(
    python: Any, tmp_path: Path
) -> None:
    """There, with ``python -m``, a directory named like the module would hide one that only an
    import hook can find.
    """
    write_package(tmp_path / "acme", "acme")
    build = "import os; os.chdir('acme'); from setuptools import build_meta; build_meta.build_editable('..')"
    built = python("-c", build)
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with ZipFile(wheel) as archive:
        (path,) = (name for name in archive.namelist() if name.endswith(".pth"))
        assert archive.read(path).decode().strip() == str(tmp_path / "acme" / "src")


@pytest.mark.parametrize("variant", ["mcq", "open", "streaming"])
def test_it_is_linted_as_generated(new_python: Any, tmp_path: Path, variant: str) -> None:
    write_package(tmp_path, "a-lab-with-a-name.that_is_as-long-as-can", variant)
    checked = new_python("-m", "ruff", "check", "--no-cache", ".")
    assert checked.returncode == 0, checked.stdout
    assert not [
        path
        for path in tmp_path.rglob("*")
        if "__module__" in path.name or path.name.endswith(".j2.j2")
    ]


def test_it_is_typed_as_generated(new_python: Any, tmp_path: Path) -> None:
    sources = tmp_path / "sources"
    subprocess.run([REPOSITORY / ".ci" / "installed-tree", sources], check=True)
    packages = tmp_path / "packages"
    for variant in ("mcq", "open", "streaming"):
        write_package(packages / variant, f"acme-{variant}", variant)
    checked = new_python(
        *("-m", "mypy", "--follow-imports", "silent", "--cache-dir", str(tmp_path / "cache")),
        *("--config-file", str(packages / "mcq" / "pyproject.toml")),
        *map(str, packages.glob("*/src/*")),
        MYPYPATH=str(sources),
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize(
    ("package", "module"),
    [("acme-bench", "acme_bench"), ("Acme.Bench", "acme_bench"), ("a__b", "a_b"), ("x1", "x1")],
)
def test_the_module_is_named_after_the_package(package: str, module: str) -> None:
    assert names_of(package) == (module, module)


@pytest.mark.parametrize(
    ("package", "benchmark", "said"),
    [
        ("../bench", None, "package name '../bench'"),
        ("bench\n", None, "package name"),
        ("b" * 41, None, "at most 40"),
        ("1bench", None, "imported as 1bench"),
        ("class", None, "imported as class"),
        ("json", None, "imported as json, which exists"),
        ("numpy", None, "imported as numpy, which exists"),
        ("acme", "Acme", "benchmark name 'Acme'"),
        ("mi-cxr", None, "'mi_cxr' is taken by medtasks"),
        ("mmbench-en", None, "'mmbench_en' is taken by lmms-eval"),
    ],
)
def test_a_name_that_cannot_be_used_is_refused(
    tmp_path: Path, package: str, benchmark: str | None, said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        write_package(tmp_path / "new", package, benchmark=benchmark)
    assert not (tmp_path / "new").exists()


def test_a_folder_that_holds_something_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="is not empty"):
        write_package(tmp_path, "acme-bench")
    with pytest.raises(UsageError, match="is not empty"):
        write_package(tmp_path / "notes.txt", "acme-bench")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_the_command_says_what_to_do_next(medtasks: Any, tmp_path: Path) -> None:
    done = medtasks("new", "acme-bench", "--variant", "open", "--out", str(tmp_path / "new"))
    assert done.returncode == 0, done.stderr
    assert f"pip install -e '{tmp_path / 'new'}[test]'" in done.stdout
    assert "medtasks validate acme_bench" in done.stdout
    assert (tmp_path / "new" / "src" / "acme_bench" / "rubrics" / "acme_bench_judge.yaml").is_file()


def test_the_reference_names_every_key() -> None:
    from medtasks.catalog.harness_keys import Generation, MetricEntry
    from medtasks.catalog.rubric import Aspect, Rubric
    from medtasks.catalog.task_model import GroupFile, Metadata, TaskFile

    text = (DOCS / "yaml-reference.md").read_text(encoding="utf-8")
    models = (TaskFile, GroupFile, Metadata, MetricEntry, Generation, Rubric, Aspect)
    known = [key for model in models for key in model.model_fields] + [
        "include",
        "stage1_template",
        "system_template",
    ]
    assert [key for key in known if f"`{key}`" not in text] == []
