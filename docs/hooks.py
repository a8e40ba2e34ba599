"""MkDocs hook: the command reference out of the Typer app, the table of metrics out of their
classes, and the pages that live at the root of the repository.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
INCLUDED = {"changelog.md": "CHANGELOG.md", "security.md": "SECURITY.md"}
"""Pages that are files of the repository's root, where GitHub looks for them."""


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The page's text: commands or metrics in place of their marker, or the file of the repository
    that the page shows.
    """
    name = page.file.src_uri
    if name == "cli.md":
        return markdown.replace("<!-- commands -->", commands())
    if name == "metrics.md":
        return markdown.replace("<!-- metrics -->", metrics())
    if name in INCLUDED:
        return (ROOT / INCLUDED[name]).read_text(encoding="utf-8").replace("](docs/", "](")
    return markdown.replace("](../SECURITY.md", "](security.md").replace(
        "](../CHANGELOG.md", "](changelog.md"
    )


def commands() -> str:
    """Every command with its arguments and options, as ``typer utils docs`` writes them."""
    import typer
    from typer.cli import get_docs_for_click

    from medtasks.cli.app import app

    command = typer.main.get_command(app)
    text = get_docs_for_click(
        obj=command, ctx=typer.Context(command, info_name="medtasks"), name="medtasks"
    )
    body = text[
        text.index("\n## ") :
    ]  # behind the list of the commands, which the page's contents repeat
    body = re.sub(r"\n\x08\nExamples?:\n((?:  .+\n?)+)", _as_block, body)
    return re.sub(r"<(\w+)>", r"&lt;\1&gt;", body)


def metrics() -> str:
    """A table of our metrics that score a prediction and a reference, by name."""
    from medtasks.catalog.registry import package_metrics
    from medtasks.metrics.registry import is_ours, scores_pairs, unit_of

    lines = ["| metric | unit | best | definition |", "|---|---|---|---|"]
    for name, (metric, _) in sorted(package_metrics().items()):
        if is_ours(name) and scores_pairs(metric):
            best = "highest" if metric.higher_is_better else "lowest"
            lines.append(f"| `{name}` | {unit_of(name)} | {best} | {_first_sentence(metric)} |")
    return "\n".join(lines)


def _first_sentence(metric: object) -> str:
    """The first sentence of a metric's docstring, as Markdown."""
    text = " ".join(str(inspect.getdoc(type(metric))).split())
    sentence = re.split(r"\.(?: (?=[A-Z])|$)", text)[0]
    return sentence.replace("``", "`").replace("|", "\\|")


def _as_block(found: re.Match[str]) -> str:
    lines = "\n".join(line[2:] for line in found[1].splitlines())
    return f"\n**Examples**:\n\n```bash\n{lines}\n```\n"
