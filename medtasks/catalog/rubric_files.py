"""The rubric files of all task packages: found, read and checked."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from medtasks.catalog.contents import once, task_packages
from medtasks.catalog.prompts import overlay, template_variables
from medtasks.catalog.rubric import PROVIDED, Rubric
from medtasks.catalog.task_package import LeftOut, TaskPackage
from medtasks.core.errors import MedtasksError, UsageError
from medtasks.core.schema import first_problem
from medtasks.core.yaml_files import read_yaml


@once
def rubric_files() -> dict[str, tuple[TaskPackage, Path]]:
    """The package and the file of every rubric by name."""
    files: dict[str, tuple[TaskPackage, Path]] = {}
    for package in task_packages():
        for name, path in package.rubric_files().items():
            files[name] = (package, path)
    return files


@once
def score_owners() -> dict[str, str]:
    """The package of each score that a valid rubric names, as `TaskPackage.known_as`."""
    owners: dict[str, str] = {}
    for rubric in usable_rubrics():
        package, _ = rubric_files()[rubric.name]
        owners |= dict.fromkeys(rubric.metrics, package.known_as)
    return owners


@once
def usable_rubrics() -> tuple[Rubric, ...]:
    """All valid rubrics; an invalid one of another package is left out with a warning."""
    rubrics: list[Rubric] = []
    for name, (package, path) in rubric_files().items():
        try:
            rubrics.append(load_rubric(name))
        except MedtasksError as error:
            if package.ours:
                raise
            LeftOut(package.owner, f"rubric {path.stem}", str(error)).warn()
    return tuple(rubrics)


def load_rubric(name: str) -> Rubric:
    """The rubric called ``name``.

    Raises:
        UsageError: there is none.
        MedtasksError: it is not valid.
    """
    return _load(name, overlay())


@once
def _load(name: str, overlay: tuple[Path, ...]) -> Rubric:
    """The rubric called ``name``, loaded once per directory of template overlays."""
    del overlay  # part of the key, since the template is checked
    files = rubric_files()
    if name not in files:
        raise UsageError(f"rubric {name!r} is unknown; choose from {', '.join(sorted(files))}.")
    package, path = files[name]
    rubric = read_rubric(path, name)
    for metric in rubric.metrics:
        if not package.owns(metric):
            raise MedtasksError(
                f"{path}: field `metrics`: {metric} does not begin with the name of the package; "
                f"call it {package.prefix}_{metric}."
            )
    return rubric


def read_rubric(path: Path, name: str = "") -> Rubric:
    """The rubric in the YAML file ``path``, whose ``name`` is by default that of the file.

    Raises:
        MedtasksError: it is not valid; names the line or the field.
    """
    content = read_yaml(path, MedtasksError)
    try:
        rubric = Rubric.model_validate(content)
    except ValidationError as error:
        raise MedtasksError(f"{path}: {first_problem(error)}; fix it.") from error
    expected = name or path.stem
    if rubric.name != expected:
        reason = "the name of the file"
        if expected != path.stem:
            reason = "the name of the file after that of the benchmark"
        raise MedtasksError(
            f"{path}: field `name` is {rubric.name!r}, expected {expected!r}, {reason}."
        )
    _check_template(rubric, path)
    return rubric


def _check_template(rubric: Rubric, path: Path) -> None:
    """Refuse a template that shows what ``sees`` does not list, or does not show the response."""
    try:
        variables = template_variables(rubric.template)
    except MedtasksError as error:
        raise MedtasksError(f"{path}: field `template`: {error}") from error
    unseen = variables - {*rubric.sees, *PROVIDED}
    if unseen:
        raise MedtasksError(
            f"{path}: template {rubric.template} shows {sorted(unseen)}, "
            "which `sees` does not list."
        )
    if "response" not in variables:
        raise MedtasksError(
            f"{path}: template {rubric.template} does not show the response; "
            "add {{ response }}."
        )
