"""What a judge is asked: the aspects of one document, the prompt, and the form of the verdict."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from typing import Any

from medtasks.catalog.neutral_text import delimited, neutral, neutral_fields
from medtasks.catalog.prompts import render
from medtasks.catalog.rubric import RESERVED, Aspect, Rubric
from medtasks.core.errors import DataError, MedtasksError

ASPECT_LENGTH = 100
"""Maximum length of an aspect's name, in characters."""
_BARE_RANGE = re.compile(r"\s*\d+\s*(?:-|–|to)\s*\d+\s*")


def aspects_of(rubric: Rubric, document: Mapping[str, Any]) -> tuple[Aspect, ...]:
    """The scales on which a response to ``document`` is judged, in the order of the prompt.

    Duplicate names count once.

    Raises:
        DataError: the field with the aspects' names or texts is missing or malformed.
    """
    if rubric.aspects_from is not None:
        names = _field(rubric, document, rubric.aspects_from)
        return _named_aspects(names, document, rubric.aspects_from)
    if rubric.texts_from is not None:
        texts = _field(rubric, document, rubric.texts_from)
        return _aspects_with_texts(rubric.aspects, texts, document, rubric.texts_from)
    return rubric.aspects


def _field(rubric: Rubric, document: Mapping[str, Any], field: str) -> Any:
    """The value of a field that the rubric needs; a document without it is a :class:`DataError`."""
    if field not in document:
        raise DataError(
            f"sample {document.get('sample_id', '(no id)')}: field `{field}`, which rubric "
            f"{rubric.name} shows to the judge, is missing; judge results of the benchmark that "
            "the rubric is for."
        )
    return document[field]


def _named_aspects(names: Any, document: Mapping[str, Any], field: str) -> tuple[Aspect, ...]:
    """The 0/1 aspects that the document names."""
    is_list = isinstance(names, list | tuple) and bool(names)
    if not is_list or not all(map(_is_aspect_name, names)):
        raise _wrong_field(document, field, names, "a list of short one-line names")
    return tuple(_named_aspect(name) for name in dict.fromkeys(names))


@functools.lru_cache(maxsize=1024)  # samples share names
def _named_aspect(name: str) -> Aspect:
    return Aspect(name=name)


def _is_aspect_name(name: Any) -> bool:
    """Whether a value is a short text on one line without marks of the prompt."""
    if not isinstance(name, str) or name in RESERVED:
        return False
    return 0 < len(name) <= ASPECT_LENGTH and name.isprintable() and name == neutral(name).strip()


def _aspects_with_texts(
    aspects: tuple[Aspect, ...], written: Any, document: Mapping[str, Any], field: str
) -> tuple[Aspect, ...]:
    """The rubric's aspects, with the document's own text in place of anchors where it has one."""
    texts = _texts_by_aspect(aspects, written)
    if texts is None:
        names = ", ".join(aspect.name for aspect in aspects)
        raise _wrong_field(document, field, written, f"texts for {names}")
    own: list[Aspect] = []
    for aspect in aspects:
        text = texts.get(aspect.name, "")
        # a bare range of scores says nothing that the scale does not
        if text.strip() and not _BARE_RANGE.fullmatch(text):
            aspect = aspect.model_copy(update={"guidance": text, "anchors": {}})
        own.append(aspect)
    return tuple(own)


def _texts_by_aspect(aspects: tuple[Aspect, ...], written: Any) -> Mapping[str, str] | None:
    """The texts of a mapping or of its JSON; None if it is neither, or names another aspect."""
    texts = written
    if isinstance(written, str):
        try:
            texts = json.loads(written)
        except (ValueError, RecursionError):
            return None
    if not isinstance(texts, Mapping):
        return None
    names = {aspect.name for aspect in aspects}
    for name, text in texts.items():
        if name not in names or not isinstance(text, str):
            return None
    return texts


def _wrong_field(document: Mapping[str, Any], field: str, value: Any, expected: str) -> DataError:
    """The error of a document's field with another ``value`` than was ``expected``."""
    return DataError(
        f"sample {document.get('sample_id', '(no id)')}: field `{field}` is {str(value)[:80]!r}, "
        f"expected {expected}; prepare the data again."
    )


def verdict_schema(rubric: Rubric, document: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON schema of a verdict on ``document``, in the strict form of structured output."""
    return _schema(aspects_of(rubric, document), rubric.reasons)


@functools.lru_cache(maxsize=1024)  # most rubrics have the same aspects for all samples
def _schema(aspects: tuple[Aspect, ...], reasons: bool) -> dict[str, Any]:
    """The JSON schema of a verdict on ``aspects``, with a reason for each score or without."""
    scores: dict[str, Any] = {}
    for aspect in aspects:
        score: dict[str, Any] = {"type": "integer", "enum": [*aspect.scale]}
        if reasons:  # the reason comes first, so that the score follows from it
            score = _strict_object({"reason": {"type": "string"}, "score": score})
        scores[aspect.name] = score
    return _strict_object(scores)


def _strict_object(properties: dict[str, Any]) -> dict[str, Any]:
    """The JSON schema of an object with exactly these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }


def judge_prompt(rubric: Rubric, sample_fields: Mapping[str, Any], response: str) -> str:
    """The prompt about ``response``: the template, rendered with the fields that the rubric allows.

    Apart from the response and the code in its delimiters, it is the same for every response to the
    sample.

    Raises:
        DataError: the sample lacks a field.
        MedtasksError: the template does not show the response once, unchanged.
    """
    provided = _aspects_and_form(aspects_of(rubric, sample_fields), rubric.reasons)
    seen = {field: neutral_fields(_field(rubric, sample_fields, field)) for field in rubric.sees}
    block = delimited(response)
    prompt = render(rubric.template, **seen, **provided, response=block)
    if prompt.count(block) != 1:
        raise MedtasksError(
            f"template {rubric.template} must show the response once and unchanged; "
            "write {{ response }} once, without a filter."
        )
    return prompt


@functools.lru_cache(maxsize=1024)
def _aspects_and_form(aspects: tuple[Aspect, ...], reasons: bool) -> dict[str, Any]:
    """Template variables: the aspects, and the verdict's form for servers without structured
    output.
    """
    lines: list[str] = []
    for aspect in aspects:
        value = f"<whole number from {aspect.minimum} to {aspect.maximum}>"
        if reasons:
            value = f'{{"reason": "<one sentence>", "score": {value}}}'
        lines.append(f"  {json.dumps(aspect.name, ensure_ascii=False)}: {value}")
    form = "{\n" + ",\n".join(lines) + "\n}"
    return {"aspects": [neutral_fields(aspect.model_dump()) for aspect in aspects], "form": form}
