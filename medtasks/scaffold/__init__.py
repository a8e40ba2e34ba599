"""A package of tasks to start from: what ``medtasks new`` writes.

The files lie below ``files/`` as Jinja templates with the delimiters ``<< >>`` and ``<% %>``, since what they hold has
templates of its own. ``__module__`` and ``__benchmark__`` in a path stand for the package's module and its benchmark.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from jinja2 import Environment, StrictUndefined

from medtasks.errors import UsageError
from medtasks.scaffold.names import Names, names_of

__all__ = ["VARIANTS", "Names", "names_of", "write_package"]

VARIANTS = ("mcq", "open", "streaming")
"""What can be scaffolded: multiple choice, open answers with a judge, and questions that a stream is asked again."""


def write_package(folder: Path, name: str, variant: str = "mcq", *, benchmark: str | None = None) -> tuple[Path, ...]:
    """Write an installable package of tasks into ``folder``, and say which files that are.

    Args:
        folder: where to; made where it is not there, refused where it holds anything.
        name: the name that the package is to be installed under, such as ``acme-bench``.
        variant: one of :data:`VARIANTS`.
        benchmark: what its benchmark and group are called; the module's name where absent.

    Raises:
        UsageError: a name cannot be used, there is no such variant, or the folder is not empty.
    """
    if variant not in VARIANTS:
        raise UsageError(f"variant {variant!r} is unknown; choose from {', '.join(VARIANTS)}.")
    names = names_of(name, benchmark)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder}: there is something already; name an empty or new folder with --out.")
    rendered = dict(_rendered(names, variant))
    written = []
    for path, text in sorted(rendered.items()):
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8", newline="\n")
        written.append(target)
    return tuple(written)


def _rendered(names: Names, variant: str) -> Iterator[tuple[str, str]]:
    """Path and text of every file; all are made before the first is written."""
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
        autoescape=False,  # what is made are source files, no page
    )
    values = {
        "package": names.package,
        "module": names.module,
        "benchmark": names.benchmark,
        "title": names.title,
        "variant": variant,
    }
    for part in ("common", variant):
        root = Path(__file__).parent / "files" / part
        for source in sorted(root.rglob("*.j2")):
            path = source.relative_to(root).as_posix().removesuffix(".j2")
            target = path.replace("__module__", names.module).replace("__benchmark__", names.benchmark)
            yield target, environment.from_string(source.read_text(encoding="utf-8")).render(values)
