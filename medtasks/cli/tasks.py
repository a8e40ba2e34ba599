"""``medtasks path``, ``list`` and ``show``: the tasks that are installed, and their prompts."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from medtasks.catalog.contents import owner_of, task_directory
from medtasks.catalog.registry import everything_left_out
from medtasks.catalog.spec import leaf_tasks
from medtasks.cli.console import table, write, write_json
from medtasks.cli.help import PlainCommand
from medtasks.cli.options import Json
from medtasks.core.errors import UsageError
from medtasks.core.schema import suggestion
from medtasks.core.text import counted

if TYPE_CHECKING:
    from medtasks.catalog.spec import TaskSpec

app = typer.Typer()


@app.command("path", cls=PlainCommand)
def path() -> None:
    """Print the directory of the task files, for lmms-eval --include_path.

    Example:
        lmms-eval --include_path "$(medtasks path)" --tasks mi_cxr …
    """
    write(str(task_directory()))


@app.command("list", cls=PlainCommand)
def list_tasks(
    pattern: Annotated[
        str | None,
        typer.Argument(show_default=False, help="Part of names, or a pattern such as '*_single'."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All tasks and groups.")] = False,
    as_json: Json = False,
) -> None:
    """List groups of tasks, optionally those that match PATTERN.

    Examples:
        medtasks list
        medtasks list med_cmr
        medtasks list --all
    """
    from medtasks.catalog.spec import load_specs

    everything_left_out()  # imports all packages and warns about what is not used
    specs = load_specs()
    chosen = [spec for spec in specs.values() if _matches(spec.name, pattern)]
    if not chosen:
        raise UsageError(
            f"no task or group matches {pattern!r}{suggestion(pattern, specs)}; "
            "`medtasks list --all` shows all."
        )
    if as_json:
        write_json([_entry(spec) for spec in chosen])
        return
    printed = chosen
    if pattern is None and not everything:
        printed = _outermost(chosen)
    rows = []
    for spec in printed:
        version = str(spec.metadata.version)
        package = owner_of(spec.path).owner
        rows.append((spec.name, spec.metadata.title, _kind(spec), version, package))
    table(("name", "title", "kind", "version", "package"), rows)
    hidden = len(chosen) - len(printed)
    if hidden:
        write(f"  {hidden} tasks and groups are in these: medtasks list PATTERN, or --all")


def _matches(name: str, pattern: str | None) -> bool:
    """Whether the pattern is part of the name or matches it; None matches every name."""
    return pattern is None or pattern in name or fnmatch.fnmatchcase(name, pattern)


def _outermost(specs: Sequence[TaskSpec]) -> list[TaskSpec]:
    """The tasks and groups that are not members of another one."""
    members: set[str] = set()
    for spec in specs:
        members.update(spec.members)
    return [spec for spec in specs if spec.name not in members]


def _kind(spec: TaskSpec) -> str:
    """``task``, or ``group`` with the number of its tasks."""
    if spec.kind == "task":
        return "task"
    return f"group: {counted(len(leaf_tasks(spec.name)), 'task')}"


def _entry(spec: TaskSpec) -> dict[str, Any]:
    """The fields of a task or group in JSON."""
    package = owner_of(spec.path)
    return {
        "name": spec.name,
        "kind": spec.kind,
        "benchmark": spec.metadata.benchmark,
        "title": spec.metadata.title,
        "version": spec.metadata.version,
        "members": list(spec.members),
        "metrics": list(spec.scores),
        "prompt_hash": spec.prompt_hash,
        "rubrics": list(spec.metadata.rubrics),
        "package": package.distribution,
        "package_version": package.version,
    }


@dataclass(frozen=True)
class DocumentAsSent:
    """A document of a task with its prompt and media, as a model gets them, and the gold answer.

    ``number`` is its place among the task's ``documents``, ``frames`` the number of frames of a
    video, ``stage2`` the prompt of the second stage, if the task has one.
    """

    number: int
    documents: int
    sample_id: str
    cluster: str
    media: list[str]
    frames: int
    prompt: str
    stage2: str | None
    target: str


@app.command("show", cls=PlainCommand)
def show(
    task: Annotated[str, typer.Argument(help="Name of a task or group.")],
    doc: Annotated[int, typer.Option(min=0, help="Number of the document to render, from 0.")] = 0,
    diff: Annotated[
        bool,
        typer.Option(help="Show only what MEDTASKS_TEMPLATES changes in the task's templates."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Show a task's rendered prompt with its media, gold answer, YAML and template.

    Example:
        medtasks show mi_cxr_icr --doc 3
    """
    from medtasks.catalog.prompts import overlay_diff, template_source
    from medtasks.catalog.spec import load_spec

    spec = load_spec(task)
    if diff:
        changes = "".join(overlay_diff(template) for template in spec.templates)
        write(changes.rstrip("\n") or "the overlay changes nothing here")
        return
    document = None if spec.kind == "group" else _document_as_sent(spec, doc)
    text = spec.path.read_text(encoding="utf-8")
    if as_json:
        templates = {template: template_source(template) for template in spec.templates}
        write_json({**_entry(spec), "yaml": text, "templates": templates, "document": document})
        return
    write(f"{spec.name} ({spec.kind}, version {spec.metadata.version}): {spec.metadata.title}")
    if document is None:
        write("members: " + ", ".join(spec.members))
    else:
        _show_document(document)
    write(f"\n--- {spec.path}\n{text.rstrip()}")
    _show_templates(spec)


def _document_as_sent(spec: TaskSpec, number: int) -> DocumentAsSent:
    """The document with this number, rendered for a task."""
    from medtasks.benchmarks.documents import asked_prompt, prompt_text, task_documents
    from medtasks.data.store import open_prepared

    documents = task_documents(spec.name)
    if number >= len(documents):
        raise UsageError(
            f"--doc {number}: {spec.name} has {len(documents)} documents, "
            f"0 to {len(documents) - 1}."
        )
    document = documents[number]
    prepared = open_prepared(spec.metadata.benchmark)
    stage2 = None
    if spec.stage1_template:
        assert spec.template is not None
        stage2 = prompt_text(document, spec.template, observations="<output of stage 1>")
    return DocumentAsSent(
        number=number,
        documents=len(documents),
        sample_id=document["sample_id"],
        cluster=document["cluster"],
        media=[str(prepared.media_path(medium)) for medium in document["media"]],
        frames=len(document.get("frames") or ()),
        prompt=asked_prompt(spec, document),
        stage2=stage2,
        target=document["target"],
    )


def _show_document(document: DocumentAsSent) -> None:
    """Print the prompt with its media in place, and the gold answer."""
    place = f"document {document.number} of {document.documents}"
    write(f"\n--- {place}: {document.sample_id} (cluster {document.cluster})")
    for medium in document.media:
        if document.frames:
            write(f"<{document.frames} frames of {medium}>")
        else:
            write(f"<image: {medium}>")
    write(document.prompt)
    if document.stage2 is not None:
        write(f"\n--- stage 2, without images\n{document.stage2}")
    write(f"\n--- gold answer (never in the prompt)\n{document.target}")


def _show_templates(spec: TaskSpec) -> None:
    """Print the source of each template."""
    from medtasks.catalog.prompts import template_path, template_source

    for template in spec.templates:
        write(f"\n--- {template_path(template)} (prompt hash {spec.prompt_hash})")
        write(template_source(template).rstrip())
