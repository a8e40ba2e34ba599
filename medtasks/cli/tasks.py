"""``medtasks path``, ``list``, ``show``, ``validate``, ``new``: tasks, their prompts, checks,
packages of them.
"""

from __future__ import annotations

import fnmatch
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from medtasks.catalog.contents import owner_of, task_directory, without_warnings
from medtasks.catalog.registry import everything_left_out
from medtasks.catalog.spec import leaf_tasks
from medtasks.cli.console import Json, progress, table, write, write_json
from medtasks.core.errors import UsageError
from medtasks.core.findings import COLUMNS, as_rows, failed, summary
from medtasks.core.schema import suggestion
from medtasks.core.text import counted

if TYPE_CHECKING:
    from medtasks.catalog.spec import TaskSpec


def path() -> None:
    """Print the directory of the task files, for lmms-eval --include_path."""
    write(str(task_directory()))


def list_tasks(
    pattern: Annotated[str | None, typer.Argument(show_default=False)] = None,
    everything: Annotated[bool, typer.Option("--all")] = False,
    as_json: Json = False,
) -> None:
    """List the groups of tasks, those that match PATTERN, or all; what is left out, and why, goes
    to standard error.
    """
    from medtasks.catalog.spec import load_specs

    everything_left_out()  # imports all packages and warns about what is not used
    specs = load_specs()
    chosen = [
        spec
        for name, spec in specs.items()
        if pattern is None or pattern in name or fnmatch.fnmatchcase(name, pattern)
    ]
    if not chosen:
        raise UsageError(
            f"no task or group matches {pattern!r}{suggestion(pattern, specs)}; `medtasks list --all` shows all."
        )
    if as_json:
        write_json([_entry(spec) for spec in chosen])
        return
    inner = {member for spec in chosen for member in spec.members}
    shown = [spec for spec in chosen if pattern is not None or everything or spec.name not in inner]
    rows = []
    for spec in shown:
        size = (
            "task"
            if spec.kind == "task"
            else f"group: {counted(len(leaf_tasks(spec.name)), 'task')}"
        )
        rows.append(
            (
                spec.name,
                spec.metadata.title,
                size,
                str(spec.metadata.version),
                owner_of(spec.path).owner,
            )
        )
    table(("name", "title", "kind", "version", "package"), rows)
    if len(shown) < len(chosen):
        write(
            f"  {len(chosen) - len(shown)} tasks and groups are in these: medtasks list PATTERN, or --all"
        )


def _entry(spec: TaskSpec) -> dict[str, Any]:
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
        "package": owner_of(spec.path).distribution,
        "package_version": owner_of(spec.path).version,
    }


def show(
    task: str,
    doc: Annotated[int, typer.Option(min=0)] = 0,
    diff: bool = False,
    as_json: Json = False,
) -> None:
    """Show a task: the rendered prompt with its media in place, the gold answer, the YAML and the
    template.
    """
    from medtasks.benchmarks.documents import asked_prompt, prompt_text, task_documents
    from medtasks.catalog.prompts import overlay_diff, template_path, template_source
    from medtasks.catalog.spec import load_spec
    from medtasks.data.store import open_prepared

    spec = load_spec(task)
    if diff:
        parts = [overlay_diff(template) for template in spec.templates]
        write("".join(parts).rstrip("\n") or "the overlay changes nothing here")
        return
    shown: dict[str, Any] | None = None  # the document as it is sent
    if spec.kind != "group":
        documents = task_documents(spec.name)
        if doc >= len(documents):
            raise UsageError(
                f"--doc {doc}: {spec.name} has {len(documents)} documents, 0 to {len(documents) - 1}."
            )
        document, prepared = documents[doc], open_prepared(spec.metadata.benchmark)
        stage2 = None
        if spec.stage1_template:
            assert spec.template is not None
            stage2 = prompt_text(document, spec.template, observations="<output of stage 1>")
        shown = {
            "number": doc,
            "documents": len(documents),
            "sample_id": document["sample_id"],
            "cluster": document["cluster"],
            "media": [str(prepared.media_path(medium)) for medium in document["media"]],
            "frames": len(document.get("frames") or ()),
            "prompt": asked_prompt(spec, document),
            "stage2": stage2,
            "target": document["target"],
        }
    text = spec.path.read_text(encoding="utf-8")
    if as_json:
        templates = {template: template_source(template) for template in spec.templates}
        write_json({**_entry(spec), "yaml": text, "templates": templates, "document": shown})
        return
    write(f"{spec.name} ({spec.kind}, version {spec.metadata.version}): {spec.metadata.title}")
    if shown is None:
        write("members: " + ", ".join(spec.members))
    else:
        place = f"document {doc} of {shown['documents']}"
        write(f"\n--- {place}: {shown['sample_id']} (cluster {shown['cluster']})")
        for medium in shown["media"]:
            write(
                f"<{shown['frames']} frames of {medium}>"
                if shown["frames"]
                else f"<image: {medium}>"
            )
        write(shown["prompt"])
        if shown["stage2"] is not None:
            write(f"\n--- stage 2, without images\n{shown['stage2']}")
        write(f"\n--- gold answer (never in the prompt)\n{shown['target']}")
    write(f"\n--- {spec.path}\n{text.rstrip()}")
    for template in spec.templates:
        write(f"\n--- {template_path(template)} (prompt hash {spec.prompt_hash})")
        write(template_source(template).rstrip())


def validate(
    what: Annotated[list[str] | None, typer.Argument()] = None,
    quick: bool = False,
    strict: bool = False,
    as_json: Json = False,
) -> None:
    """Check task files, templates, prepared data (hidden fields, media, answers, windows), and how
    scores behave.
    """
    from medtasks.validate import run

    if any(Path(name).exists() for name in what or ()):
        print(
            "medtasks: importing what the files name, from installed packages only",
            file=sys.stderr,
            flush=True,
        )
    with (
        without_warnings(),
        progress("checking tasks") as bar,
    ):  # the findings cover what packages lack
        found = run.validate(what or (), quick=quick, progress=bar)
    if as_json:
        write_json({"data": found.data, "tasks": found.tasks})
    else:
        if found.all:
            table(COLUMNS, as_rows(found.all))
        data = f" and the data of {', '.join(found.data)}" if found.data else ""
        write(f"{counted(found.files, 'task file')}{data}: {summary(found.all)}")
    if failed(found.all, strict):
        raise typer.Exit(1)


def new(
    package: str,
    variant: Literal["mcq", "open", "streaming"] = "mcq",
    out: Path | None = None,
    benchmark: str | None = None,
) -> None:
    """Write a package with a benchmark of your own: tasks, prompt, loader, miniature data, tests,
    README.
    """
    from medtasks.cli.scaffold import names_of, write_package

    _, name = names_of(package, benchmark)
    folder = out or Path(package)
    write(*(f"  {path}" for path in write_package(folder, package, variant, benchmark=benchmark)))
    write(
        f"wrote {package}. Next:\n"
        f"  pip install -e '{folder}[test]'\n"
        f"  MEDTASKS_DATA=mini medtasks validate {name}\n"
        f"  (cd {folder} && python -m pytest)\n"
        f"  MEDTASKS_DATA=mini python -m lmms_eval --model medtasks_baseline --model_args policy=oracle "
        f"--tasks {name} --output_path results"
    )
