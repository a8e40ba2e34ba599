"""Rules for prompts rendered from templates: the question and its options are in them, the hidden
fields are not; and for the prompts of judges.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from medtasks.benchmarks.documents import WITHHELD, first_prompt, prompt_text
from medtasks.catalog.benchmark import Benchmark
from medtasks.catalog.judge_prompt import judge_prompt
from medtasks.catalog.rubric import Rubric
from medtasks.catalog.rubric_files import load_rubric
from medtasks.catalog.task_model import TaskFile
from medtasks.core.errors import MedtasksError, first_line
from medtasks.core.findings import Place
from medtasks.core.schema import shown, suggestion
from medtasks.core.text import shortened
from medtasks.validate.leaks import leaks
from medtasks.validate.options import folded, options_of
from medtasks.validate.report import Document, Documents, TaskReport
from medtasks.validate.templates import STAGE_1_VALUES, template_place


@dataclass(frozen=True)
class PromptCheck:
    """Renders the prompts of a task's documents and counts their defects.

    With ``by_letter``, the task's filter reads option letters, so every option must be shown with
    its own.
    """

    template: str
    stage1: str | None
    visible: frozenset[str]
    report: TaskReport
    by_letter: bool = False

    def __call__(self, documents: Documents) -> None:
        """Report the defects of the prompts of ``documents``."""
        earlier_prompts: dict[object, set[str]] = {}
        for document in documents:
            prompt = self._rendered(document)
            if prompt is None:
                continue
            place = template_place(self._template_of(document))
            if not folded(prompt):
                self.report.on_document("MT212", document, "the prompt is empty", place=place)
                continue
            if "prompt_of" in document:
                earlier = earlier_prompts.setdefault(document["prompt_of"], set())
                if prompt in earlier:
                    message = "the prompt is that of another template"
                    self.report.on_document("MT220", document, message, place=place)
                earlier.add(prompt)
            self._check_question(document, prompt, place)
            self._check_options(document, prompt, place)
            self._check_leaks(document, prompt, self.visible, place)

    def _template_of(self, document: Document) -> str:
        return str(document.get("prompt_template", self.template))

    def _rendered(self, document: Document) -> str | None:
        """The prompt of a document, with two stages that of the second; None if rendering fails,
        which is reported.
        """
        name = self.stage1 or self.template
        try:
            if self.stage1:
                first = first_prompt(document, self.stage1)
                place = template_place(self.stage1)
                self._check_leaks(document, first, self.visible - WITHHELD, place)
            name = self._template_of(document)
            return prompt_text(document, self.template, **(STAGE_1_VALUES if self.stage1 else {}))
        except Exception as error:  # a template may divide by zero, or call a field as a function
            message, place = shortened(str(error), 300), template_place(name)
            self.report.on_document("MT208", document, message, place=place)
            return None

    def _check_question(self, document: Document, prompt: str, place: Place) -> None:
        question = document.get("question")
        if "question" not in self.visible or not isinstance(question, str):
            return
        if folded(question) not in folded(prompt):
            message = "the prompt does not contain the question"
            self.report.on_document("MT216", document, message, place=place)

    def _check_options(self, document: Document, prompt: str, place: Place) -> None:
        """Report the first option that the prompt lacks, or shows without its letter."""
        if self.visible.isdisjoint({"choices", "options"}):
            return
        if "choices" not in document and sorted(document.get("options") or ()) == ["no", "yes"]:
            return  # every question that can be answered so implies them
        folded_prompt = folded(prompt)
        for name, text in options_of(document):
            if folded(text) not in folded_prompt:
                message = f"option {name} ({shown(text)}) is not in the prompt"
                self.report.on_document("MT214", document, message, place=place)
                return
        letter = without_letter(document, prompt) if self.by_letter else None
        if letter is not None:
            option = f"option {letter} ({shown(document['choices'][letter])})"
            message = f"{option} is in the prompt without its letter"
            self.report.on_document("MT221", document, message, place=place)

    def _check_leaks(
        self, document: Document, prompt: str, visible: frozenset[str], place: Place
    ) -> None:
        for field, text in leaks(document, visible, prompt):
            message = f"the prompt contains {shown(text)} of the hidden field `{field}`"
            self.report.on_document("MT209", document, message, field, place)


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
    text = folded(prompt)
    untagged_text = folded(_TAG.sub(" ", prompt))  # a tag may also have the letter
    for letter, option in choices.items():
        words = folded("" if option is None else str(option))
        usual = folded(f"{letter}. {words}")
        if not words or f" {usual}" in f" {text}":  # compiling a pattern takes longer
            continue
        beside = _letter_beside(str(letter), words)
        if not (beside.search(text) or beside.search(untagged_text)):
            return str(letter)
    return None


def _letter_beside(letter: str, words: str) -> re.Pattern[str]:
    """A pattern of an option's ``words`` with its letter before or after them, in folded text."""
    letter, words = re.escape(folded(letter)), re.escape(words)
    before = rf"(?<!\w){letter}[\W_]{{1,12}}(?:is[\W_]{{1,4}})?{words}"
    after = rf"{words}[\W_]{{0,3}}[(\[]{letter}[)\]]"
    return re.compile(f"{before}|{after}")


_HIDDEN_FROM_RUBRICS = frozenset({"cluster", "media"})
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
        place = report.source.place("metadata", "rubrics", number)
        for document in documents:
            try:
                _render_judge_prompt(rubric, name, document, benchmark)
            except Exception as error:  # `to_judge` and template may be another package's
                message = f"rubric {name}: {shortened(first_line(error), 300)}"
                report.on_document("MT218", document, message, name, place)


def _render_judge_prompt(
    rubric: Rubric, name: str, document: Document, benchmark: Benchmark
) -> None:
    """Render what a judge would be asked about a response to ``document``, if anything."""
    fields = {key: value for key, value in document.items() if key not in _HIDDEN_FROM_RUBRICS}
    for field in rubric.sees:
        if field not in fields:
            near = suggestion(field, fields)
            raise MedtasksError(f"there is no {shown(field)}{near}, which it shows")
    is_judged = benchmark.scoring.to_judge.get(name)
    if is_judged is None or is_judged(fields, _RESPONSE):
        judge_prompt(rubric, fields, _RESPONSE)
