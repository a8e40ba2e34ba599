"""Prompts: Jinja templates under ``templates/``, rendered in a sandbox, with a hash of all that shapes them."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path
from typing import Any

from jinja2 import FileSystemLoader, StrictUndefined, TemplateError, TemplateNotFound, meta
from jinja2.sandbox import ImmutableSandboxedEnvironment

import medtasks.templates
from medtasks.errors import MedtasksError, UsageError

__all__ = ["render", "template_directory", "template_hash", "template_source", "template_variables"]

HASH_LENGTH = 16


def template_directory() -> Path:
    """The folder that template names are relative to."""
    return Path(medtasks.templates.__path__[0])


@functools.cache
def _environment(directory: Path) -> ImmutableSandboxedEnvironment:
    # StrictUndefined: a template that names a field it may not see stops instead of printing nothing.
    return ImmutableSandboxedEnvironment(
        loader=FileSystemLoader(directory),
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
        text = _environment(template_directory()).get_template(template).render(**variables)
    except TemplateNotFound as error:
        raise UsageError(
            f"template {error.name!r} is not in {template_directory()}; check the task's `template`."
        ) from error
    except TemplateError as error:
        raise MedtasksError(f"template {template!r} cannot be rendered: {error}.") from error
    return text.rstrip()


def template_source(template: str) -> str:
    """Source text of ``template``, as it stands on disk.

    Raises:
        UsageError: there is no such template.
    """
    environment = _environment(template_directory())
    try:
        assert environment.loader is not None
        return environment.loader.get_source(environment, template)[0]
    except TemplateNotFound as error:
        raise UsageError(f"template {template!r} is not in {template_directory()}.") from error


def _with_includes(template: str) -> dict[str, str]:
    """Sources of ``template`` and of every template it includes or extends, by name."""
    sources: dict[str, str] = {}
    waiting = [template]
    while waiting:
        name = waiting.pop()
        if name in sources:
            continue
        sources[name] = template_source(name)
        tree = _environment(template_directory()).parse(sources[name])
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
    environment = _environment(template_directory())
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
