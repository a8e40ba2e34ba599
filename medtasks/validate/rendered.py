"""Rules for prompt templates, and for the prompts rendered from them, including judges'.

A template parses and uses fields that documents have; nothing is hidden in a prompt, nothing
missing, no gold answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import Any

from jinja2 import TemplateSyntaxError, meta, nodes

from medtasks.benchmarks.documents import WITHHELD, first_prompt, prompt_text
from medtasks.catalog.benchmark import Benchmark
from medtasks.catalog.prompts import overlay, prompt_environment, template_parts, template_path
from medtasks.catalog.rubric import judge_prompt, load_rubric
from medtasks.catalog.task_model import TaskFile
from medtasks.core.errors import MedtasksError, UsageError, first_line
from medtasks.core.findings import Finding, Place, failed, finding
from medtasks.core.schema import Keys, shown, suggestion
from medtasks.core.text import first_names, shortened
from medtasks.validate.documents import Documents, TaskReport, folded, options_of

GIVEN_BY_STAGE_1 = {"observations": "what stage 1 said"}
LONG = 12
"""Minimum length of a text whose occurrence in a prompt is no coincidence."""
FEW = 5
"""With fewer documents, an answer may be in its question by chance."""

_SENTENCE_ENDS = re.compile(r"(?<=[.;!?])\s+")
_NO_WORD = re.compile(r"\W+")
_OPTIONS = frozenset({"choices", "options"})
_HARMLESS = frozenset({"abstention", "benchmark", "cluster", "item_id", "media", "sample_id"})
"""Fields that a prompt may contain without giving the answer away."""


def check_templates(
    file: TaskFile, benchmark: Benchmark | None, report: TaskReport
) -> dict[str, str]:
    """Report the defects of all templates of a task; returns its own by key, if every document can
    be rendered.
    """
    settings = file.lmms_eval_specific_kwargs
    visible = benchmark.visible_fields if benchmark is not None else frozenset()
    allowed: dict[str, Set[str]] = {
        "template": visible | set(GIVEN_BY_STAGE_1) if settings.stage1_template else visible,
        "stage1_template": visible - WITHHELD,
        "system_template": set(),  # the same text for every document
    }
    own = {key: name for key in allowed if (name := getattr(settings, key)) is not None}
    named: list[tuple[str, str, Keys]] = [
        (key, name, ("lmms_eval_specific_kwargs", key)) for key, name in own.items()
    ]
    for number, name in enumerate(file.metadata.prompts[1:], start=1):
        named.append(("template", name, ("metadata", "prompts", number)))
    findings: list[Finding] = []
    for key, name, keys in named:
        variables, problems = read_template(name, report.source.place(*keys))
        findings += problems
        expected = f"expected one of {first_names(sorted(allowed[key]), 8) or 'nothing at all'}"
        for variable in sorted(variables.keys() - allowed[key]) if benchmark is not None else ():
            used = f"template {name!r} uses {shown(variable)}{suggestion(variable, allowed[key])}"
            message = f"{used}, which prompts cannot show, {expected}"
            findings.append(finding("MT203", name, message, variables[variable], variable))
    report.add(*findings)
    # a template with an unknown variable fails on every document for the same reason
    return {} if failed(findings) else own


def read_template(name: str, named_at: Place) -> tuple[dict[str, Place], list[Finding]]:
    """The variables of a template with everything it includes, each with one place, and findings
    about its text.

    ``named_at`` is the line of the task file that names it.
    """
    try:
        parts = template_parts(name)
    except MedtasksError as error:
        code = "MT201" if isinstance(error, UsageError) else "MT202"
        cause = error.__cause__
        place = (
            _place(str(cause.name), cause.lineno)
            if isinstance(cause, TemplateSyntaxError)
            else named_at
        )
        return {}, [finding(code, name, str(error).partition(";")[0], place)]
    findings: list[Finding] = []
    variables: dict[str, Place] = {}
    environment = prompt_environment(overlay())
    for included, (_, tree) in parts.items():
        # in conditions, Jinja finds unknown filters and tests only while rendering, hours into a
        # run
        for kind, known in ((nodes.Filter, environment.filters), (nodes.Test, environment.tests)):
            for node in tree.find_all(kind):
                if node.name not in known:
                    word = f"{kind.__name__.lower()} named {node.name!r}"
                    message = (
                        f"template {shown(included)} has no {word}{suggestion(node.name, known)}"
                    )
                    findings.append(finding("MT202", name, message, _place(included, node.lineno)))
        undeclared = meta.find_undeclared_variables(tree)
        for name_used in tree.find_all(nodes.Name):
            if name_used.name in undeclared and name_used.ctx == "load":
                variables.setdefault(name_used.name, _place(included, name_used.lineno))
    return variables, findings


def _place(name: str, line: int = 1) -> Place:
    try:
        return Place(template_path(name), line)
    except MedtasksError:
        return Place(Path(name), line)


def check_prompts(
    documents: Documents,
    template: str,
    stage1: str | None,
    visible: frozenset[str],
    report: TaskReport,
    *,
    by_letter: bool = False,
) -> None:
    """Render the prompt of every document, and count its defects.

    With ``by_letter``, which says that the task's filter reads letters, every option must be shown
    with its own.
    """
    values, prompts = (GIVEN_BY_STAGE_1 if stage1 else {}), dict[object, set[str]]()
    for document in documents:
        name = stage1 or template
        try:
            if stage1:
                _count_leaks(
                    document,
                    first_prompt(document, stage1),
                    visible - WITHHELD,
                    _place(stage1),
                    report,
                )
            name = document.get("prompt_template", template)
            prompt = prompt_text(document, template, **values)
        except Exception as error:  # a template may divide by zero, or call a field as a function
            report.count("MT208", document, shortened(str(error), 300), place=_place(name))
            continue
        place, plain, question = _place(name), folded(prompt), document.get("question")
        if not plain:
            report.count("MT212", document, "the prompt is empty", place=place)
            continue
        if "prompt_of" in document:
            others = prompts.setdefault(document["prompt_of"], set())
            if prompt in others:
                report.count(
                    "MT220", document, "the prompt is that of another template", place=place
                )
            others.add(prompt)
        if "question" in visible and isinstance(question, str) and folded(question) not in plain:
            report.count("MT216", document, "the prompt does not contain the question", place=place)
        if visible & _OPTIONS:
            _count_options(document, prompt, by_letter, place, report)
        _count_leaks(document, prompt, visible, place, report)


def _count_options(
    document: Mapping[str, Any], prompt: str, by_letter: bool, place: Place, report: TaskReport
) -> None:
    plain = folded(prompt)
    for option, text in options_of(document):
        if folded(text) not in plain:
            report.count(
                "MT214",
                document,
                f"option {option} ({shown(text)}) is not in the prompt",
                place=place,
            )
            return
    unnamed = without_letter(document, prompt) if by_letter else None
    if unnamed is not None:
        option = f"option {unnamed} ({shown(document['choices'][unnamed])})"
        report.count(
            "MT221", document, f"{option} is in the prompt without its letter", place=place
        )


def _count_leaks(
    document: Mapping[str, Any],
    prompt: str,
    visible: frozenset[str],
    place: Place,
    report: TaskReport,
) -> None:
    for field, text in leaks(document, visible, prompt):
        message = f"the prompt contains {shown(text)} of the hidden field `{field}`"
        report.count("MT209", document, message, field, place)


_TAG = re.compile(r"</?[A-Za-z][^<>]*>")


def without_letter(document: Mapping[str, Any], prompt: str) -> str | None:
    """The first letter of the document's ``choices`` that is not beside its option in the prompt;
    None if all are.

    A letter is before its option with nothing but signs, tags or *is* between them, or after it in
    brackets.

    >>> document = {"choices": {"A": "left lung", "B": "right lung"}}
    >>> without_letter(document, "(A) Left lung, (B) right lung")
    >>> without_letter(document, "left lung, right lung")
    'A'
    """
    choices = document.get("choices")
    if not isinstance(choices, Mapping):
        return None
    plain, untagged = (
        folded(prompt),
        folded(_TAG.sub(" ", prompt)),
    )  # a tag may also have the letter
    for name, option in choices.items():
        text = folded("" if option is None else str(option))
        usual = folded(f"{name}. {text}")
        if not text or f" {usual}" in f" {plain}":  # compiling a pattern takes longer
            continue
        letter, words = re.escape(folded(str(name))), re.escape(text)
        before = rf"(?<!\w){letter}[\W_]{{1,12}}(?:is[\W_]{{1,4}})?{words}"
        after = rf"{words}[\W_]{{0,3}}[(\[]{letter}[)\]]"
        beside = re.compile(f"{before}|{after}")
        if not (beside.search(plain) or beside.search(untagged)):
            return str(name)
    return None


def leaks(
    document: Mapping[str, Any], visible: frozenset[str], prompt: str
) -> Iterator[tuple[str, str]]:
    """Hidden fields of a document that its prompt shows, each with the text shown."""
    prompt = folded(prompt)
    shown_texts = [
        folded(text) for key in visible & set(document) for text in texts_in(document[key])
    ]
    is_open = not options_of(document)
    for field in sorted(set(document) - visible - _HARMLESS):
        texts = list(texts_in(document[field]))
        sentences = [
            one for text in texts for one in _SENTENCE_ENDS.split(text) if len(one) >= 2 * LONG
        ]
        for text in map(folded, (*texts, *sentences)):
            answer = is_open and field in ("target", "answer", "reference")
            if len(text) >= LONG and (" " in text or answer):
                leaked = text in prompt
            else:
                leaked = (
                    answer
                    and len(text) >= 4
                    and any(map(str.isalpha, text))
                    and f" {text} " in f" {prompt} "
                )
            if leaked and not any(text in one for one in shown_texts):
                yield field, text
                break


def texts_in(value: Any) -> Iterator[str]:
    """All strings in a value, at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from texts_in(item)


