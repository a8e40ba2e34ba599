"""A package with tasks, and the parts of packages that are left out."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks.core.findings import Place
from medtasks.core.text import one_line

if TYPE_CHECKING:
    from medtasks.catalog.benchmark_folder import BenchmarkFolder

OURS = "medtasks"
_QUIET: ContextVar[bool] = ContextVar("quiet", default=False)


@dataclass(frozen=True)
class LeftOut:
    """A package, or one ``part`` of it, that is not used; ``why`` is a sentence with the fix."""

    owner: str
    part: str
    why: str
    place: Place | None = None

    def __str__(self) -> str:
        what = f"{self.part} of {self.owner}" if self.part else self.owner
        sentence = f"{what} is left out: {self.why}"
        if self.place is None or str(self.place.file) in self.why:
            return sentence
        return f"{sentence} ({self.place})"

    def warn(self) -> None:
        """Print it to standard error, but not within :func:`without_warnings`."""
        if not _QUIET.get():
            print(f"medtasks: {one_line(str(self))}", file=sys.stderr, flush=True)


@contextmanager
def without_warnings() -> Iterator[None]:
    """Print no warnings in the block: the command reports what is left out itself."""
    token = _QUIET.set(True)
    try:
        yield
    finally:
        _QUIET.reset(token)


@dataclass(frozen=True, eq=False)  # hashed as part of cache keys; paths are slow to hash
class TaskPackage:
    """An installed distribution with tasks; ``module`` is the one that its entry point names.

    Of a benchmark ``folder``, the distribution and the module are the benchmark's name, and the
    version is a hash of the folder's files except its data.
    """

    distribution: str
    version: str
    module: str
    tasks: Path
    templates: Path
    rubrics: Path
    folder: BenchmarkFolder | None = None

    @property
    def owner(self) -> str:
        """Distribution and version, for tables and messages."""
        if self.folder is not None:
            return f"folder {self.folder.path.name} {self.version}"
        return f"{self.distribution} {self.version}"

    @property
    def known_as(self) -> str:
        """``medtasks``, or distribution and version of another package."""
        return OURS if self.ours else self.owner

    @property
    def ours(self) -> bool:
        return self.distribution == OURS

    @property
    def prefix(self) -> str:
        """Prefix of the names of its metrics, rubrics and template directories; empty for ours."""
        return "" if self.ours else self.module.replace(".", "_")

    def owns(self, name: str) -> bool:
        """Whether the package may use ``name`` for a metric, a rubric or a rubric's score.

        >>> package = TaskPackage("acme-bench", "1.0", "acme_bench", Path(), Path(), Path())
        >>> package.owns("acme_bench_recall"), package.owns("recall")
        (True, False)
        """
        return not self.prefix or name.startswith(f"{self.prefix}_")

    def task_files(self) -> list[Path]:
        """Its task and group files, sorted by path."""
        return sorted([*self.tasks.glob("*/[!_]*.yaml"), *self.tasks.glob("*/groups/*.yaml")])

    def benchmark_folders(self) -> list[Path]:
        """The benchmark folders in an installed package: those in ``benchmarks/`` beside its
        module.
        """
        return [
            file.parent for file in sorted(self.tasks.parent.glob("benchmarks/*/benchmark.yaml"))
        ]

    @property
    def own_templates(self) -> tuple[Path, ...]:
        """The directories of the templates whose names begin with `prefix`."""
        if self.folder is not None:
            return self.folder.template_directories
        return (self.templates / self.prefix,)

    def rubric_files(self) -> dict[str, Path]:
        """The file of each rubric by the rubric's name."""
        if self.folder is not None:
            return self.folder.rubrics
        files: dict[str, Path] = {}
        for path in sorted(self.rubrics.glob("*.yaml")):
            if self.owns(path.stem):
                files[path.stem] = path
        return files

    def foreign_files(self) -> Iterator[LeftOut]:
        """Files that are ignored because their names could collide with another package's."""
        if not self.prefix:
            return
        for path in sorted(self.templates.rglob("*.j2")):
            if not path.is_relative_to(self.templates / self.prefix):
                name = path.relative_to(self.templates).as_posix()
                why = f"it is outside templates/{self.prefix}/; move it there."
                yield LeftOut(self.owner, f"template {name}", why, Place(path, 1))
        for path in sorted(self.rubrics.glob("*.yaml")):
            if not self.owns(path.stem):
                name = f"{self.prefix}_{path.stem}"
                why = f"its name must start with that of the package; call it {name}."
                yield LeftOut(self.owner, f"rubric {path.stem}", why, Place(path, 1))
