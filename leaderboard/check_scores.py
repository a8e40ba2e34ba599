"""Whether a run's scores follow from its samples, and the samples' scores from the responses by today's rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from medtasks.errors import MedtasksError
from medtasks.results.learned import with_learned_metrics
from medtasks.results.manifest import RunManifest
from medtasks.results.samples import Sample
from medtasks.results.scored import scored_again
from medtasks.results.verdict_scores import with_judged_scores
from medtasks.settings import using
from medtasks.spec import load_spec
from medtasks.validation.findings import Finding

from .check_rules import MOST, Submission, problem
from .facts import claimed_scores, differences

_NOT_NUMBERS = {"reason", "signature"}
"""Fields of a metric that depend on the packages of the machine."""
_SCORED = ("filtered", "status", "statistics", "judged", "pending", "repeats")
_ABSENT = "nothing"
_AGAIN = "score the directory again: `medtasks score DIR --out NEW_DIR`"


def check_scores(run: Submission) -> Iterator[Finding]:
    """Compare ``scores.json`` with the scores of the digest, number by number.

    Tasks of packages that are not installed, and their groups, are left out, as in the digest.
    """
    path = run.folder / "scores.json"
    if not path.is_file():
        return
    claimed = claimed_scores(path.read_text(encoding="utf-8", errors="replace"))
    if claimed is None:
        yield problem("LB102", run.folder.name, "scores.json cannot be read", "a run's", _AGAIN, file=path)
        return
    made = {name: entry.scores for name, entry in run.digest.entries.items()}
    unknown = {*run.manifest.tasks, *run.manifest.groups} - made.keys()
    for name in sorted((claimed.keys() | made.keys()) - unknown):
        if name not in claimed or name not in made:
            found = f"{name} is {'missing in' if name in made else 'only in'} scores.json"
            yield problem("LB105", name, found, "the tasks and groups of the samples", _AGAIN, file=path)
            continue
        others = list(differences(made[name].model_dump(mode="json"), claimed[name], ignored=_NOT_NUMBERS))
        for place, here, there in others[:MOST]:
            expected = f"{_short(here)} as computed from the samples"
            yield problem("LB105", name, _short(there), expected, _AGAIN, file=path, field=place)
        if len(others) > MOST:
            found = f"{len(others) - MOST:,} more values differ"
            yield problem("LB105", name, found, "those of the samples", _AGAIN, file=path)


def check_samples(run: Submission, tasks: Sequence[str]) -> Iterator[Finding]:
    """Score the responses of ``tasks`` again by today's rules, and compare. Verdicts are taken as they are."""
    for task in tasks:
        path, samples = run.samples_file(task), run.samples[task]
        try:
            again = rescored(task, run.manifest, samples)
        except MedtasksError as error:
            found = f"the responses cannot be scored again ({error})".rstrip(".")
            yield problem("LB107", task, found, "what scoring needs", "the samples' own statistics were trusted")
            continue
        lost: Counter[str] = Counter()
        wrong: Counter[str] = Counter()
        for line, (before, after) in enumerate(zip(samples, again, strict=True), start=1):
            for field, here, there in scored_otherwise(before, after):
                (lost if there is None else wrong)[field] += 1
                if there is not None and wrong[field] <= MOST:
                    where, expected = f"{task}: {before.sample_id}", f"{_short(there)} by today's rules"
                    yield problem("LB106", where, _short(here), expected, _AGAIN, file=path, line=line, field=field)
        for field, count in sorted(lost.items()):
            found = f"{count:,} samples have it, but it cannot be computed here"
            yield problem("LB107", task, found, "what it needs", "see `medtasks doctor`", file=path, field=field)


def rescored(task: str, manifest: RunManifest, samples: Sequence[Sample], *, learned: bool = True) -> list[Sample]:
    """The samples by today's rules, as `medtasks.results.rescore` makes them; with learned metrics if ``learned``.

    Raises:
        MedtasksError: they cannot be scored here.
    """
    spec = load_spec(task)
    problems: list[str] = []
    with using(miniature=manifest.miniature):
        scored = scored_again(spec, samples)
    if learned:
        scored = with_learned_metrics(spec, scored, problems)
    if problems:
        raise MedtasksError(problems[0])
    return with_judged_scores(spec, scored, manifest.judge)


def scored_otherwise(before: Sample, after: Sample) -> Iterator[tuple[str, Any, Any]]:
    """What was extracted or scored differently: field, old value, new value (None: not computed here)."""
    if _known(before.scores) == _known(after.scores) and all(
        getattr(before, field) == getattr(after, field) for field in _SCORED
    ):
        return
    for field in ("filtered", "status"):
        if getattr(before, field) != getattr(after, field):
            yield field, getattr(before, field), getattr(after, field)
    if any(getattr(before, field) != getattr(after, field) for field in _NUMBERS):
        yield from _other_numbers(before, after)
    if sorted(before.pending) != sorted(after.pending):
        yield "pending", sorted(before.pending), sorted(after.pending)


def _known(scores: Mapping[str, float | None]) -> dict[str, float]:
    """Without those that were not computed, which are None or absent."""
    return {name: score for name, score in scores.items() if score is not None}


_NUMBERS = frozenset({"scores", "statistics", "judged", "repeats"})


def _other_numbers(before: Sample, after: Sample) -> Iterator[tuple[str, Any, Any]]:
    for name in dict.fromkeys((*before.scores, *after.scores)):
        yield from _unequal(f"scores.{name}", before.scores.get(name), after.scores.get(name))
        yield from _unequal(f"statistics.{name}", before.statistics.get(name), after.statistics.get(name))
    for name in sorted(before.judged.keys() | after.judged.keys()):  # scoring prefers these to statistics
        for place, here, there in _unequal(f"judged.{name}", before.judged.get(name), after.judged.get(name)):
            yield place, here or _ABSENT, there or _ABSENT
    for place, there, here in differences(_plain(after.repeats), _plain(before.repeats), "repeats"):
        yield place, here, there


def _unequal(place: str, before: Any, after: Any) -> Iterator[tuple[str, Any, Any]]:
    if before != after and any(differences(there := _plain(after), here := _plain(before))):
        yield place, here, there


def _plain(value: Any) -> Any:
    """As in JSON."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    return [_plain(one) for one in value] if isinstance(value, tuple) else value


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
