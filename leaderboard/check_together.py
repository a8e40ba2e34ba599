"""Findings about several submissions at once: other data, contradicting documents, and runs of one model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from medtasks.text import first_names
from medtasks.validation.findings import Finding

from .check_rules import MOST, problem
from .digest import Digest
from .standings import released_share, same_responses

Runs = Mapping[Path, Digest]
"""The runs that could be read, by directory."""


def check_together(runs: Runs) -> Iterator[Finding]:
    """Findings about runs that are not comparable with, repeat, or would replace another one."""
    yield from _other_data(runs)
    yield from _same_model(runs)
    yield from _same_responses(runs)


def _other_data(runs: Runs) -> Iterator[Finding]:
    """Runs on other data than those with most of the release, or that most runs have."""
    by_data: dict[str, dict[str, list[Path]]] = {}
    for folder, digest in runs.items():
        for benchmark, fingerprint in digest.facts.data.items():
            by_data.setdefault(benchmark, {}).setdefault(fingerprint, []).append(folder)
    for benchmark, found in sorted(by_data.items()):
        shares = {
            one: max(
                (
                    released_share(entry)
                    for folder in found[one]
                    for entry in runs[folder].entries.values()
                    if entry.benchmark == benchmark
                ),
                default=0.0,
            )
            for one in found
        }
        usual = min(found, key=lambda one: (-shares[one], -len(found[one]), one))
        for other in sorted(found.keys() - {usual}):
            for folder in found[other]:
                expected = f"{usual[:16]} as {len(found[usual])} of {sum(map(len, found.values()))} runs have"
                fix, path = "prepare the same release to be comparable", folder / "manifest.json"
                field = f"data.{benchmark}.fingerprint"
                yield problem("LB209", benchmark, other[:16], expected, fix, file=path, field=field)


def _same_responses(runs: Runs) -> Iterator[Finding]:
    """Runs whose responses are those of another model."""
    folders = {digest.facts.key: folder for folder, digest in runs.items()}
    for key, copies in same_responses(runs.values()).items():
        for other, tasks in copies.items():
            found = f"the responses of {first_names(tasks, MOST)} are those of {folders[other].name}, another model"
            fix = "make sure that each model was asked"
            file = folders[key] / "manifest.json"
            yield problem("LB212", folders[key].name, found, "responses of its own", fix, file=file)


def _same_model(runs: Runs) -> Iterator[Finding]:
    """Runs that would replace an older one of the same model: whoever submits a run chooses its model's name."""
    for folder, digest in runs.items():
        older = [
            other.name
            for other, one in runs.items()
            if one.model == digest.model
            and one.facts.digest != digest.facts.digest
            and (one.facts.created, one.facts.key) < (digest.facts.created, digest.facts.key)
            and _signed(one) & _signed(digest)
        ]
        if older:
            found = f"a newer run of the model of {first_names(sorted(older), MOST)}, which it would replace"
            fix = "make sure that both are from the same people, and remove one of them"
            yield problem("LB211", folder.name, found, "one run per model", fix, file=folder / "manifest.json")


def _signed(digest: Digest) -> set[str]:
    """The signatures of the run's scores: runs that have one in common are comparable."""
    return {signature for entry in digest.entries.values() for signature in entry.signatures.values()}
