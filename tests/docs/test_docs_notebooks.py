"""The notebooks run from the first cell to the last, and their types are checked with mypy in
strict mode.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))


def cells(path: Path) -> Any:
    import nbformat

    return nbformat.read(path, as_version=4)


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_tables(path: Path, tmp_path: Path) -> None:
    from nbclient import NotebookClient

    notebook = cells(path)
    NotebookClient(
        notebook, timeout=None, resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    outputs = [
        output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs
    ]
    assert sum("text/html" in output.get("data", {}) for output in outputs) >= 3
    assert not [output for output in outputs if output.output_type == "error"]


def test_notebooks_are_kept_without_output() -> None:
    code = [cell for path in NOTEBOOKS for cell in cells(path).cells if cell.cell_type == "code"]
    assert len(code) > 10
    assert not any(cell.outputs or cell.execution_count for cell in code)


@pytest.mark.slow
def test_their_code_type_checks(tmp_path: Path) -> None:
    for path in NOTEBOOKS:
        lines = [cell.source for cell in cells(path).cells if cell.cell_type == "code"]
        (tmp_path / f"{path.stem}.py").write_text("\n".join(lines), encoding="utf-8")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--ignore-missing-imports",
            "--cache-dir",
            tmp_path,
            tmp_path,
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout
