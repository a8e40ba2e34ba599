"""``medtasks new``: create a package of tasks from a template."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from medtasks.cli.console import write


class Variant(str, Enum):
    """Kind of answers."""

    mcq = "mcq"
    open = "open"
    streaming = "streaming"


def new(
    package: Annotated[str, typer.Argument(help="Name of the new package, such as acme-bench.")],
    variant: Annotated[
        Variant,
        typer.Option(
            "--variant", help="mcq: option letters; open: free answers and a judge; streaming: asked repeatedly."
        ),
    ] = Variant.mcq,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Directory, empty or new (default: PACKAGE).", show_default=False),
    ] = None,
    benchmark: Annotated[
        str | None,
        typer.Option("--benchmark", help="Name of benchmark and group (default: the module's).", show_default=False),
    ] = None,
) -> None:
    """Write a package with a benchmark of your own: tasks, prompt, loader, miniature data, tests, README."""
    from medtasks.cli.scaffold import names_of, write_package

    names = names_of(package, benchmark)
    folder = out or Path(package)
    for path in write_package(folder, package, variant.value, benchmark=benchmark):
        write(f"  {path}")
    write(
        f"wrote {package}. Next:\n"
        f"  pip install -e '{folder}[test]'\n"
        f"  MEDTASKS_DATA=mini medtasks validate {names.benchmark}\n"
        f"  (cd {folder} && python -m pytest)\n"
        f"  MEDTASKS_DATA=mini python -m lmms_eval --model medtasks_baseline --model_args policy=oracle "
        f"--tasks {names.benchmark} --output_path results"
    )
