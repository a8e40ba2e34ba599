"""Extras: what is missing of one is a sentence with the command that installs it."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from medtasks.core.errors import MissingExtraError
from medtasks.core.extras import needs, problems_of, require

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

REPOSITORY = Path(__file__).parent.parent.parent
METADATA = """Metadata-Version: 2.1
Name: medtasks
Version: 9
Requires-Dist: always-there>=99
Provides-Extra: engine
Requires-Dist: medtasks[base]; extra == 'engine'
Requires-Dist: numpy>=999; extra == 'engine'
Requires-Dist: not-on-this-machine<2; extra == 'engine' and python_version >= '3'
Requires-Dist: of-another-machine; extra == 'engine' and python_version < '3'
Provides-Extra: base
Requires-Dist: pydantic>=1; extra == 'base'
Requires-Dist: absent-too; extra == 'base'
"""


@pytest.fixture
def _medtasks_with_extras(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    installed = tmp_path / "medtasks-9.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text(METADATA)
    monkeypatch.syspath_prepend(str(tmp_path))
    problems_of.cache_clear()
    yield
    problems_of.cache_clear()


@pytest.mark.usefixtures("_medtasks_with_extras")
def test_missing_packages_are_named_with_what_is_installed() -> None:
    import numpy as np

    with pytest.raises(MissingExtraError) as raised:
        require("engine", "the engine")
    assert str(raised.value) == (
        "the engine needs absent-too (not installed), "
        f"numpy>=999 ({np.__version__} is installed), not-on-this-machine<2 (not installed); "
        'run: pip install "medtasks[engine]"'
    )


@pytest.mark.usefixtures("_medtasks_with_extras")
def test_what_is_installed_and_cannot_be_imported_is_one_sentence() -> None:
    with (
        pytest.raises(MissingExtraError, match=r'pip install "medtasks\[none\]".*No module named'),
        needs("none", "the engine"),
    ):
        import a_module_that_nobody_has  # noqa: F401


def test_every_extra_that_the_code_names_exists() -> None:
    named: set[str] = set()
    for folder in ("medtasks", "leaderboard", "adapters"):
        for path in (REPOSITORY / folder).rglob("*.py"):
            named |= extras_in(ast.parse(path.read_bytes()))
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert named
    assert named - project["optional-dependencies"].keys() == set()


def extras_in(module: ast.Module) -> set[str]:
    """The literal extras in calls of `needs`, `require` and `install_line`."""
    extras: set[str] = set()
    for node in ast.walk(module):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("needs", "require", "install_line")
            and isinstance(node.args[0], ast.Constant)
        ):
            extras.add(node.args[0].value)
    return extras