def check_giveaways(documents: Documents, fields: Set[str], report: TaskReport) -> None:
    """Count the documents whose gold answer is in one of ``fields``, which their prompt shows.

    A field is reported if it contains the document's own answer in most documents, and another
    answer in few: as text, or as a letter. The list of options contains all answers and is left
    out.
    """
    distinct = sorted({str(document.get("target")) for document in documents})
    following = dict(zip(distinct, (*distinct[1:], *distinct[:1]), strict=True))
    # the words of each document's own answer and of a wrong one, by text and, with options, by
    # letter
    pairs: dict[str, list[tuple[int, str, str]]] = {"text": [], "letter": []}
    for number, document in enumerate(documents):
        target, options = str(document.get("target")), dict(options_of(document))
        if target in options and isinstance(document.get("choices"), Mapping):
            wrong = next((name for name in options if options[name] != options[target]), None)
            answers = (
                {}
                if wrong is None
                else {"text": (options[target], options[wrong]), "letter": (target, wrong)}
            )
        else:
            wrong = next(
                (one for one in (*options.values(), following[target]) if one != target), None
            )
            answers = {} if wrong is None else {"text": (target, wrong)}
        for kind, both in answers.items():
            own, other = map(_words, both)
            if own.strip() and other.strip() and own != other:
                pairs[kind].append((number, own, other))
    for field in sorted(fields - _OPTIONS):
        values = [document.get(field) for document in documents]
        texts = [
            _words(str(one) if isinstance(one, int | float) else " ".join(texts_in(one)))
            for one in values
        ]
        for kind, rows in pairs.items():
            leaking = [documents[number] for number, own, _ in rows if own in texts[number]]
            others = sum(other in texts[number] for number, _, other in rows)
            # in many rows the other answer as well: "red or blue?" does not tell which is right
            if len(rows) < FEW or len(leaking) < 0.8 * len(rows) or others > 0.2 * len(rows):
                continue
            for document in leaking:
                message = f"`{field}` contains the {kind} of the gold answer ({shown(document['target'])})"
                report.count("MT219", document, f"{message}, which the prompt shows", field)


