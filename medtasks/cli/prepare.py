"""``medtasks prepare``: the data of benchmarks made ready."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from typing_extensions import Unpack

from medtasks.catalog.registry import all_benchmarks, get_benchmark
from medtasks.cli.console import write
from medtasks.cli.help import PlainCommand, PlainGroup, examples
from medtasks.core.errors import UsageError
from medtasks.core.progress_bars import progress
from medtasks.data.package_release import prepare_package
from medtasks.data.preparation_report import preparation_lines
from medtasks.data.prepare_commands import Bars, Out, PictureOptions, parameters_of
from medtasks.data.prepared import Prepared


class BenchmarkCommands(PlainGroup):
    """Lists the benchmarks' own commands first, and imports benchmarks only when one is needed."""

    def list_commands(self, ctx: Any) -> list[str]:
        names = []
        for name, benchmark in all_benchmarks().items():
            if benchmark.data.command is not None:
                names.append(name)
        return names + super().list_commands(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command of this group, or else the one that prepares the benchmark of this name."""
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            return command
        benchmark = all_benchmarks().get(cmd_name)
        if benchmark is None or benchmark.data.command is None:
            return None
        prepare = benchmark.data.command
        commands = typer.Typer(add_completion=False, rich_markup_mode=None)
        register = commands.command(cmd_name, cls=PlainCommand, epilog=examples(*prepare.examples))
        register(_reporting(prepare.run))
        return typer.main.get_command(commands)


app = typer.Typer(cls=BenchmarkCommands, help="Prepare a benchmark's data for evaluation.")


def _reporting(run: Callable[..., Iterable[Prepared]]) -> Callable[..., None]:
    """A command that reports all that ``run`` prepares, with the options of ``run``, whose first
    parameter opens progress bars.
    """

    @functools.wraps(run)
    def command(**options: Any) -> None:
        for prepared in run(progress, **options):
            write(*preparation_lines(prepared))

    _, *parameters = parameters_of(run)
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {option.name: option.annotation for option in parameters}
    return command


def _prepare_package(
    bars: Bars,
    benchmark: Annotated[
        str, typer.Argument(help="Benchmark that reads its own data, as `medtasks list` names it.")
    ],
    source: Annotated[
        Path | None,
        typer.Option(
            help="Directory or file, as the package's documentation says; or hub "
            "(not needed if the package contains its data)."
        ),
    ] = None,
    media: Annotated[
        Path | None, typer.Option(help="Directory of the media (default: the source).")
    ] = None,
    out: Out = None,
    **options: Unpack[PictureOptions],
) -> Iterator[Prepared]:
    """Prepare the data of a benchmark with no command of its own, such as one of a package."""
    described = get_benchmark(benchmark)
    if source is None:
        if described.data.local is None:
            raise UsageError(f"{benchmark}: pass --source: {described.data.prepare}")
        source = described.data.local.rows
    with bars("verifying media") as bar:
        options["progress"] = bar
        prepared = prepare_package(described, source, out, media=media, **options)
    yield prepared


_register = app.command(
    "package",
    cls=PlainCommand,
    epilog=examples("medtasks prepare package my_benchmark --source data/"),
)
_register(_reporting(_prepare_package))
