"""Rules for prompt templates: they parse, and use fields that prompts may show."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass
from pathlib import Path

from jinja2 import TemplateSyntaxError, meta, nodes

from medtasks.benchmarks.documents import WITHHELD
from medtasks.catalog.benchmark import Benchmark
from medtasks.catalog.prompts import overlay, prompt_environment, template_parts, template_path
from medtasks.catalog.task_model import TaskFile
from medtasks.core.errors import MedtasksError, UsageError
from medtasks.core.findings import Finding, Place, failed, finding
from medtasks.core.schema import shown, suggestion
from medtasks.core.text import first_names
from medtasks.validate.report import TaskReport

STAGE_1_VALUES = {"observations": "what stage 1 said"}
"""Variables of a second-stage template that are no fields of documents, with values to try."""


@dataclass(frozen=True)
class _NamedTemplate:
    """A template that a task file names: its role in the prompt, and where it is named."""

    role: str
    name: str
    named_at: Place


def check_templates(
    file: TaskFile, benchmark: Benchmark | None, report: TaskReport
) -> dict[str, str]:
    """Report the defects of all templates of a task; returns its own templates by role, or none if
    they cannot be rendered.
    """
    settings = file.lmms_eval_specific_kwargs
    allowed = _allowed_variables(benchmark, has_stage1=bool(settings.stage1_template))
    own = {role: getattr(settings, role) for role in allowed if getattr(settings, role) is not None}
    findings = []
    for template in _named_templates(file, own, report):
        variables, problems = read_template(template.name, template.named_at)
        findings += problems
        if benchmark is not None:
            findings += _unknown_variables(template.name, variables, allowed[template.role])
    report.add(*findings)
    # a template with an unknown variable fails on every document for the same reason
    return {} if failed(findings) else own


def _allowed_variables(benchmark: Benchmark | None, *, has_stage1: bool) -> dict[str, Set[str]]:
    """The variables that a template of each role may use."""
    visible = benchmark.visible_fields if benchmark is not None else frozenset()
    return {
        "template": visible | set(STAGE_1_VALUES) if has_stage1 else visible,
        "stage1_template": visible - WITHHELD,
        "system_template": set(),  # the same text for every document
    }


def _named_templates(
    file: TaskFile, own: dict[str, str], report: TaskReport
) -> Iterator[_NamedTemplate]:
    """The task's ``own`` templates by role, then those of further prompts."""
    for role, name in own.items():
        place = report.source.place("lmms_eval_specific_kwargs", role)
        yield _NamedTemplate(role, name, place)
    for number, name in enumerate(file.metadata.prompts[1:], start=1):
        place = report.source.place("metadata", "prompts", number)
        yield _NamedTemplate("template", name, place)


def _unknown_variables(
    template: str, variables: dict[str, Place], allowed: Set[str]
) -> Iterator[Finding]:
    expected = f"expected one of {first_names(sorted(allowed), 8) or 'nothing at all'}"
    for variable in sorted(variables.keys() - allowed):
        uses = f"template {template!r} uses {shown(variable)}{suggestion(variable, allowed)}"
        message = f"{uses}, which prompts cannot show, {expected}"
        yield finding("MT203", template, message, variables[variable], variable)


def read_template(name: str, named_at: Place) -> tuple[dict[str, Place], list[Finding]]:
    """The variables of a template with everything it includes, each with one place, and findings
    about its text.

    ``named_at`` is the line of the task file that names the template.
    """
    try:
        parts = template_parts(name)
    except MedtasksError as error:
        return {}, [_unreadable(name, error, named_at)]
    findings: list[Finding] = []
    variables: dict[str, Place] = {}
    for included, (_, tree) in parts.items():
        findings += _unknown_functions(name, included, tree)
        undeclared = meta.find_undeclared_variables(tree)
        for node in tree.find_all(nodes.Name):
            if node.name in undeclared and node.ctx == "load":
                variables.setdefault(node.name, template_place(included, node.lineno))
    return variables, findings


def _unreadable(name: str, error: MedtasksError, named_at: Place) -> Finding:
    """The finding of a template that is missing or cannot be parsed."""
    code = "MT201" if isinstance(error, UsageError) else "MT202"
    place, cause = named_at, error.__cause__
    if isinstance(cause, TemplateSyntaxError):
        place = template_place(str(cause.name), cause.lineno)
    return finding(code, name, str(error).partition(";")[0], place)


def _unknown_functions(name: str, included: str, tree: nodes.Template) -> Iterator[Finding]:
    """Findings about filters and tests that Jinja does not have.

    In conditions, Jinja finds them only while rendering, hours into a run.
    """
    environment = prompt_environment(overlay())
    for kind, names in ((nodes.Filter, environment.filters), (nodes.Test, environment.tests)):
        for node in tree.find_all(kind):
            if node.name not in names:
                function = f"{kind.__name__.lower()} named {node.name!r}"
                near = suggestion(node.name, names)
                message = f"template {shown(included)} has no {function}{near}"
                yield finding("MT202", name, message, template_place(included, node.lineno))


def template_place(name: str, line: int = 1) -> Place:
    """A line of a template's file, or of its bare name if there is no such file."""
    try:
        return Place(template_path(name), line)
    except MedtasksError:
        return Place(Path(name), line)
