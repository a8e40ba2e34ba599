"""``medtasks new`` and ``validate``: packages of tasks, begun and checked."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from medtasks.catalog.benchmark_folder import is_benchmark_folder
from medtasks.catalog.task_package import without_warnings
from medtasks.cli.console import table, write, write_json
from medtasks.cli.from_table import options
from medtasks.cli.help import PlainCommand
from medtasks.cli.options import Json
from medtasks.core.errors import UsageError
from medtasks.core.findings import COLUMNS, as_rows, failed, summary
from medtasks.core.progress_bars import progress
from medtasks.core.text import counted

app = typer.Typer()


@app.command("new", cls=PlainCommand)
def new(
    context: typer.Context,
    package: Annotated[
        str,
        typer.Argument(help="Name of the benchmark, or of the new package, such as acme-bench."),
    ],
    as_package: Annotated[
        bool,
        typer.Option(
            "--package",
            help="Create a Python package; with --from, of this benchmark folder (without --from "
            "this is the default).",
        ),
    ] = False,
    variant: Annotated[
        Literal["mcq", "open", "streaming"],
        typer.Option(
            help="mcq: option letters; open: free answers and a judge; streaming: asked repeatedly."
        ),
    ] = "mcq",
    out: Annotated[
        Path | None, typer.Option(help="Directory, empty or new (default: PACKAGE).")
    ] = None,
    benchmark: Annotated[
        str | None, typer.Option(help="Name of benchmark and task (default: the module's).")
    ] = None,
    rows: options.Rows = None,
    column: options.RoleColumns = None,
    question: options.Question = None,
    answers: options.Answers = None,
    answer_form: options.Form = None,
    cluster: options.Cluster = None,
    language: options.Language = None,
    title: options.Title = None,
    licence: options.Licence = "unknown",
    images: options.Images = None,
    copy: options.Copy = None,
    encoding: options.Encoding = None,
    judge: options.Judge = False,
    no_add: options.NoAdd = False,
) -> None:
    """Create your own benchmark: a folder without code from a table of questions, or a package.

    Examples:
        medtasks new my_vqa --from rows.csv
        medtasks new my_cxr --from labels.csv --question "Which finding is shown?"
        medtasks new my-benchmark --package --from my_vqa
        medtasks new my-benchmark --package --variant open
    """
    target = out or Path(package)
    if rows is None:
        _refuse_others(context, {"as_package", "variant", "out", "benchmark"}, "without --from")
        _new_package(target, package, variant, benchmark)
        return
    if as_package:
        _refuse_others(context, {"as_package", "rows", "out"}, "for a package of a folder")
        _new_folder_package(target, package, rows)
        return
    from medtasks.cli.from_table.new_folder import Request, new_folder
    from medtasks.cli.from_table.review import terminal
    from medtasks.cli.from_table.wishes import wishes_of

    _refuse_given(context, {"variant", "benchmark"}, "with --from")
    if is_benchmark_folder(rows):
        raise UsageError(f"{rows}: is a benchmark folder; to make a package of it, add --package.")
    columns = [*(column or ()), *([] if cluster is None else [f"cluster={cluster}"])]
    request = Request(
        name=package,
        table=rows,
        target=target,
        wishes=wishes_of(columns, question, answers, answer_form, language),
        title=title,
        licence=licence,
        images=images,
        copy=copy,
        encoding=encoding,
        judge=judge,
        add=not no_add,
    )
    new_folder(request, terminal())


def _refuse_others(context: typer.Context, accepted: set[str], when: str) -> None:
    """Refuse every option but the ``accepted`` ones; see `_refuse_given`."""
    options_of_command = {name for name in context.params if name != "package"}
    _refuse_given(context, options_of_command - accepted, when)


def _refuse_given(context: typer.Context, refused: set[str], when: str) -> None:
    """Raise a `UsageError` if one of the ``refused`` options is on the command line."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        is_given = source is not None and source.name == "COMMANDLINE"
        if parameter.name in refused and is_given:
            raise UsageError(f"{parameter.opts[0]}: has no effect {when}; leave it out.")


def _new_package(folder: Path, package: str, variant: str, benchmark: str | None) -> None:
    """Write a package to start from, and print what to do next."""
    from medtasks.cli.scaffold import names_of, write_package

    names = names_of(package, benchmark)
    files = write_package(folder, package, variant, benchmark=benchmark)
    write(*(f"  {file}" for file in files))
    write(
        f"wrote {package}. Next:\n"
        f"  pip install -e '{folder}[test]'\n"
        f"  MEDTASKS_DATA=mini medtasks validate {names.benchmark}\n"
        f"  (cd {folder} && python -m pytest)\n"
        f"  MEDTASKS_DATA=mini python -m lmms_eval --model medtasks_baseline "
        f"--model_args policy=oracle --tasks {names.benchmark} --output_path results"
    )


def _new_folder_package(target: Path, package: str, source: Path) -> None:
    """Write a benchmark folder as a package, and print what to do next."""
    from medtasks.catalog.folders_in_use import added_folders
    from medtasks.cli.scaffold.folder_package import files_elsewhere, write_folder_package

    folder = write_folder_package(target, package, source)
    write(f"wrote {package}, which is imported as {folder.name}.")
    for path in files_elsewhere(folder):
        write(f"  not copied, so that the package works on this machine alone: {path}")
    write("Next:")
    if added_folders().get(folder.name) == folder.path.resolve():
        write(f"  medtasks remove {folder.name}  # the package has its tasks")
    write(
        f"  pip install -e '{target}[test]'",
        f"  medtasks validate {folder.name}",
        f"  (cd {target} && python -m pytest)",
    )


@app.command("validate", cls=PlainCommand)
def validate(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            help="Packages, benchmarks, tasks, groups, files or directories "
            "(default: all that is prepared)."
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(help="Do not decode pictures and frames, and do not check how scores behave."),
    ] = False,
    strict: Annotated[bool, typer.Option(help="Exit with 1 for warnings as well.")] = False,
    as_json: Json = False,
) -> None:
    """Check task files, templates, prepared data (hidden fields, media, answers, windows) and
    scores.

    Examples:
        medtasks validate mi_cxr
        medtasks validate path/to/tasks --json
    """
    from medtasks.validate import run

    names = what or ()
    paths = [Path(name) for name in names if Path(name).exists()]
    if not all(is_benchmark_folder(path) for path in paths):
        notice = "medtasks: importing what the files name, from installed packages only"
        print(notice, file=sys.stderr, flush=True)
    # without warnings: the findings cover what packages lack
    with without_warnings(), progress("checking tasks") as bar:
        report = run.validate(names, quick=quick, progress=bar)
    if as_json:
        write_json({"data": report.data, "tasks": report.tasks})
    else:
        if report.all:
            table(COLUMNS, as_rows(report.all))
        data = f" and the data of {', '.join(report.data)}" if report.data else ""
        write(f"{counted(report.files, 'task file')}{data}: {summary(report.all)}")
    if failed(report.all, strict):
        raise typer.Exit(1)
