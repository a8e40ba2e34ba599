"""Our dependencies; and entry points that lead nowhere: one sentence each."""

from __future__ import annotations

import ast
import sys
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import medtasks
from medtasks import adapters, leaderboard

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

REPOSITORY = Path(__file__).parent.parent.parent
NAMED = "Metadata-Version: 2.1\nName: acme-bench\nVersion: 1.0\n"


@pytest.mark.parametrize(
    ("metadata", "entry_points", "said"),
    [
        (
            NAMED,
            b"x = not a valid : : value",
            "acme-bench 1.0 is left out: its module not a valid does not exist;",
        ),
        (
            NAMED,
            b"x = acme_bench [more]",
            "acme-bench 1.0 is left out: its module acme_bench does not exist",
        ),
        (
            "Metadata-Version: 2.1\n",
            b"x = acme_bench",
            "x unknown is left out: its module acme_bench does not exist",
        ),
        (
            NAMED,
            b"x = hides",
            "acme-bench 1.0 is left out: SITE/hides has no __init__.py and may hide its module ",
        ),
    ],
)
def test_an_entry_point_that_leads_nowhere_is_one_sentence(
    python: Any, tmp_path: Path, metadata: str, entry_points: bytes, said: str
) -> None:
    site = tmp_path / "site"
    (site / "hides").mkdir(parents=True)
    (site / "acme_bench-1.0.dist-info").mkdir()
    (site / "acme_bench-1.0.dist-info" / "METADATA").write_text(metadata)
    (site / "acme_bench-1.0.dist-info" / "entry_points.txt").write_bytes(
        b"[medtasks.tasks]\n" + entry_points + b"\n"
    )
    listed = "from medtasks.catalog.contents import task_files; print(len(list(task_files())))"
    done = python("-c", listed, PYTHONPATH=str(site))
    (sentence,) = done.stderr.splitlines()
    assert sentence.startswith(f"medtasks: {said}".replace("SITE", str(site)))
    assert int(done.stdout) > 20


def imported(folder: Path) -> set[str]:
    """The top-level modules of other distributions that the code in ``folder`` imports, in
    functions too.
    """
    found = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                found.add(str(node.module).partition(".")[0])
    return (
        found - sys.stdlib_module_names - {"medtasks", "pydantic_core"}
    )  # pydantic requires one version of its core


def test_what_is_imported_is_declared_and_what_is_declared_is_imported() -> None:
    modules = set().union(
        *(imported(Path(one.__path__[0])) for one in (medtasks, adapters, leaderboard))
    )
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    always = {canonicalize_name(Requirement(line).name) for line in project["dependencies"]}
    extras = project["optional-dependencies"].values()
    optional = {canonicalize_name(Requirement(line).name) for extra in extras for line in extra}
    distributions = packages_distributions()
    used = {
        canonicalize_name(name)
        for module in modules
        for name in distributions.get(module, (module,))
    }
    assert always - used == set()
    assert used - always - optional == set()
