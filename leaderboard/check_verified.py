"""Findings about what could be verified of a run, and about its learned metrics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from medtasks.metrics.learned import LEARNED
from medtasks.results.learned import with_learned_metrics
from medtasks.results.samples import Sample
from medtasks.spec import load_spec
from medtasks.text import first_names
from medtasks.validation.findings import Finding

from .check_rules import MOST, Submission, problem
from .strip import is_stripped
from .verify import other_prompts

_TOLERANCE = 1e-3
"""A learned score depends a little on the others in its batch."""


def check_verified(run: Submission) -> Iterator[Finding]:
    """What `medtasks.leaderboard.verify` refused, and what it could not verify, other than stripped tasks."""
    unverifiable: dict[str, list[str]] = {}
    for task, one in run.digest.verification.items():
        if one.outcome == "unverifiable" and not is_stripped(run.samples[task]):
            unverifiable.setdefault(one.reason, []).append(task)
        others = list(other_prompts(load_spec(task), run.manifest, run.samples[task]))
        for line, sample in others[:MOST]:
            where, expected = f"{task}: {sample.sample_id}", "the prompt that the task's template renders"
            fix, file = "submit the directory as the run wrote it", run.samples_file(task)
            yield problem("LB403", where, "another prompt", expected, fix, file=file, line=line, field="prompt")
        if one.outcome == "refused" and not others:
            expected, fix = "the documents of the task", "submit the directory as the run wrote it"
            yield problem("LB401", task, one.reason, expected, fix, file=run.samples_file(task))
    for why, tasks in unverifiable.items():
        found = f"{first_names(tasks, MOST)} cannot be verified here ({why})"
        fix = "prepare the data of the run here"
        yield problem("LB402", run.folder.name, found, "the data of the run", fix, file=run.manifest_file)


def check_learned(run: Submission) -> Iterator[Finding]:
    """Compute the learned metrics of the run's responses again, and compare."""
    for task in run.digest.verification:
        spec, samples = load_spec(task), run.samples[task]
        if spec.metadata.learned and not is_stripped(samples):
            problems: list[str] = []
            again = with_learned_metrics(spec, samples, problems)
            for text in problems:
                yield problem("LB107", task, text.rstrip("."), "its score", "see `medtasks doctor`")
            for name in spec.metadata.learned:
                yield from _compared(run, task, name, samples, again)


def _compared(
    run: Submission, task: str, name: str, samples: Sequence[Sample], again: Sequence[Sample]
) -> Iterator[Finding]:
    path = run.samples_file(task)
    pairs = [(one.scores.get(name), other.scores.get(name)) for one, other in zip(samples, again, strict=True)]
    if LEARNED[name].unavailable() is not None:
        if count := sum(claimed is not None for claimed, _ in pairs):
            found = f"{count:,} samples have it, but it cannot be computed here"
            yield problem(
                "LB107", task, found, "what it needs", "see `medtasks doctor`", file=path, field=f"scores.{name}"
            )
        return
    for line, (claimed, computed) in enumerate(pairs, start=1):
        if claimed is not None and computed is not None and abs(claimed - computed) > _TOLERANCE:
            where = f"{task}: {samples[line - 1].sample_id}"
            expected, fix = (
                f"{computed:g} as computed here",
                "score the directory again: `medtasks score DIR --out NEW_DIR`",
            )
            yield problem("LB106", where, f"{claimed:g}", expected, fix, file=path, line=line, field=f"scores.{name}")
            return
