"""``medtasks prepare``: turn release files into validated records, verified media and a manifest."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typing_extensions import Unpack

from medtasks.catalog.registry import all_benchmarks, get_benchmark
from medtasks.cli.console import plain_help, progress, write
from medtasks.core.text import counted
from medtasks.data.preparation import PictureOptions, prepare_package
from medtasks.data.prepare import Bars, Out, parameters_of
from medtasks.data.prepared import Prepared


class _Benchmarks(TyperGroup):
    """Lists the benchmarks' own commands first, and imports benchmarks only when one is needed."""

    def list_commands(self, ctx: Any) -> list[str]:
        own = [name for name, benchmark in all_benchmarks().items() if benchmark.command is not None]
        return [*own, *super().list_commands(ctx)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        found = super().get_command(ctx, cmd_name)
        benchmark = all_benchmarks().get(cmd_name) if found is None else None
        if benchmark is None or benchmark.command is None:
            return found
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(cmd_name)(_typed(benchmark.command.run))
        return plain_help(typer.main.get_command(alone), f"prepare {cmd_name}", benchmark.command.examples)


app = typer.Typer(cls=_Benchmarks, help="Prepare a benchmark's data; only prepared data are evaluated.")


def _typed(run: Callable[..., Iterable[Prepared]]) -> Callable[..., None]:
    """What prints a report of all that ``run`` prepares; its first parameter opens progress bars."""

    @functools.wraps(run)
    def typed(**options: Any) -> None:
        for prepared in run(progress, **options):
            report(prepared)

    _, *options = parameters_of(run)
    typed.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    typed.__annotations__ = {option.name: option.annotation for option in options}
    return typed


def _package(
    bars: Bars,
    benchmark: str,
    source: Annotated[Path, typer.Option()],
    media: Path | None = None,
    out: Out = None,
    **options: Unpack[PictureOptions],
) -> Iterator[Prepared]:
    """Prepare the data of a benchmark from another package."""
    with bars("verifying media") as bar:
        options["progress"] = bar
        prepared = prepare_package(get_benchmark(benchmark), source, out, media=media, **options)
    yield prepared


app.command("package")(_typed(_package))


def report(prepared: Prepared) -> None:
    """Print what was prepared, and how it differs from what was published."""
    from medtasks.data.manifest import coverage_lines

    manifest = prepared.manifest
    counts = manifest.counts
    write(
        f"prepared {manifest.benchmark}: {counted(counts.rows, 'row')}, {counted(counts.media, 'media file')}, "
        f"{counted(counts.clusters, 'cluster')}, fingerprint {manifest.fingerprint[:16]}"
    )
    write(*(f"  {kind}: {number:,}" for kind, number in counts.by_kind.items()))
    write(*(f"  differs: {difference}" for difference in manifest.differences))
    write(*(f"  excluded: {counted(number, 'row')} ({reason})" for reason, number in manifest.excluded.items()))
    if manifest.references_only:
        write("  references only: enough to score predictions, not to run models")
    write(*(f"  {line}" for line in coverage_lines(manifest.coverage)))
    oddities = manifest.details.get("oddities", {})
    write(*(f"  noted: {what}: {number:,}" for what, number in oddities.items() if number))
    write(f"  in {prepared.directory}")
