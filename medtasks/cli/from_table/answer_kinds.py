"""How the questions of a table are answered, by the values of its answer column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from medtasks.catalog.benchmark_file import YES_NO, AnswerForm, AnswerKind
from medtasks.cli.from_table.columns import TableColumn, TableColumns
from medtasks.cli.from_table.undecided import Undecided
from medtasks.core.schema import shown
from medtasks.core.text import counted, first_names
from medtasks.data.folder_cells import CellError, cell_text, folded_label, gold_label, gold_letter

FORMS: Mapping[AnswerForm, str] = {
    "letter": "the letters of options",
    "text": "the texts of options",
    "index0": "the numbers of options, counted from 0",
    "index1": "the numbers of options, counted from 1",
    "letter or text": "letters or texts of options",
}
"""What answers are in each form, in words."""
_MOST_LABELS = 20
"""Different answers of a closed question, at most; more are open unless the user says otherwise."""
_LONGEST_LABEL = 40
"""Characters of an answer that may be a label."""


@dataclass(frozen=True)
class AnswerGuess:
    """How questions are answered, and why.

    ``form`` is "letter or text" wherever it gives the same answers.
    """

    kind: AnswerKind
    why: str
    form: AnswerForm = "letter or text"


def options_in_rows(
    columns: TableColumns, options: str | Mapping[str, str]
) -> list[dict[str, str]]:
    """The options of each row by letter; those with an empty cell do not exist."""
    if isinstance(options, str):
        return [columns[options].options(row) for row in range(columns.rows)]
    rows: list[dict[str, str]] = []
    for row in range(columns.rows):
        texts = {letter: columns[name].texts[row] for letter, name in options.items()}
        rows.append({letter: text for letter, text in texts.items() if text})
    return rows


# --- options ---


def guess_form(
    answer: TableColumn, choices: Sequence[Mapping[str, str]], wish: AnswerForm | None = None
) -> AnswerGuess:
    """How the answer column names options.

    Answers that fit no option do not matter as long as most others do: they are reported with their
    rows when the rows are read.

    Raises:
        Undecided: two forms fit all answers and mean different options, or no form fits most.
    """
    letters: dict[AnswerForm, list[str]] = {}
    for form in FORMS:
        pairs = zip(answer.texts, choices, strict=True)
        letters[form] = [gold_letter(text, options, form) for text, options in pairs]
    if wish is not None:
        return AnswerGuess("options", "as you said", _simplest(wish, letters))
    number = sum(answer.counts.values())
    fits = {form: sum(map(bool, named)) for form, named in letters.items()}
    fitting = [form for form in FORMS if fits[form] == number and form != "letter or text"]
    if len(fitting) > 1 and any(letters[form] != letters[fitting[0]] for form in fitting):
        words = " or ".join(FORMS[form] for form in fitting)
        message = f"{answer.places[0].file}: column {shown(answer.name)} may contain {words}"
        raise Undecided(message, "--answer-form ", fitting)
    if fitting:
        form = fitting[0]
        return AnswerGuess("options", FORMS[form], _simplest(form, letters))
    best = max(FORMS, key=lambda form: fits[form])
    if 2 * fits[best] <= number:
        raise _without_form(answer, choices)
    return AnswerGuess("options", f"{FORMS[best]} in {fits[best]:,} of {number:,} rows", best)


def _simplest(form: AnswerForm, letters: Mapping[AnswerForm, Sequence[str]]) -> AnswerForm:
    """ "letter or text" if it names the same options as ``form``, which then need not be stated."""
    return "letter or text" if letters[form] == letters["letter or text"] else form


def _without_form(answer: TableColumn, choices: Sequence[Mapping[str, str]]) -> Undecided:
    """The error that most answers name no option, with the first one."""
    for text, options, where in zip(answer.texts, choices, answer.places, strict=True):
        if text and not gold_letter(text, options):
            lettered = ", ".join(f"{letter}: {shown(option)}" for letter, option in options.items())
            message = (
                f"{where}: column {shown(answer.name)} is {shown(text)}, which is neither letter, "
                f"text nor number of an option ({lettered or 'the row has none'})"
            )
            return Undecided(message, "--column answer=")
    return _without_text(answer)


def _without_text(answer: TableColumn) -> Undecided:
    """The error that an answer column has no texts; names a cell with something else."""
    for cell, where in zip(answer.cells, answer.places, strict=True):
        try:
            cell_text(cell)
        except CellError as error:
            message = f"{where}: column {shown(answer.name)} {error}"
            return Undecided(message, "--column answer=")
    message = f"{answer.places[0].file}: column {shown(answer.name)} is empty"
    return Undecided(message, "--column answer=")


# --- labels and texts ---


def guess_kind(answer: TableColumn) -> AnswerGuess:
    """How questions without options are answered.

    Raises:
        Undecided: the answers may be labels, or texts of which some are equal.
    """
    if not answer.counts:
        raise _without_text(answer)
    if all(gold_label(text, YES_NO) for text in answer.counts):
        return AnswerGuess("yes/no", "every answer is yes or no")
    labels: dict[str, str] = {}
    for text in answer.counts:
        labels.setdefault(folded_label(text), text)
    rows = sum(answer.counts.values())
    longest = max(map(len, answer.counts))
    if len(labels) == 1 or longest > _LONGEST_LABEL or 2 * len(labels) > rows:
        return AnswerGuess("open", f"{counted(len(labels), 'different text')} in {rows:,} rows")
    if len(labels) <= _MOST_LABELS and 3 * len(labels) <= rows:
        return AnswerGuess("closed", f"{len(labels)} labels: {first_names(labels.values(), 4)}")
    if len(labels) > _MOST_LABELS and 10 * len(labels) > rows:
        return AnswerGuess("open", f"{len(labels):,} different texts in {rows:,} rows")
    message = (
        f"{answer.places[0].file}: column {shown(answer.name)} has {len(labels):,} different "
        f"answers in {rows:,} rows, which may be labels (closed) or texts (open)"
    )
    raise Undecided(message, "--answers ", ("closed", "open"))
