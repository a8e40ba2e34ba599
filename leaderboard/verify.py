"""What a submission's responses and verdicts give by the data and the rules of this machine.

A submission is its responses: documents, prompts, extracted answers, statistics and scores are made here, by the same
functions as in a run. So nothing can be forged but responses and verdicts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from medtasks.benchmarks.base import FAILED, Document
from medtasks.benchmarks.stages import asked_prompt
from medtasks.errors import DataError, MedtasksError, NotPreparedError, first_line
from medtasks.files import canonical_json
from medtasks.metrics.registry import get_metric
from medtasks.results.manifest import RubricFacts, RunManifest, TaskFacts
from medtasks.results.rescore import facts_today
from medtasks.results.samples import Sample
from medtasks.results.scored import scored_again
from medtasks.results.signature import changed_options
from medtasks.results.verdict_scores import with_judged_scores
from medtasks.rubrics.rubric import load_rubric, rubric_hash, rubric_names
from medtasks.settings import using
from medtasks.spec import TaskSpec, load_spec

from .limits import require_samples
from .local_data import Release, document_hash, document_of, local_documents, local_hashes, once, with_document
from .strip import is_stripped

UNSCORED = "scores are taken as submitted, because they cannot be computed here"
"""In notes on tasks that could be scored again on another machine, or after data were prepared."""
STRIPPED = "claimed: it has no prompts and responses, so its scores cannot be computed from them"


@dataclass(frozen=True)
class Verification:
    """The outcome for one task of a run, and the reason.

    ``verified``: scored from the responses, with the data prepared here. ``unverifiable``: the data are not here, so
    questions and gold answers are taken as submitted, or the scores themselves (``claimed``). ``refused``: never
    ranked.
    """

    outcome: Literal["verified", "unverifiable", "refused"] = "verified"
    reason: str = ""
    claimed: bool = False


@dataclass(frozen=True)
class Verified:
    """A run as it is scored here; ``responses`` is a hash of each task's responses, ``notes`` are for readers.

    ``submitted`` names by task the metrics whose values are the submitter's, because they cannot be computed here.
    """

    manifest: RunManifest
    samples: dict[str, Sequence[Sample]]
    outcomes: dict[str, Verification]
    responses: dict[str, str]
    submitted: dict[str, frozenset[str]]
    notes: tuple[str, ...]

    @classmethod
    def of(cls, manifest: RunManifest, samples: Mapping[str, Sequence[Sample]]) -> Verified:
        """A run that was scored in this process."""
        outcomes = dict.fromkeys(samples, Verification())
        responses = {task: _responses_hash(found) for task, found in samples.items()}
        return cls(manifest, dict(samples), outcomes, responses, dict.fromkeys(samples, frozenset()), ())

    def signed(self, name: str, metric: str) -> RunManifest:
        """The manifest to sign a score with: without the versions of the packages that computed it there, unless its
        values are those that were submitted."""
        members = self.manifest.groups.get(name, (name,))
        if any(metric in self.submitted[task] for task in members):
            return self.manifest
        return self.manifest.model_copy(update={"versions": {}, "scored": None})


def verify(manifest: RunManifest, samples: Mapping[str, Sequence[Sample]]) -> Verified:
    """Score a run's responses and verdicts again, without loading models.

    Args:
        manifest: of the run, with installed tasks only.
        samples: by task.

    Raises:
        DataError: a sample cannot be scored; names file, sample and field.
    """
    rubrics, notes = _installed_rubrics(manifest.judge)
    manifest = manifest.model_copy(update={"judge": rubrics})
    facts: dict[str, TaskFacts] = {}
    scored: dict[str, Sequence[Sample]] = {}
    outcomes: dict[str, Verification] = {}
    submitted: dict[str, frozenset[str]] = {}
    for task in manifest.tasks:
        own = _Task(task, manifest, samples[task], notes)
        scored[task], facts[task], outcomes[task] = own.verified()
        submitted[task] = own.submitted
    return Verified(
        manifest=manifest.model_copy(update={"tasks": facts}),
        samples=scored,
        outcomes=outcomes,
        responses={task: _responses_hash(samples[task]) for task in manifest.tasks if not outcomes[task].claimed},
        submitted=submitted,
        notes=tuple(notes),
    )


def _installed_rubrics(judge: Mapping[str, RubricFacts]) -> tuple[dict[str, RubricFacts], list[str]]:
    """The facts on judging with the rubrics installed here; verdicts under other versions of them do not count."""
    found: dict[str, RubricFacts] = {}
    notes = []
    for name, facts in judge.items():
        installed = load_rubric(name) if name in rubric_names() else None
        if installed is not None and rubric_hash(facts.rubric) == rubric_hash(installed):
            found[name] = facts.model_copy(update={"rubric": installed})
        else:
            notes.append(
                f"judged under another rubric {name} than the one installed here, so its verdicts do not count"
            )
    return found, notes


class _Task:
    """One task of a run."""

    def __init__(self, task: str, manifest: RunManifest, samples: Sequence[Sample], notes: list[str]) -> None:
        self._spec = load_spec(task)
        self._manifest, self._facts = manifest, manifest.tasks[task]
        self._samples = samples
        self._place = f"samples/{task}.jsonl"
        self._notes = notes
        self.submitted: frozenset[str] = frozenset()

    def verified(self) -> tuple[Sequence[Sample], TaskFacts, Verification]:
        if is_stripped(self._samples):
            return self._claimed(STRIPPED)
        require_responses(self._place, self._samples, responses_of(self._spec, self._manifest))
        outcome, asked = self._with_local_documents()
        others = sum(1 for _ in other_prompts(self._spec, self._manifest, self._samples))
        if others:
            outcome = Verification("refused", f"{others:,} of {len(self._samples):,} prompts differ from the template")
        try:
            again = self._scored(self._samples)
        except NotPreparedError as error:  # a metric needs data that are not here
            self._notes.append(f"{self._spec.name}: {UNSCORED} ({first_line(error).rstrip('.')})")
            return self._claimed(f"claimed: its scores cannot be computed here ({first_line(error).rstrip('.')})")
        again = self._with_submitted(again)
        facts = facts_today(self._spec, self._facts, [sample.outcome for sample in again])
        return again, facts.model_copy(update={"asked": asked}), outcome

    def _claimed(self, reason: str) -> tuple[Sequence[Sample], TaskFacts, Verification]:
        require_samples(self._place, self._samples)
        self.submitted = frozenset(name for sample in self._samples for name in sample.statistics)
        return self._samples, self._facts, Verification("unverifiable", reason, claimed=True)

    def _with_local_documents(self) -> tuple[Verification, int]:
        """Replace changed documents by those of the data; the outcome, and the number of documents that were asked."""
        facts = self._facts
        data = self._manifest.data[facts.benchmark]
        release = Release(data.fingerprint, data.mini, facts.frames.get("cap"), facts.subset)
        try:
            known = local_hashes(self._spec.name, release)
        except MedtasksError as error:
            return Verification("unverifiable", first_line(error).rstrip(".")), facts.asked
        unknown = sum(sample.sample_id not in known for sample in self._samples)
        if unknown:
            found = f"{unknown:,} of {len(self._samples):,} samples are of no document of the task"
            return Verification("refused", found), max(facts.asked, len(known))
        changed = {sample.sample_id for sample in self._samples if document_hash(sample) != known[sample.sample_id]}
        if changed:
            documents = {one["sample_id"]: one for one in local_documents(self._spec.name, release)}
            self._samples = [
                with_document(sample, documents[sample.sample_id]) if sample.sample_id in changed else sample
                for sample in self._samples
            ]
            self._notes.append(
                f"{self._spec.name}: {len(changed):,} of {len(self._samples):,} documents differ from the data "
                "(question, options, gold answer, media or cluster); those of the data are used"
            )
        return Verification(), len(known)

    def _scored(self, samples: Sequence[Sample]) -> list[Sample]:
        try:
            with using(miniature=self._manifest.miniature):
                again = scored_again(self._spec, samples)
            return with_judged_scores(self._spec, again, self._manifest.judge)
        except NotPreparedError:
            raise
        except Exception as error:  # untrusted input, and code of other packages
            if len(samples) == 1:
                raise DataError(
                    f"{self._place}: sample {samples[0].sample_id}: fields `responses`, `verdicts` and `document` "
                    f"cannot be scored ({_named(error)}); restore the file."
                ) from error
            for sample in samples:
                self._scored([sample])
            raise DataError(f"{self._place}: its samples cannot be scored ({_named(error)}); restore it.") from error

    def _with_submitted(self, again: Sequence[Sample]) -> list[Sample]:
        """The samples with the submitted values of learned metrics, and of those that this machine cannot compute."""
        spec = self._spec
        learned = {*spec.metadata.learned}
        absent = {name for name in spec.metrics if name not in learned and get_metric(name).unavailable() is not None}
        claimed = {name for sample in self._samples for name in sample.statistics} & (learned | absent)
        self.submitted = frozenset(claimed)
        if found := sorted(claimed & learned):
            text = f"{', '.join(found)} are taken as submitted, because building loads no models"
            self._notes.append(f"{spec.name}: {text}")
        if found := sorted(claimed & absent):
            self._notes.append(f"{spec.name}: {UNSCORED} ({', '.join(found)})")
        if claimed:
            require_samples(self._place, self._samples)
        if not (claimed or learned):
            return list(again)
        names = (*spec.metadata.learned, *sorted(claimed & absent))
        return [_with_values(one, other, names) for one, other in zip(again, self._samples, strict=True)]


def _named(error: Exception) -> str:
    text = first_line(error).rstrip(".")
    return text if isinstance(error, MedtasksError) else f"{type(error).__name__}: {text}"


def _with_values(sample: Sample, submitted: Sample, names: Collection[str]) -> Sample:
    """The sample with the submitted values of these metrics; None where there is none."""
    statistics = {} if sample.status == FAILED or sample.repeats else submitted.statistics
    rows = {name: statistics[name] for name in names if name in statistics}
    scores = {name: submitted.scores.get(name) if name in rows else None for name in names}
    update = {"statistics": {**sample.statistics, **rows}, "scores": {**sample.scores, **scores}}
    return sample.model_copy(update=update)


def responses_of(spec: TaskSpec, manifest: RunManifest) -> int:
    """The number of responses to each question: the task's, unless the harness was run with ``--repeats``."""
    option = changed_options(manifest.settings).get("repeats")
    number = option if isinstance(option, int) else spec.resolved.get("repeats") or 1
    return 1 if "layout" in manifest.model else int(number)


