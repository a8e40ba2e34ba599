"""``medtasks doctor``: what is installed, prepared or missing."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, entry_points, version
from typing import Annotated, NamedTuple

import typer
from packaging.specifiers import SpecifierSet
from rich.console import Console

from medtasks.catalog.benchmark import Benchmark
from medtasks.catalog.contents import task_packages
from medtasks.catalog.registry import all_benchmarks, everything_left_out, plugin_of
from medtasks.catalog.task_package import LeftOut, TaskPackage, without_warnings
from medtasks.cli.console import table, write_json
from medtasks.cli.help import PlainCommand
from medtasks.cli.options import Json
from medtasks.core.errors import MedtasksError, NotPreparedError
from medtasks.core.extras import install_line, problems_of, versions_of
from medtasks.core.text import counted
from medtasks.data.prepared import counted as counted_rows
from medtasks.data.prepared import data_root, is_mini
from medtasks.data.store import open_prepared

app = typer.Typer()


class ShownPackage(NamedTuple):
    """A package of an extra, and what it is for."""

    name: str
    extra: str
    purpose: str


_SHOWN_PACKAGES = (
    ShownPackage("lmms-eval", "harness", "running models"),
    ShownPackage("torch", "vlm", "medtasks_vlm"),
    ShownPackage("transformers", "vlm", "medtasks_vlm"),
    ShownPackage("bert-score", "learned", "learned metrics"),
    ShownPackage("av", "video", "videos"),
    ShownPackage("matplotlib", "figures", "figures as files"),
)


class Check(NamedTuple):
    """A row of the report."""

    what: str
    state: str
    found: str
    fix: str = ""


@app.command("doctor", cls=PlainCommand)
def doctor(
    model: Annotated[
        list[str] | None, typer.Option(help="Back-end to import; can be repeated.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Check the installation; exits with 1 if the installed lmms-eval cannot run our tasks or load
    the back-end.

    Examples:
        medtasks doctor
        medtasks doctor --model qwen2_5_vl
    """
    with without_warnings():  # they are rows of the table
        checks = [
            *_installed(),
            *_packages_with_tasks(),
            *_back_ends(model or []),
            _meteor(),
            *data_checks(),
        ]
    if as_json:
        write_json([check._asdict() for check in checks])
    else:
        table(Check._fields, checks)
    if any(check.state == "broken" for check in checks):
        raise typer.Exit(1)


def _installed() -> Iterator[Check]:
    """The main packages of the extras, and the hook by which lmms-eval finds our tasks."""
    for package in _SHOWN_PACKAGES:
        yield _installed_package(package)
    yield _task_hook()


def _installed_package(package: ShownPackage) -> Check:
    """Whether a package is installed in a version that its extra requires.

    Only lmms-eval in another version is broken: it is there to run models, and cannot run our
    tasks.
    """
    name, fix = package.name, install_line(package.extra)
    required = versions_of(package.extra).get(name, SpecifierSet())
    try:
        installed = version(name)
    except PackageNotFoundError:
        return Check(name, "optional", f"absent ({package.purpose})", fix)
    if required.contains(installed, prereleases=True):
        return Check(name, "ok", installed)
    state = "broken" if name == "lmms-eval" else "optional"
    return Check(name, state, f"{installed}, expected {required} ({package.purpose})", fix)


def _task_hook() -> Check:
    """Whether lmms-eval finds our tasks."""
    hooks = {hook.name for hook in entry_points(group="lmms_eval.models")}
    if "medtasks" in hooks:
        return Check("task hook", "ok", "lmms_eval lists our tasks")
    missing = "entry point lmms_eval.models is not registered"
    return Check("task hook", "broken", missing, "pip install medtasks")


def _packages_with_tasks() -> Iterator[Check]:
    """What other packages with tasks provide, and what of it is not used."""
    left_out: dict[str, list[LeftOut]] = {}
    for problem in everything_left_out():
        left_out.setdefault(problem.owner, []).append(problem)
    contents: dict[str, str] = {}
    for package in task_packages():
        if not package.ours:
            contents[package.owner] = _contents_of(package)
    for owner in sorted({*contents, *left_out}):
        yield from _package_checks(owner, contents.get(owner, ""), left_out.get(owner, []))


