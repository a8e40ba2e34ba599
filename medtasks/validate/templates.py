"""Rules for prompt templates before they are rendered: do they parse, and which fields of a document do they use?"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from pathlib import Path

from jinja2 import TemplateSyntaxError, meta, nodes

from medtasks.catalog.prompts import prompt_environment, template_parts, template_path
from medtasks.core.errors import MedtasksError, UsageError
from medtasks.core.findings import Finding, Place, finding
from medtasks.core.schema import shown, suggestion
from medtasks.core.text import first_names


@dataclass
class Template:
    """A template with everything it includes: ``variables``, each with one place, and ``findings`` about the text."""

    name: str
    variables: dict[str, Place] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


def read_template(name: str, named_at: Place) -> Template:
    """Read the template ``name`` with everything it includes. Never raises: problems are in ``findings``.

    ``named_at`` is the line of the task file that names it.
    """
    template = Template(name)
    try:
        parts = template_parts(name)
    except (MedtasksError, OSError, ValueError) as error:
        code = "MT201" if isinstance(error, (UsageError, OSError, ValueError)) else "MT202"
        cause = error.__cause__
        place = _place(str(cause.name), cause.lineno) if isinstance(cause, TemplateSyntaxError) else named_at
        why = str(error).partition(";")[0]
        message = why if why.startswith("template ") else f"template {shown(name)}: {why}"
        template.findings.append(finding(code, name, message, place))
        return template
    for included, (_, tree) in parts.items():
        template.findings += _unknown_names(name, included, tree)
        undeclared = meta.find_undeclared_variables(tree) - set(prompt_environment().globals)
        for node in tree.find_all(nodes.Name):
            if node.name in undeclared and node.ctx == "load":
                template.variables.setdefault(node.name, _place(included, node.lineno))
    return template


def _place(name: str, line: int) -> Place:
    try:
        return Place(template_path(name), line)
    except MedtasksError:
        return Place(Path(name), line)


def _unknown_names(template: str, name: str, tree: nodes.Template) -> Iterator[Finding]:
    """Unknown filters and tests: in conditions, Jinja finds them only while rendering, hours into a run."""
    for kind, known in ((nodes.Filter, prompt_environment().filters), (nodes.Test, prompt_environment().tests)):
        for node in tree.find_all(kind):
            if node.name not in known:
                word = kind.__name__.lower()
                message = f"template {shown(name)} has no {word} named {node.name!r}{suggestion(node.name, known)}"
                yield finding("MT202", template, message, _place(name, node.lineno))


def check_variables(
    template: Template, visible: Set[str], fields: Set[str], given: Set[str], hidden: Set[str]
) -> Iterator[Finding]:
    """Findings about the variables of a template.

    ``visible`` are the fields that a prompt may show, ``fields`` those that documents have (empty if there are
    no documents), ``given`` other variables, ``hidden`` fields that it must not show.
    """
    allowed = visible | given
    names = f"expected one of {first_names(sorted(allowed), 8) or 'nothing at all'}"
    for name, place in sorted(template.variables.items()):
        used = f"template {template.name!r} uses {shown(name)}"
        if name not in allowed and name in (fields | hidden):
            yield finding("MT204", template.name, f"{used}, which prompts must not show, {names}", place, name)
        elif name not in allowed:
            yield finding("MT203", template.name, f"{used}{suggestion(name, allowed)}, {names}", place, name)