def require_responses(place: str, samples: Sequence[Sample], number: int) -> None:
    """Refuse samples with another number of responses, or whose lists beside the responses do not have their length.

    Raises:
        DataError: names the sample and the field.
    """
    for sample in samples:
        for field in ("responses", "failed", "probabilities"):
            found = len(getattr(sample, field))
            if found != number and (found or field == "responses"):
                raise DataError(
                    f"{place}: sample {sample.sample_id}: field `{field}` has {found:,} entries, expected {number}, "
                    "the number of responses to a question of the task; restore the file."
                )


def other_prompts(spec: TaskSpec, manifest: RunManifest, samples: Sequence[Sample]) -> Iterator[tuple[int, Sample]]:
    """The samples, with line numbers, whose prompt is not what the task's template makes of their documents.

    Empty if the run has another template than the one installed here, or harness options changed the prompts. Tasks
    with two stages log the first prompt.
    """
    prompt_hash = manifest.tasks[spec.name].prompt_hash
    if changed_options(manifest.settings) or prompt_hash != spec.prompt_hash or is_stripped(samples):
        return
    what = f"prompt of {spec.name} {prompt_hash}"
    for line, sample in enumerate(samples, start=1):
        if sample.status == FAILED and not sample.prompt:  # never asked: the run was not finished
            continue
        expected = once(what, document_of(sample), lambda one: _prompt(spec, one))
        if _hash(sample.prompt) != expected:
            yield line, sample


