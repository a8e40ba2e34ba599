"""Checks of a task's documents and their options: complete, consistently typed, distinct, no hints at the answer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from medtasks.benchmarks.base import Benchmark
from medtasks.benchmarks.variants import question_of
from medtasks.schema import shown
from medtasks.validation.findings import Tally

LONG = 12
"""Minimum length of a text whose occurrence in a question or prompt is no coincidence."""

_COMMON: Mapping[str, str] = {
    "sample_id": "a string",
    "cluster": "a string",
    "target": "a string",
    "media": "a list of strings",
    "abstention": "a string",
}


def check_documents(documents: Sequence[Mapping[str, Any]], benchmark: Benchmark, tally: Tally) -> None:
    """Count the defects of one task's documents in ``tally``."""
    for document in documents:
        _common(document, benchmark, tally)
        _question(document, tally)
        check_options(document, benchmark.options, tally)
        _writable(document, tally)
        _doubt(document, benchmark, tally)
    _ids(documents, tally)
    _twice(documents, benchmark, tally)
    _types(documents, tally)
    check_bias(documents, tally)


def _doubt(document: Mapping[str, Any], benchmark: Benchmark, tally: Tally) -> None:
    if benchmark.doubt is None or not isinstance(document.get("target"), str):
        return
    doubt = benchmark.doubt(document)
    if doubt is not None:
        tally.add("MT325", document, doubt, "read scores on such documents with care", "target")


def _common(document: Mapping[str, Any], benchmark: Benchmark, tally: Tally) -> None:
    for field, words in _COMMON.items():
        code, value = "MT309" if field == "cluster" else "MT304", document.get(field)
        if field not in document:
            tally.add(code, document, f"`{field}` is missing, expected {words}", "add it in `documents`", field)
        elif not (_is_texts(value) if field == "media" else isinstance(value, str)):
            message = f"`{field}` is {shown(value)}, expected {words}"
            tally.add(code, document, message, "convert it in `documents`", field)
    if document.get("benchmark") != benchmark.name:
        message = f"`benchmark` is {shown(document.get('benchmark'))}, expected {benchmark.name!r}"
        tally.add("MT320", document, message, "use the rows of the task's benchmark", "benchmark")
    for field, code in (("sample_id", "MT304"), ("cluster", "MT309"), ("target", "MT308")):
        value = document.get(field)
        if isinstance(value, str) and not value.strip():
            message = f"`{field}` is empty, expected text"
            tally.add(code, document, message, "fix the record", field)
    if document.get("media") == []:
        message = "`media` is empty, expected a picture or video"
        tally.add("MT317", document, message, "fix the record", "media")


def _is_texts(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value)


def _question(document: Mapping[str, Any], tally: Tally) -> None:
    question, target = document.get("question"), document.get("target")
    if "question" not in document:
        return
    if not isinstance(question, str) or not question.strip():
        message = f"`question` is {shown(question)}, expected a non-empty string"
        tally.add("MT310", document, message, "fix the record", "question")
    elif isinstance(target, str) and _gives_away(document, question, target):
        message = f"the question contains its answer ({target[:60]!r})"
        tally.add("MT323", document, message, "reword the question", "question")


def _gives_away(document: Mapping[str, Any], question: str, target: str) -> bool:
    """Whether an open question contains its answer; an abstention does not count."""
    if len(target.strip()) < LONG or target == document.get("abstention") or options_of(document):
        return False
    return folded(target).rstrip(".") in folded(question)


