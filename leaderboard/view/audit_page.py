"""The page of the questions whose gold answer deserves a second look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from jinja2 import Environment

from medtasks.core.errors import UsageError

from ..audit.audit_report import AuditReport, DoubtfulQuestion
from ..audit.signs import SIGN_TITLES, SignKind
from ..intake.shown_layouts import layout_of
from .addresses import address
from .library import Library

PER_PAGE = 50
"""Questions on a page."""


def audit_page(library: Library, environment: Environment, parameters: Mapping[str, str]) -> str:
    """The page with the questions that have the sign ``sign``, or all; ``page`` is its number.

    Raises:
        UsageError: there is no such sign.
    """
    report = library.audit.with_verdicts(library.gold_verdicts)
    kind = _chosen_kind(parameters.get("sign", ""))
    questions = _with_sign(report, kind)
    pages = max(1, -(-len(questions) // PER_PAGE))
    number = min(pages, _page_number(parameters.get("page", "1")))
    first = (number - 1) * PER_PAGE
    withheld = [audit.benchmark for audit in report.benchmarks if audit.withheld]
    return environment.get_template("audit.html.j2").render(
        page="audit.html",
        report=report,
        questions=questions[first : first + PER_PAGE],
        total=len(questions),
        people=any(question.verdict is not None for question in report.questions),
        kind=kind,
        kinds=_kind_choices(report),
        titles=SIGN_TITLES,
        number=number,
        pages=pages,
        layouts=[layout_of(benchmark) for benchmark in withheld],
        question_address=_question_address,
        page_address=_page_address,
    )


def _chosen_kind(name: str) -> SignKind | None:
    """The kind of sign that an address names; None for all."""
    if not name:
        return None
    try:
        return SignKind(name)
    except ValueError:
        raise UsageError(f"{name}: no such sign; choose one of the list.") from None


def _with_sign(report: AuditReport, kind: SignKind | None) -> Sequence[DoubtfulQuestion]:
    if kind is None:
        return report.questions
    questions = []
    for question in report.questions:
        if any(sign.kind is kind for sign in question.signs):
            questions.append(question)
    return questions


def _kind_choices(report: AuditReport) -> list[tuple[str, str]]:
    """The kinds of signs that there are, with the number of their questions."""
    choices = []
    for kind, count in report.counts().items():
        choices.append((kind.value, f"{SIGN_TITLES[kind]} ({count:,})"))
    return choices


def _page_number(text: str) -> int:
    """The number of a page in an address; 1 if it is none."""
    return max(1, int(text)) if text.isdecimal() and len(text) < 7 else 1


def _question_address(question: DoubtfulQuestion) -> str:
    """The address of the question's page, with its media and all answers."""
    query = {"task": question.task, "run": question.run}
    return address(query, "sample.html", id=question.sample_id)


def _page_address(kind: SignKind | None, number: int) -> str:
    """The address of another page of the list."""
    parameters = {"sign": kind.value} if kind is not None else {}
    return f"audit.html?{urlencode({**parameters, 'page': number})}"
