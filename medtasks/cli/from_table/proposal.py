"""What a table's columns contain and how its questions are answered, with the reason for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from medtasks.catalog.benchmark_file import DOCUMENT_FIELDS, LETTERS
from medtasks.cli.from_table.answer_kinds import (
    AnswerGuess,
    guess_form,
    guess_kind,
    options_in_rows,
)
from medtasks.cli.from_table.column_names import (
    named_like,
    normalised,
    option_families,
    picture_families,
    with_word_of,
)
from medtasks.cli.from_table.columns import Columns
from medtasks.cli.from_table.languages import guess_language
from medtasks.cli.from_table.undecided import Undecided
from medtasks.cli.from_table.wishes import Wishes
from medtasks.core.errors import UsageError
from medtasks.core.schema import shown, suggestion
from medtasks.core.text import first_names, shortened

_SEVERAL = frozenset({"image", "options", "breakdowns"})
"""Roles that several columns may have."""
_NEEDED = frozenset({"question", "answer"})
"""Roles that a column must have."""
_NO_GROUPS = ("question", "answer", "id", "cluster")
"""Roles whose usual names are not those of columns by which scores are broken down."""


@dataclass(frozen=True)
class Line:
    """One decision as it is shown: what was decided, why, and the first value."""

    key: str
    value: str
    why: str
    example: str = ""


@dataclass(frozen=True)
class Proposal:
    """The keys of a ``benchmark.yaml`` that follow from a table, and the decision on each."""

    question: str
    answer: str
    images: tuple[str, ...]
    options: str | Mapping[str, str] | None
    id: str | None
    cluster: str | None
    instructions: str | None
    breakdowns: tuple[str, ...]
    answers: AnswerGuess
    language: str
    lines: tuple[Line, ...]
    used: frozenset[str]


def propose(columns: Columns, wishes: Wishes) -> Proposal:
    """The proposal for a table that fulfils the ``wishes``.

    Raises:
        Undecided: a choice is open; names the option that decides it.
        UsageError: a wish names no column of the table, or contradicts another one.
    """
    return _Proposer(columns, wishes).proposal()


class _Proposer:
    """Decides on one role after the other; a column has one role."""

    def __init__(self, columns: Columns, wishes: Wishes) -> None:
        self.columns = columns
        self.wishes = wishes
        self.lines: list[Line] = []
        self.used: set[str] = set()
        for role, names in wishes.columns.items():
            self._require_columns(role, names)
            self.used.update(names)

    def proposal(self) -> Proposal:
        """The proposal, once every role is decided."""
        question = self._only("question") or ""
        images = self._images()
        options = self._options()
        answer = self._only("answer") or ""
        answers = self._answers(answer, options)
        row_id = self._id()
        cluster = self._cluster(images)
        instructions = self._only("instructions")
        breakdowns = self._breakdowns()
        language = self._language(question)
        return Proposal(
            question=question,
            answer=answer,
            images=images,
            options=options,
            id=row_id,
            cluster=cluster,
            instructions=instructions,
            breakdowns=breakdowns,
            answers=answers,
            language=language,
            lines=tuple(self.lines),
            used=frozenset(self.used),
        )

    # --- wishes ---

    def _require_columns(self, role: str, names: Sequence[str]) -> None:
        """Refuse a wish for columns that do not exist, or for too many."""
        for name in names:
            if name not in self.columns.by_name:
                near = suggestion(name, self.columns.names)
                raise UsageError(
                    f"--column {role}={name}: {self.columns.path.name} has no column "
                    f"{shown(name)}{near}; choose from {_listed(self.columns.names)}."
                )
        if len(names) > 1 and role not in _SEVERAL:
            raise UsageError(f"--column {role}={','.join(names)}: several columns; name one.")
        if not names and role in _NEEDED:
            raise UsageError(f"--column {role}=: names no column, and one is needed; name it.")

    def _wish(self, role: str) -> tuple[str, ...] | None:
        """The columns that the user has chosen for a role; None without a choice."""
        names = self.wishes.columns.get(role)
        if names:
            self._add(role, names, "as you said")
        elif names is not None:
            self.lines.append(Line(role, "none", "as you said"))
        return names

    def _free(self) -> list[str]:
        """The columns with content that have no role yet."""
        names = [name for name in self.columns.names if name not in self.used]
        return [name for name in names if not self.columns[name].is_blank]

    def _add(self, role: str, names: Sequence[str], why: str) -> None:
        """Give columns a role, and add the line that says so."""
        self.used.update(names)
        self.lines.append(Line(role, ", ".join(names), why, self.columns[names[0]].example))

    # --- roles ---

    def _only(self, role: str) -> str | None:
        """The only column with a usual name of the role.

        Raises:
            Undecided: several columns have one, or none has and the role is needed.
        """
        names = self._wish(role)
        if names is not None:
            return names[0] if names else None
        candidates = named_like(role, self._free())
        # of two answers, either may be the text of the right option, or another reader's
        is_clear = role == "question" and candidates and normalised(candidates[0]) == role
        if len(candidates) > 1 and not is_clear:
            message = f"{self.columns.path.name}: {' and '.join(map(shown, candidates))}"
            raise Undecided(
                f"{message} may each be the {role} column", f"--column {role}=", candidates
            )
        if candidates:
            self._add(role, candidates[:1], "its name" + _not_used(candidates[1:]))
            return candidates[0]
        if role in _NEEDED:
            raise self._absent(role)
        return None

    def _absent(self, role: str) -> UsageError:
        """The error that no column is named like a needed role."""
        names = self.columns.names
        file = self.columns.path.name
        if len(names) == 1 and any(mark in names[0] for mark in "|:,;"):
            return UsageError(
                f"{file}: the header is one cell, {shown(names[0])}, expected commas, semicolons "
                "or tabs between columns; save the file so."
            )
        unnamed = [name for name in names if name.startswith("(column ")]
        blank = f" (name {first_names(unnamed)} in the header)" if unnamed else ""
        message = f"{file}: no column is named like the {role}: {_listed(names)}{blank}"
        near = with_word_of(role, names) or get_close_matches(role, names, n=1)
        return Undecided(message, f"--column {role}=", near[:1])

    def _images(self) -> tuple[str, ...]:
        """The columns of pictures, by their names and by what they contain."""
        names = self._wish("image")
        if names is not None:
            return names
        free = self._free()
        families = [family for family in picture_families(free) if len(family) > 1]
        if len(families) == 1:
            self._add("image", families[0], "their names")
            return families[0]
        named = named_like("image", free)
        # in VLMEvalKit's layout, other cells are the indices of rows with the same picture
        likely = [name for name in named if self.columns[name].pictures]
        with_pictures = [name for name in free if self.columns[name].has_pictures]
        candidates = likely or with_pictures or named
        if not candidates:
            self.lines.append(Line("image", "none", "no column has pictures or their paths"))
            return ()
        first = candidates[0]
        if len(candidates) > 1 and normalised(first) != "image":
            message = f"{self.columns.path.name}: {' and '.join(map(shown, candidates))}"
            raise Undecided(
                f"{message} may each be the image column", "--column image=", candidates
            )
        reason = "its name" if first in named else "it contains pictures or their paths"
        self._add("image", (first,), reason + _not_used(candidates[1:]))
        self.used.update(candidates)
        return (first,)

    def _options(self) -> str | Mapping[str, str] | None:
        """The columns of the options by letter, or the column that lists them."""
        names = self._wish("options")
        if names is not None:
            return _options_of(names)
        if self.wishes.answers not in (None, "options"):
            return None
        free = self._free()
        families = option_families(free)
        lists = named_like("options", free)
        candidates = [",".join(family.values()) for family in families] + lists
        if len(candidates) > 1:
            message = f"{self.columns.path.name}: {' and '.join(map(shown, candidates))}"
            raise Undecided(f"{message} may each be the options", "--column options=", candidates)
        if families:
            self._add("options", list(families[0].values()), "their names")
            return families[0]
        if lists:
            self._require_lists(lists[0])
            self._add("options", lists, "its name, and it lists options")
            return lists[0]
        if self.wishes.answers == "options":
            raise self._absent("options")
        return None

    def _require_lists(self, name: str) -> None:
        """Refuse a column that is named like options, but whose cells rarely list two or more."""
        column = self.columns[name]
        rows = [row for row in range(self.columns.rows) if len(column.options(row)) < 2]
        if 2 * len(rows) < self.columns.rows:
            return
        text = shown(column.texts[rows[0]])
        message = (
            f"{column.places[rows[0]]}: column {shown(name)} is {text}, expected options such as "
            '["left", "right"] or A. left | B. right: correct it, or use no options'
        )
        raise Undecided(message, "--column options=", ("",))

    def _answers(self, answer: str, options: str | Mapping[str, str] | None) -> AnswerGuess:
        """How questions are answered."""
        column = self.columns[answer]
        wish = self.wishes.answers
        if options is not None:
            choices = options_in_rows(self.columns, options)
            guess = guess_form(column, choices, self.wishes.answer_form)
        elif wish is None:
            self._refuse_letters(answer)
            guess = guess_kind(column)
        else:
            guess = AnswerGuess(wish, "as you said")
        self.lines.append(Line("answers", guess.kind, guess.why))
        return guess

    def _refuse_letters(self, answer: str) -> None:
        """Refuse answers that are letters of options which no column has."""
        column = self.columns[answer]
        if column.counts and all(text.upper() in LETTERS for text in column.counts):
            raise UsageError(
                f"{column.places[0].file}: column {shown(answer)} has letters, but no columns are "
                "named like options; pass --column options=A,B with their names, or --answers "
                "closed if the letters are labels."
            )

    def _id(self) -> str | None:
        """The column that identifies rows.

        Raises:
            Undecided: a column is named so, but repeats a text.
        """
        names = self._wish("id")
        if names is not None:
            return names[0] if names else None
        for name in named_like("id", self._free()):
            column = self.columns[name]
            if sum(column.counts.values()) < self.columns.rows:
                continue
            repetition = column.first_repeated()
            if repetition is not None:
                first, again = repetition
                message = (
                    f"{again}: column {shown(name)} repeats the id of {first.unit} {first.line}, "
                    "expected different ids: correct it, or use no id"
                )
                raise Undecided(message, "--column id=", ("",))
            self._add("id", (name,), "its name, and no text repeats")
            return name
        return None

    def _cluster(self, images: Sequence[str]) -> str | None:
        """The column that rows of one patient share."""
        names = self._wish("cluster")
        if names is not None:
            return names[0] if names else None
        candidates = named_like("cluster", self._free())
        if candidates:
            self._add("cluster", candidates[:1], "its name" + _not_used(candidates[1:]))
            return candidates[0]
        shared = "the picture" if images else "none"
        self.lines.append(Line("cluster", shared, "no column is named like patients or cases"))
        return None

    def _breakdowns(self) -> tuple[str, ...]:
        """The columns by whose values scores are broken down."""
        names = self._wish("breakdowns")
        if names is not None:
            return names
        groups: list[str] = []
        for name in self._free():
            is_other = any(named_like(role, (name,)) for role in _NO_GROUPS)
            if self.columns[name].has_groups and not is_other and name not in DOCUMENT_FIELDS:
                groups.append(name)
                values = self.columns[name].counts
                self._add("breakdowns", (name,), f"{len(values)} values that repeat")
        return tuple(groups)

    def _language(self, question: str) -> str:
        """The language of the questions."""
        if self.wishes.language:
            self.lines.append(Line("language", self.wishes.language, "as you said"))
            return self.wishes.language
        language, why = guess_language(self.columns[question].texts[:200])
        self.lines.append(Line("language", language, why))
        return language


def _listed(names: Sequence[str]) -> str:
    """The first names of columns for a message, shortened, as a cell may be in their place."""
    return first_names([shortened(name, 40) for name in names], 12)


def _not_used(names: Sequence[str]) -> str:
    """A clause on further plausible columns, which are not used."""
    return f" ({', '.join(names)} not used)" if names else ""


def _options_of(names: Sequence[str]) -> str | Mapping[str, str] | None:
    """The value of ``columns.options`` for the columns that the user has named."""
    if not names:
        return None
    if len(names) == 1:
        return names[0]
    return dict(zip(LETTERS, names, strict=False))
