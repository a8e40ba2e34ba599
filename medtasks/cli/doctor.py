"""``medtasks doctor`` and ``fetch``: what is installed, which data are prepared, and how to get what is missing."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Sequence
from enum import Enum
from importlib.metadata import PackageNotFoundError, entry_points, requires, version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from rich.console import Console

from medtasks.catalog.contents import task_packages
from medtasks.catalog.packages import LeftOut, TaskPackage, without_warnings
from medtasks.catalog.registry import all_benchmarks, code_left_out, everything_left_out, plugin_of
from medtasks.cli.console import Json, table, write, write_json
from medtasks.core.errors import MedtasksError, NotPreparedError
from medtasks.core.text import counted as number_of
from medtasks.core.text import one_line

if TYPE_CHECKING:
    from medtasks.catalog.benchmark import Benchmark


class Check(NamedTuple):
    """A row of the report."""

    what: str
    state: str
    found: str
    fix: str = ""


def doctor(model: list[str] | None = None, as_json: Json = False) -> None:
    """Check the installation; exit code 1 if lmms-eval cannot run our tasks, or not with the given back-end."""
    with without_warnings():  # they are rows of the table
        checks = [*_installed(), *_task_packages(), *_backends(model or ()), *_metrics(), *data_checks()]
    if as_json:
        write_json([check._asdict() for check in checks])
    else:
        table(Check._fields, checks)
    if any(check.state == "broken" for check in checks):
        raise typer.Exit(1)


def _installed() -> Iterator[Check]:
    """lmms-eval, with the hook by which it finds our tasks, and what runs and scores models."""
    for name in ("lmms-eval", "torch", "transformers", "bert-score"):
        declared = (Requirement(line) for line in requires("medtasks") or ())
        wanted = next((one.specifier for one in declared if one.name == name), SpecifierSet())
        fix = f'pip install "{name}{wanted}"'
        try:
            found = version(name)
        except PackageNotFoundError:
            if name == "bert-score":
                yield Check(name, "optional", "absent (learned metrics)", 'pip install "medtasks[learned]"')
            else:
                yield Check(name, "broken", "absent", fix)
            continue
        if not wanted.contains(found, prereleases=True):
            yield Check(name, "broken", f"{found}, expected {wanted}", fix)
            continue
        yield Check(name, "ok", found)
        if name == "lmms-eval":
            hooked = any(one.name == "medtasks" for one in entry_points(group="lmms_eval.models"))
            hook = ("ok", "lmms_eval lists our tasks")
            missing = ("broken", "entry point lmms_eval.models is not registered", "pip install medtasks")
            yield Check("task hook", *(hook if hooked else missing))


def _task_packages() -> list[Check]:
    """Other packages with tasks: what they provide, and which parts are left out."""
    from medtasks.benchmarks.layouts import layouts_left_out
    from medtasks.harness.installed import taken_names

    packages = {one.owner: one for one in task_packages() if not one.ours}
    left_out = [*everything_left_out(), *taken_names()]
    for package in packages.values():
        left_out += [*_broken_files(package), *layouts_left_out(package)]
    checks = []
    for owner in sorted({*packages, *(one.owner for one in left_out)}):
        own = [one for one in left_out if one.owner == owner]
        whole = [one.why for one in own if not one.part]
        used = _brings(packages[owner]) if owner in packages else ""
        state = "left out" if whole else "partly" if own else "ok"
        checks.append(Check(owner, state, whole[0] if whole else used))
        checks += [Check(f"  {one.part}", "left out", one.why, one.place) for one in own if one.part]
    return checks


def _brings(package: TaskPackage) -> str:
    plugin = plugin_of(package)
    files = list(package.task_files())
    groups = sum(path.parent.name == "groups" for path in files)
    counts = {
        "benchmark": len(plugin.benchmarks),
        "task": len(files) - groups,
        "group": groups,
        "filter": len(plugin.filters),
        "metric": len(plugin.metrics),
        "rubric": len(list(package.rubric_files())),
        "board layout": len(plugin.layouts),
    }
    return ", ".join(number_of(count, word) for word, count in counts.items() if count)


def _broken_files(package: TaskPackage) -> Iterator[LeftOut]:
    from medtasks.catalog.rubric import load_rubric
    from medtasks.catalog.spec import load_spec

    if code_left_out(package) is not None:
        return
    for word, load, paths in (
        ("task", load_spec, package.task_files()),
        ("rubric", load_rubric, package.rubric_files()),
    ):
        for path in paths:
            try:
                load(path.stem)
            except MedtasksError as error:
                yield LeftOut(package.owner, f"{word} {path.stem}", str(error), str(path))


def _backends(models: Sequence[str]) -> list[Check]:
    """The given back-ends, which are required; by default the common ones, which are optional."""
    from medtasks.harness.installed import COMMON, lacks

    state = "broken" if models else "optional"
    with Console(file=sys.stderr).status("importing back-ends"):  # imports are silenced, this is not
        found = lacks(models or COMMON)
    rows = {name: ("ok", "can be imported") if lack is None else (state, *lack) for name, lack in found.items()}
    return [Check(f"back-end {name}", *row) for name, row in rows.items()]


def _metrics() -> Iterator[Check]:
    from medtasks.metrics.meteor import NO_SPLITTER, sentence_splitter
    from medtasks.metrics.registry import get_metric

    meteor, splitter = get_metric("meteor"), sentence_splitter()
    reason = meteor.unavailable()
    if reason is not None:
        yield Check("METEOR", "missing", reason, "medtasks fetch wordnet")
        return
    yield Check("METEOR", "ok", meteor.signature)
    missing = ("optional", NO_SPLITTER, "medtasks fetch punkt")
    yield Check("METEOR's sentences", *(missing if splitter == "none" else ("ok", f"split by NLTK's {splitter}")))


def data_checks() -> list[Check]:
    """Which benchmarks are prepared, and how many of their published rows."""
    from medtasks.data.prepared import data_root, is_mini

    where = "miniature data (MEDTASKS_DATA=mini)" if is_mini() else str(data_root())
    checks = [Check("data directory", "ok", where)]
    for name, benchmark in all_benchmarks().items():
        try:
            state, found = _prepared(benchmark)
        except NotPreparedError:
            state, found = "missing", "not prepared"
        except (MedtasksError, OSError) as error:
            state, found = "missing", str(error)
        checks.append(Check(name, state, found, "" if state == "ok" else benchmark.prepare))
    return checks


def _prepared(benchmark: Benchmark) -> tuple[str, str]:
    """The state of a benchmark's prepared data, and what was found."""
    from medtasks.data.prepared import counted
    from medtasks.data.store import open_prepared

    prepared = open_prepared(benchmark.name)
    manifest, missing = prepared.manifest, prepared.missing_media()
    rows, files = number_of(manifest.counts.rows, "row"), number_of(manifest.counts.media, "media file")
    found = f"{rows}, {files}, {manifest.fingerprint[:16]}"
    if missing:
        return "missing", f"{found}; {number_of(len(missing), 'media file')} missing or changed"
    here, published = counted(benchmark, manifest.counts)["rows"], benchmark.published.get("rows", 0)
    if here < published and not manifest.mini:
        return "partly", f"{here:,} of {published:,} published rows; {found}"
    return "ok", found


class Package(str, Enum):
    """What can be fetched; typer takes no list of literals."""

    wordnet = "wordnet"
    punkt = "punkt"


NLTK_NAMES = {Package.wordnet: "wordnet", Package.punkt: "punkt_tab"}


def fetch(
    packages: Annotated[list[Package] | None, typer.Argument(show_default=False)] = None,
    index: str | None = None,
) -> None:
    """Download what METEOR reads into NLTK's data directory: the first writable one, else ~/nltk_data."""
    from nltk.downloader import Downloader

    downloader = Downloader(index)
    for package in dict.fromkeys(packages or Package):
        try:
            # it prints its errors, too
            downloader.download(NLTK_NAMES[package], quiet=True, raise_on_error=True, print_error_to=io.StringIO())
        except (ValueError, OSError) as error:
            raise MedtasksError(
                f"{package.value}: cannot be fetched ({one_line(str(error))}); check the network, or name a mirror "
                "with --index."
            ) from error
        write(f"{package.value}: in {Path(downloader.download_dir)}")
