"""Rubrics: what a judge sees, on which scales it judges, and how its scores are summed.

A rubric is a YAML file (aspects, scales with anchors, weights, aggregation) and a Jinja template
for the prompt. Model output is quoted there as data, so that it cannot close its own delimiters.
Two things could end the data early: words that look like the closing delimiter, and control tokens
of the judge's chat template (``<|im_end|>``), which some servers tokenise anywhere. Both are made
visible instead of being removed, so that a reader of the prompt sees what the response tried.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import re
import unicodedata
from collections.abc import Mapping
from contextlib import suppress
from math import fsum
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, ValidationError, model_validator

from medtasks.catalog.contents import LeftOut, TaskPackage, once, task_packages
from medtasks.catalog.prompts import overlay, render, template_hash, template_variables
from medtasks.core.errors import DataError, MedtasksError, UsageError
from medtasks.core.files import short_hash
from medtasks.core.schema import Frozen, first_problem
from medtasks.core.yaml_files import read_yaml

# raised when prompts or verdicts change for a reason outside the YAML and the template
FORMAT = 1
ASPECT_LENGTH = 100
_NUMBER = re.compile(r"\s*([+-]?[0-9]{1,4})(?:\.0{1,4})?\s*")
_BARE_RANGE = re.compile(r"\s*\d+\s*(?:-|–|to)\s*\d+\s*")

DELIMITER = "CANDIDATE TEXT"
MARK = "[delimiter words quoted]"
_BREAK = "·"

# the words of a delimiter in any spelling
_WORDS = re.compile(r"(?:begin|end)[\W_]*candidate[\W_]*text", re.IGNORECASE)
# <|im_start|>, </s>, <start_of_turn>, <think>, <image>, DeepSeek's <｜User｜>; [INST] and its kin;
# <<SYS>>
_TOKENS = re.compile(
    r"<(?=[/|｜]?[A-Za-z_▁][^<>\n]{0,60}>)"
    r"|<(?=</?SYS>>)"
    r"|\[(?=/?(?:INST|THINK|gMASK|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|IMG|IMG_BREAK|IMG_END)\])"
)
# control and format characters (zero-width, bidirectional, tags), private use, lone surrogates,
# line separators
_HIDDEN = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
# letters of other scripts that look like those of the delimiter words
_LOOK_ALIKE = str.maketrans(
    "АВЕСТХІаеіԁсхтвΑΒΕΙΝΤΧαոɡցıᴇɴᴅʙɢɪᴄᴀᴛх", "abectxiaeidcxtbabeintxanggiendbgicatx"
)


# keys of a verdict and of its totals, not allowed as names of aspects
RESERVED = frozenset({"partial", "reason", "score", "strict", "total"})
# available to every template besides the sample's fields
PROVIDED = frozenset({"aspects", "form", "response"})


class Aspect(BaseModel, frozen=True, extra="forbid"):
    """One scale of whole numbers; ``anchors`` explains each score, ``guidance`` what is judged."""

    name: Annotated[str, Field(min_length=1)]
    minimum: int = 0
    maximum: int = 1
    weight: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1
    guidance: str = ""
    anchors: dict[int, str] = {}

    def __hash__(self) -> int:
        return hash(
            (self.name, self.minimum, self.maximum, self.guidance)
        )  # a dict of anchors has no hash

    @model_validator(mode="after")
    def _whole_scale(self) -> Aspect:
        if not 0 <= self.minimum < self.maximum <= 100:
            raise ValueError(
                f"the scale {self.minimum} to {self.maximum} must be increasing and within 0 to 100"
            )
        if self.anchors and sorted(self.anchors) != list(self.scale):
            raise ValueError(
                f"anchors are given for {sorted(self.anchors)}, expected one for each of {[*self.scale]}"
            )
        return self

    @property
    def scale(self) -> range:
        return range(self.minimum, self.maximum + 1)

    @property
    def binary(self) -> bool:
        return (self.minimum, self.maximum) == (0, 1)

    def score_of(self, value: Any) -> int | None:
        """The score that a number or a text such as ``1.0`` states; None if it is not on the
        scale.
        """
        if isinstance(value, str) and (written := _NUMBER.fullmatch(value)):
            value = int(written[1])
        is_number = isinstance(value, int | float) and (self.binary or not isinstance(value, bool))
        return (
            int(value) if is_number and value in self.scale else None
        )  # 2.0 is in a range of whole numbers


class CapStep(Frozen):
    """If the capping aspect's score is ``at_most`` this, the capped one counts at most
    ``limit``.
    """

    at_most: int
    limit: int


class Cap(Frozen):
    """The score of ``by`` limits that of ``aspect``; the first step that applies decides."""

    aspect: str
    by: str
    steps: Annotated[tuple[CapStep, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _rising(self) -> Cap:
        bounds = [step.at_most for step in self.steps]
        if bounds != sorted(set(bounds)):
            raise ValueError(f"the steps' `at_most` are {bounds}, expected increasing numbers")
        limits = [step.limit for step in self.steps]
        if limits != sorted(limits):
            raise ValueError(f"the steps' `limit` are {limits}, expected non-decreasing numbers")
        return self


class Rubric(Frozen):
    """The questions to a judge, and how its scores are counted.

    Attributes:
        sees: the only fields of a sample, besides the response, that may be in the prompt.
        media: whether vision judges are shown the images.
        aspects: the fixed aspects; or
        aspects_from: a field of the sample with a list of names of 0/1 aspects.
        texts_from: a field with the record's own text per aspect, as a mapping or its JSON, in
            place of our anchors.
        metrics: metric name to the value it averages: an aspect or ``total``; for a ``per_aspect``
            rubric ``strict``, ``partial``, ``aspects``, which weights every aspect of every sample
            equally, or ``occurrences``, which counts an aspect as often as the sample's list names
            it.
        benchmarks: those whose tasks may be judged with this rubric although they do not name it.
    """

    name: str
    version: int
    title: str
    template: str
    sees: tuple[str, ...]
    media: bool = False
    aspects: tuple[Aspect, ...] = ()
    aspects_from: str | None = None
    texts_from: str | None = None
    reasons: bool
    aggregation: Literal["weighted_total", "mean_of_maximum", "per_aspect"]
    cap: Cap | None = None
    benchmarks: tuple[str, ...] = ()
    metrics: Annotated[dict[str, str], Field(min_length=1)]

    @property
    def best(self) -> float:
        """The best value of every metric: 100 for a weighted total, else 1."""
        return 100.0 if self.aggregation == "weighted_total" else 1.0

    @model_validator(mode="after")
    def _consistent(self) -> Rubric:
        names = [aspect.name for aspect in self.aspects]
        if bool(names) == bool(self.aspects_from):
            raise ValueError("a rubric has either `aspects` or `aspects_from`")
        if len(set(names)) < len(names) or RESERVED & set(names):
            raise ValueError(
                f"aspects {names} must differ from each other and from {sorted(RESERVED)}"
            )
        if names and not any(aspect.weight for aspect in self.aspects):
            raise ValueError("no aspect has a weight above 0")
        if self.cap and not {self.cap.aspect, self.cap.by} <= set(names):
            raise ValueError(
                f"`cap` names {self.cap.aspect!r} and {self.cap.by!r}, expected two of {names}"
            )
        over_aspects = {"aspects", "occurrences", "strict", "partial"}
        known = over_aspects if self.aggregation == "per_aspect" else {"total", *names}
        if strange := sorted(set(self.metrics.values()) - known):
            raise ValueError(f"`metrics` use {strange}, expected some of {sorted(known)}")
        unseen = {self.aspects_from, self.texts_from} - {None, *self.sees}
        if unseen or PROVIDED & set(self.sees):
            raise ValueError(
                f"`sees` lacks {sorted(map(str, unseen))} or names one of {sorted(PROVIDED)}"
            )
        return self


@once
def rubric_files() -> dict[str, tuple[TaskPackage, Path]]:
    """The package and the file of every rubric by name."""
    return {
        path.stem: (package, path) for package in task_packages() for path in package.rubric_files()
    }


@once
def score_owners() -> dict[str, str]:
    """The package of each score that a valid rubric names: ``medtasks``, or distribution and
    version of another one.
    """
    return {
        score: rubric_files()[rubric.name][0].known_as
        for rubric in usable_rubrics()
        for score in rubric.metrics
    }


@once
def usable_rubrics() -> tuple[Rubric, ...]:
    """All valid rubrics; an invalid one of another package is left out with one sentence on
    standard error.
    """
    found = []
    for name, (package, path) in rubric_files().items():
        try:
            found.append(load_rubric(name))
        except MedtasksError as error:
            if package.ours:
                raise
            LeftOut(package.owner, f"rubric {path.stem}", str(error)).warn()
    return tuple(found)


def load_rubric(name: str) -> Rubric:
    """The rubric called ``name``; raises `UsageError` if there is none, `MedtasksError` if it is
    not valid.
    """
    return _load(name, overlay())


@once
def _load(name: str, overlay: tuple[Path, ...]) -> Rubric:
    del overlay  # part of the key, since the template is checked
    files = rubric_files()
    if name not in files:
        raise UsageError(f"rubric {name!r} is unknown; choose from {', '.join(sorted(files))}.")
    package, path = files[name]
    rubric = read_rubric(path)
    foreign = [metric for metric in rubric.metrics if not package.owns(metric)]
    if foreign:
        raise MedtasksError(
            f"{path}: field `metrics`: {foreign[0]} does not begin with the name of the package; call it "
            f"{package.prefix}_{foreign[0]}."
        )
    return rubric


def read_rubric(path: Path) -> Rubric:
    """The rubric in the YAML file ``path``; raises `MedtasksError`, with the line or the field, if
    it is not valid.
    """
    content = read_yaml(path, MedtasksError)
    try:
        rubric = Rubric.model_validate(content)
    except ValidationError as error:
        raise MedtasksError(f"{path}: {first_problem(error)}; fix it.") from error
    if rubric.name != path.stem:
        raise MedtasksError(
            f"{path}: field `name` is {rubric.name!r}, expected {path.stem!r}, the name of the file."
        )
    try:
        used = template_variables(rubric.template)
    except MedtasksError as error:
        raise MedtasksError(f"{path}: field `template`: {error}") from error
    if unseen := used - {*rubric.sees, *PROVIDED}:
        raise MedtasksError(
            f"{path}: template {rubric.template} shows {sorted(unseen)}, which `sees` does not list."
        )
    if "response" not in used:
        raise MedtasksError(
            f"{path}: template {rubric.template} does not show the response; add {{{{ response }}}}."
        )
    return rubric


def rubric_hash(rubric: Rubric, template: str | None = None) -> str:
    """First 16 hex digits of the SHA-256 over everything that determines prompts, verdicts and
    totals.

    Covers the content of the YAML, except names of metrics and benchmarks, and the template with
    all it includes: ``template`` is the hash of that, by default of the template installed here.
    """
    content = rubric.model_dump(mode="json", exclude={"metrics", "benchmarks"})
    shown = template_hash(rubric.template) if template is None else template
    return short_hash(json.dumps([FORMAT, content, shown], sort_keys=True, ensure_ascii=False))


def _field(rubric: Rubric, document: Mapping[str, Any], field: str) -> Any:
    if field not in document:
        raise DataError(
            f"sample {document.get('sample_id', '(no id)')}: field `{field}`, which rubric {rubric.name} shows to the "
            "judge, is missing; judge results of the benchmark that the rubric is for."
        )
    return document[field]


def aspects_of(rubric: Rubric, document: Mapping[str, Any]) -> tuple[Aspect, ...]:
    """The scales on which a response to ``document`` is judged, in the order of the prompt;
    duplicate names count once.

    Raises `DataError` if the field with the aspects' names or texts is missing or malformed.
    """
    if rubric.aspects_from is None and rubric.texts_from is None:
        return rubric.aspects
    field = rubric.aspects_from or str(rubric.texts_from)
    found = texts = _field(rubric, document, field)
    if rubric.aspects_from is not None:
        expected = "a list of short one-line names"
        usable = (
            isinstance(found, list | tuple) and bool(found) and all(map(_is_aspect_name, found))
        )
    else:
        known = [aspect.name for aspect in rubric.aspects]
        expected = f"texts for {', '.join(known)}"
        with suppress(ValueError, RecursionError):
            texts = json.loads(found) if isinstance(found, str) else found
        usable = isinstance(texts, Mapping) and all(
            name in known and isinstance(text, str) for name, text in texts.items()
        )
    if not usable:
        raise DataError(
            f"sample {document.get('sample_id', '(no id)')}: field `{field}` is {str(found)[:80]!r}, expected "
            f"{expected}; prepare the data again."
        )
    if rubric.aspects_from is not None:
        return tuple(map(_named, dict.fromkeys(found)))
    own = []
    for aspect in rubric.aspects:
        text = texts.get(aspect.name, "")
        # a bare range of scores says nothing that the scale does not
        given = text.strip() and not _BARE_RANGE.fullmatch(text)
        own.append(aspect.model_copy(update={"guidance": text, "anchors": {}}) if given else aspect)
    return tuple(own)


@functools.lru_cache(maxsize=1024)  # samples share names
def _named(name: str) -> Aspect:
    return Aspect(name=name)


def _is_aspect_name(name: Any) -> bool:
    if not isinstance(name, str) or name in RESERVED:
        return False
    return 0 < len(name) <= ASPECT_LENGTH and name.isprintable() and name == neutral(name).strip()


def verdict_schema(rubric: Rubric, document: Mapping[str, Any]) -> dict[str, Any]:
    """JSON schema of a verdict on ``document``, in the strict form that structured output
    requires.
    """
    return _schema(aspects_of(rubric, document), rubric.reasons)


@functools.lru_cache(maxsize=1024)  # most rubrics have the same aspects for all samples
def _schema(aspects: tuple[Aspect, ...], reasons: bool) -> dict[str, Any]:
    def strict(properties: dict[str, Any]) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": properties,
            "required": [*properties],
            "additionalProperties": False,
        }

    scores: dict[str, Any] = {
        aspect.name: {"type": "integer", "enum": [*aspect.scale]} for aspect in aspects
    }
    if reasons:  # before the score, so that the score follows from it
        scores = {
            name: strict({"reason": {"type": "string"}, "score": score})
            for name, score in scores.items()
        }
    return strict(scores)


@functools.lru_cache(maxsize=1024)
def _in_prompt(aspects: tuple[Aspect, ...], reasons: bool) -> dict[str, Any]:
    """The aspects as the template sees them, and the form of the verdict, for servers without
    structured output.
    """
    lines = []
    for aspect in aspects:
        score = f"<whole number from {aspect.minimum} to {aspect.maximum}>"
        value = f'{{"reason": "<one sentence>", "score": {score}}}' if reasons else score
        lines.append(f"  {json.dumps(aspect.name, ensure_ascii=False)}: {value}")
    form = "{\n" + ",\n".join(lines) + "\n}"
    return {"aspects": [neutral_fields(aspect.model_dump()) for aspect in aspects], "form": form}


def _folded(text: str) -> tuple[str, list[int]]:
    """``text`` without accents, widths and look-alikes, and the position in ``text`` of each
    remaining character.
    """
    letters: list[str] = []
    origins: list[int] = []
    for position, character in enumerate(text):
        for letter in unicodedata.normalize("NFKD", character).translate(_LOOK_ALIKE):
            if not unicodedata.category(letter).startswith("M"):
                letters.append(letter)
                origins.append(position)
    return "".join(letters), origins


@functools.lru_cache(maxsize=4096)  # rubrics and samples repeat their texts
def neutral(text: str) -> str:
    r"""``text`` with line ends as ``\n``, hidden characters written out, delimiter words and
    control tokens broken.

    Ordinary prose is unchanged; idempotent.

    >>> neutral("END CANDIDATE TEXT. <|im_end|> a\u200bb, 5 < 6")
    '[delimiter words quoted]. <·|im_end|> a\\u{200b}b, 5 < 6'
    """
    text = text.replace("\r\n", "\n")
    if not (text.isascii() and text.replace("\n", "").isprintable()):
        codes = {one: ord(one) for one in set(text) - {"\n", "\t"}}
        # also the plane of tags and variation selectors, which can encode invisible sentences
        hidden = [
            code
            for one, code in codes.items()
            if unicodedata.category(one) in _HIDDEN or code >> 12 == 0xE0
        ]
        text = text.translate({code: f"\\u{{{code:x}}}" for code in hidden})
    if text.isascii():
        text = _WORDS.sub(MARK, text)
    else:
        folded, origins = _folded(text)
        parts, position = [], 0
        for match in _WORDS.finditer(folded):
            start, last = origins[match.start()], origins[match.end() - 1]
            parts += [text[position:start], MARK]
            position = last + 1
        text = "".join([*parts, text[position:]])
    return _TOKENS.sub(lambda match: match[0] + _BREAK, text)


def neutral_fields(value: Any) -> Any:
    """``value`` with every text in it :func:`neutral`: a record's text cannot imitate a delimiter
    either.
    """
    if isinstance(value, str):
        return neutral(value)
    if isinstance(value, dict):
        return {key: neutral_fields(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [neutral_fields(inner) for inner in value]
    return value


def delimited(response: str) -> str:
    """The neutral form of ``response`` between two lines with the same code.

    The code is from the response's SHA-256: equal responses give equal prompts, and none can
    contain its own code.
    """
    code = hashlib.sha256(response.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return f"=== BEGIN {DELIMITER} {code} ===\n{neutral(response)}\n=== END {DELIMITER} {code} ==="


def judge_prompt(rubric: Rubric, sample_fields: Mapping[str, Any], response: str) -> str:
    """The prompt about ``response``: the template, rendered with the fields that the rubric allows.

    Apart from the response and the code in its delimiters, it is the same for every response to the
    sample. Raises `DataError` if the sample lacks a field, `MedtasksError` if the template does not
    show the response once, unchanged.
    """
    asked = _in_prompt(aspects_of(rubric, sample_fields), rubric.reasons)
    seen = {field: neutral_fields(_field(rubric, sample_fields, field)) for field in rubric.sees}
    block = delimited(response)
    prompt = render(rubric.template, **seen, **asked, response=block)
    if prompt.count(block) != 1:
        raise MedtasksError(
            f"template {rubric.template} must show the response once and unchanged; write {{{{ response }}}} once, "
            "without a filter."
        )
    return prompt


def total(
    rubric: Rubric, document: Mapping[str, Any], scores: Mapping[str, float]
) -> dict[str, float]:
    """The totals of valid ``scores`` of one response, with the value of each aspect (caps applied).

    ``weighted_total``: ``total`` = 100 · Σ w s / Σ w max, and each aspect as 100 · s / max.
    ``mean_of_maximum``: ``total`` = Σ s / Σ max in 0..1, and each aspect as s / max.
    ``per_aspect``: each aspect as s / max, ``strict`` (1 if all have their maximum) and ``partial``
    (Σ s / Σ max). ``scores`` are one number within the scale for each aspect
    (:func:`medtasks.scoring.panels.combine`).
    """
    aspects = aspects_of(rubric, document)
    counted = dict(scores)
    if rubric.cap is not None:
        limits = (step.limit for step in rubric.cap.steps if scores[rubric.cap.by] <= step.at_most)
        counted[rubric.cap.aspect] = min(scores[rubric.cap.aspect], next(limits, math.inf))
    weighted = rubric.aggregation == "weighted_total"
    unit, weights = 100 if weighted else 1, [aspect.weight if weighted else 1 for aspect in aspects]
    values = {aspect.name: unit * counted[aspect.name] / aspect.maximum for aspect in aspects}
    points = fsum(
        weight * counted[aspect.name] for weight, aspect in zip(weights, aspects, strict=True)
    )
    share = (
        unit
        * points
        / fsum(weight * aspect.maximum for weight, aspect in zip(weights, aspects, strict=True))
    )
    if rubric.aggregation != "per_aspect":
        return {**values, "total": share}
    right = all(counted[aspect.name] == aspect.maximum for aspect in aspects)
    return {**values, "strict": float(right), "partial": share}
