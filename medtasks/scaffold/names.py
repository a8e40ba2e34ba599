"""Names of a new package: what it is installed, imported and evaluated as."""

from __future__ import annotations

import keyword
import re
import sys
from dataclasses import dataclass

from medtasks.errors import UsageError

__all__ = ["Names", "names_of"]

_PACKAGE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")  # a name as the packaging standards have it
_BENCHMARK = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
_MOST = 40
_TAKEN = frozenset({"lmms_eval", "medtasks", "test", "tests"})


@dataclass(frozen=True)
class Names:
    """``package`` is installed, ``module`` imported, ``benchmark`` evaluated; ``title`` stands in tables."""

    package: str
    module: str
    benchmark: str

    @property
    def title(self) -> str:
        """The benchmark's name for people."""
        return self.benchmark.replace("_", " ").capitalize()


def names_of(package: str, benchmark: str | None = None) -> Names:
    """The names of the package called ``package``.

    >>> names_of("Acme-Bench").module
    'acme_bench'

    Raises:
        UsageError: no package, module or benchmark can be called so, or medtasks or lmms-eval has a task of that name.
    """
    if not _PACKAGE.fullmatch(package) or len(package) > _MOST:
        raise UsageError(
            f"package name {package!r}: expected at most {_MOST} letters, digits, '-', '_' and '.', "
            "beginning and ending with a letter or digit, such as acme-bench; choose another."
        )
    module = re.sub(r"[-_.]+", "_", package).lower()
    if not module.isidentifier() or keyword.iskeyword(module):
        raise UsageError(
            f"package name {package!r} would be imported as {module}, which cannot be a module's name; begin with a "
            "letter, and take no word of Python's own."
        )
    if module in _TAKEN or module in sys.stdlib_module_names:
        raise UsageError(f"package name {package!r} would be imported as {module}, which there is; choose another.")
    chosen = module if benchmark is None else benchmark
    if not _BENCHMARK.fullmatch(chosen) or len(chosen) > _MOST:
        raise UsageError(
            f"benchmark name {chosen!r}: expected at most {_MOST} small letters and digits in words joined by '_', "
            "such as acme_dots; name another with --benchmark."
        )
    _refuse_taken(chosen)
    return Names(package, module, chosen)


def _refuse_taken(benchmark: str) -> None:
    from medtasks.harness.names import harness_names
    from medtasks.packages import task_packages
    from medtasks.registry import plugin_of

    packages = [package for package in task_packages() if package.ours]
    ours = {path.stem for package in packages for path in package.task_files()}
    ours |= {one.name for package in packages for one in plugin_of(package).benchmarks}
    if benchmark in ours:
        raise UsageError(f"benchmark name {benchmark!r} is medtasks's own; name another with --benchmark.")
    if benchmark in harness_names():
        raise UsageError(
            f"benchmark name {benchmark!r} is one of lmms-eval's own, which --tasks would run; name another with "
            "--benchmark."
        )
