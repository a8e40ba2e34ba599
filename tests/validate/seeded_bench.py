"""Copies of our tasks, templates and prepared records, and the defects that are planted in them.

Defects are text, each with what is printed of it: ``defects.txt`` and ``breaks.txt``. A section has
the name of the defect, the file (after ``>`` what is validated, if it is not the file itself), the
lines that are replaced (``-``) and what replaces them (``+``), and after an empty line what is
printed. To write what is printed again after a change of the wording: ``MEDTASKS_WRITE_DEFECTS=1
pytest tests/validate``, then read the diff.
"""

from __future__ import annotations

import copy
import json
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import medtasks.templates
import pytest

from medtasks.benchmarks.documents import task_documents
from medtasks.catalog.contents import task_directory
from medtasks.catalog.registry import get_benchmark
from medtasks.catalog.spec import load_spec
from medtasks.catalog.task_source import TaskSource
from medtasks.core.findings import Finding
from medtasks.data.prepared import fingerprint
from medtasks.data.store import open_prepared
from medtasks.validate.checks import check_rows
from medtasks.validate.prepared_data import MediaCheck
from medtasks.validate.report import TaskReport
from medtasks.validate.run import validate

Documents = list[dict[str, Any]]
Change = Callable[[Documents], Documents | None]
OUR_TEMPLATES = Path(medtasks.templates.__path__[0])


def copy_tasks(target: Path, benchmark: str = "*") -> None:
    """The task files of a benchmark, or of all."""
    for tasks in task_directory().glob(f"*/tasks/{benchmark}"):
        if tasks.is_dir():
            shutil.copytree(tasks, target / tasks.name, dirs_exist_ok=True)


def copy_template(target: Path, name: str) -> Path:
    """A template of ours below ``target``."""
    path = target / name
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(OUR_TEMPLATES / name, path)
    return path


def copy_records(target: Path, benchmark: str, change: Change) -> None:
    """Prepared data of ``benchmark`` with changed records, and the fingerprint that belongs to
    them.
    """
    prepared = open_prepared(benchmark)
    folder = target / benchmark
    shutil.copytree(prepared.directory, folder)
    rows = [
        json.loads(line)
        for line in (folder / "records.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    rows = change(rows) or rows
    (folder / "records.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8"
    )
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    manifest["media_root"] = str((prepared.directory / prepared.manifest.media_root).resolve())
    manifest["fingerprint"] = fingerprint(folder)
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


def of_records(task: str, change: Change, target: Path) -> list[Finding]:
    """Findings about ``task`` when the prepared records of its benchmark are changed."""
    copy_records(target, load_spec(task).metadata.benchmark, change)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEDTASKS_DATA", str(target))
        return validate([task], quick=True).tasks


def of_documents(task: str, change: Change) -> list[Finding]:
    """Findings about changed documents of ``task``, as another package's loader might make them."""
    spec, documents = load_spec(task), copy.deepcopy(task_documents(task))
    documents = change(documents) or documents
    report = TaskReport(TaskSource(Path(task)), len(documents))
    media = MediaCheck(open_prepared(spec.benchmark.name), decode=False)
    check_rows(
        documents,
        get_benchmark(spec.metadata.benchmark),
        {"template": str(spec.template)},
        report,
        media,
    )
    return report.findings()


def codes(findings: Sequence[Finding]) -> set[str]:
    return {one.code for one in findings}


class Defect(NamedTuple):
    """A defect; ``where`` are the file and what is validated, ``old`` and ``new`` the lines that
    differ.
    """

    name: str
    where: str
    old: list[str]
    new: list[str]
    printed: str

    @property
    def file(self) -> str:
        return self.where.partition(" > ")[0]

    @property
    def checked(self) -> str:
        return self.where.partition(" > ")[2] or self.file

    def plant(self, folder: Path) -> None:
        """Change the file below ``folder``; a file that does not exist gets the new lines."""
        path = folder / self.file
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        old, new = ("".join(f"{line}\n" for line in lines) for lines in (self.old, self.new))
        assert f"\n{old}" in f"\n{text}", f"{path} does not have {old!r}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"\n{text}".replace(f"\n{old}", f"\n{new}", 1)[1:], encoding="utf-8")

    def check(self, path: Path, printed: str) -> None:
        """Compare what is printed with the section in ``path``."""
        if os.environ.get("MEDTASKS_WRITE_DEFECTS") and printed != self.printed:
            everything = [
                one if one.name != self.name else self._replace(printed=printed)
                for one in read(path)
            ]
            path.write_text("\n\n".join(map(str, everything)) + "\n", encoding="utf-8")
        assert printed == self.printed

    def __str__(self) -> str:
        change = [*(f"-{line}" for line in self.old), *(f"+{line}" for line in self.new)]
        return "\n".join(
            [f"## {self.name}", *([self.where] if self.where else []), *change, "", self.printed]
        )


def read(path: Path) -> list[Defect]:
    """The defects in a file."""
    defects = []
    for section in path.read_text(encoding="utf-8").removeprefix("## ").split("\n\n## "):
        head, _, printed = section.partition("\n\n")
        name, *rest = head.split("\n")
        where, change = "".join(rest[:1]), rest[1:]
        old, new = ([line[1:] for line in change if line.startswith(sign)] for sign in "-+")
        defects.append(Defect(name, where, old, new, printed.strip()))
    return defects
