"""``medtasks add`` and ``remove``: benchmark folders, whose tasks all commands then offer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from medtasks.catalog.benchmark_file import BenchmarkFile
from medtasks.catalog.benchmark_folder import BenchmarkFolder, load_benchmark_folder
from medtasks.catalog.contents import forget_packages, packages_found, task_packages
from medtasks.catalog.folder_tasks import folder_package, task_names
from medtasks.catalog.folders_in_use import (
    add_folder,
    include,
    refuse_other_folder,
    remove_folder,
)
from medtasks.catalog.registry import code_left_out, get_benchmark
from medtasks.catalog.task_package import without_warnings
from medtasks.cli.console import table, write
from medtasks.cli.help import PlainCommand
from medtasks.core.errors import DataError, UsageError
from medtasks.core.findings import COLUMNS, as_rows, failed, summary
from medtasks.core.progress_bars import progress
from medtasks.core.schema import shown
from medtasks.data.preparation_report import preparation_lines
from medtasks.data.prepared import Prepared

app = typer.Typer()


@app.command("add", cls=PlainCommand)
def add(
    folder: Annotated[
        Path, typer.Argument(help="Directory with benchmark.yaml, or name of one in use.")
    ],
) -> None:
    """Prepare the data of a benchmark folder, and add its tasks to all commands.

    Example:
        medtasks add my_vqa
    """
    add_benchmark_folder(folder)


def add_benchmark_folder(path: Path) -> None:
    """Prepare a benchmark folder, add it to the user's list, and print what was prepared.

    Raises:
        MedtasksError: ``benchmark.yaml`` is not valid, a name is taken, or files cannot be written.
        typer.Exit: rows are faulty, and were listed.
    """
    folder = load_benchmark_folder(_located(path))
    refuse_other_folder(folder.name, folder.path)
    _use(folder)
    write(*preparation_lines(_prepared(folder)))
    _check_prompts(folder)
    _check_labels(folder)
    add_folder(folder.name, folder.path)
    names = ",".join(task_names(folder.file))
    write(
        f"added {folder.name}. Next, with a baseline in place of a model:",
        f"  lmms-eval --model medtasks_baseline --model_args policy=uniform --tasks {names} "
        "--output_path results",
        "  medtasks view results",
    )


def _located(path: Path) -> Path:
    """The folder at ``path`` or, if there is none, that of the benchmark of this name."""
    if not path.is_dir():
        with without_warnings():
            packages = task_packages()
        for package in packages:
            if package.folder is not None and package.folder.name == str(path):
                return package.folder.path
    return path


def taken_by_harness(file: BenchmarkFile) -> list[str]:
    """The names of a benchmark's tasks that tasks of lmms-eval have already."""
    from medtasks.harness.task_names import harness_names

    return sorted(harness_names().intersection(task_names(file)))


def refuse_names_of_packages(file: BenchmarkFile) -> None:
    """Refuse a benchmark whose tasks have names of tasks of packages, or of folders in use.

    Raises:
        UsageError: there is such a task.
    """
    with without_warnings():
        packages = task_packages()
    owners: dict[str, str] = {}
    for package in packages:
        owners |= dict.fromkeys((path.stem for path in package.task_files()), package.known_as)
    for name in task_names(file):
        if name in owners:
            raise UsageError(
                f"{file.name}: its task {name} is already defined by {owners[name]}; give another "
                "name."
            )


def _use(folder: BenchmarkFolder) -> None:
    """Use the folder in this process.

    Raises:
        UsageError: a package, another folder or lmms-eval has a task of one of its names.
    """
    taken = taken_by_harness(folder.file)
    if taken:
        raise UsageError(
            f"{folder.place('name')}: lmms-eval has a task {taken[0]} already; change `name`."
        )
    include(folder.path)
    forget_packages()
    with without_warnings():
        problem = _why_left_out(folder)
    if problem:
        raise UsageError(f"{folder.place('name')}: {problem}")


def _why_left_out(folder: BenchmarkFolder) -> str:
    """Why the folder is not in use; empty if it is."""
    packages, left_out = packages_found()
    for package in packages:
        if package.folder is not None and package.folder.path == folder.path.resolve():
            problem = code_left_out(package)
            return "" if problem is None else problem.why
    owner = folder_package(folder).owner
    return next((problem.why for problem in left_out if problem.owner == owner), "it is left out.")


def _prepared(folder: BenchmarkFolder) -> Prepared:
    """The prepared data of the folder; if rows are faulty, they are listed, and the command
    ends.
    """
    from medtasks.data.local_files import prepare_local
    from medtasks.validate.folders import check_folder

    try:
        with progress("verifying pictures") as bar:
            return prepare_local(get_benchmark(folder.name), progress=bar)
    except DataError:
        with progress("looking for faults") as bar:
            _, findings = check_folder(folder.path, progress=bar)
        if not failed(findings):
            raise
        table(COLUMNS, as_rows(findings))
        write(
            f"{folder.name} was not added: {summary(findings)}",
            f"correct them, and run: medtasks add {folder.path}",
        )
        raise typer.Exit(1) from None


def _check_prompts(folder: BenchmarkFolder) -> None:
    """Render each prompt for the first row; raises `MedtasksError` if a template fails."""
    from medtasks.benchmarks.documents import prompt_text, task_documents

    document = task_documents(folder.name, media=False)[0]
    for template in folder.templates:
        prompt_text(document, template)


def _check_labels(folder: BenchmarkFolder) -> None:
    """Refuse labels that are not read as themselves when a model gives them as its answer."""
    from medtasks.answers.closed_answer import closed_answer
    from medtasks.benchmarks.documents import task_documents

    labels = task_documents(folder.name, media=False)[0].get("options", [])
    for label in labels:
        answer = closed_answer(label, labels)
        if answer != label:
            raise DataError(
                f"{folder.data.name}: the answer {shown(label)} is read as {shown(answer)} when a "
                f"model gives it, expected {shown(label)}; write it in other words in the rows, "
                f"and run: medtasks add {folder.path}"
            )


@app.command("remove", cls=PlainCommand)
def remove(
    name: Annotated[str, typer.Argument(help="Name of a benchmark that was added.")],
) -> None:
    """Remove an added benchmark's tasks from all commands; its files are kept.

    Example:
        medtasks remove my_vqa
    """
    folder = remove_folder(name)
    write(f"removed {name}; its folder {folder} and its prepared data are kept")
