"""Rules for prompt templates before they are rendered: do they parse, and which fields of a document do they use?"""

from __future__ import annotations

from collections.abc import Set
from pathlib import Path

from jinja2 import TemplateSyntaxError, meta, nodes

from medtasks.benchmarks.stages import WITHHELD
from medtasks.catalog.benchmark import Benchmark
from medtasks.catalog.prompts import prompt_environment, template_parts, template_path
from medtasks.catalog.task_model import TaskFile
from medtasks.core.errors import MedtasksError, UsageError
from medtasks.core.findings import Finding, Place, failed, finding
from medtasks.core.schema import Keys, shown, suggestion
from medtasks.core.text import first_names
from medtasks.validate.documents import GOLD_FIELDS, Documents
from medtasks.validate.report import TaskReport

GIVEN_BY_STAGE_1 = {"observations": "what stage 1 said"}


def check_templates(
    file: TaskFile, benchmark: Benchmark | None, documents: Documents, report: TaskReport
) -> dict[str, str]:
    """Report the defects of all templates of a task; returns its own by key, if every document can be rendered."""
    settings = file.lmms_eval_specific_kwargs
    visible = benchmark.visible_fields if benchmark is not None else frozenset()
    allowed: dict[str, Set[str]] = {
        "template": visible | set(GIVEN_BY_STAGE_1) if settings.stage1_template else visible,
        "stage1_template": visible - WITHHELD,
        "system_template": set(),  # the same text for every document
    }
    own = {key: name for key in allowed if (name := getattr(settings, key)) is not None}
    named: list[tuple[str, str, Keys]] = [(key, name, ("lmms_eval_specific_kwargs", key)) for key, name in own.items()]
    for number, name in enumerate(file.metadata.prompts[1:], start=1):
        named.append(("template", name, ("metadata", "prompts", number)))
    findings: list[Finding] = []
    for key, name, keys in named:
        variables, problems = read_template(name, report.source.place(*keys))
        findings += problems
        if benchmark is not None:
            hidden = {*(field for document in documents for field in document), *benchmark.record.model_fields}
            expected = f"expected one of {first_names(sorted(allowed[key]), 8) or 'nothing at all'}"
            for variable, place in sorted(variables.items()):
                used = f"template {name!r} uses {shown(variable)}"
                if variable in allowed[key]:
                    continue
                if variable in hidden | GOLD_FIELDS | visible:
                    code, message = "MT204", f"{used}, which prompts must not show, {expected}"
                else:
                    code, message = "MT203", f"{used}{suggestion(variable, allowed[key])}, {expected}"
                findings.append(finding(code, name, message, place, variable))
    report.add(*findings)
    # a template with an unknown variable fails on every document for the same reason
    return {} if failed(findings) else own


def read_template(name: str, named_at: Place) -> tuple[dict[str, Place], list[Finding]]:
    """The variables of a template with everything it includes, each with one place, and findings about its text.

    ``named_at`` is the line of the task file that names it.
    """
    try:
        parts = template_parts(name)
    except MedtasksError as error:
        code = "MT201" if isinstance(error, UsageError) else "MT202"
        cause = error.__cause__
        place = _place(str(cause.name), cause.lineno) if isinstance(cause, TemplateSyntaxError) else named_at
        return {}, [finding(code, name, str(error).partition(";")[0], place)]
    findings: list[Finding] = []
    variables: dict[str, Place] = {}
    for included, (_, tree) in parts.items():
        # in conditions, Jinja finds unknown filters and tests only while rendering, hours into a run
        for kind, known in ((nodes.Filter, prompt_environment().filters), (nodes.Test, prompt_environment().tests)):
            for node in tree.find_all(kind):
                if node.name not in known:
                    word = f"{kind.__name__.lower()} named {node.name!r}"
                    message = f"template {shown(included)} has no {word}{suggestion(node.name, known)}"
                    findings.append(finding("MT202", name, message, _place(included, node.lineno)))
        undeclared = meta.find_undeclared_variables(tree)
        for name_used in tree.find_all(nodes.Name):
            if name_used.name in undeclared and name_used.ctx == "load":
                variables.setdefault(name_used.name, _place(included, name_used.lineno))
    return variables, findings


def _place(name: str, line: int) -> Place:
    try:
        return Place(template_path(name), line)
    except MedtasksError:
        return Place(Path(name), line)
