"""``medtasks new``: a package of tasks to start from.

Its files are Jinja templates in ``files/`` with the delimiters ``<< >>`` and ``<% %>``, since they
contain templates of their own. ``__module__`` and ``__benchmark__`` in a path are replaced by the
names of the module and the benchmark.
"""

from __future__ import annotations

import keyword
import re
import sys
from importlib.util import find_spec
from pathlib import Path

from jinja2 import Environment, StrictUndefined

from medtasks.catalog.contents import task_packages
from medtasks.catalog.registry import plugin_of
from medtasks.core.errors import UsageError
from medtasks.harness.task_names import harness_names

_PACKAGE = re.compile(
    r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
)  # a valid name by the packaging standards
_BENCHMARK = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
_MOST = 40
_TAKEN = frozenset({"lmms_eval", "medtasks", "test", "tests"})


def write_package(
    folder: Path, name: str, variant: str = "mcq", *, benchmark: str | None = None
) -> tuple[Path, ...]:
    """Write an installable package of tasks into ``folder`` and return its files; raises
    `UsageError` if a name cannot be used, or the directory is not empty.
    """
    module, benchmark = names_of(name, benchmark)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder}: is not empty; name an empty or new directory with --out.")
    environment = Environment(
        variable_start_string="<<",
        variable_end_string=">>",
        block_start_string="<%",
        block_end_string="%>",
        comment_start_string="<#",
        comment_end_string="#>",
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # source files, not HTML
    )
    named = {"package": name, "module": module, "benchmark": benchmark, "variant": variant}
    title = benchmark.replace("_", " ").capitalize()
    texts: dict[str, str] = {}  # all are rendered before the first is written
    for part in ("common", variant):
        root = Path(__file__).parent / "files" / part
        for source in root.rglob("*.j2"):
            path = source.relative_to(root).as_posix().removesuffix(".j2")
            path = path.replace("__module__", module).replace("__benchmark__", benchmark)
            template = environment.from_string(source.read_text(encoding="utf-8"))
            texts[path] = template.render(named, title=title)
    for path, text in texts.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8", newline="\n")
    return tuple(folder / path for path in sorted(texts))


def names_of(package: str, benchmark: str | None = None) -> tuple[str, str]:
    """The name that the package called ``package`` is imported by, and that of its benchmark, by
    default the same; raises `UsageError` if one is not valid, or in use.

    >>> names_of("Acme-Bench")
    ('acme_bench', 'acme_bench')
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
            "letter, and avoid Python's keywords."
        )
    installed = find_spec(module)  # without an origin, it is just a directory of that name
    exists = installed is not None and installed.origin is not None
    if exists or module in _TAKEN or module in sys.stdlib_module_names:
        raise UsageError(
            f"package name {package!r} would be imported as {module}, which exists; choose another."
        )
    chosen = module if benchmark is None else benchmark
    if not _BENCHMARK.fullmatch(chosen) or len(chosen) > _MOST:
        raise UsageError(
            f"benchmark name {chosen!r}: expected at most {_MOST} lower-case letters and digits, words joined by '_', "
            "such as acme_dots; choose another with --benchmark."
        )
    taken = "lmms-eval, and --tasks would run that one" if chosen in harness_names() else ""
    for other in task_packages():
        if chosen in {path.stem for path in other.task_files()} | {
            one.name for one in plugin_of(other).benchmarks
        }:
            taken = other.known_as
    if taken:
        raise UsageError(
            f"benchmark name {chosen!r} is taken by {taken}; choose another with --benchmark."
        )
    return module, chosen
