"""Prompts: Jinja templates under ``templates/``, rendered in a sandbox, with a hash of all that shapes them."""

from __future__ import annotations

import difflib
import functools
import hashlib
import os
from pathlib import Path
from typing import Any

from jinja2 import FileSystemLoader, StrictUndefined, TemplateError, TemplateNotFound, meta
from jinja2.sandbox import ImmutableSandboxedEnvironment

import medtasks.templates
from medtasks.errors import MedtasksError, UsageError
from medtasks.packages import task_packages

__all__ = [
    "overlay_diff",
    "render",
    "template_directory",
    "template_folders",
    "template_hash",
    "template_path",
    "template_source",
    "template_variables",
]

HASH_LENGTH = 16


def template_directory() -> Path:
    """The folder that template names are relative to."""
    return Path(medtasks.templates.__path__[0])


OVERLAY = "MEDTASKS_TEMPLATES"
"""Environment variable: a folder whose templates take the place of those with the same relative path."""


def template_folders() -> tuple[Path, ...]:
    """Where templates are looked for, in this order: the overlay, where there is one; ours; other packages'.

    Raises:
        UsageError: the overlay is no folder.
    """
    folders = tuple(package.templates for package in task_packages() if package.templates.is_dir())
    named = os.environ.get(OVERLAY, "").strip()
    if not named:
        return folders
    overlay = Path(named).expanduser()
    if not overlay.is_dir():
        raise UsageError(f"{OVERLAY} is {named}, expected a folder of templates; mend or unset it.")
    return (overlay, *folders)


def _templates() -> ImmutableSandboxedEnvironment:
    return _environment(template_folders())


@functools.cache
def _environment(folders: tuple[Path, ...]) -> ImmutableSandboxedEnvironment:
    # StrictUndefined: a template that names a field it may not see stops instead of printing nothing.
    return ImmutableSandboxedEnvironment(
        loader=FileSystemLoader(folders),
        undefined=StrictUndefined,
        trim_blocks=True,
        autoescape=False,
        auto_reload=False,  # a look at the file for every prompt, and another prompt within one run
    )


def render(template: str, **variables: Any) -> str:
    """Text of ``template`` (a path such as ``mi_cxr/mcq.j2``) for ``variables``, without trailing blanks.

    Raises:
        UsageError: there is no such template.
        MedtasksError: the template names a variable that is not among ``variables``, or is malformed.
    """
    try:
        text = _templates().get_template(template).render(**variables)
    except TemplateNotFound as error:
        raise _absent(str(error.name)) from error
    except TemplateError as error:
        raise MedtasksError(f"template {template!r} cannot be rendered: {error}.") from error
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
        RecursionError,
        OverflowError,
    ) as error:
        raise MedtasksError(f"template {template!r} cannot be rendered: {type(error).__name__}: {error}.") from error
    return text.rstrip()


def template_path(template: str) -> Path:
    """The file of ``template``: the first that the folders have.

    Raises:
        UsageError: there is no such template.
    """
    for folder in template_folders():
        if (folder / template).is_file():
            return folder / template
    raise _absent(template)


def _absent(template: str) -> UsageError:
    looked = ", ".join(map(str, template_folders()))
    return UsageError(f"template {template!r} is in none of {looked}; check the task's `template`.")


def template_source(template: str) -> str:
    """Source text of ``template``, as it stands on disk.

    Raises:
        UsageError: there is no such template.
    """
    environment = _templates()
    try:
        assert environment.loader is not None
        return environment.loader.get_source(environment, template)[0]
    except TemplateNotFound as error:
        raise _absent(template) from error


def overlay_diff(template: str) -> str:
    """What the overlay changes in ``template`` and all it includes, as a unified diff; empty where it changes nothing.

    Raises:
        UsageError: there is no such template, or the overlay is no folder.
    """
    ours = _environment(tuple(package.templates for package in task_packages() if package.templates.is_dir()))
    lines: list[str] = []
    for name, changed in sorted(_with_includes(template).items()):
        try:
            assert ours.loader is not None
            shipped = ours.loader.get_source(ours, name)[0]
        except TemplateNotFound:
            shipped = ""
        before, after = (text.splitlines(keepends=True) for text in (shipped, changed))
        lines += difflib.unified_diff(before, after, f"shipped/{name}", f"overlay/{name}")
    return "".join(line if line.endswith("\n") else line + "\n" for line in lines)


def _with_includes(template: str) -> dict[str, str]:
    """Sources of ``template`` and of every template it includes or extends, by name."""
    sources: dict[str, str] = {}
    waiting = [template]
    while waiting:
        name = waiting.pop()
        if name in sources:
            continue
        sources[name] = template_source(name)
        tree = _templates().parse(sources[name])
        for reference in meta.find_referenced_templates(tree):
            if reference is None:
                raise MedtasksError(
                    f"template {name!r} includes a template by a computed name; write the name out, "
                    "so that the prompt hash can cover it."
                )
            waiting.append(reference)
    return sources


def template_variables(template: str) -> set[str]:
    """Names of the variables that ``template``, with all it includes, wants from the record."""
    environment = _templates()
    return {
        name
        for source in _with_includes(template).values()
        for name in meta.find_undeclared_variables(environment.parse(source))
    } - set(environment.globals)


def template_hash(*templates: str) -> str:
    """First 16 hex digits of the SHA-256 over ``templates`` and everything they include.

    Equal hashes mean the same prompt for the same record; file names count, folders above do not.
    """
    digest = hashlib.sha256()
    sources = {name: source for template in templates for name, source in _with_includes(template).items()}
    for name, source in sorted(sources.items()):
        digest.update(f"{name}\0{source}\0".encode())
    return digest.hexdigest()[:HASH_LENGTH]
