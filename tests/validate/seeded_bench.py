"""A copy of our tasks, templates and prepared records in which defects are planted."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import medtasks.templates
import pytest

from medtasks.benchmarks.documents import task_documents
from medtasks.catalog.contents import task_directory
from medtasks.catalog.registry import get_benchmark
from medtasks.catalog.spec import load_spec
from medtasks.catalog.task_source import TaskSource
from medtasks.core.findings import Finding
from medtasks.data.manifest import fingerprint
from medtasks.data.store import open_prepared
from medtasks.validate.prepared import MediaCheck
from medtasks.validate.report import TaskReport
from medtasks.validate.run import check_rows, validate

HERE = "# here"
"""Marks in a planted text the line that the finding must name."""

ALL = "(all)"
"""As the old text: the whole file."""

Documents = list[dict[str, Any]]


@dataclass
class Bench:
    """``tasks`` and ``templates`` may be written to; ``data`` is the folder of prepared data."""

    folder: Path
    tasks: Path = field(init=False)
    templates: Path = field(init=False)
    data: Path = field(init=False)

    def __post_init__(self) -> None:
        self.tasks, self.templates, self.data = (self.folder / name for name in ("tasks", "templates", "data"))

    def copy_tasks(self) -> None:
        for tasks in task_directory().glob("*/tasks"):
            shutil.copytree(tasks, self.tasks, dirs_exist_ok=True)

    def copy_template(self, name: str) -> Path:
        self.templates.mkdir(exist_ok=True)
        path = self.templates / name
        path.parent.mkdir(parents=True, exist_ok=True)
        original = Path(medtasks.templates.__path__[0]) / name
        if original.is_file():
            shutil.copy(original, path)
        return path

    def copy_records(self, benchmark: str, change: Callable[[Documents], Documents | None]) -> None:
        """Prepared data of ``benchmark`` with changed records, and the fingerprint that belongs to them."""
        prepared = open_prepared(benchmark)
        target = self.data / benchmark
        shutil.copytree(prepared.directory, target)
        lines = (target / "records.jsonl").read_text(encoding="utf-8").splitlines()
        rows = [json.loads(line) for line in lines]
        rows = change(rows) or rows
        (target / "records.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        manifest = json.loads((target / "manifest.json").read_text(encoding="utf-8"))
        manifest["media_root"] = str((prepared.directory / prepared.manifest.media_root).resolve())
        manifest["fingerprint"] = fingerprint(target)
        (target / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


@dataclass(frozen=True)
class InYaml:
    """``old`` becomes ``new`` in ``file`` (appended where ``old`` is empty); then ``checked`` is validated."""

    name: str
    code: str
    file: str
    old: str
    new: str
    checked: str = ""

    def findings(self, bench: Bench) -> list[Finding]:
        bench.copy_tasks()
        path = bench.tasks / self.file
        _edit(path, self.old, self.new)
        return validate([str(bench.tasks / (self.checked or self.file))], documents=False).tasks

    def line(self, bench: Bench) -> tuple[str, int] | None:
        return _line(bench.tasks / self.file)


@dataclass(frozen=True)
class InTemplate:
    """``old`` becomes ``new`` in the template ``file``; then ``task`` is validated with its documents."""

    name: str
    code: str
    file: str
    old: str
    new: str
    task: str

    def findings(self, bench: Bench) -> list[Finding]:
        _edit(bench.copy_template(self.file), self.old, self.new)
        return validate([self.task], scores=False).tasks

    def line(self, bench: Bench) -> tuple[str, int] | None:
        return _line(bench.templates / self.file)


@dataclass(frozen=True)
class InRecords:
    """``change`` alters the prepared records of ``benchmark``; then ``task`` is validated."""

    name: str
    code: str
    benchmark: str
    task: str
    change: Callable[[Documents], Documents | None]

    def findings(self, bench: Bench) -> list[Finding]:
        bench.copy_records(self.benchmark, self.change)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("MEDTASKS_DATA", str(bench.data))
            return validate([self.task], scores=False).tasks

    def line(self, bench: Bench) -> tuple[str, int] | None:
        del bench
        return None


@dataclass(frozen=True)
class InDocuments:
    """``change`` alters the documents of ``task``, as another package's loader might make them."""

    name: str
    code: str
    task: str
    template: str
    change: Callable[[Documents], Documents | None]

    def findings(self, bench: Bench) -> list[Finding]:
        del bench
        documents = copy.deepcopy(task_documents(self.task))
        documents = self.change(documents) or documents
        benchmark = get_benchmark(load_spec(self.task).metadata.benchmark)
        report = TaskReport(TaskSource(Path(self.task)), len(documents))
        media = MediaCheck(open_prepared(benchmark.name), decode=False)
        check_rows(documents, benchmark, {"template": self.template}, report, media)
        return report.findings()

    def line(self, bench: Bench) -> tuple[str, int] | None:
        del bench
        return None


Defect = InYaml | InTemplate | InRecords | InDocuments


def codes(findings: Sequence[Finding]) -> set[str]:
    return {one.code for one in findings}


def _edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    if old == ALL:
        path.write_text(new, encoding="utf-8")
    elif old:
        assert old in text, f"{path} does not hold {old!r}"
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + new, encoding="utf-8")


def _line(path: Path) -> tuple[str, int] | None:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return next(((str(path), number) for number, line in enumerate(lines, start=1) if HERE in line), None)
