"""The recipes for containers agree with each other, with pyproject.toml and with the docs. No
builder is at hand where tests run.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

REPOSITORY = Path(__file__).parent.parent.parent
DOCKERFILE = (REPOSITORY / "containers" / "Dockerfile").read_text(encoding="utf-8")
APPTAINER = (REPOSITORY / "containers" / "apptainer.def").read_text(encoding="utf-8")


def section(name: str) -> str:
    """The lines of a section of the Apptainer recipe."""
    match = re.search(rf"^%{name}\n(.*?)(?=^%|\Z)", APPTAINER, re.MULTILINE | re.DOTALL)
    assert match is not None, name
    return match[1]


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    """The project's table in pyproject.toml."""
    return tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_both_recipes_have_the_same_base_image_with_a_python_that_is_supported(
    project: dict[str, Any],
) -> None:
    docker = re.search(r"^ARG PYTHON_IMAGE=(python:(3\.\d+)-slim-\w+)$", DOCKERFILE, re.MULTILINE)
    assert docker is not None
    image, version = docker.groups()
    assert f"\nBootstrap: docker\nFrom: {image}\n" in APPTAINER
    assert f"Programming Language :: Python :: {version}" in project["classifiers"]


def test_both_recipes_install_the_same_extras_which_exist(project: dict[str, Any]) -> None:
    docker = dict(re.findall(r"^ARG (EXTRAS)=(.*)$", DOCKERFILE, re.MULTILINE))
    arguments = dict(re.findall(r"^ +(\w+)=(.*)$", section("arguments"), re.MULTILINE))
    assert arguments == docker
    assert set(docker["EXTRAS"].split(",")) <= project["optional-dependencies"].keys()
    assert 'EXTRAS="{{ EXTRAS }}" /opt/build/install' in section("post")


def test_both_recipes_set_the_same_variables() -> None:
    block = re.search(r"^ENV (.*?[^\\])\n", DOCKERFILE, re.MULTILINE | re.DOTALL)
    assert block is not None
    variables = dict(re.findall(r"(\w+)=(\S+)", block[1]))
    assert dict(re.findall(r"export (\w+)=(\S+)", section("environment"))) == variables
    assert variables["PATH"].startswith("/opt/medtasks/bin:")


def test_what_the_recipes_copy_exists_and_is_sent_to_the_builder() -> None:
    copied = re.findall(r"^COPY (?!--from)(.*) \S+$", DOCKERFILE, re.MULTILINE)
    sources = {source.rstrip("/") for line in copied for source in line.split()}
    files = {line.split()[0] for line in section("files").splitlines() if line.strip()}
    assert files == sources == {"constraints.txt", "containers/install", "dist"}
    sent = re.findall(r"^!(.*)$", (REPOSITORY / ".dockerignore").read_text(), re.MULTILINE)
    assert all(
        any(fnmatch(f"{path}/medtasks-1.whl", line) or path == line for line in sent)
        for path in files
    )
    assert all((REPOSITORY / path).exists() for path in files - {"dist"})


@pytest.mark.parametrize(
    "wheels", [[], ["medtasks-1-py3-none-any.whl", "medtasks-2-py3-none-any.whl"]]
)
def test_installing_refuses_anything_but_one_wheel(tmp_path: Path, wheels: list[str]) -> None:
    script = tmp_path / "install"
    shutil.copy(REPOSITORY / "containers" / "install", script)
    (tmp_path / "dist").mkdir()
    for wheel in wheels:
        (tmp_path / "dist" / wheel).touch()
    done = subprocess.run(["sh", script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "dist/ must have exactly one wheel of medtasks; run: .ci/distributions\n"
