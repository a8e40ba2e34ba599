"""What a submission's responses and verdicts give by the data and the rules of this machine.

A submission is its responses: documents, prompts, extracted answers, statistics and scores are made
here, by the same functions as in a run. So nothing can be forged but responses and verdicts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from medtasks.catalog.spec import TaskSpec, load_spec
from medtasks.catalog.statuses import FAILED
from medtasks.core.errors import DataError, NotPreparedError, first_line, machine_fault
from medtasks.core.settings import using
from medtasks.metrics.registry import get_metric
from medtasks.runs.manifest import RunManifest, TaskFacts
from medtasks.runs.protocol import filter_versions, protocol_hash
from medtasks.runs.sample_files import SampleFile
from medtasks.runs.samples import Outcome, Sample
from medtasks.scoring.judged_scores import with_judged_scores
from medtasks.scoring.learned_scores import has_models, with_learned_metrics
from medtasks.scoring.run_tables import in_parts
from medtasks.scoring.scored_samples import scored_samples
from medtasks.scoring.submitted_samples import SubmittedSamples
from medtasks.scoring.verification_outcome import Verification

UNSCORED = "scores are taken as submitted, because they cannot be computed here"
"""In notes on tasks that could be scored again on another machine, or after data were prepared."""


class SubmittedTask:
    """One task of a run, scored on this machine; its attributes are complete after :meth:`parts`.

    ``submitted`` names the metrics whose submitted values are kept. ``either`` is whether ``own``
    makes no difference. ``responses`` is a hash of all responses, to find copies, ``outcomes`` are
    those of the samples scored so far. ``questions`` are hashes of the documents by sample id, if
    they are those of the directory.
    """

    def __init__(self, task: str, manifest: RunManifest, *, own: bool) -> None:
        """Nothing is read or scored yet.

        Args:
            task: the task's name.
            manifest: the run's manifest, which has the task.
            own: compute learned metrics with their models, and use nothing that was submitted.
                Otherwise the submitted values of learned metrics, and of those that this machine
                cannot compute, are kept.
        """
        self.spec = load_spec(task)
        self.outcome = Verification()
        self.outcomes: list[Outcome] = []
        self.submitted: frozenset[str] = frozenset()
        self.responses = ""
        self.notes: list[str] = []
        self.problems: list[str] = []
        self.either = not has_models(self.spec)
        self._manifest = manifest
        self._own = own
        self._facts = manifest.tasks[task]
        self._samples = SubmittedSamples(self.spec, manifest)
        self._claimable = _claimable_metrics(self.spec)
        self._claimed: set[str] = set()

    @property
    def questions(self) -> dict[str, str]:
        return self._samples.questions

    def parts(
        self, samples: Sequence[Sample] | SampleFile
    ) -> Iterator[tuple[list[Sample], list[Sample]]]:
        """The samples in parts, each as submitted and as scored now; few are in memory at a time.

        Raises:
            DataError: the samples are not those that the manifest describes, do not have the task's
                number of responses, or cannot be scored.
        """
        for submitted, part in self.checked(in_parts(self.spec, samples)):
            scored = part
            if not self.outcome.claimed:
                scored = self._scored_or_claimed(part)
            if self.outcome.claimed:
                self.submitted = self.submitted.union(*(sample.statistics for sample in part))
            self.outcomes += [sample.outcome for sample in scored]
            yield submitted, scored

    def checked(
        self, parts: Iterable[Sequence[Sample]]
    ) -> Iterator[tuple[list[Sample], list[Sample]]]:
        """The parts, not scored, each as submitted and with the documents of the data; raises as
        :meth:`parts`.
        """
        for number, part in enumerate(parts):
            submitted = sorted(part, key=lambda sample: sample.sample_id)
            if number == 0:
                self.outcome = self._samples.begin(submitted)
            self._samples.require_own(submitted, stripped=self.outcome.stripped)
            checked = submitted
            if not self.outcome.claimed:
                checked = self._samples.with_local_documents(submitted)
                for sample in checked:
                    self._claimed |= sample.statistics.keys() & self._claimable
            yield submitted, checked
        self._samples.require_all()
        self._conclude()

    @property
    def is_plain(self) -> bool:
        """Whether the task is verified, with nothing to say about it."""
        return (
            self.outcome == Verification() and self.either and not self.notes and not self.problems
        )

    @property
    def facts_now(self) -> TaskFacts:
        """The task's facts under the current rules, once all parts are scored."""
        if self.outcome.claimed:
            return self._facts
        protocol = protocol_hash(
            self.spec,
            self._facts.generation,
            prompt_hash=self._facts.prompt_hash,
            frames=self._facts.frames,
            blind=self._facts.blind,
            pace=self._facts.pace,
            presentation=self._facts.presentation,
        )
        update = {
            "filters": filter_versions(self.spec),
            "protocol_hash": protocol,
            "yaml_hash": self.spec.yaml_hash,
        }
        return self._facts.model_copy(update=update).with_outcomes(self.outcomes)

    def _scored_or_claimed(self, samples: list[Sample]) -> list[Sample]:
        """The scored samples or, if the task needs data that are not here, ``samples``: its scores
        are then taken as submitted.
        """
        try:
            return self._scored(samples)
        except NotPreparedError as error:
            reason = first_line(error).rstrip(".")
        except Exception as error:  # untrusted input, and code of other packages
            raise machine_fault(error) or self._unscorable(samples, error) from error
        self.notes.append(f"{self.spec.name}: {UNSCORED} ({reason})")
        claim = f"claimed: its scores cannot be computed here ({reason})"
        self.outcome = Verification("unverifiable", claim, claimed=True)
        return samples

    def _scored(self, samples: Sequence[Sample]) -> list[Sample]:
        """The samples scored under the rules of this machine, then from their verdicts."""
        with using(miniature=self._manifest.miniature):
            scored = scored_samples(self.spec, samples)
            if self._own:
                scored = with_learned_metrics(self.spec, scored, self.problems)
        if not self._own:
            scored = self._with_submitted_values(scored, samples)
        return with_judged_scores(self.spec, scored, self._manifest.judge)

    def _with_submitted_values(
        self, scored: list[Sample], submitted: Sequence[Sample]
    ) -> list[Sample]:
        """The scored samples with the submitted values of metrics that are not computed here."""
        learned = self.spec.learned
        metrics = [*learned, *sorted(self._claimed - {*learned})]
        if not metrics:
            return scored
        completed = []
        for sample, as_submitted in zip(scored, submitted, strict=True):
            completed.append(_with_submitted(sample, as_submitted, metrics))
        return completed

    def _unscorable(self, samples: Sequence[Sample], error: Exception) -> DataError:
        """The error that names the first sample that cannot be scored."""
        subject = "its samples"
        for sample in samples:
            error_of_sample = self._scoring_error(sample)
            if error_of_sample is not None:
                error = error_of_sample
                fields = "fields `responses`, `verdicts` and `document`"
                subject = f"sample {sample.sample_id}: {fields}"
                break
        reason = first_line(error).rstrip(".")
        return DataError(
            f"samples/{self.spec.name}.jsonl: {subject} cannot be scored ({reason}); "
            "restore the file."
        )

    def _scoring_error(self, sample: Sample) -> Exception | None:
        """The error that scoring this sample alone raises; None if it can be scored."""
        try:
            self._scored([sample])
        except Exception as error:
            return error
        return None

    def _conclude(self) -> None:
        """Complete the attributes that depend on all samples."""
        self._facts = self._facts.model_copy(update={"asked": self._samples.asked})
        if not self.outcome.claimed:
            self.responses = self._samples.responses_hash
            submitted = () if self._own else tuple(sorted(self._claimed))
            self.outcome = replace(self._samples.concluded(self.outcome), submitted=submitted)
        self.either = self.either and not self._claimed
        if not self._own:
            self.submitted |= self._claimed
            self._note_claimed()

    def _note_claimed(self) -> None:
        """Note the metrics whose values are taken as submitted."""
        task = self.spec.name
        learned = {*self.spec.learned}
        claimed_learned = ", ".join(sorted(self._claimed & learned))
        claimed_others = ", ".join(sorted(self._claimed - learned))
        if claimed_learned:
            self.notes.append(
                f"{task}: {claimed_learned} are taken as submitted, "
                "because building loads no models"
            )
        if claimed_others:
            self.notes.append(f"{task}: {UNSCORED} ({claimed_others})")


def _claimable_metrics(spec: TaskSpec) -> frozenset[str]:
    """The metrics that may be taken as submitted: learned ones, and those that cannot be computed
    here.
    """
    claimable = {*spec.learned}
    for metric in spec.metrics:
        if metric not in claimable and get_metric(metric).unavailable() is not None:
            claimable.add(metric)
    return frozenset(claimable)


def _with_submitted(scored: Sample, submitted: Sample, metrics: Sequence[str]) -> Sample:
    """The scored sample with the submitted values of these metrics: none if it failed or was asked
    several times.
    """
    statistics = dict(scored.statistics)
    scores = dict(scored.scores)
    is_counted = scored.status != FAILED and not scored.repeats
    for metric in metrics:
        scores[metric] = None
        if is_counted and metric in submitted.statistics:
            statistics[metric] = submitted.statistics[metric]
            scores[metric] = submitted.scores.get(metric)
    return scored.model_copy(update={"statistics": statistics, "scores": scores})
