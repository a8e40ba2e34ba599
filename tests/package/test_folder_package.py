"""``medtasks new PACKAGE --package --from FOLDER``: a benchmark folder becomes a package."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from drawn_folder import BENCHMARK, OPEN, draw_folder

from medtasks.cli.scaffold.folder_package import write_folder_package
from medtasks.core.errors import MedtasksError, UsageError

PIP = ["-m", "pip", "install", "-q", "--no-deps", "--no-index", "--no-build-isolation", "--target"]
TASKS = ("drawn_vqa", "drawn_vqa_circular")
RUN = """
import sys
from pathlib import Path
from medtasks.harness import run_tasks

run_tasks("medtasks_baseline", "policy=noisy_oracle", sys.argv[2:], Path(sys.argv[1]))
"""


def files_in(folder: Path) -> set[str]:
    """The files below a directory, without pictures."""
    paths = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".png"]
    return {path.relative_to(folder).as_posix() for path in paths}


def test_the_package_has_only_what_it_needs(tmp_path: Path) -> None:
    folder = draw_folder(tmp_path / "drawn")
    write_folder_package(tmp_path / "package", "acme-drawn", folder)
    assert files_in(tmp_path / "package") == {
        "README.md",
        "pyproject.toml",
        "src/drawn_vqa/__init__.py",
        "src/drawn_vqa/benchmark.yaml",
        "src/drawn_vqa/rows.csv",
        "src/drawn_vqa/tasks/drawn_vqa/drawn_vqa.yaml",
        "src/drawn_vqa/tasks/drawn_vqa/drawn_vqa_circular.yaml",
        "src/drawn_vqa/tasks/placeholder.jsonl",
        "src/drawn_vqa/templates/drawn_vqa/question.j2",
        "tests/test_benchmark.py",
    }
    module = tmp_path / "package" / "src" / "drawn_vqa"
    assert len(list(module.glob("pictures/*.png"))) == len(list(folder.glob("pictures/*.png")))
    assert (module / "benchmark.yaml").read_text() == BENCHMARK
    assert len((module / "__init__.py").read_text().splitlines()) < 20


def test_the_rubric_is_packaged_under_its_name(tmp_path: Path) -> None:
    write_folder_package(tmp_path / "new", "acme-drawn", draw_folder(tmp_path / "drawn", OPEN))
    module = tmp_path / "new" / "src" / "drawn_vqa"
    assert (module / "rubrics" / "drawn_vqa_judged.yaml").is_file()
    assert (module / "templates" / "drawn_vqa" / "judge.j2").is_file()
    assert "rubric" not in (module / "benchmark.yaml").read_text()
    assert '"rubrics/*"' in (tmp_path / "new" / "pyproject.toml").read_text()


def test_files_outside_of_the_folder_stay_where_they_are(tmp_path: Path) -> None:
    folder = draw_folder(tmp_path / "drawn")
    (folder / "rows.csv").rename(tmp_path / "rows.csv")
    (folder / "pictures").rename(tmp_path / "pictures")
    text = BENCHMARK.replace("data: rows", "data: ../rows").replace("images: p", "images: ../p")
    (folder / "benchmark.yaml").write_text(text)
    write_folder_package(tmp_path / "new", "acme-drawn", folder)
    module = tmp_path / "new" / "src" / "drawn_vqa"
    described = (module / "benchmark.yaml").read_text()
    assert f'data: "{tmp_path / "rows.csv"}"\n' in described
    assert f'images: "{tmp_path / "pictures"}"\n' in described
    assert not list(module.rglob("*.png"))


def test_a_folder_that_is_its_own_picture_directory_is_copied_without_code(tmp_path: Path) -> None:
    folder = draw_folder(tmp_path / "drawn")
    for picture in (folder / "pictures").glob("*.png"):
        picture.rename(folder / picture.name)
    (folder / "__init__.py").write_text("raise SystemExit")
    (folder / ".cache").mkdir()
    (folder / ".cache" / "old.png").write_text("old")
    within = BENCHMARK.replace("data: rows.csv", f"data: {folder / 'rows.csv'}")
    (folder / "benchmark.yaml").write_text(within.replace("images: pictures", "images: ."))
    write_folder_package(tmp_path / "new", "acme-drawn", folder)
    module = tmp_path / "new" / "src" / "drawn_vqa"
    assert 'data: "rows.csv"\n' in (module / "benchmark.yaml").read_text()
    assert "benchmark_in_folder" in (module / "__init__.py").read_text()
    assert sorted(path.name for path in module.rglob("*.png")) == sorted(
        path.name for path in folder.glob("*.png")
    )
    assert '"*.csv", "*.png"]' in (tmp_path / "new" / "pyproject.toml").read_text()


@pytest.mark.parametrize(
    ("package", "text", "message"),
    [
        ("../drawn", BENCHMARK, "package name '../drawn'"),
        ("drawn", BENCHMARK.replace("drawn_vqa", "numpy"), "imported as numpy, which exists"),
        (
            "drawn",
            BENCHMARK.replace("title:", "titel:"),
            "benchmark.yaml, line 2: field `titel` is unknown",
        ),
        ("drawn", BENCHMARK.replace("data: rows", "data:\n  rows"), None),
    ],
)
def test_what_cannot_become_a_package_is_refused_in_one_sentence(
    tmp_path: Path, package: str, text: str, message: str | None
) -> None:
    folder = draw_folder(tmp_path / "drawn", text)
    if message is None:  # a value on a line of its own is fine unless it has to be replaced
        write_folder_package(tmp_path / "new", package, folder)
        return
    with pytest.raises(MedtasksError, match=message):
        write_folder_package(tmp_path / "new", package, folder)
    assert not (tmp_path / "new").exists()


def test_a_directory_that_is_not_empty_is_refused(tmp_path: Path) -> None:
    folder = draw_folder(tmp_path / "drawn")
    with pytest.raises(UsageError, match="is not empty"):
        write_folder_package(folder, "acme-drawn", folder)


def test_the_command_says_what_to_do_next(medtasks: Any, tmp_path: Path) -> None:
    folder = draw_folder(tmp_path / "drawn")
    (folder / "rows.csv").rename(tmp_path / "rows.csv")
    (folder / "benchmark.yaml").write_text(BENCHMARK.replace("data: rows", "data: ../rows"))
    target = tmp_path / "new"
    done = medtasks("new", "acme", "--package", "--from", str(folder), "--out", str(target))
    assert done.returncode == 0, done.stderr
    assert "wrote acme, which is imported as drawn_vqa" in done.stdout
    assert f"works on this machine alone: {tmp_path / 'rows.csv'}\n" in done.stdout
    assert f"pip install -e '{target}[test]'" in done.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--from", "drawn"), "drawn: is a benchmark folder; to make a package of it, add --pack"),
        (("--from", "drawn", "--package", "--title", "x"), "--title: has no effect for a package"),
        (("--from", "rows.csv", "--variant", "mcq"), "--variant: has no effect with --from"),
        (("--package", "--cluster", "x"), "--cluster: has no effect without --from"),
        (("--from", "rows.csv", "--package"), "rows.csv: is not a directory, expected a benchmark"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    medtasks: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    message: str,
) -> None:
    draw_folder(tmp_path / "drawn")
    monkeypatch.chdir(tmp_path)
    done = medtasks("new", "acme", *options)
    assert message in done.stderr
    assert done.returncode != 0
    assert not (tmp_path / "acme").exists()


@pytest.mark.slow
@pytest.mark.parametrize(("text", "tasks"), [(BENCHMARK, TASKS), (OPEN, TASKS[:1])])
def test_folder_and_package_have_the_same_prompts_scores_and_protocol(
    python: Any, new_python: Any, tmp_path: Path, text: str, tasks: tuple[str, ...]
) -> None:
    folder = draw_folder(tmp_path / "drawn", text)
    package = tmp_path / "package"
    write_folder_package(package, "acme-drawn", folder)
    site = str(tmp_path / "site")
    built = python(*PIP, site, str(package))
    assert built.returncode == 0, built.stderr

    runs: dict[str, Path] = {}
    for name, setting in (
        ("folder", {"MEDTASKS_BENCHMARKS": str(folder)}),
        ("package", {"PYTHONPATH": site}),
    ):
        data = {"MEDTASKS_DATA": str(tmp_path / f"data-{name}")}
        done = python("-c", RUN, str(tmp_path / name), *tasks, **setting, **data)
        assert done.returncode == 0, done.stderr[-2000:]
        (runs[name],) = (tmp_path / name).glob("*_medtasks")
    for task in tasks:
        by_folder, by_package = (
            (run / "samples" / f"{task}.jsonl").read_text().splitlines() for run in runs.values()
        )
        assert list(map(compared, by_folder)) == list(map(compared, by_package))
        assert len(by_folder) >= 12
    facts = [json.loads((run / "manifest.json").read_text()) for run in runs.values()]
    assert facts[0]["tasks"] == facts[1]["tasks"]
    assert facts[0]["data"] == facts[1]["data"]
    scores = [json.loads((run / "scores.json").read_text()) for run in runs.values()]
    assert scores[0]["tasks"] == scores[1]["tasks"]

    packaged = {"PYTHONPATH": site, "MEDTASKS_DATA": str(tmp_path / "data-package")}
    checked = python("-m", "medtasks", "validate", "drawn_vqa", **packaged)
    assert ": 0 errors" in checked.stdout, checked.stdout + checked.stderr
    tested = new_python("-m", "pytest", "-q", "-p", "no:cacheprovider", str(package), **packaged)
    assert tested.returncode == 0, tested.stdout + tested.stderr
    both = python("-m", "medtasks", "list", **packaged, MEDTASKS_BENCHMARKS=str(folder))
    assert "drawn_vqa belongs to acme-drawn 0.1.0" in both.stderr


def compared(line: str) -> dict[str, Any]:
    """A sample without what the time of the run determines."""
    sample = json.loads(line)
    return {key: value for key, value in sample.items() if key not in ("usage", "seconds")}
