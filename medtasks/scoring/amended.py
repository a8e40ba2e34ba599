"""Samples whose lines in a result directory are not what is computed here: which fields differ, and
the samples to show in their place.

A directory may claim any reference and any score. Rankings never read them; with this, pages and
exports show the samples as they are scored here, too. Of an honest run nothing differs, so nothing
is stored twice.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from medtasks.core.files import canonical_json
from medtasks.core.text import well_formed
from medtasks.runs.sample_files import SampleFile
from medtasks.runs.samples import Sample
from medtasks.scoring.run_record import Difference

_BY_KEY = ("document", "scores")
"""Fields that are compared key by key."""
_LONGEST = 200
"""Characters of a value that a difference quotes."""

FieldValues = tuple[str, Any, Any]
"""A field, its value in the directory and the one computed here; None for an absent one."""


class Amendments:
    """Collects what differs in the samples of one task."""

    def __init__(self, task: str) -> None:
        self._task = task
        self._first: dict[str, Difference] = {}
        self._counts: Counter[str] = Counter()
        self._packer = zlib.compressobj(level=1)
        self._packed: list[bytes] = []

    def add(self, submitted: Sample, scored: Sample) -> None:
        """Compare a sample of the directory with the same sample as it is scored here."""
        if submitted == scored:
            return
        line = canonical_json(scored.model_dump(mode="json")).encode()
        self._packed.append(self._packer.compress(line + b"\n"))
        for field, submitted_value, expected in _differing(submitted, scored):
            self._counts[field] += 1
            if field not in self._first:
                self._first[field] = Difference(
                    self._task,
                    field,
                    samples=1,
                    first=scored.sample_id,
                    found=_quoted(submitted_value),
                    expected=_quoted(expected),
                )

    @property
    def differences(self) -> list[Difference]:
        """One for each field."""
        differences = []
        for field, first in self._first.items():
            differences.append(replace(first, samples=self._counts[field]))
        return differences

    def packed(self) -> bytes:
        """The differing samples as they are scored here: compressed lines of JSON; empty if there
        are none.
        """
        if not self._packed:
            return b""
        return b"".join((*self._packed, self._packer.flush()))


def samples_as_scored(file: SampleFile, packed: bytes) -> Iterator[Sample]:
    """The samples of a task as they are scored here: those in the ``file`` of the directory, with
    the ``packed`` ones of `RunRecord.amended` in their places.
    """
    amended = {}
    if packed:
        for line in zlib.decompress(packed).splitlines():
            sample = Sample.model_validate_json(line)
            amended[sample.sample_id] = sample
    for sample in file:
        yield amended.get(well_formed(sample.sample_id), sample)


def _differing(submitted: Sample, scored: Sample) -> Iterator[FieldValues]:
    """The fields with different values."""
    submitted_values, scored_values = vars(submitted), vars(scored)
    for field in Sample.model_fields:
        value, expected = submitted_values[field], scored_values[field]
        if value == expected:
            continue
        if field in _BY_KEY:
            yield from _differing_keys(field, value, expected)
        else:
            yield field, value, expected


def _differing_keys(
    field: str, submitted: Mapping[str, Any], expected: Mapping[str, Any]
) -> Iterator[FieldValues]:
    """The keys of a field whose values differ, or that only one side has."""
    for key in dict.fromkeys((*submitted, *expected)):
        is_in_both = key in submitted and key in expected
        if not is_in_both or submitted[key] != expected[key]:
            yield f"{field}.{key}", submitted.get(key), expected.get(key)


def _quoted(value: Any) -> str | None:
    """The value as JSON, cut; None for an absent one."""
    if value is None:
        return None
    return canonical_json(_as_json(value))[:_LONGEST]


def _as_json(value: Any) -> Any:
    """The value of JSON's own types."""
    if isinstance(value, Mapping):
        return {str(key): _as_json(inner) for key, inner in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [_as_json(inner) for inner in value]
    return value