def _contents_of(package: TaskPackage) -> str:
    """How many benchmarks, tasks and so on a package has."""
    plugin = plugin_of(package)
    files = package.task_files()
    groups = sum(path.parent.name == "groups" for path in files)
    counts = {
        "benchmark": len(plugin.benchmarks),
        "task": len(files) - groups,
        "group": groups,
        "filter": len(plugin.filters),
        "metric": len(plugin.metrics),
        "rubric": len(package.rubric_files()),
        "board layout": len(plugin.layouts),
    }
    return ", ".join(counted(count, word) for word, count in counts.items() if count)


def _package_checks(owner: str, contents: str, left_out: Sequence[LeftOut]) -> Iterator[Check]:
    """A row for a package, or why it is not used, and one for each part that is not."""
    parts = [problem for problem in left_out if problem.part]
    reasons = [problem.why for problem in left_out if not problem.part]
    if reasons:
        yield Check(owner, "left out", reasons[0])
    else:
        yield Check(owner, "partly" if parts else "ok", contents)
    for problem in parts:
        yield Check(f"  {problem.part}", "left out", problem.why, str(problem.place or ""))


def _back_ends(models: Sequence[str]) -> Iterator[Check]:
    """Whether back-ends can be imported: these, which must, or else the common ones."""
    from medtasks.harness.backends import COMMON, lacks

    if not models and problems_of("harness"):
        return  # the row of lmms-eval says so
    # the output of imports is dropped, but not this
    with Console(file=sys.stderr).status("importing back-ends"):
        lack_of_back_end = lacks(models or COMMON)
    for name, lack in lack_of_back_end.items():
        if lack is None:
            yield Check(f"back-end {name}", "ok", "can be imported")
        else:
            yield Check(f"back-end {name}", "broken" if models else "optional", *lack)


def _meteor() -> Check:
    """Whether METEOR can be computed, and with which sentence splitter."""
    from medtasks.metrics.meteor import NO_SPLITTER, sentence_splitter
    from medtasks.metrics.registry import get_metric

    meteor = get_metric("meteor")
    reason = meteor.unavailable()
    if reason is not None:
        return Check("METEOR", "missing", reason, "medtasks fetch wordnet")
    if sentence_splitter() == "none":
        return Check("METEOR", "partly", NO_SPLITTER, "medtasks fetch punkt")
    return Check("METEOR", "ok", meteor.signature)


def data_checks() -> Iterator[Check]:
    """Which benchmarks are prepared, and how many of their published rows."""
    directory = "miniature data (MEDTASKS_DATA=mini)" if is_mini() else str(data_root())
    yield Check("data directory", "ok", directory)
    for name, benchmark in all_benchmarks().items():
        try:
            state, text = _state_of_data(name, benchmark)
        except NotPreparedError:
            state, text = "missing", "not prepared"
        except (MedtasksError, OSError) as error:
            state, text = "missing", str(error)
        yield Check(name, state, text, "" if state == "ok" else benchmark.data.prepare)


def _state_of_data(name: str, benchmark: Benchmark) -> tuple[str, str]:
    """The state of a benchmark's prepared data, and what there is of them."""
    prepared = open_prepared(name)
    manifest = prepared.manifest
    missing = prepared.missing_media()
    rows = counted(manifest.counts.rows, "row")
    files = counted(manifest.counts.media, "media file")
    text = f"{rows}, {files}, {manifest.fingerprint[:16]}"
    prepared_rows = counted_rows(benchmark, manifest.counts)["rows"]
    published_rows = benchmark.counts.published.get("rows", 0)
    if missing:
        return "missing", f"{text}; {counted(len(missing), 'media file')} missing or changed"
    if prepared_rows < published_rows and not manifest.mini:
        return "partly", f"{prepared_rows:,} of {published_rows:,} published rows; {text}"
    return "ok", text
