"""``medtasks prepare``, ``fetch`` and ``doctor``: data made ready, and what is installed, prepared
or missing.
"""

from __future__ import annotations

import functools
import inspect
import io
import sys
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from importlib.metadata import PackageNotFoundError, entry_points, requires, version
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from packaging.requirements import Requirement
from rich.console import Console
from typer.core import TyperGroup
from typing_extensions import Unpack

from medtasks.catalog.contents import task_packages, without_warnings
from medtasks.catalog.registry import all_benchmarks, everything_left_out, get_benchmark, plugin_of
from medtasks.cli.console import Json, plain_help, progress, table, write, write_json
from medtasks.core.errors import MedtasksError, NotPreparedError
from medtasks.core.text import counted, first_names, grouped_notes, one_line, printable
from medtasks.data.package_release import prepare_package
from medtasks.data.prepare_commands import Bars, Out, PictureOptions, parameters_of
from medtasks.data.prepared import DataManifest, Prepared, coverage_lines, data_root, is_mini
from medtasks.data.prepared import counted as counted_rows
from medtasks.data.store import open_prepared


class _Benchmarks(TyperGroup):
    """Lists the benchmarks' own commands first, and imports benchmarks only when one is needed."""

    def list_commands(self, ctx: Any) -> list[str]:
        own = [
            name
            for name, benchmark in all_benchmarks().items()
            if benchmark.data.command is not None
        ]
        return [*own, *super().list_commands(ctx)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        found = super().get_command(ctx, cmd_name)
        benchmark = all_benchmarks().get(cmd_name) if found is None else None
        if benchmark is None or benchmark.data.command is None:
            return found
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(cmd_name)(_typed(benchmark.data.command.run))
        return plain_help(
            typer.main.get_command(alone), f"prepare {cmd_name}", benchmark.data.command.examples
        )


app = typer.Typer(
    cls=_Benchmarks, help="Prepare a benchmark's data; only prepared data are evaluated."
)


def _typed(run: Callable[..., Iterable[Prepared]]) -> Callable[..., None]:
    """What prints a report of all that ``run`` prepares; its first parameter opens progress
    bars.
    """

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
    manifest = prepared.manifest
    counts = manifest.counts
    write(
        f"prepared {manifest.benchmark}: {counted(counts.rows, 'row')}, {counted(counts.media, 'media file')}, "
        f"{counted(counts.clusters, 'cluster')}, fingerprint {manifest.fingerprint[:16]}"
    )
    write(*(f"  {kind}: {number:,}" for kind, number in counts.by_kind.items()))
    write(*(f"  differs: {difference}" for difference in manifest.differences))
    write(
        *(
            f"  excluded: {counted(number, 'row')} ({reason})"
            for reason, number in manifest.excluded.items()
        )
    )
    write(*_left_out_media(manifest))
    if manifest.references_only:
        write("  references only: enough to score predictions, not to run models")
    write(*(f"  {line}" for line in coverage_lines(manifest.coverage)))
    oddities = manifest.details.get("oddities", {})
    write(*(f"  noted: {what}: {number:,}" for what, number in oddities.items() if number))
    if manifest.uniform_media:
        pictures = first_names(map(printable, manifest.uniform_media))
        write(
            f"  noted: pictures whose pixels all have one value: {len(manifest.uniform_media):,} ({pictures})"
        )
    write(f"  in {prepared.directory}")


REASONS = 10
"""Reasons why media files are left out that are printed; the manifest has all."""


def _left_out_media(manifest: DataManifest) -> Iterator[str]:
    """A line for each reason why media files cannot be used, with the first of the files."""
    lines = grouped_notes((reason, name) for name, reason in manifest.excluded_media.items())
    yield from (f"  {line}" for line in lines[:REASONS])
    if len(lines) > REASONS:
        yield f"    and {len(lines) - REASONS:,} other reasons: field `excluded_media` of manifest.json has all files"


Package = Enum("Package", {"wordnet": "wordnet", "punkt": "punkt"})
"""What can be fetched; typer takes no list of literals."""


def fetch(
    packages: Annotated[list[Package] | None, typer.Argument(show_default=False)] = None,
    index: str | None = None,
) -> None:
    """Download what METEOR reads into NLTK's data directory: the first writable one, else
    ~/nltk_data.
    """
    from nltk.downloader import Downloader

    downloader = Downloader(index)
    for package in dict.fromkeys(packages or Package):
        name = "punkt_tab" if package is Package.punkt else package.value
        try:
            # it prints its errors, too
            downloader.download(name, quiet=True, raise_on_error=True, print_error_to=io.StringIO())
        except (ValueError, OSError) as error:
            raise MedtasksError(
                f"{package.value}: cannot be fetched ({one_line(str(error))}); check the network, or name a mirror "
                "with --index."
            ) from error
        write(f"{package.value}: in {Path(downloader.download_dir)}")


class Check(NamedTuple):
    """A row of the report."""

    what: str
    state: str
    found: str
    fix: str = ""


def doctor(model: list[str] | None = None, as_json: Json = False) -> None:
    """Check the installation; exit code 1 if lmms-eval cannot run our tasks, or not with the given
    back-end.
    """
    from medtasks.harness.backends import COMMON, lacks

    with without_warnings():  # they are rows of the table
        checks = [*_installed(), *_task_packages()]
        with Console(file=sys.stderr).status(
            "importing back-ends"
        ):  # imports are silenced, this is not
            found = lacks(model or COMMON)
        for name, lack in found.items():
            row = (
                ("ok", "can be imported")
                if lack is None
                else ("broken" if model else "optional", *lack)
            )
            checks.append(Check(f"back-end {name}", *row))
        checks += [_meteor(), *data_checks()]
    if as_json:
        write_json([check._asdict() for check in checks])
    else:
        table(Check._fields, checks)
    if any(check.state == "broken" for check in checks):
        raise typer.Exit(1)


def _installed() -> Iterator[Check]:
    """lmms-eval, with the hook by which it finds our tasks, and what runs and scores models."""
    wanted = {one.name: one.specifier for one in map(Requirement, requires("medtasks") or ())}
    for name in ("lmms-eval", "torch", "transformers", "bert-score"):
        fix = f'pip install "{name}{wanted[name]}"'
        try:
            found = version(name)
        except PackageNotFoundError:
            learned = ("optional", "absent (learned metrics)", 'pip install "medtasks[learned]"')
            yield Check(name, *(learned if name == "bert-score" else ("broken", "absent", fix)))
            continue
        if wanted[name].contains(found, prereleases=True):
            yield Check(name, "ok", found)
        else:
            yield Check(name, "broken", f"{found}, expected {wanted[name]}", fix)
    if any(one.name == "medtasks" for one in entry_points(group="lmms_eval.models")):
        yield Check("task hook", "ok", "lmms_eval lists our tasks")
    else:
        missing = "entry point lmms_eval.models is not registered"
        yield Check("task hook", "broken", missing, "pip install medtasks")


def _task_packages() -> Iterator[Check]:
    """What other packages with tasks provide, and what of it is not used."""
    left_out = everything_left_out()
    contents = {}
    for package in (one for one in task_packages() if not one.ours):
        plugin, tasks = plugin_of(package), package.task_files()
        groups = sum(path.parent.name == "groups" for path in tasks)
        counts = {
            "benchmark": len(plugin.benchmarks),
            "task": len(tasks) - groups,
            "group": groups,
            "filter": len(plugin.filters),
            "metric": len(plugin.metrics),
            "rubric": len(package.rubric_files()),
            "board layout": len(plugin.layouts),
        }
        contents[package.owner] = ", ".join(
            counted(count, word) for word, count in counts.items() if count
        )
    for owner in sorted({*contents, *(one.owner for one in left_out)}):
        own = [one for one in left_out if one.owner == owner]
        whole = [one.why for one in own if not one.part]
        state = "left out" if whole else "partly" if own else "ok"
        yield Check(owner, state, whole[0] if whole else contents.get(owner, ""))
        yield from (
            Check(f"  {one.part}", "left out", one.why, str(one.place or ""))
            for one in own
            if one.part
        )


def _meteor() -> Check:
    from medtasks.metrics.meteor import NO_SPLITTER, sentence_splitter
    from medtasks.metrics.registry import get_metric

    meteor = get_metric("meteor")
    if (reason := meteor.unavailable()) is not None:
        return Check("METEOR", "missing", reason, "medtasks fetch wordnet")
    if sentence_splitter() == "none":
        return Check("METEOR", "partly", NO_SPLITTER, "medtasks fetch punkt")
    return Check("METEOR", "ok", meteor.signature)


def data_checks() -> Iterator[Check]:
    """Which benchmarks are prepared, and how many of their published rows."""
    yield Check(
        "data directory",
        "ok",
        "miniature data (MEDTASKS_DATA=mini)" if is_mini() else str(data_root()),
    )
    for name, benchmark in all_benchmarks().items():
        state = "missing"
        try:
            prepared = open_prepared(name)
            manifest, missing = prepared.manifest, prepared.missing_media()
            rows, files = (
                counted(manifest.counts.rows, "row"),
                counted(manifest.counts.media, "media file"),
            )
            here, published = (
                counted_rows(benchmark, manifest.counts)["rows"],
                benchmark.counts.published.get("rows", 0),
            )
            found = f"{rows}, {files}, {manifest.fingerprint[:16]}"
            if missing:
                found += f"; {counted(len(missing), 'media file')} missing or changed"
            elif here < published and not manifest.mini:
                state, found = "partly", f"{here:,} of {published:,} published rows; {found}"
            else:
                state = "ok"
        except NotPreparedError:
            found = "not prepared"
        except (MedtasksError, OSError) as error:
            found = str(error)
        yield Check(name, state, found, "" if state == "ok" else benchmark.data.prepare)