def _words(text: str) -> str:
    """The words of ``text``, with a space before, between and after them."""
    return f" {_NO_WORD.sub(' ', text.casefold()).strip()} "


_NOT_SHOWN = frozenset({"cluster", "media"})
"""Document fields that samples store separately, so that no rubric sees them."""
_RESPONSE = "There is nothing of note."


def check_judged(
    file: TaskFile, documents: Documents, benchmark: Benchmark, report: TaskReport
) -> None:
    """Report the defects of a task's rubrics, and of the prompts that they produce for
    ``documents``.
    """
    for number, name in enumerate(file.metadata.rubrics):
        try:
            rubric = load_rubric(name)
        except MedtasksError:  # the check of the names reports it
            continue
        at, asks = (
            report.source.place("metadata", "rubrics", number),
            benchmark.scoring.to_judge.get(name),
        )
        for document in documents:
            fields = {key: value for key, value in document.items() if key not in _NOT_SHOWN}
            try:
                if lacking := [field for field in rubric.sees if field not in fields]:
                    raise MedtasksError(
                        f"there is no {shown(lacking[0])}{suggestion(lacking[0], fields)}, which it shows"
                    )
                if asks is None or asks(fields, _RESPONSE):
                    judge_prompt(rubric, fields, _RESPONSE)
            except Exception as error:  # `to_judge` and template may be another package's
                report.count(
                    "MT218",
                    document,
                    f"rubric {name}: {shortened(first_line(error), 300)}",
                    name,
                    at,
                )
