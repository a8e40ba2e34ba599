"""What a page asks about one answer or one question: its parts as text, and the scales."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from medtasks.catalog.judge_prompt import aspects_of
from medtasks.catalog.rubric import Aspect, Rubric
from medtasks.core.files import canonical_json
from medtasks.judge.ratable import rated_text
from medtasks.judge.rating_records import GOLD, GOLD_CHOICES
from medtasks.runs.manifest import RunManifest
from medtasks.runs.samples import Sample

MOST_BUTTONS = 10
"""A scale of at most so many scores has a button for each; a longer one has a number field."""
_SHOWN_APART = frozenset({"question", "choices", "options", "target"})
"""Fields of a document that are not repeated below the reference."""


@dataclass(frozen=True)
class Choice:
    """A button: the value that it stands for, its key and its words."""

    value: str
    key: str
    words: str


@dataclass(frozen=True)
class AskedAspect:
    """One thing to decide; without choices, a number from ``minimum`` to ``maximum``."""

    name: str
    label: str
    guidance: str
    choices: tuple[Choice, ...]
    minimum: int = 0
    maximum: int = 0

    def score_of(self, value: str) -> int | str | None:
        """The score that a form's value states; None if it states none of the scale."""
        if self.name == GOLD:
            return value if value in GOLD_CHOICES else None
        return Aspect(name=self.name, minimum=self.minimum, maximum=self.maximum).score_of(value)


@dataclass(frozen=True)
class Asked:
    """What a page asks about.

    Attributes:
        sample: whose question and media are shown.
        manifest: that of the sample's run, which finds the media.
        text: the answer to rate; None if the question itself is rated.
        aspects: what to decide.
        sees: the fields of the document that the rubric shows to judges.
        reasons: why a question is doubtful.
        readings: the models' answers to a doubtful question, with the numbers of models.
    """

    sample: Sample
    manifest: RunManifest
    text: str | None
    aspects: tuple[AskedAspect, ...]
    sees: tuple[str, ...] = ()
    reasons: str = ""
    readings: tuple[tuple[str, int], ...] = ()

    @property
    def keys(self) -> list[str]:
        """The keys of all choices, in order."""
        keys: set[str] = set()
        for aspect in self.aspects:
            keys.update(choice.key for choice in aspect.choices)
        return sorted(keys)

    @property
    def question(self) -> str:
        """The question; the whole prompt if the document has no field for it."""
        question = self.sample.document.get("question")
        return question if isinstance(question, str) and question.strip() else self.sample.prompt

    @property
    def options(self) -> list[tuple[str, str]]:
        """The options, with their letters if they have any."""
        choices = self.sample.document.get("choices") or self.sample.document.get("options")
        if isinstance(choices, Mapping):
            return [(str(letter), str(choices[letter])) for letter in sorted(choices)]
        if isinstance(choices, Sequence) and not isinstance(choices, str):
            return [("", str(choice)) for choice in choices]
        return []

    @property
    def reference(self) -> list[tuple[str, str]]:
        """The gold answer, and what else the rubric shows to judges, each with its label."""
        target = self.sample.target
        option = dict(self.options).get(target, "")
        parts = [("Gold answer", f"{target}: {option}" if option else target)]
        document = self.sample.document
        for field in self.sees:
            value = document.get(field)
            text = _as_text(value)
            if field not in _SHOWN_APART and text and text != target:
                parts.append((_label(field), text))
        return parts


def asked_answer(sample: Sample, manifest: RunManifest, rubric: Rubric) -> Asked:
    """The page's question about an answer, under a rubric.

    Raises:
        DataError: the document does not fit the rubric.
    """
    aspects = []
    for aspect in aspects_of(rubric, sample.whole_document()):
        aspects.append(_asked_aspect(aspect, rubric))
    hidden = {rubric.aspects_from, rubric.texts_from}
    sees = tuple(field for field in rubric.sees if field not in hidden)
    return Asked(sample, manifest, rated_text(sample), tuple(aspects), sees)


def asked_question(
    sample: Sample, manifest: RunManifest, reasons: str, readings: Counter[str]
) -> Asked:
    """The page's question about a gold answer."""
    choices = []
    for number, value in enumerate(GOLD_CHOICES, start=1):
        choices.append(Choice(value, str(number), _GOLD_WORDS[value]))
    aspect = AskedAspect(GOLD, "The gold answer", "", tuple(choices))
    counts = tuple(sorted(readings.items(), key=lambda reading: (-reading[1], reading[0])))
    return Asked(sample, manifest, None, (aspect,), reasons=reasons, readings=counts)


_GOLD_WORDS = {
    "right": "is right",
    "wrong": "is wrong",
    "ambiguous": "is ambiguous: the question has no single right answer",
}


def _asked_aspect(aspect: Aspect, rubric: Rubric) -> AskedAspect:
    """An aspect of a rubric with a button for each score, unless there are too many."""
    choices = []
    if aspect.maximum < MOST_BUTTONS:
        for score in aspect.scale:
            choices.append(Choice(str(score), str(score), _words_of(score, aspect, rubric)))
    return AskedAspect(
        aspect.name,
        _label(aspect.name),
        aspect.guidance,
        tuple(choices),
        aspect.minimum,
        aspect.maximum,
    )


def _words_of(score: int, aspect: Aspect, rubric: Rubric) -> str:
    """What a score means: its anchor, or else the usual words of a rubric that judges each aspect
    on its own.
    """
    anchor = aspect.anchors.get(score, "")
    if anchor or rubric.aggregation != "per_aspect":
        return anchor
    if score == aspect.maximum:
        return "right and complete"
    return "wrong or incomplete"


def _label(name: str) -> str:
    """A field's or an aspect's name in words."""
    words = name.replace("_", " ").strip()
    return words[:1].upper() + words[1:]


def _as_text(value: Any) -> str:
    """A text, list or mapping as text, with a line for each item; empty for any other value."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, Mapping):
        return "\n".join(f"{_label(str(key))}: {_in_line(item)}" for key, item in value.items())
    if isinstance(value, Sequence):
        return "\n".join(_in_line(item) for item in value)
    return ""


def _in_line(value: Any) -> str:
    """An item of a list on one line; a pair of ``q`` and ``a`` as a question and its answer."""
    if isinstance(value, Mapping) and value.keys() == {"q", "a"}:
        return f"{value['q']} {value['a']}"
    return value if isinstance(value, str) else canonical_json(value)