def _prompt(spec: TaskSpec, document: Document) -> bytes:
    """The hash of the prompt; empty if the document does not give one."""
    try:
        return _hash(asked_prompt(spec, document))
    except (MedtasksError, KeyError):
        return b""


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _responses_hash(samples: Sequence[Sample]) -> str:
    """A hash of all responses, to find copies; empty if there are too few different ones to tell chance from copies."""
    found = {sample.sample_id: sample.responses for sample in samples}
    if len(found) < 20 or len({*found.values()}) < 4:
        return ""
    return _hash(canonical_json(sorted(found.items()))).hex()[:16]


def unverified_note(tasks: Sequence[str]) -> str:
    """The note that the documents of these tasks were not verified."""
    return (
        f"Documents not verified: {', '.join(tasks)} (the data are not prepared where the board was built, so "
        "questions and gold answers are taken as submitted)."
    )


def verification_notes(outcomes: Mapping[str, Verification]) -> Iterator[str]:
    """The outcomes as notes on a run."""
    for task, one in sorted(outcomes.items()):
        if one.outcome == "refused":
            yield f"{task}: {one.reason}"
    if tasks := sorted(task for task, one in outcomes.items() if one.outcome == "unverifiable" and not one.claimed):
        yield unverified_note(tasks)
    if tasks := sorted(task for task, one in outcomes.items() if one.reason == STRIPPED):
        yield f"stripped, so the responses cannot be scored again: {', '.join(tasks)}"
