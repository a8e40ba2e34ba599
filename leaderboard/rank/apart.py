"""Why runs are not comparable with those that are ranked."""

from __future__ import annotations

from medtasks.catalog.spec import leaf_tasks, load_spec
from medtasks.runs.signature import changed_signature, differences, parse_signature

from ..verify.run_notes import coverage_note
from ..verify.scored_run import ScoredRun
from .candidates import ScoreCandidate, VerificationLevel, is_blind_twin

BLIND = "blind: prompts without media"
MINIATURE = "miniature data: a demonstration, not a benchmark result"
OTHER_ITEMS = "items or clusters differ from those of other runs with the same signature"
UNVERIFIED = (
    "not verified: the data are not prepared where the board was built, as they are for other runs"
)
SMALLER = "fewer items than other runs of the release"


def reasons_apart(candidate: ScoreCandidate, main: ScoreCandidate | None) -> tuple[str, ...]:
    """Why the run is not comparable with ``main``, the first of those that are."""
    run, task = candidate.run, candidate.task
    reasons = list(candidate.refused)
    if main is not None and candidate.level > main.level:
        reasons += _unverified_reasons(candidate)
    if run.blind:
        reasons.append(BLIND)
    if candidate.mini:
        reasons.append(MINIATURE)
    if not candidate.complete:
        reasons.append(_incomplete_reason(run, task))
    note = task_coverage_note(run, task)
    main_note = None if main is None else task_coverage_note(main.run, task)
    if note is not None and note != main_note:
        reasons.append(note)
    if main is not None and not is_blind_twin(candidate, main):
        reasons += _differences(candidate, main)
    return tuple(dict.fromkeys(reasons))


def _unverified_reasons(candidate: ScoreCandidate) -> list[str]:
    """Why a run is less verified than others."""
    if candidate.level == VerificationLevel.SUBMITTED_DOCUMENTS:
        return [UNVERIFIED]
    reasons = []
    for leaf in leaf_tasks(candidate.task):
        verification = candidate.run.verification.get(leaf)
        if verification is not None and verification.claimed:
            reasons.append(verification.reason)
    return reasons


def _incomplete_reason(run: ScoredRun, task: str) -> str:
    """What an incomplete run lacks of a task or group."""
    leaves = leaf_tasks(task)
    lacking = [leaf for leaf in leaves if leaf not in run.public.counts]
    if lacking:
        return f"run without {', '.join(lacking)}"
    answered = sum(run.public.counts[leaf].get("answered", 0) for leaf in leaves)
    answered += sum(run.public.counts[leaf].get("status missed", 0) for leaf in leaves)
    asked = sum(run.public.counts[leaf].get("asked", 0) for leaf in leaves)
    if answered >= asked:
        return "streaming items without all of their rounds"
    documents = f"{answered:,} of {asked:,} documents"
    return f"run with --limit: {documents}" if "limit" in run.public.settings else documents


def _differences(candidate: ScoreCandidate, main: ScoreCandidate) -> list[str]:
    """How a run's items and signature differ from those of ``main``."""
    reasons = []
    is_unverified = candidate.level != VerificationLevel.VERIFIED
    if is_unverified and candidate.group_key == main.group_key and candidate.share < main.share:
        reasons.append(SMALLER)
    signature = candidate.signature
    if not candidate.complete:
        # an incomplete run has other items in any case
        items = parse_signature(main.signature).get("items", "none")
        signature = changed_signature(signature, items=items)
    reasons += differences(signature, main.signature)
    if candidate.signature == main.signature and candidate.items != main.items:
        reasons.append(OTHER_ITEMS)
    return reasons


def task_coverage_note(run: ScoredRun, task: str) -> str | None:
    """The note that only a part of the release of a task's benchmark was prepared, if it was."""
    benchmark = load_spec(task).metadata.benchmark
    if benchmark not in run.manifest.data:
        return None
    return coverage_note(run.manifest, benchmark)
