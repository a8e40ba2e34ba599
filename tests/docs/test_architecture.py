"""docs/architecture.md: imports run downwards, inside functions too, and only benchmarks name a
benchmark.
"""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from medtasks.benchmarks import DIRECTORIES

ROOT = Path(__file__).parents[2]
PLACES = {"medtasks": ROOT / "medtasks"} | {
    f"medtasks.{name}": ROOT / name for name in ("leaderboard", "adapters", "templates")
}
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
    "contracts"
]
FLOORS = [set(re.split(r" [|:] ", layer)) for layer in CONTRACTS[0]["layers"]]


def sources() -> Iterator[tuple[str, Path]]:
    for package, folder in PLACES.items():
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            if "scaffold" not in parts[:-1]:  # the scaffold's, which are templates
                yield ".".join([package, *(part for part in parts if part != "__init__")]), path


MODULES = dict(sources())


@functools.cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(module: str, path: Path) -> set[str]:
    """Modules of ours that ``path`` imports anywhere, also within functions and for the type
    checker alone.
    """
    tree = tree_of(path)
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = (
                package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            )
            start = ".".join([*above, node.module] if node.module else above)
            inner = {f"{start}.{alias.name}" for alias in node.names}
            found |= {name if name in MODULES else start for name in inner}
    return {name for name in found if name in MODULES} - {module, "medtasks"}


@functools.cache
def graph() -> dict[str, set[str]]:
    return {module: imported(module, path) for module, path in MODULES.items()}


def test_no_import_leads_back_to_where_it_started() -> None:
    TopologicalSorter(graph()).prepare()  # raises CycleError, which names the modules


def test_the_contracts_hold() -> None:
    done = subprocess.run([ROOT / ".ci" / "imports"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_page_states_the_floors_that_are_checked() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert len(page.splitlines()) <= 120
    listed = page.partition("## Folders")[2].partition("\n## ")[0]
    items = [" ".join(item.split()) for item in re.split(r"^- ", listed, flags=re.MULTILINE)[1:]]
    stated = [
        {f"medtasks.{name}" for name in re.findall(r"`([\w.]+)`", item.partition(": ")[0])}
        for item in items
    ]
    assert stated == FLOORS


NAMES = re.compile(r"kvasir|mi_?-?cxr|med_?-?cmr|med_?stream", re.IGNORECASE)
NAMED = {
    "medtasks.judge.families": "a warning cites the paper that asks for unlike judges",
}
"""Core modules that may name a benchmark, and why."""


def code_words(path: Path) -> Iterator[str]:
    """Names and texts of a module, without comments, docstrings and what is said below an
    assignment.
    """
    tree = tree_of(path)
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield node.value
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.alias):
            yield node.name


def test_only_benchmarks_name_a_benchmark_and_what_they_share_imports_none() -> None:
    own = re.compile(rf"medtasks\.benchmarks\.({'|'.join(DIRECTORIES)})")
    others = [name for name in MODULES if not own.match(name)]
    naming = {name for name in others if any(map(NAMES.search, code_words(MODULES[name])))}
    assert naming == {*NAMED, "medtasks.benchmarks"}
    shared = [name for name in others if name.startswith("medtasks.benchmarks.")]
    assert {name for name in shared if any(map(own.match, graph()[name]))} == set()


def test_every_benchmark_is_packaged_and_in_the_contracts() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    modules = {f"medtasks.benchmarks.{name}" for name in DIRECTORIES}
    assert modules <= set(project["setuptools"]["packages"])
    by_name = {contract["name"]: contract for contract in CONTRACTS}
    assert modules == set(by_name["benchmarks do not import each other"]["modules"])
    registry_alone = by_name["benchmarks are reached through the registry alone"]
    assert modules == set(registry_alone["forbidden_modules"])
