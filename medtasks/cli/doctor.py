"""``medtasks doctor``: what is installed, which data are prepared, and how to get what is missing."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, entry_points, requires, version
from typing import Annotated, NamedTuple

import typer
from packaging.requirements import Requirement
from rich.console import Console

from medtasks.catalog.contents import task_packages
from medtasks.catalog.packages import LeftOut, TaskPackage, without_warnings
from medtasks.catalog.registry import all_benchmarks, code_left_out, everything_left_out, plugin_of
from medtasks.cli.console import Json, table, write_json
from medtasks.core.errors import HarnessError, MedtasksError, NotPreparedError
from medtasks.core.text import counted as number_of


class Check(NamedTuple):
    """A row of the report."""

    what: str
    state: str
    found: str
    fix: str = ""


def doctor(
    model: Annotated[list[str] | None, typer.Option("--model", help="Back-end to import; can be repeated.")] = None,
    as_json: Json = False,
) -> None:
    """Check the installation; exit code 1 if lmms-eval cannot run our tasks, or not with the given back-end."""
    with without_warnings():  # they are rows of the table
        checks = [*_harness(), *_packages(), *_task_packages(), *_backends(model or ()), *_metrics(), *data_checks()]
    if as_json:
        write_json([check._asdict() for check in checks])
    else:
        table(Check._fields, checks)
    if any(check.state == "broken" for check in checks):
        raise typer.Exit(1)


def _harness() -> list[Check]:
    from medtasks.harness import SUPPORTED, check_version

    fix = f'pip install "lmms-eval{SUPPORTED}"'
    try:
        found = version("lmms-eval")
        check_version(found)
    except PackageNotFoundError:
        return [Check("lmms-eval", "broken", "absent", fix)]
    except HarnessError:
        return [Check("lmms-eval", "broken", f"{found}, expected {SUPPORTED}", fix)]
    hooks = [point for point in entry_points(group="lmms_eval.models") if point.name == "medtasks"]
    hook = Check("task hook", "ok", "lmms_eval lists our tasks")
    if not hooks:
        hook = Check("task hook", "broken", "entry point lmms_eval.models is not registered", "pip install medtasks")
    return [Check("lmms-eval", "ok", found), hook]


def _packages() -> list[Check]:
    checks = []
    for name, use in (("torch", ""), ("transformers", ""), ("bert-score", "learned metrics")):
        try:
            found = version(name)
        except PackageNotFoundError:
            fix = 'pip install "medtasks[learned]"' if use else f"pip install {name}"
            checks.append(Check(name, "optional" if use else "broken", f"absent ({use})" if use else "absent", fix))
            continue
        needed = _needed(name)
        fits = needed.specifier.contains(found, prereleases=True)
        fix = "" if fits else f'pip install "{needed.name}{needed.specifier}"'
        text = found if fits else f"{found}, expected {needed.specifier}"
        checks.append(Check(name, "ok" if fits else "broken", text, fix))
    return checks


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


def _needed(name: str) -> Requirement:
    declared = (Requirement(line) for line in requires("medtasks") or ())
    return next((one for one in declared if one.name == name), Requirement(name))


def _backends(models: Sequence[str]) -> list[Check]:
    """The given back-ends, which are required; by default the common ones, which are optional."""

    from medtasks.harness.installed import COMMON, lacks

    asked = list(models or COMMON)
    state = "broken" if models else "optional"
    with Console(file=sys.stderr).status("importing back-ends"):  # imports are silenced, this is not
        found = lacks(asked)
    return [
        Check(f"back-end {name}", "ok", "can be imported")
        if lack is None
        else Check(f"back-end {name}", state, lack.found, lack.fix)
        for name, lack in found.items()
    ]


def _metrics() -> list[Check]:
    from medtasks.metrics.meteor import NO_SPLITTER, sentence_splitter
    from medtasks.metrics.registry import get_metric

    meteor = get_metric("meteor")
    reason = meteor.unavailable()
    if reason is not None:
        return [Check("METEOR", "missing", reason, "medtasks fetch wordnet")]
    if sentence_splitter() == "none":
        splitter = Check("METEOR's sentences", "optional", NO_SPLITTER, "medtasks fetch punkt")
    else:
        splitter = Check("METEOR's sentences", "ok", f"split by NLTK's {sentence_splitter()}")
    return [Check("METEOR", "ok", meteor.signature), splitter]


def data_checks() -> list[Check]:
    """Which benchmarks are prepared, and how many of their published rows."""
    from medtasks.data.manifest import counted
    from medtasks.data.prepared import data_root, is_mini
    from medtasks.data.store import open_prepared

    where = "miniature data (MEDTASKS_DATA=mini)" if is_mini() else str(data_root())
    checks = [Check("data directory", "ok", where)]
    for name, benchmark in all_benchmarks().items():
        command = benchmark.prepare
        try:
            prepared = open_prepared(name)
            missing = prepared.missing_media()
        except NotPreparedError:
            checks.append(Check(name, "missing", "not prepared", command))
            continue
        except (MedtasksError, OSError) as error:
            checks.append(Check(name, "missing", str(error), command))
            continue
        counts = prepared.manifest.counts
        files = number_of(counts.media, "media file")
        found = f"{number_of(counts.rows, 'row')}, {files}, {prepared.manifest.fingerprint[:16]}"
        rows, published = counted(benchmark, counts)["rows"], benchmark.published.get("rows", 0)
        if missing:
            checks.append(Check(name, "missing", f"{found}; {len(missing)} media files missing or changed", command))
        elif rows < published and not prepared.manifest.mini:
            checks.append(Check(name, "partly", f"{rows:,} of {published:,} published rows; {found}", command))
        else:
            checks.append(Check(name, "ok", found))
    return checks
