"""The files of a new package: Jinja templates in ``files/``, rendered and written.

The delimiters are ``<< >>`` and ``<% %>``, since the files contain templates of their own. In their
paths, ``__module__`` and ``__benchmark__`` are replaced by the names of module and benchmark.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from jinja2 import Environment, StrictUndefined

from medtasks.core.errors import UsageError


def rendered(part: str, fields: Mapping[str, str]) -> dict[str, str]:
    """The texts of the files in ``files/<part>`` by path below the new package's directory."""
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
    root = Path(__file__).parent / "files" / part
    texts: dict[str, str] = {}
    for source in root.rglob("*.j2"):
        path = source.relative_to(root).as_posix().removesuffix(".j2")
        path = path.replace("__module__", fields["module"])
        path = path.replace("__benchmark__", fields["benchmark"])
        template = environment.from_string(source.read_text(encoding="utf-8"))
        texts[path] = template.render(fields)
    return texts


def as_toml(value: str | list[str]) -> str:
    """A text, or a list of texts, as TOML, which escapes characters as JSON does.

    >>> as_toml(["a", "b"])
    '["a", "b"]'
    """
    return json.dumps(value, ensure_ascii=False)


def require_empty(folder: Path) -> None:
    """Raise a `UsageError` unless ``folder`` is new, or an empty directory."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder}: is not empty; name an empty or new directory with --out.")


def write_texts(folder: Path, texts: Mapping[str, str]) -> tuple[Path, ...]:
    """Write the texts to their paths below ``folder``, and return the files."""
    for path, text in texts.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8", newline="\n")
    return tuple(folder / path for path in sorted(texts))
