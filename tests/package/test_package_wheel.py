"""The wheel, installed elsewhere, works without the checkout and leaves nothing else in site-packages."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    skipped = shutil.ignore_patterns(
        ".*", "*.egg-info", "build", "dist", "__pycache__", "tests", "docs", "medtasks-demo"
    )
    shutil.copytree(REPOSITORY, source, ignore=skipped)
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--outdir", str(folder / "dist"), str(source)],
        check=True,
        capture_output=True,
        timeout=300,
    )
    (built,) = (folder / "dist").glob("*.whl")
    return built


def test_everything_lives_under_one_import_name(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} <= {"medtasks", f"{wheel.name.split('-py3')[0]}.dist-info"}


@pytest.mark.parametrize(
    "name",
    [
        "medtasks/py.typed",
        "medtasks/templates/mi_cxr/mcq.j2",
        "medtasks/tasks/placeholder.jsonl",
        "medtasks/tasks/mi_cxr/_base.yaml",
        "medtasks/tasks/mi_cxr/groups/mi_cxr.yaml",
        "medtasks/adapters/vlm.py",
        "medtasks/leaderboard/__init__.py",
        "medtasks/leaderboard/reference/med_cmr.yaml",
        "medtasks/judge/families.yaml",
        "medtasks/judge/stub/__main__.py",
        "medtasks/rubrics/kvasir_aspects.yaml",
        "medtasks/scaffold/files/common/pyproject.toml.j2",
    ],
)
def test_the_wheel_holds_what_runs_need(wheel: Path, name: str) -> None:
    assert name in zipfile.ZipFile(wheel).namelist()


def test_it_works_when_installed_elsewhere(wheel: Path, tmp_path: Path) -> None:
    # The heavy dependencies come from this environment; medtasks itself from the wheel, in front of it.
    site = tmp_path / "site"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", str(site), str(wheel)],
        check=True,
        capture_output=True,
    )
    code = (
        f"import sys; sys.path.insert(0, {str(site)!r})\n"
        "import medtasks; from medtasks.benchmarks.documents import task_documents, doc_to_messages\n"
        "from medtasks.spec import load_spec\n"
        "spec = load_spec('mi_cxr_icr')\n"
        "document = task_documents('mi_cxr_icr')[0]\n"
        "print(medtasks.__file__, len(doc_to_messages(document, {'template': spec.template})[0]['content']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.stdout.split() == [str(site / "medtasks" / "__init__.py"), "6"], done.stderr
