"""``medtasks validate``: are tasks and prepared data what a run, and a reviewer, may rest on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medtasks.cli.console import Layout, progress, table, write

if TYPE_CHECKING:
    from medtasks.validation import Finding

__all__ = ["validate"]


def validate(
    what: Annotated[
        list[str] | None,
        typer.Argument(help="Benchmarks, tasks, groups, task files or folders (default: all that is prepared)."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Leave pictures and frames undecoded, and how scores behave unchecked.")
    ] = False,
    processes: Annotated[
        bool, typer.Option("--processes", help="Run the harness with one process and with two, and compare; slow.")
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 for warnings, too.")] = False,
    layout: Annotated[
        Layout, typer.Option("--format", help="table, json, sarif (2.1.0) or github (workflow annotations).")
    ] = Layout.table,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """Check task files, templates, prepared data (hidden fields, media, answers, windows), and how scores behave."""
    from medtasks.validation import (
        as_annotations,
        as_sarif,
        failed,
        validate_behaviour,
        validate_processes,
        validate_tasks,
    )

    benchmarks, names, paths = _chosen(what or [])
    data = _data(benchmarks, quick)
    tasks: list[Finding] = []
    if names or paths:
        with progress("checking tasks") as bar:
            tasks = validate_tasks(names, paths, progress=bar)
    scored = [*names, *(name for name in _installed_below(paths) if name not in names)]
    if scored and not quick:
        with progress("checking how scores behave") as bar:
            tasks += validate_behaviour(scored, progress=bar)
    if scored and processes:
        tasks += validate_processes(scored)
    everything = [*(one for ones in data.values() for one in ones), *tasks]
    if as_json or layout is Layout.json:
        found = {name: [asdict(one) for one in ones] for name, ones in data.items()}
        write(json.dumps({"data": found, "tasks": [asdict(one) for one in tasks]}, indent=1))
    elif layout is Layout.sarif:
        write(as_sarif(everything))
    elif layout is Layout.github:
        write(as_annotations(everything))
    else:
        _report(data, tasks, bool(names or paths))
    if failed(everything, strict):
        raise typer.Exit(1)


def _chosen(what: Sequence[str]) -> tuple[list[str], list[str], list[Path]]:
    """Benchmarks whose data are checked, names of tasks, and paths; all that is prepared where nothing is named."""
    from medtasks.data.store import open_prepared
    from medtasks.errors import NotPreparedError
    from medtasks.plugin import all_benchmarks
    from medtasks.spec import load_specs

    specs = load_specs()
    if what:
        benchmarks = [name for name in what if name in all_benchmarks()]
        of_benchmark = [name for name, spec in specs.items() if spec.metadata.benchmark in benchmarks]
        paths = [Path(name) for name in what if name not in all_benchmarks() and name not in specs]
        return benchmarks, list(dict.fromkeys([*of_benchmark, *(name for name in what if name in specs)])), paths
    prepared = []
    for name in all_benchmarks():
        try:
            open_prepared(name)
        except NotPreparedError:
            continue
        prepared.append(name)
    if not prepared:
        raise NotPreparedError("no benchmark is prepared; run: medtasks prepare --help")
    return prepared, [name for name, spec in specs.items() if spec.metadata.benchmark in prepared], []


def _installed_below(paths: Sequence[Path]) -> list[str]:
    """Tasks and groups whose installed file is one of these, or below one: only of these can the scoring be run."""
    from medtasks.spec import load_specs

    given = {path.resolve() for path in paths}
    return [name for name, spec in load_specs().items() if given & {spec.path.resolve(), *spec.path.resolve().parents}]


def _data(benchmarks: Sequence[str], quick: bool) -> dict[str, list[Finding]]:
    from medtasks.data.store import open_prepared
    from medtasks.validation import validate_prepared

    for name in benchmarks:
        open_prepared(name)  # all are there before the first is checked
    found = {}
    for name in benchmarks:
        with progress(f"checking {name}") as bar:
            found[name] = validate_prepared(name, decode=not quick, progress=bar)
    return found


def _report(data: dict[str, list[Finding]], tasks: list[Finding], asked: bool) -> None:
    from medtasks.validation import COLUMNS, as_rows, summary

    for name, findings in data.items():
        errors = sum(one.severity == "error" for one in findings)
        write(f"{name}: {f'{errors} errors' if errors else 'no error'}")
        if findings:
            rows = [(one.severity, one.check, one.where, one.message) for one in findings]
            table(("severity", "check", "where", "message"), rows)
    if asked:
        write(f"task files, templates, documents, scores: {summary(tasks)}")
        if tasks:
            table(COLUMNS, as_rows(tasks))
