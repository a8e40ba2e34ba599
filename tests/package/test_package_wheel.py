"""The wheel in a fresh environment: it works without the checkout, and another lab's package comes
and goes there.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from other_lab import write_package

from medtasks.judge.stub import StubJudge

pytestmark = pytest.mark.slow

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
    )
    (built,) = (folder / "dist").glob("*.whl")
    return built


def test_the_wheel_holds_every_file_of_the_packages_under_one_import_name(wheel: Path) -> None:
    held = set(zipfile.ZipFile(wheel).namelist())
    assert {name.split("/")[0] for name in held} <= {
        "medtasks",
        f"{wheel.name.split('-py3')[0]}.dist-info",
    }
    for name in ("medtasks", "adapters", "leaderboard", "templates"):
        files = [
            path
            for path in (REPOSITORY / name).rglob("*")
            if path.is_file() and path.suffix != ".pyc"
        ]
        files = [
            path for path in files if "tests" not in path.parts
        ]  # the copy that the wheel is built from has none
        target = Path("medtasks") if name == "medtasks" else Path("medtasks", name)
        expected = {(target / path.relative_to(REPOSITORY / name)).as_posix() for path in files}
        assert len(expected) > 20
        assert expected <= held, sorted(expected - held)


def test_without_an_address_of_the_repository_the_index_page_has_no_relative_links(
    wheel: Path,
) -> None:
    metadata = zipfile.Path(wheel, f"{wheel.name.split('-py3')[0]}.dist-info/METADATA").read_text()
    page = metadata.partition("\n\n")[2]
    assert "**Reproducible.** Each score has a signature" in page
    assert "[lmms-eval](https://github.com/EvolvingLMMs-Lab/lmms-eval)" in page
    assert "any of lmms-eval's back-ends." in page
    assert "board.png" not in page
    assert re.findall(r"\]\((?!https?:)[^)]*\)", page) == []
    assert "Project-URL" not in metadata


@dataclass(frozen=True)
class Environment:
    """A virtual environment with packages of its own; ``run`` starts its interpreter outside the
    checkout.
    """

    folder: Path

    @property
    def site(self) -> Path:
        (found,) = self.folder.glob("lib/python*/site-packages")
        return found

    def run(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.folder / "bin" / "python"), *arguments],
            capture_output=True,
            text=True,
            cwd=self.folder,
            env={**os.environ, **variables},
            check=False,
        )

    def pip(self, *arguments: str) -> None:
        done = self.run("-m", "pip", "-q", "--disable-pip-version-check", *arguments)
        assert done.returncode == 0, done.stderr

    def files(self) -> set[str]:
        """What lies in site-packages, but for what imports leave there."""
        paths = (path.relative_to(self.site) for path in self.site.rglob("*"))
        return {path.as_posix() for path in paths if "__pycache__" not in path.parts}

    def listed(self) -> dict[str, tuple[str, str]]:
        done = self.run("-m", "medtasks", "list", "--json")
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return {
            one["name"]: (one["package"], one["package_version"]) for one in json.loads(done.stdout)
        }


@pytest.fixture(scope="module")
def fresh(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """A new environment into which pip has put the wheel; only the dependencies are those of this
    environment.
    """
    folder = tmp_path_factory.mktemp("fresh") / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, capture_output=True)
    environment = Environment(folder)
    # after its own packages on the path, and without what is installed here as a checkout
    (environment.site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    environment.pip("install", "--no-deps", "--no-index", "--force-reinstall", str(wheel))
    return environment


def test_another_labs_package_is_built_installed_run_judged_validated_and_gone(
    fresh: Environment, tmp_path: Path
) -> None:
    imported = fresh.run("-c", "import medtasks; print(medtasks.__file__)").stdout.strip()
    assert imported == str(fresh.site / "medtasks" / "__init__.py")  # not the checkout's
    # a tree without tags has the fallback version of pyproject.toml
    assert re.fullmatch(
        r"medtasks 0\.\d+\.\d+\.dev0\n", fresh.run("-m", "medtasks", "--version").stdout
    )
    before, ours = fresh.files(), fresh.listed()
    source = write_package(tmp_path / "source")
    build = [
        "build",
        "--wheel",
        "--no-isolation",
        "-x",
        "--outdir",
        str(tmp_path / "dist"),
        str(source),
    ]
    subprocess.run([sys.executable, "-m", *build], check=True, capture_output=True)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    fresh.pip("install", "--no-deps", "--no-index", str(wheel))
    assert fresh.listed() == {**ours, "otherlab_dots": ("otherlab-bench", "2.1")}

    shown = fresh.run("-m", "medtasks", "show", "otherlab_dots")
    assert "How many dots are there? Answer in one sentence." in shown.stdout, shown.stderr
    checked = fresh.run("-m", "medtasks", "validate", "otherlab_dots", "--quick")
    assert checked.returncode == 0, checked.stdout + checked.stderr

    with StubJudge() as stub:
        judge = f"model=stub-judge,base_url={stub.url}"
        command = [
            "-m",
            "lmms_eval",
            "--model",
            "medtasks_baseline",
            "--model_args",
            "policy=oracle",
        ]
        command += [
            "--tasks",
            "otherlab_dots,kvasir_vqa_x1_level3",
            "--output_path",
            str(tmp_path / "out"),
        ]
        done = fresh.run(*command, MEDTASKS_JUDGE=judge)
        assert done.returncode == 0, done.stderr[-2000:]
        (folder,) = (tmp_path / "out").rglob("*_medtasks")
        assert values(folder, "otherlab_dots") == {
            "exact_match": 1.0,
            "otherlab_bench_brevity": 1.0,
            "otherlab_bench_judged": 1.0,
        }
        manifest = json.loads((folder / "manifest.json").read_text())
        assert manifest["judge"]["otherlab_bench_count"]["tasks"] == ["otherlab_dots"]
        # its rubric may judge our tasks, too, since it says so
        again = fresh.run(
            "-m",
            "medtasks",
            "judge",
            str(folder),
            "--judge",
            judge,
            "--rubric",
            "otherlab_bench_count",
        )
        assert again.returncode == 0, again.stderr
    assert values(folder, "kvasir_vqa_x1_level3")["otherlab_bench_judged"] == 1.0
    site = tmp_path / "board"
    built = fresh.run(
        *("-m", "medtasks", "leaderboard", "build", str(folder), "--demonstration"),
        "--out",
        str(site),
    )
    assert built.returncode == 0, built.stderr
    assert "Shortness" in (site / "benchmark-otherlab_dots.html").read_text()  # as its card says
    scored = fresh.run("-m", "medtasks", "score", str(folder))
    assert "no score has changed" in scored.stdout, scored.stdout + scored.stderr

    fresh.pip("uninstall", "-y", "otherlab-bench")
    assert fresh.files() == before
    assert fresh.listed() == ours


def values(folder: Path, task: str) -> dict[str, float | None]:
    scores = json.loads((folder / "scores.json").read_text())["tasks"][task]["metrics"]
    return {name: score["value"] for name, score in scores.items()}
