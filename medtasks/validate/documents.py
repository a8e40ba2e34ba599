"""Rules for documents and their options: complete, consistently typed, distinct, no hints at the answer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import combinations
from typing import Any

from medtasks.benchmarks.variants import question_of
from medtasks.catalog.benchmark import Benchmark
from medtasks.core.schema import shown
from medtasks.core.text import first_names
from medtasks.validate.report import TaskReport

Documents = Sequence[Mapping[str, Any]]
Defects = Iterator[tuple[str, str, str]]
"""Code, message and field of what is wrong with a document."""

_GOLD_FIELDS = """
    abstention answer answers evidence expected expected_output explanation gold guesses ideal_response judge_rubric
    positive_response rationale reference reference_answer solution target visual_description
"""
GOLD_FIELDS = frozenset(_GOLD_FIELDS.split())
"""Document fields that contain or give away the expected answer."""

LONG = 12
"""Minimum length of a text whose occurrence in a question or prompt is no coincidence."""

_FIELDS: Mapping[str, tuple[str, str, str]] = {
    "sample_id": ("a string", "MT304", "MT304"),
    "cluster": ("a string", "MT309", "MT309"),
    "target": ("a string", "MT304", "MT308"),
    "media": ("a list of strings", "MT304", "MT317"),
    "abstention": ("a string", "MT304", ""),
}
"""Fields of every document: the type in words, and the codes of a wrong type and of an empty value."""


def check_documents(documents: Documents, benchmark: Benchmark, report: TaskReport) -> None:
    """Report the defects of one task's documents."""
    for document in documents:
        for rule in _OF_ONE:
            for code, message, field in rule(document, benchmark):
                report.count(code, document, message, field)
    for of_all in _OF_ALL:
        for document, code, message, field in of_all(documents, benchmark):
            report.count(code, document, message, field)
    _bias(documents, report)


def _fields(document: Mapping[str, Any], benchmark: Benchmark) -> Defects:
    for field, (words, wrong, empty) in _FIELDS.items():
        value = document.get(field)
        if field not in document:
            yield wrong, f"`{field}` is missing, expected {words}", field
        elif not (_is_texts(value) if field == "media" else isinstance(value, str)):
            yield wrong, f"`{field}` is {shown(value)}, expected {words}", field
        elif empty and not (value.strip() if isinstance(value, str) else value):
            yield empty, f"`{field}` is empty, expected {'a picture or video' if field == 'media' else 'text'}", field
    if document.get("benchmark") != benchmark.name:
        named = shown(document.get("benchmark"))
        yield "MT320", f"`benchmark` is {named}, expected {benchmark.name!r}", "benchmark"


def _is_texts(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value)


def _question(document: Mapping[str, Any], _: Benchmark) -> Defects:
    question, target = document.get("question"), document.get("target")
    if "question" in document and (not isinstance(question, str) or not question.strip()):
        yield "MT310", f"`question` is {shown(question)}, expected a non-empty string", "question"
    elif isinstance(question, str) and isinstance(target, str) and len(target.strip()) >= LONG:
        is_open = target != document.get("abstention") and not options_of(document)
        if is_open and folded(target).rstrip(".") in folded(question):
            yield "MT323", f"the question contains its answer ({shown(target)})", "question"


def _options(document: Mapping[str, Any], benchmark: Benchmark) -> Defects:
    options, choices = options_of(document), document.get("choices")
    texts = [folded(text) for _, text in options]
    if len(options) == 1 or (not options and isinstance(choices, Mapping)):
        yield "MT311", f"{len(options)} option{'' if options else 's'}, expected at least two", ""
    empty = [name for name, text in zip(options, texts, strict=True) if not text]
    if empty:
        yield "MT316", f"option {empty[0][0]} is empty, expected text", ""
    elif len(options) > 1 and len(set(texts)) == 1:
        yield "MT312", f"all options are {shown(texts[0])}, expected different ones", ""
    else:
        for (one, first), (two, second) in combinations(zip(options, texts, strict=True), 2):
            if _similar(first, second):
                yield "MT313", f"options {one[0]} and {two[0]} are nearly equal ({shown(first)})", ""
                break
    letters = benchmark.options
    if isinstance(choices, Mapping) and options and letters and not set(choices) <= set(letters):
        odd = ", ".join(sorted(set(map(str, choices)) - set(letters)))
        yield "MT318", f"options are called {odd}, expected {', '.join(letters)}", ""


def _answer(document: Mapping[str, Any], _: Benchmark) -> Defects:
    target, options, choices = document.get("target"), options_of(document), document.get("choices")
    if not isinstance(target, str) or not target.strip() or not options:
        return
    if isinstance(choices, Mapping):
        right, names = target in choices, first_names((name for name, _ in options), 8)
    else:
        guesses = document.get("guesses")
        also = [*guesses] if isinstance(guesses, (list, tuple)) else []
        allowed = {folded(str(text)) for text in (*dict(options).values(), *also, document.get("abstention", ""))}
        parts = (target, *target.split("; "))
        right, names = folded(target) in allowed or all(folded(part) in allowed for part in parts[1:]), "the options"
    if not right:
        yield "MT307", f"the answer is {shown(target)}, expected one of {names}", ""


