"""Rules for options: distinct, named as the benchmark names them, the answer among them, and
neither its position nor its length gives it away.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from medtasks.benchmarks.variants import question_of
from medtasks.catalog.benchmark import Benchmark
from medtasks.core.schema import shown
from medtasks.core.text import counted, first_names
from medtasks.validate.report import Document, Documents, TaskReport

ENOUGH = 50
"""Minimum number of questions for checking the correct answers for bias."""
UNLIKELY = 0.001
"""p-value below which an uneven distribution of the correct positions is reported."""
LONGEST_SHARE = 0.6
"""Share of questions whose correct answer is the longest, above which length gives it away."""

_TELLING_MARKS = "+-<>=/%"
"""Marks that make another option of the same words: ``> 5 mm`` is not ``5 mm``."""


def options_of(document: Document) -> list[tuple[str, str]]:
    """Name and text of each option: by letter (``choices``) or by number (``options``); none for
    open questions.
    """
    choices, options = document.get("choices"), document.get("options")
    if isinstance(choices, Mapping):
        return [(str(key), str(text)) for key, text in choices.items() if text is not None]
    if isinstance(options, Sequence) and not isinstance(options, str):
        return [(str(number), str(text)) for number, text in enumerate(options, start=1)]
    return []


def folded(text: str) -> str:
    """``text`` in lower case, with single spaces."""
    return " ".join(text.split()).casefold()


def check_options(document: Document, benchmark: Benchmark, report: TaskReport) -> None:
    """Report the defects of a document's options, and an answer that is not among them."""
    options = options_of(document)
    has_choices = isinstance(document.get("choices"), Mapping)
    if not options and not has_choices:
        return
    _check_texts(document, options, report)
    if has_choices:
        _check_letters(document, benchmark, report)
    target = document.get("target")
    if options and isinstance(target, str) and target.strip():
        _check_target(document, target, options, report)


def _check_texts(
    document: Document, options: Sequence[tuple[str, str]], report: TaskReport
) -> None:
    """Report fewer than two options, or else options that are empty, equal or nearly equal."""
    texts = {name: folded(text) for name, text in options}
    if len(options) < 2:
        message = f"{counted(len(options), 'option')}, expected at least two"
        report.on_document("MT311", document, message)
    empty = [name for name, text in texts.items() if not text]
    if empty:
        report.on_document("MT316", document, f"option {empty[0]} is empty, expected text")
    elif len(options) > 1 and len(set(texts.values())) == 1:
        text = next(iter(texts.values()))
        message = f"all options are {shown(text)}, expected different ones"
        report.on_document("MT311", document, message)
    else:
        _check_near_duplicates(document, texts, report)


def _check_near_duplicates(
    document: Document, texts: Mapping[str, str], report: TaskReport
) -> None:
    """Report the first two options that differ only in punctuation."""
    names: dict[str, str] = {}
    for name, text in texts.items():
        words = "".join(
            letter if letter.isalnum() or letter in _TELLING_MARKS else " " for letter in text
        )
        earlier = names.setdefault(folded(words), name)
        if earlier != name:
            message = f"options {earlier} and {name} are nearly equal ({shown(text)})"
            report.on_document("MT313", document, message)
            return


def _check_letters(document: Document, benchmark: Benchmark, report: TaskReport) -> None:
    """Report options called by letters that the benchmark does not use."""
    choices, letters = document["choices"], benchmark.options
    if letters and options_of(document) and not set(choices) <= set(letters):
        odd = ", ".join(sorted(set(map(str, choices)) - set(letters)))
        message = f"options are called {odd}, expected {', '.join(letters)}"
        report.on_document("MT318", document, message)


def _check_target(
    document: Document, target: str, options: Sequence[tuple[str, str]], report: TaskReport
) -> None:
    """Report an answer that is no option: a letter, or the texts of one or more options."""
    choices = document.get("choices")
    if isinstance(choices, Mapping):
        is_allowed = target in choices
        expected = first_names((name for name, _ in options), 8)
    else:
        guesses = document.get("guesses")
        answers = [text for _, text in options]
        if isinstance(guesses, list | tuple):
            answers += map(str, guesses)
        answers.append(str(document.get("abstention", "")))
        allowed = set(map(folded, answers))
        parts = [folded(part) for part in target.split("; ")]
        is_allowed = allowed.issuperset(parts) or folded(target) in allowed
        expected = "the options"
    if not is_allowed:
        message = f"the answer is {shown(target)}, expected one of {expected}"
        report.on_document("MT307", document, message)


@dataclass(frozen=True)
class _Choice:
    """A question with options: the length of each, and the position of the correct one."""

    lengths: list[int]
    correct: int

    @property
    def is_longest(self) -> bool:
        """Whether the correct option is longer than every other."""
        longest = max(self.lengths)
        return self.lengths[self.correct] == longest and self.lengths.count(longest) == 1


def check_bias(documents: Documents, report: TaskReport) -> None:
    """Report if the position or length of the correct options gives them away."""
    choices = _distinct_choices(documents)
    if len(choices) >= ENOUGH:
        _check_positions(choices, report)
        _check_lengths(choices, report)


def _distinct_choices(documents: Documents) -> list[_Choice]:
    """The questions with options; rounds of a streaming item, and variants of a question, count
    once.
    """
    choices: dict[str, _Choice] = {}
    for document in documents:
        target, options = str(document.get("target")), options_of(document)
        if isinstance(document.get("choices"), Mapping):
            names, answer = [name for name, _ in options], target
        else:
            names, answer = [folded(text) for _, text in options], folded(target)
        if len(options) > 1 and answer in names:
            question = question_of(document) or document.get("item_id", document.get("sample_id"))
            lengths = [len(text) for _, text in options]
            choices.setdefault(str(question), _Choice(lengths, names.index(answer)))
    return list(choices.values())


def _check_positions(choices: Sequence[_Choice], report: TaskReport) -> None:
    """Report correct positions that are not uniform, by Pearson's chi-square test.

    A question of n options is expected to have its answer at each of its positions 1/n times.
    """
    from scipy.stats import chisquare

    most_options = max(len(choice.lengths) for choice in choices)
    observed, expected = [0] * most_options, [0.0] * most_options
    for choice in choices:
        observed[choice.correct] += 1
        for position in range(len(choice.lengths)):
            expected[position] += 1 / len(choice.lengths)
    p_value = float(chisquare(observed, expected).pvalue)
    if p_value < UNLIKELY:
        spread = ", ".join(
            f"{count} at {position}" for position, count in enumerate(observed, start=1)
        )
        message = (
            f"correct answers of {len(choices):,} questions are {spread}, "
            f"p = {p_value:.1g} for a uniform spread"
        )
        report.on_task("MT314", message)


def _check_lengths(choices: Sequence[_Choice], report: TaskReport) -> None:
    """Report correct options that are mostly the longest."""
    longest = sum(choice.is_longest for choice in choices)
    if longest > LONGEST_SHARE * len(choices):
        share = f"{longest:,} of {len(choices):,} questions"
        message = (
            f"the correct answer is the longest option in {share}, "
            f"expected at most {LONGEST_SHARE:.0%}"
        )
        report.on_task("MT315", message)
