"""Prompts: Jinja templates under ``templates/``, rendered in a sandbox, with a hash of everything
they depend on.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
from jinja2 import meta, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from medtasks.catalog.contents import once, task_packages
from medtasks.core.errors import MedtasksError, UsageError, first_line
from medtasks.core.files import short_hash
from medtasks.core.settings import current_settings, using

MOST_TEXT = 4_000_000
"""Maximum length of a prompt, in characters."""


def overlay() -> tuple[Path, ...]:
    """The directory of ``MEDTASKS_TEMPLATES``, or nothing if it is unset.

    Its templates replace those with the same path.

    Raises:
        UsageError: it is not a directory.
    """
    folder = current_settings().templates
    if folder is None:
        return ()
    if not folder.is_dir():
        raise UsageError(
            f"MEDTASKS_TEMPLATES is {folder}, expected a directory of templates; fix or unset it."
        )
    return (folder,)


@once
def prompt_environment(overlay: tuple[Path, ...]) -> ImmutableSandboxedEnvironment:
    """The sandbox in which prompts are rendered; templates in ``overlay`` directories come
    first.
    """
    ours, *packages = task_packages()
    own_loader = jinja2.FileSystemLoader([*overlay, ours.templates])
    # another package's template only if its name starts with the package's module
    package_loaders: dict[str, jinja2.BaseLoader] = {}
    for package in packages:
        if not package.ours:
            loader = jinja2.FileSystemLoader(package.own_templates)
            package_loaders[package.prefix] = loader
    environment = _Environment(
        loader=jinja2.ChoiceLoader([own_loader, jinja2.PrefixLoader(package_loaders)]),
        undefined=jinja2.StrictUndefined,  # an unknown variable is an error instead of empty text
        trim_blocks=True,
        autoescape=False,
        auto_reload=False,  # would check the file for every prompt, and change prompts within a run
    )
    # one prompt hash must mean one prompt
    del environment.globals["lipsum"], environment.filters["random"]
    return environment


class _Environment(ImmutableSandboxedEnvironment):
    def make_globals(self, d: MutableMapping[str, Any] | None) -> MutableMapping[str, Any]:
        """One dict instead of a ``ChainMap``, because Jinja copies it for every prompt."""
        return {**self.globals, **(d or {})}


def render(template: str, **variables: Any) -> str:
    """Render ``template``, a path such as ``mi_cxr/mcq.j2``, without trailing whitespace.

    Raises:
        UsageError: there is no such template.
        MedtasksError: it is malformed, uses a variable that is not in ``variables``, fails, or
            exceeds a limit: `MOST_TEXT`, or 100,000 numbers in a ``range`` (Jinja's own).
    """
    kept: list[str] = []
    size = 0
    try:
        for part in prompt_environment(overlay()).get_template(template).generate(variables):
            kept.append(part)
            size += len(part)
            if size > MOST_TEXT:
                raise jinja2.TemplateError(f"it is longer than {MOST_TEXT:,} characters")
    except jinja2.TemplateNotFound as error:
        raise _absent(str(error.name)) from error
    except jinja2.TemplateSyntaxError as error:
        raise _malformed(error.name or template, error) from error
    except Exception as error:  # a template can divide by zero, or call a field as a function
        problem = str(error) if isinstance(error, jinja2.TemplateError) else first_line(error)
        raise MedtasksError(f"template {template!r} cannot be rendered: {problem}.") from error
    return "".join(kept).rstrip()


def template_path(template: str) -> Path:
    """The file of ``template``; that of the overlay, if it has one.

    Raises:
        UsageError: there is none.
    """
    environment = prompt_environment(overlay())
    assert environment.loader is not None
    try:
        _, path, _ = environment.loader.get_source(environment, template)
    except UnicodeDecodeError as error:
        raise _malformed(template, error) from error
    except (jinja2.TemplateNotFound, OSError, ValueError) as error:
        raise _absent(template) from error
    return Path(str(path))


def template_source(template: str) -> str:
    """The text of ``template``.

    Raises:
        UsageError: there is no such template.
    """
    return template_path(template).read_text(encoding="utf-8")


def _absent(template: str) -> UsageError:
    """The error of a template that does not exist, with the directories that were searched."""
    packages = task_packages()
    folders = [*overlay(), packages[0].templates]
    for package in packages:
        if not package.ours:
            folders += package.own_templates
    searched = ", ".join(map(str, folders))
    return UsageError(
        f"template {template!r} is in none of {searched}; check the task's `template`."
    )


def overlay_diff(template: str) -> str:
    """The overlay's changes to ``template`` and everything it includes, as a unified diff.

    Empty if there are none.
    """
    diff = ""
    for name, part in sorted(template_parts(template).items()):
        shipped = ""
        with using(templates=None), suppress(UsageError):
            shipped = template_source(name)
        before = shipped.splitlines(keepends=True)
        after = part.source.splitlines(keepends=True)
        for line in difflib.unified_diff(before, after, f"shipped/{name}", f"overlay/{name}"):
            diff += line if line.endswith("\n") else line + "\n"
    return diff


class TemplatePart(NamedTuple):
    """A template's source text and syntax tree."""

    source: str
    tree: nodes.Template


def template_parts(template: str) -> dict[str, TemplatePart]:
    """``template`` and everything it includes, by name.

    Raises:
        UsageError: one of them does not exist.
        MedtasksError: one is malformed, or includes another by a computed name.
    """
    parts: dict[str, TemplatePart] = {}
    waiting = [template]
    for name in waiting:
        if name in parts:
            continue
        source = template_source(name)
        tree = _parsed(name, source)
        parts[name] = TemplatePart(source, tree)
        for reference in meta.find_referenced_templates(tree):
            if reference is None:
                raise MedtasksError(
                    f"template {name!r} includes a template by a computed name; write the name "
                    "out, so that the prompt hash can cover it."
                )
            waiting.append(reference)
    return parts


def template_variables(template: str) -> set[str]:
    """The names of the variables that ``template`` and everything it includes use."""
    names: set[str] = set()
    for part in template_parts(template).values():
        names |= meta.find_undeclared_variables(part.tree)
    return names


@functools.lru_cache(maxsize=256)  # some two hundred tasks hash the same few dozen texts
def _parsed(template: str, source: str) -> nodes.Template:
    """The syntax tree of a template with the text ``source``."""
    environment = prompt_environment(overlay())
    try:
        tree = environment.parse(source)
        # compiles the template, which finds errors that the parser misses
        meta.find_undeclared_variables(tree)
        return tree
    except Exception as error:
        raise _malformed(template, error) from error


def _malformed(template: str, error: Exception) -> MedtasksError:
    """The error of a template that cannot be parsed, which ``error`` describes."""
    problem = str(error) if isinstance(error, jinja2.TemplateError) else first_line(error)
    if isinstance(error, jinja2.TemplateSyntaxError):
        error.name = template  # Jinja does not know it
    return MedtasksError(f"template {template!r} is malformed ({problem.rstrip('.')}); fix it.")


def template_hash(*templates: str) -> str:
    """First 16 hex digits of the SHA-256 over ``templates`` and everything they include.

    Equal hashes mean the same prompt for the same record. Template names are hashed, their location
    on disk is not.
    """
    parts: dict[str, TemplatePart] = {}
    for template in templates:
        parts |= template_parts(template)
    return short_hash("".join(f"{name}\0{parts[name].source}\0" for name in sorted(parts)))
