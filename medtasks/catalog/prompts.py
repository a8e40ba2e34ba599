"""Prompts: Jinja templates under ``templates/``, rendered in a sandbox, with a hash of everything
they depend on.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import Any

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
    """The directory of ``MEDTASKS_TEMPLATES``, whose templates replace those with the same path;
    empty if unset.
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
    """The sandbox in which prompts are rendered; ``overlay`` are the directories whose templates
    come first.
    """
    ours, *others = task_packages()
    # another package's template only if its name starts with the package's module
    brought = {
        one.prefix: jinja2.FileSystemLoader(one.templates / one.prefix)
        for one in others
        if not one.ours
    }
    made = _Environment(
        loader=jinja2.ChoiceLoader(
            [jinja2.FileSystemLoader([*overlay, ours.templates]), jinja2.PrefixLoader(brought)]
        ),
        undefined=jinja2.StrictUndefined,  # an unknown variable is an error instead of empty text
        trim_blocks=True,
        autoescape=False,
        auto_reload=False,  # would check the file for every prompt, and change prompts within a run
    )
    del made.globals["lipsum"], made.filters["random"]  # one prompt hash must mean one prompt
    return made


class _Environment(ImmutableSandboxedEnvironment):
    def make_globals(self, d: MutableMapping[str, Any] | None) -> MutableMapping[str, Any]:
        """One dict instead of a ``ChainMap``, because Jinja copies it for every prompt."""
        return {**self.globals, **(d or {})}


def render(template: str, **variables: Any) -> str:
    """Render ``template`` (a path such as ``mi_cxr/mcq.j2``) with ``variables``, without trailing
    whitespace.

    Raises `UsageError` if there is no such template, `MedtasksError` if it is malformed, uses a
    variable that is not in ``variables``, fails, or exceeds a limit: `MOST_TEXT`, or 100,000
    numbers in a ``range`` (Jinja's own).
    """
    kept, size = [], 0
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
    """The file of ``template``, that of the overlay first; raises :class:`UsageError` if there is
    none.
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
    """Its text; raises :class:`UsageError` if there is none."""
    return template_path(template).read_text(encoding="utf-8")


def _absent(template: str) -> UsageError:
    packages = task_packages()
    folders = (
        *overlay(),
        packages[0].templates,
        *(one.templates / one.prefix for one in packages if not one.ours),
    )
    looked = ", ".join(map(str, folders))
    return UsageError(f"template {template!r} is in none of {looked}; check the task's `template`.")


def overlay_diff(template: str) -> str:
    """The overlay's changes to ``template`` and everything it includes, as a unified diff; empty if
    there are none.
    """
    lines: list[str] = []
    for name, (changed, _) in sorted(template_parts(template).items()):
        shipped = ""
        with using(templates=None), suppress(UsageError):
            shipped = template_source(name)
        before, after = (text.splitlines(keepends=True) for text in (shipped, changed))
        lines += difflib.unified_diff(before, after, f"shipped/{name}", f"overlay/{name}")
    return "".join(line if line.endswith("\n") else line + "\n" for line in lines)


def template_parts(template: str) -> dict[str, tuple[str, nodes.Template]]:
    """Source text and syntax tree of ``template`` and everything it includes, by name; raises
    `UsageError` if one of them does not exist, `MedtasksError` if one is malformed, or includes
    another by a computed name.
    """
    parts: dict[str, tuple[str, nodes.Template]] = {}
    waiting = [template]
    for name in waiting:
        if name in parts:
            continue
        source = template_source(name)
        parts[name] = source, _parsed(name, source)
        for reference in meta.find_referenced_templates(parts[name][1]):
            if reference is None:
                raise MedtasksError(
                    f"template {name!r} includes a template by a computed name; write the name out, "
                    "so that the prompt hash can cover it."
                )
            waiting.append(reference)
    return parts


def template_variables(template: str) -> set[str]:
    """Names of the variables that ``template`` and everything it includes use."""
    return set().union(
        *(meta.find_undeclared_variables(tree) for _, tree in template_parts(template).values())
    )


@functools.lru_cache(
    maxsize=256
)  # a few dozen texts, which the hashes of some two hundred tasks need
def _parsed(template: str, source: str) -> nodes.Template:
    environment = prompt_environment(overlay())
    try:
        tree = environment.parse(source)
        meta.find_undeclared_variables(
            tree
        )  # compiles the template, which finds errors that the parser misses
        return tree
    except Exception as error:
        raise _malformed(template, error) from error


def _malformed(template: str, error: Exception) -> MedtasksError:
    problem = str(error) if isinstance(error, jinja2.TemplateError) else first_line(error)
    if isinstance(error, jinja2.TemplateSyntaxError):
        error.name = template  # Jinja does not know it
    return MedtasksError(f"template {template!r} is malformed ({problem.rstrip('.')}); fix it.")


def template_hash(*templates: str) -> str:
    """First 16 hex digits of the SHA-256 over ``templates`` and everything they include.

    Equal hashes mean the same prompt for the same record. Template names are hashed, their location
    on disk is not.
    """
    sources = {
        name: source
        for template in templates
        for name, (source, _) in template_parts(template).items()
    }
    return short_hash("".join(f"{name}\0{source}\0" for name, source in sorted(sources.items())))