def _writable(document: Mapping[str, Any], _: Benchmark) -> Defects:
    try:
        json.dumps(document, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        yield "MT321", f"it cannot be written as JSON ({error})", ""


def _doubt(document: Mapping[str, Any], benchmark: Benchmark) -> Defects:
    if benchmark.doubt is not None and isinstance(document.get("target"), str) and (why := benchmark.doubt(document)):
        yield "MT325", why, "target"


def _ids(documents: Documents, _: Benchmark) -> Iterator[tuple[Mapping[str, Any], str, str, str]]:
    first: dict[str, int] = {}
    for number, document in enumerate(documents, start=1):
        earlier = first.setdefault(str(document.get("sample_id")), number)
        if earlier != number:
            yield document, "MT305", f"documents {earlier} and {number} have the same `sample_id`", "sample_id"


def _same(documents: Documents, benchmark: Benchmark) -> Iterator[tuple[Mapping[str, Any], str, str, str]]:
    """The same prompt with the same media: a duplicate, or a contradiction if the answers differ."""
    seen: dict[str, Mapping[str, Any]] = {}
    for document in documents:
        fields = [*sorted(benchmark.visible_fields & set(document)), "media", "frames", "prompt_template"]
        first = seen.setdefault(repr([(field, document.get(field)) for field in fields]), document)
        message = f"question, options and media are those of {shown(first.get('sample_id'))}"
        if first is not document and first.get("target") == document.get("target"):
            yield document, "MT306", message, ""
        elif first is not document:
            yield document, "MT319", f"{message}, the answer is not", ""


def _types(documents: Documents, _: Benchmark) -> Iterator[tuple[Mapping[str, Any], str, str, str]]:
    """The harness keeps documents in a table with one type per column."""
    first: dict[str, tuple[str, object]] = {}
    for document in documents:
        for field, value in document.items():
            if value is not None:
                kind = next((word for word, types in _KINDS.items() if isinstance(value, types)), type(value).__name__)
                known, name = first.setdefault(field, (kind, document.get("sample_id")))
                if known != kind:
                    message = f"`{field}` is a {kind}, but a {known} in {shown(name)}, expected one type"
                    yield document, "MT322", message, field


_KINDS: Mapping[str, Any] = {
    "truth value": bool,
    "number": (int, float),
    "text": str,
    "mapping": Mapping,
    "list": (list, tuple),
}
_OF_ONE = (_fields, _question, _options, _answer, _writable, _doubt)
_OF_ALL = (_ids, _same, _types)


SIMILAR = 0.95
"""Minimum share of common characters for two options to be nearly equal."""

ENOUGH = 50
"""Minimum number of questions for checking the correct answers for bias."""

UNLIKELY = 0.001
"""p value below which an uneven distribution of the correct positions is reported."""

LONGEST_SHARE = 0.6
"""Share of questions whose correct answer is the longest, above which length gives it away."""


def options_of(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Name and text of each option: by letter (``choices``) or by number (``options``); none for open questions."""
    choices, options = document.get("choices"), document.get("options")
    if isinstance(choices, Mapping):
        return [(str(key), str(text)) for key, text in choices.items() if text is not None]
    if isinstance(options, Sequence) and not isinstance(options, str):
        return [(str(number), str(text)) for number, text in enumerate(options, start=1)]
    return []


def _similar(first: str, second: str) -> bool:
    """Whether texts differ only by marks or misspelling; a different number or word makes a different option."""
    if _without_marks(first) == _without_marks(second):
        return True
    match = SequenceMatcher(None, first, second, autojunk=False)
    if match.real_quick_ratio() < SIMILAR or match.quick_ratio() < SIMILAR or match.ratio() < SIMILAR:
        return False
    words, others = first.split(), second.split()
    return len(words) == len(others) and all(
        not any(map(str.isdigit, word + other)) and SequenceMatcher(None, word, other, autojunk=False).ratio() >= 0.9
        for word, other in zip(words, others, strict=True)
        if word != other
    )


def _bias(documents: Documents, report: TaskReport) -> None:
    """Report if the position or length of the correct options gives them away.

    Positions are tested for uniformity with Pearson's chi-square test; a streaming item counts once.
    """
    from scipy.stats import chisquare

    once: dict[str, tuple[list[str], int]] = {}
    for document in documents:
        texts = [text for _, text in options_of(document)]
        right = _right(document)
        if len(texts) > 1 and right is not None:
            question = question_of(document) or document.get("item_id", document.get("sample_id"))
            once.setdefault(str(question), (texts, right))
    rows = list(once.values())
    if len(rows) < ENOUGH:
        return
    positions = range(max(len(texts) for texts, _ in rows))
    counts = [sum(right == position for _, right in rows) for position in positions]
    expected = [sum(1 / len(texts) for texts, _ in rows if position < len(texts)) for position in positions]
    probability = float(chisquare(counts, expected).pvalue)
    if probability < UNLIKELY:
        spread = ", ".join(f"{count} at {position}" for position, count in enumerate(counts, start=1))
        message = f"correct answers of {len(rows):,} questions are {spread}, p = {probability:.1g} for a uniform spread"
        report.say("MT314", message)
    lengths = [([len(text) for text in texts], right) for texts, right in rows]
    longest = sum(own[right] == max(own) and own.count(max(own)) == 1 for own, right in lengths)
    if longest > LONGEST_SHARE * len(rows):
        message = f"the correct answer is the longest option in {longest:,} of {len(rows):,} questions"
        report.say("MT315", f"{message}, expected at most {LONGEST_SHARE:.0%}")


def _right(document: Mapping[str, Any]) -> int | None:
    """Position of the correct option, from 0; None if it is not among the options."""
    target, by_letter = str(document.get("target")), isinstance(document.get("choices"), Mapping)
    names = [name if by_letter else folded(text) for name, text in options_of(document)]
    answer = target if by_letter else folded(target)
    return names.index(answer) if answer in names else None


def folded(text: str) -> str:
    """``text`` in lower case, with single spaces."""
    return " ".join(text.split()).casefold()


def _without_marks(text: str) -> str:
    return folded("".join(letter if letter.isalnum() or letter in "+-<>=/%" else " " for letter in text))
