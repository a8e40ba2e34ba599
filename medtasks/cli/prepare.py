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
from medtasks.cli.console import progress, write
from medtasks.cli.help import PlainCommand, PlainGroup, examples
from medtasks.core.text import counted, first_names, grouped_notes, printable
from medtasks.data.package_release import prepare_package
from medtasks.data.prepare_commands import Bars, Out, PictureOptions, parameters_of
from medtasks.data.prepared import DataManifest, Prepared, coverage_lines

MOST_REASONS = 10
"""Reasons why media files are left out that are printed; the manifest has all."""


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
            report(prepared)

    _, *parameters = parameters_of(run)
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {option.name: option.annotation for option in parameters}
    return command


def _prepare_package(
    bars: Bars,
    benchmark: Annotated[
        str, typer.Argument(help="Benchmark of another package, as `medtasks list` names it.")
    ],
    source: Annotated[
        Path,
        typer.Option(help="Directory or file, as the package's documentation says; or hub."),
    ],
    media: Annotated[
        Path | None, typer.Option(help="Directory of the media (default: the source).")
    ] = None,
    out: Out = None,
    **options: Unpack[PictureOptions],
) -> Iterator[Prepared]:
    """Prepare the data of a benchmark from another package."""
    with bars("verifying media") as bar:
        options["progress"] = bar
        prepared = prepare_package(get_benchmark(benchmark), source, out, media=media, **options)
    yield prepared


_register = app.command(
    "package",
    cls=PlainCommand,
    epilog=examples("medtasks prepare package my_benchmark --source data/"),
)
_register(_reporting(_prepare_package))


def report(prepared: Prepared) -> None:
    """Print what was prepared, and how it differs from what was published."""
    manifest = prepared.manifest
    counts = manifest.counts
    write(
        f"prepared {manifest.benchmark}: {counted(counts.rows, 'row')}, "
        f"{counted(counts.media, 'media file')}, {counted(counts.clusters, 'cluster')}, "
        f"fingerprint {manifest.fingerprint[:16]}"
    )
    write(*(f"  {line}" for line in _details(manifest)))
    write(f"  in {prepared.directory}")


def _details(manifest: DataManifest) -> Iterator[str]:
    """Lines about the rows and media: what was counted, left out, and noticed."""
    for kind, number in manifest.counts.by_kind.items():
        yield f"{kind}: {number:,}"
    for difference in manifest.differences:
        yield f"differs: {difference}"
    for reason, number in manifest.excluded.items():
        yield f"excluded: {counted(number, 'row')} ({reason})"
    yield from _left_out_media(manifest)
    if manifest.references_only:
        yield "references only: enough to score predictions, not to run models"
    yield from coverage_lines(manifest.coverage)
    for oddity, number in manifest.details.get("oddities", {}).items():
        if number:
            yield f"noted: {oddity}: {number:,}"
    if manifest.uniform_media:
        pictures = first_names(map(printable, manifest.uniform_media))
        number = len(manifest.uniform_media)
        yield f"noted: pictures whose pixels all have one value: {number:,} ({pictures})"


def _left_out_media(manifest: DataManifest) -> Iterator[str]:
    """A line for each reason why media files cannot be used, with the first of the files."""
    reasons = [(reason, name) for name, reason in manifest.excluded_media.items()]
    lines = grouped_notes(reasons)
    yield from lines[:MOST_REASONS]
    omitted = len(lines) - MOST_REASONS
    if omitted > 0:
        yield (
            f"  and {omitted:,} other reasons: field `excluded_media` of manifest.json has all "
            "files"
        )
