"""Rules for prompt templates before they are rendered: do they parse, and which fields of a document do they use?"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from pathlib import Path

from jinja2 import StrictUndefined, TemplateSyntaxError, meta, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from medtasks.catalog.prompts import template_path, template_source
from medtasks.core.errors import MedtasksError
from medtasks.core.findings import Finding, Place, finding
from medtasks.core.schema import shown, suggestion
from medtasks.core.text import first_names

# only parses; medtasks.catalog.prompts renders
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

    def refuse(self, code: str, message: str, place: Place, fix: str | None = None) -> None:
        """Add a finding about the text."""
        self.findings.append(finding(code, self.name, message, place, fix=fix))


def read_template(name: str, named_at: Place) -> Template:
    """Read the template ``name`` with everything it includes. Never raises: problems are in ``findings``.

    ``named_at`` is the line of the task file that names it.
    """
    template = Template(name)
    _read(template, name, named_at, ())
    for included, tree in template.trees.items():
        undeclared = meta.find_undeclared_variables(tree) - set(_PARSER.globals)
        for node in tree.find_all(nodes.Name):
            if node.name in undeclared and node.ctx == "load":
                template.variables.setdefault(node.name, Place(_file(included), node.lineno))
    return template


def _file(name: str) -> Path:
    try:
        return template_path(name)
    except MedtasksError:
        return Path(name)


def _read(template: Template, name: str, named_at: Place, above: tuple[str, ...]) -> None:
    what = f"template {shown(name)}"
    if name in template.trees:
        if name in above:
            template.refuse("MT210", f"{what} includes itself, directly or through others", named_at)
        return
    try:
        tree = _PARSER.parse(template_source(name))
        meta.find_undeclared_variables(tree)  # compiles the template, which finds errors that the parser misses
        _refuse_unknown(tree)
    except TemplateSyntaxError as error:
        template.refuse("MT202", f"{what} is malformed ({error.message})", Place(_file(name), error.lineno))
    except UnicodeDecodeError:
        template.refuse("MT202", f"{what} is not UTF-8", Place(_file(name), 1), "save it as UTF-8")
    except (MedtasksError, OSError) as error:
        why = str(error).partition(";")[0]
        template.refuse("MT205" if above else "MT201", f"{what} cannot be read ({why})", named_at)
    except Exception as error:  # for example nested too deeply, or a number too long to read
        message = f"{what} cannot be parsed ({type(error).__name__})"
        template.refuse("MT202", message, Place(_file(name), 1), "simplify it")
    else:
        template.trees[name] = tree
        for reference, line in _references(tree):
            place = Place(_file(name), line)
            if reference is None:
                message = f"{what} includes by a computed name, which the prompt hash cannot cover"
                template.refuse("MT211", message, place)
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
    """The names of included templates, each with its line; None for a computed name."""
    for node in tree.find_all(_REFERENCES):
        named = getattr(node, "template", None)
        items = named.items if isinstance(named, (nodes.Tuple, nodes.List)) else [named]
        for item in items:
            value = item.value if isinstance(item, nodes.Const) else None
            for name in value if isinstance(value, (tuple, list)) else [value]:
                yield (name if isinstance(name, str) else None), node.lineno


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
