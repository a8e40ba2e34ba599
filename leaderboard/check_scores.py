"""Whether a folder's scores are those of its samples, and its samples what today's rules make of the responses."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from medtasks.errors import MedtasksError
from medtasks.results.judged import with_judged_scores
from medtasks.results.learned import with_learned_metrics
from medtasks.results.manifest import RunManifest
from medtasks.results.samples import Sample
from medtasks.results.scored import scored_again
from medtasks.spec import load_spec
from medtasks.validation.findings import Finding

from .check_rules import problem
from .digest import Digest

__all__ = ["check_samples", "check_scores", "rescored", "scored_otherwise"]

_MOST = 5
"""Findings of one kind in one task."""
_OF_THE_MACHINE = {"reason", "signature"}
"""What says of a metric which packages are there, and why it has no value; no number depends on it."""
_ABSENT = "nothing"
"""Stands in a message for what is not there."""
_AGAIN = "score the folder again: `medtasks score FOLDER --out NEW_FOLDER`"


def check_scores(folder: Path, manifest: RunManifest, digest: Digest) -> Iterator[Finding]:
    """Compare ``scores.json`` with the scores that ``digest`` was made of, number by number.

    Tasks and groups of ``manifest`` that the digest leaves out, since no installed package has them, are left out.
    """
    path = folder / "scores.json"
    if not path.is_file():
        return
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
        told = {**held["tasks"], **held["groups"]}
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        yield problem("LB102", folder.name, f"scores.json cannot be read ({error})", "a run's", _AGAIN, file=path)
        return
    made = {name: entry.scores for name, entry in digest.entries.items()}
    unknown = {*manifest.tasks, *manifest.groups} - made.keys()
    for name in sorted((told.keys() | made.keys()) - unknown):
        if name not in told or name not in made:
            found = f"{name} is {'missing in' if name in made else 'only in'} scores.json"
            yield problem("LB105", name, found, "the tasks and groups of the samples", _AGAIN, file=path)
            continue
        others = list(_differences(made[name].model_dump(mode="json"), told[name], beside=_OF_THE_MACHINE))
        for place, here, there in others[:_MOST]:
            found, expected = _short(there), f"{_short(here)} as the samples give"
            yield problem("LB105", name, found, expected, _AGAIN, file=path, field=place)
        if len(others) > _MOST:
            found = f"{len(others) - _MOST:,} more values differ"
            yield problem("LB105", name, found, "those of the samples", _AGAIN, file=path)


def check_samples(
    folder: Path, manifest: RunManifest, samples: Mapping[str, Sequence[Sample]], tasks: Sequence[str]
) -> Iterator[Finding]:
    """Filter and score the responses of ``tasks`` by today's rules, and compare: a folder's statistics are only claims.

    Verdicts of judges are taken as they stand.
    """
    for task in tasks:
        try:
            again = rescored(task, manifest, samples[task])
        except MedtasksError as error:
            told, fix = f"the responses cannot be scored again ({error})", "the samples' own statistics were trusted"
            yield problem("LB107", task, told.rstrip("."), "what scoring needs", fix)
            continue
        yield from _compared(folder / "samples" / f"{task}.jsonl", task, samples[task], again)


def rescored(task: str, manifest: RunManifest, samples: Sequence[Sample], *, learned: bool = True) -> list[Sample]:
    """The samples by today's rules, as `medtasks.results.rescore` makes them, without scores and intervals.

    ``learned`` is whether metrics that are models of their own are computed, too.

    Raises:
        MedtasksError: they cannot be scored here.
    """
    spec = load_spec(task)
    problems: list[str] = []
    scored = scored_again(spec, samples)
    if learned:
        scored = with_learned_metrics(spec, scored, problems)
    if problems:
        raise MedtasksError(problems[0])
    return with_judged_scores(spec, scored, manifest.judge)


def _compared(path: Path, task: str, samples: Sequence[Sample], again: Sequence[Sample]) -> Iterator[Finding]:
    lost: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    for line, (before, after) in enumerate(zip(samples, again, strict=True), start=1):
        for what, here, there in scored_otherwise(before, after):
            if there is None:
                lost[what] += 1
                continue
            wrong[what] += 1
            if wrong[what] <= _MOST:
                where, expected = f"{task}: {before.sample_id}", f"{_short(there)} by today's rules"
                yield problem("LB106", where, _short(here), expected, _AGAIN, file=path, line=line, field=what)
    for what, count in sorted(lost.items()):
        told, fix = f"{count:,} samples have it, but it cannot be computed here", "see `medtasks doctor`"
        yield problem("LB107", task, told, "what it needs", fix, file=path, field=what)


def scored_otherwise(before: Sample, after: Sample) -> Iterator[tuple[str, Any, Any]]:
    """What was filtered or scored otherwise: field, as it was, as it is now (None: not computed here)."""
    for field in ("filtered", "status"):
        if getattr(before, field) != getattr(after, field):
            yield field, getattr(before, field), getattr(after, field)
    for name in dict.fromkeys((*before.scores, *after.scores)):
        for field, held, made in (
            ("scores", before.scores, after.scores),
            ("statistics", before.statistics, after.statistics),
        ):
            here, there = held.get(name), made.get(name)
            if any(True for _ in _differences(_listed(there), _listed(here))):
                yield f"{field}.{name}", here, there
    yield from _judged_otherwise(before, after)
    made, told = (one.model_dump(mode="json", include={"repeats"}) for one in (after, before))
    for place, there, here in _differences(made, told):
        yield place, here, there


def _judged_otherwise(before: Sample, after: Sample) -> Iterator[tuple[str, Any, Any]]:
    """The metrics that the verdicts do not give, or give otherwise: scoring takes these before all statistics."""
    made, told = (one.model_dump(mode="json", include={"judged"})["judged"] for one in (after, before))
    for name in sorted(made.keys() | told.keys()):
        if any(True for _ in _differences(made.get(name), told.get(name))):
            yield f"judged.{name}", told.get(name, _ABSENT), made.get(name, _ABSENT)
    if sorted(before.pending) != sorted(after.pending):
        yield "pending", sorted(before.pending), sorted(after.pending)


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _differences(
    made: Any, told: Any, place: str = "", *, beside: Set[str] = frozenset()
) -> Iterator[tuple[str, Any, Any]]:
    """Where two JSON values differ, but for the last bits that another machine may round otherwise, and for what stands
    under the keys ``beside``."""
    if isinstance(made, dict) and isinstance(told, dict):
        for key in sorted((made.keys() | told.keys()) - beside):
            where = f"{place}.{key}" if place else str(key)
            yield from _differences(made.get(key), told.get(key), where, beside=beside)
    elif isinstance(made, list) and isinstance(told, list) and len(made) == len(told):
        for number, (one, other) in enumerate(zip(made, told, strict=True)):
            yield from _differences(one, other, f"{place}[{number}]", beside=beside)
    elif isinstance(made, float) and isinstance(told, (int, float)) and not isinstance(told, bool):
        if not math.isclose(made, told, rel_tol=1e-9, abs_tol=1e-9):
            yield place, made, told
    elif made != told:
        yield place, made, told


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