def _writable(document: Mapping[str, Any], tally: Tally) -> None:
    try:
        json.dumps(document, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        message = f"it cannot be written as JSON ({' '.join(str(error).split())[:120]})"
        tally.add("MT321", document, message, "use strings, finite numbers, lists and mappings only")


def _ids(documents: Sequence[Mapping[str, Any]], tally: Tally) -> None:
    seen: set[str] = set()
    for document in documents:
        name = str(document.get("sample_id"))
        if name in seen:
            tally.add("MT305", document, "an earlier document has the same `sample_id`", "number them", "sample_id")
        seen.add(name)


def _twice(documents: Sequence[Mapping[str, Any]], benchmark: Benchmark, tally: Tally) -> None:
    """The same prompt with the same media: a duplicate, or a contradiction if the answers differ."""
    seen: dict[str, Mapping[str, Any]] = {}
    for document in documents:
        fields = [*sorted(benchmark.visible_fields & set(document)), "media", "frames", "prompt_template"]
        key = repr([(field, document.get(field)) for field in fields])
        first = seen.setdefault(key, document)
        if first is document:
            continue
        other = shown(first.get("sample_id"))
        if first.get("target") == document.get("target"):
            tally.add("MT306", document, f"question, options and media are those of {other}", "remove one")
        else:
            message = f"question, options and media are those of {other}, the answer is not"
            tally.add("MT319", document, message, "keep the right one")


def _types(documents: Sequence[Mapping[str, Any]], tally: Tally) -> None:
    """The harness keeps documents in a table with one type per column."""
    first: dict[str, tuple[str, str]] = {}
    for document in documents:
        for field, value in document.items():
            kind = _kind(value)
            if kind is None:
                continue
            known, named = first.setdefault(field, (kind, str(document.get("sample_id"))))
            if known != kind:
                message = f"`{field}` is a {kind}, but a {known} in {shown(named)}, expected one type"
                tally.add("MT322", document, message, "use one type in `documents`", field)


def _kind(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return "truth value"
    if isinstance(value, (int, float)):
        return "number"
    kinds = ((str, "text"), (Mapping, "mapping"), ((list, tuple), "list"))
    return next((name for kind, name in kinds if isinstance(value, kind)), type(value).__name__)


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


def check_options(document: Mapping[str, Any], letters: tuple[str, ...], tally: Tally) -> None:
    """Count the defects of one document's options in ``tally``; ``letters`` are the benchmark's."""
    options = options_of(document)
    texts = [folded(text) for _, text in options]
    if (isinstance(document.get("choices"), Mapping) and len(options) < 2) or len(options) == 1:
        tally.add("MT311", document, f"{len(options)} option, expected at least two", "fix the record")
    if not options:
        return
    empty = [name for name, text in zip(options, texts, strict=True) if not text]
    if empty:
        tally.add("MT316", document, f"option {empty[0][0]} is empty, expected text", "fix the record")
    elif len(options) > 1 and len(set(texts)) == 1:
        tally.add("MT312", document, f"all options are {texts[0][:60]!r}, expected different ones", "fix the record")
    else:
        _near(document, options, texts, tally)
    given = document.get("choices")
    if isinstance(given, Mapping) and letters and not set(given) <= set(letters):
        odd = ", ".join(sorted(set(map(str, given)) - set(letters)))
        tally.add("MT318", document, f"options are called {odd}, expected {', '.join(letters)}", "rename them")
    _answer(document, options, texts, tally)


def _near(document: Mapping[str, Any], options: Sequence[tuple[str, str]], texts: Sequence[str], tally: Tally) -> None:
    for first in range(len(texts)):
        for second in range(first + 1, len(texts)):
            if _similar(texts[first], texts[second]):
                names = f"{options[first][0]} and {options[second][0]}"
                message = f"options {names} are nearly equal ({texts[first][:60]!r})"
                tally.add("MT313", document, message, "check that only one is correct")
                return


def _similar(first: str, second: str) -> bool:
    if _without_marks(first) == _without_marks(second):
        return True
    match = SequenceMatcher(None, first, second, autojunk=False)
    if match.real_quick_ratio() < SIMILAR or match.quick_ratio() < SIMILAR or match.ratio() < SIMILAR:
        return False
    return _misspelt(first.split(), second.split())


def _misspelt(first: list[str], second: list[str]) -> bool:
    """Whether words differ only by misspelling; a different number or word makes a different option."""
    if len(first) != len(second):
        return False
    pairs = [(one, two) for one, two in zip(first, second, strict=True) if one != two]
    return all(
        not any(map(str.isdigit, one + two)) and SequenceMatcher(None, one, two, autojunk=False).ratio() >= 0.9
        for one, two in pairs
    )


def _answer(
    document: Mapping[str, Any], options: Sequence[tuple[str, str]], texts: Sequence[str], tally: Tally
) -> None:
    target = document.get("target")
    if not isinstance(target, str) or not target.strip():
        return
    if isinstance(document.get("choices"), Mapping):
        right = target in document["choices"]
    else:
        allowed = {*texts, *map(folded, _strings(document.get("guesses"))), folded(str(document.get("abstention", "")))}
        parts = target.split("; ")
        right = folded(target) in allowed or all(folded(part) in allowed for part in parts)
    if not right:
        lettered = isinstance(document.get("choices"), Mapping)
        names = ", ".join(name for name, _ in options) if lettered else "the options"
        tally.add("MT307", document, f"the answer is {target[:60]!r}, expected one of {names}", "fix the record")


def check_bias(documents: Sequence[Mapping[str, Any]], tally: Tally) -> None:
    """Report in ``tally`` if the position or length of the correct options gives them away.

    Positions are tested for uniformity with Pearson's chi-square test; a streaming item counts once.
    """
    from scipy.stats import chisquare

    once: dict[str, tuple[list[tuple[str, str]], int]] = {}
    for document in documents:
        options, right = options_of(document), _right(document)
        if len(options) > 1 and right is not None:
            question = question_of(document) or document.get("item_id", document.get("sample_id"))
            once.setdefault(str(question), (options, right))
    rows = list(once.values())
    if len(rows) < ENOUGH:
        return
    positions = range(max(len(options) for options, _ in rows))
    counts = [sum(right == position for _, right in rows) for position in positions]
    expected = [sum(1 / len(options) for options, _ in rows if position < len(options)) for position in positions]
    probability = float(chisquare(counts, expected).pvalue)
    if probability < UNLIKELY:
        spread = ", ".join(f"{count} at {position}" for position, count in enumerate(counts, start=1))
        message = f"correct answers of {len(rows):,} questions are {spread}, p = {probability:.1g} for a uniform spread"
        tally.say("MT314", f"{message}; shuffle the options, or report it.")
    longest = sum(_is_longest(options, right) for options, right in rows)
    if longest > LONGEST_SHARE * len(rows):
        message = f"the correct answer is the longest option in {longest:,} of {len(rows):,} questions"
        tally.say("MT315", f"{message}, expected at most {LONGEST_SHARE:.0%}; make options equally long.")


def _right(document: Mapping[str, Any]) -> int | None:
    """Position of the correct option, from 0; None if it is not among the options."""
    target, options = document.get("target"), options_of(document)
    by_letter = isinstance(document.get("choices"), Mapping)
    names = [name if by_letter else folded(text) for name, text in options]
    answer = target if by_letter else folded(str(target))
    return names.index(answer) if answer in names else None


def _is_longest(options: Sequence[tuple[str, str]], right: int) -> bool:
    lengths = [len(text) for _, text in options]
    return lengths[right] == max(lengths) and lengths.count(max(lengths)) == 1


def _strings(value: Any) -> list[str]:
    return [str(item) for item in value] if isinstance(value, (list, tuple)) else []


def folded(text: str) -> str:
    """``text`` in lower case, with single spaces."""
    return " ".join(text.split()).casefold()


def _without_marks(text: str) -> str:
    kept = "".join(letter if letter.isalnum() or letter in "+-<>=/%" else " " for letter in text)
    return " ".join(kept.split())
