"""``medtasks doctor``: what is installed, which data are prepared, what is missing and the command for it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, entry_points, requires, version
from typing import Annotated

import typer
from packaging.requirements import Requirement

from medtasks.cli.console import table, write

__all__ = ["doctor"]

Check = dict[str, str]


def doctor(
    model: Annotated[
        list[str] | None, typer.Option("--model", help="A back-end to import; several times for several.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check the installation; exit code 1 where lmms-eval could not run our tasks, or not with the given back-end."""
    from medtasks.packages import without_warnings

    with without_warnings():  # they are rows of the table
        checks = [*_harness(), *_packages(), *_task_packages(), *_backends(model or ()), *_metrics(), *_data()]
    if as_json:
        write(json.dumps(checks, indent=1, ensure_ascii=False))
    else:
        rows = [(check["what"], check["state"], check["found"], check["fix"]) for check in checks]
        table(("what", "state", "found", "fix"), rows)
    if any(check["state"] == "broken" for check in checks):
        raise typer.Exit(1)


def _check(what: str, state: str, found: str, fix: str = "") -> Check:
    return {"what": what, "state": state, "found": found, "fix": fix}


def _harness() -> list[Check]:
    from medtasks.errors import HarnessError
    from medtasks.harness import SUPPORTED, check_version

    fix = f'pip install "lmms-eval{SUPPORTED}"'
    try:
        found = version("lmms-eval")
        check_version(found)
    except PackageNotFoundError:
        return [_check("lmms-eval", "broken", "absent", fix)]
    except HarnessError:
        return [_check("lmms-eval", "broken", f"{found}, expected {SUPPORTED}", fix)]
    hooks = [point for point in entry_points(group="lmms_eval.models") if point.name == "medtasks"]
    hook = _check("task hook", "ok", "lmms_eval lists our tasks by itself")
    if not hooks:
        hook = _check("task hook", "broken", "entry point lmms_eval.models is not registered", "pip install medtasks")
    return [_check("lmms-eval", "ok", found), hook]


def _packages() -> list[Check]:
    checks = []
    for name, use in (("torch", ""), ("transformers", ""), ("bert-score", "learned metrics")):
        try:
            found = version(name)
        except PackageNotFoundError:
            fix = 'pip install "medtasks[learned]"' if use else f"pip install {name}"
            checks.append(_check(name, "optional" if use else "broken", f"absent ({use})" if use else "absent", fix))
            continue
        needed = _needed(name)
        fits = needed.specifier.contains(found, prereleases=True)
        fix = "" if fits else f'pip install "{needed.name}{needed.specifier}"'
        told = found if fits else f"{found}, expected {needed.specifier}"
        checks.append(_check(name, "ok" if fits else "broken", told, fix))
    return checks


def _task_packages() -> list[Check]:
    """Packages of others that bring tasks: what each brings, and what of it is left out."""
    from medtasks.package_report import package_report

    checks = []
    for report in package_report():
        whole = [one.why for one in report.left_out if not one.part]
        state = "left out" if whole else "partly" if report.left_out else "ok"
        checks.append(_check(report.owner, state, whole[0] if whole else report.brings))
        checks += [_check(f"  {one.part}", "left out", one.why, one.place) for one in report.left_out if one.part]
    return checks


def _needed(name: str) -> Requirement:
    """The versions of a package that ours works with."""
    declared = (Requirement(line) for line in requires("medtasks") or ())
    return next((one for one in declared if one.name == name), Requirement(name))


def _backends(models: Sequence[str]) -> list[Check]:
    """Back-ends that were asked for, which have to be there; else the common ones, which may be."""
    from rich.console import Console

    from medtasks.errors import MedtasksError
    from medtasks.harness.installed import COMMON, lacks

    asked = list(models or COMMON)
    state = "broken" if models else "optional"
    try:
        with Console(stderr=True).status("importing back-ends"):
            found = lacks(asked)
    except MedtasksError as error:
        return [_check("back-ends", state, str(error))]
    return [
        _check(f"back-end {name}", "ok", "can be imported")
        if lack is None
        else _check(f"back-end {name}", state, lack.found, lack.fix)
        for name, lack in found.items()
    ]


def _metrics() -> list[Check]:
    from medtasks.metrics import get_metric
    from medtasks.metrics.meteor import NO_SPLITTER, sentence_splitter

    meteor = get_metric("meteor")
    reason = meteor.unavailable()
    if reason is not None:
        return [_check("METEOR", "missing", reason, "python -m nltk.downloader wordnet")]
    if sentence_splitter() == "none":
        splitter = _check("METEOR's sentences", "optional", NO_SPLITTER, "python -m nltk.downloader punkt_tab")
    else:
        splitter = _check("METEOR's sentences", "ok", f"split by NLTK's {sentence_splitter()}")
    return [_check("METEOR", "ok", meteor.signature), splitter]


def _data() -> list[Check]:
    from medtasks.data.prepared import data_root, is_mini
    from medtasks.data.store import open_prepared
    from medtasks.errors import MedtasksError, NotPreparedError
    from medtasks.registry import all_benchmarks, get_benchmark

    where = "miniature data (MEDTASKS_DATA=mini)" if is_mini() else str(data_root())
    checks = [_check("data folder", "ok", where)]
    for name in all_benchmarks():
        command = get_benchmark(name).prepare
        try:
            prepared = open_prepared(name)
            gone = prepared.missing_media()
        except NotPreparedError:
            checks.append(_check(name, "missing", "not prepared", command))
            continue
        except (MedtasksError, OSError) as error:
            checks.append(_check(name, "missing", str(error), command))
            continue
        counts = prepared.manifest.counts
        found = f"{counts.rows:,} rows, {counts.media:,} media files, {prepared.manifest.fingerprint[:16]}"
        if gone:
            checks.append(_check(name, "missing", f"{found}; {len(gone)} media files gone or changed", command))
        else:
            checks.append(_check(name, "ok", found))
    return checks
