"""Checks of prompt templates without rendering them: do they parse, and which fields of a document do they use?"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from pathlib import Path

from jinja2 import StrictUndefined, TemplateSyntaxError, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from medtasks.errors import MedtasksError
from medtasks.prompts import template_path, template_source
from medtasks.rendering import undeclared_variables
from medtasks.schema import shown, suggestion
from medtasks.task_source import Place
from medtasks.validation.findings import Finding, found

# only parses; medtasks.prompts renders
_PARSER = ImmutableSandboxedEnvironment(undefined=StrictUndefined, trim_blocks=True)
_REFERENCES = (nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)


@dataclass
class Template:
    """A template with everything it includes: ``trees`` by name, its own first; ``variables``, each with one place;
    ``findings`` about the text."""

    name: str
    trees: dict[str, nodes.Template] = field(default_factory=dict)
    variables: dict[str, Place] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        """Whether it can be rendered at all."""
        return not any(one.severity == "error" for one in self.findings)

    @property
    def place(self) -> Place:
        """The first line of its file."""
        return Place(_file(self.name), 1)


def read_template(name: str, named_at: Place) -> Template:
    """Read the template ``name`` with everything it includes. Never raises: problems are in ``findings``.

    ``named_at`` is the line of the task file that names it.
    """
    template = Template(name)
    _read(template, name, named_at, ())
    for one, tree in template.trees.items():
        _collect(template, one, tree)
    return template


def _file(name: str) -> Path:
    try:
        return template_path(name)
    except MedtasksError:
        return Path(name)


def _read(template: Template, name: str, named_at: Place, above: tuple[str, ...]) -> None:
    def refuse(code: str, message: str, place: Place) -> None:
        template.findings.append(found(code, template.name, f"template {shown(name)} {message}", place))

    if name in template.trees:
        if name in above:
            refuse("MT210", "includes itself, directly or through others; break the cycle.", named_at)
        return
    try:
        source = template_source(name)
        tree = _PARSER.parse(source)
        undeclared_variables(tree)  # compiles the template, which finds errors that the parser misses
        _refuse_unknown(tree)
    except TemplateSyntaxError as error:
        problem = " ".join(str(error.message).split())[:200]
        refuse("MT202", f"is malformed ({problem}); fix the line.", Place(_file(name), error.lineno))
    except UnicodeDecodeError:
        refuse("MT202", "is not UTF-8; save it as UTF-8.", Place(_file(name), 1))
    except (MedtasksError, OSError) as error:
        code = "MT205" if above else "MT201"
        refuse(code, f"cannot be read ({error}) Fix the name, or add the file.", named_at)
    except Exception as error:  # for example nested too deeply, or a number too long to read
        refuse("MT202", f"cannot be parsed ({type(error).__name__}); simplify it.", Place(_file(name), 1))
    else:
        template.trees[name] = tree
        for reference, line in _references(tree):
            place = Place(_file(name), line)
            if reference is None:
                message = "includes by a computed name, which the prompt hash cannot cover; write the name out."
                refuse("MT211", message, place)
            else:
                _read(template, reference, place, (*above, name))


def _refuse_unknown(tree: nodes.Template) -> None:
    """Refuse unknown filters and tests: in conditions, Jinja finds them only while rendering, hours into a run."""
    for kind, known in ((nodes.Filter, _PARSER.filters), (nodes.Test, _PARSER.tests)):
        for node in tree.find_all(kind):
            if node.name not in known:
                word = kind.__name__.lower()
                raise TemplateSyntaxError(f"no {word} named {node.name!r}{suggestion(node.name, known)}", node.lineno)


def _references(tree: nodes.Template) -> Iterator[tuple[str | None, int]]:
    for node in tree.find_all(_REFERENCES):
        named = getattr(node, "template", None)
        if isinstance(named, nodes.Const) and isinstance(named.value, str):
            yield named.value, node.lineno
        elif isinstance(named, (nodes.Tuple, nodes.List)):
            for item in named.items:
                yield (item.value if isinstance(item, nodes.Const) else None), node.lineno
        elif isinstance(named, nodes.Const) and isinstance(named.value, (tuple, list)):
            yield from ((str(item), node.lineno) for item in named.value)
        else:
            yield None, node.lineno


def _collect(template: Template, name: str, tree: nodes.Template) -> None:
    undeclared = undeclared_variables(tree) - set(_PARSER.globals)
    for node in tree.find_all(nodes.Name):
        if node.name in undeclared and node.ctx == "load":
            template.variables.setdefault(node.name, Place(_file(name), node.lineno))


def check_variables(
    template: Template, visible: Set[str], fields: Set[str], given: Set[str], hidden: Set[str]
) -> Iterator[Finding]:
    """Findings about the variables of a template.

    ``visible`` are the fields that a prompt may show, ``fields`` those that documents have (empty if there are
    no documents), ``given`` other variables, ``hidden`` fields that it must not show.
    """
    allowed = visible | given
    for name, place in sorted(template.variables.items()):
        if name not in allowed and name in (fields | hidden):
            message = f"template {template.name!r} uses {shown(name)}, which prompts must not show, expected one of "
            yield found("MT204", template.name, f"{message}{_names_text(allowed)}; remove it.", place, name)
        elif name not in allowed:
            message = f"template {template.name!r} uses {shown(name)}{suggestion(name, allowed)}, expected one of "
            yield found("MT203", template.name, f"{message}{_names_text(allowed)}; correct the name.", place, name)
        elif fields and name not in (fields | given):
            message = f"template {template.name!r} uses {shown(name)}, which no document of the task has"
            yield found("MT213", template.name, f"{message}; remove it, or add the field.", place, name)
    if template.trees and not template.variables and visible:
        message = (
            f"template {template.name!r} uses no field, expected one of {_names_text(allowed)}; show the question."
        )
        yield found("MT206", template.name, message, template.place)


def _names_text(names: Set[str]) -> str:
    return ", ".join(sorted(names)) or "nothing at all"
