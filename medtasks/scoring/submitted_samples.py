"""Whether a task's submitted samples are those that the manifest and the data prepared here
describe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from medtasks.catalog.spec import TaskSpec
from medtasks.catalog.statuses import FAILED
from medtasks.core.errors import DataError, MachineError, MedtasksError, first_line
from medtasks.core.files import canonical_json, short_hash
from medtasks.runs.manifest import RunManifest
from medtasks.runs.run_signatures import changed_options
from medtasks.runs.samples import Sample, lacks_texts
from medtasks.scoring.local_documents import LocalDocument, local_sample_fields
from medtasks.scoring.verification_outcome import Verification

NO_RESPONSES = (
    "claimed: it has no prompts and responses, so its scores cannot be computed from them"
)
_MIN_SAMPLES, _MIN_DISTINCT = 20, 4
"""Responses of fewer samples, or fewer distinct ones, may be equal by chance."""


class SubmittedSamples:
    """The samples of one task, checked part by part.

    Call :meth:`begin` with the first part, :meth:`require_own` and :meth:`with_local_documents`
    with each part, then :meth:`require_all` and :meth:`concluded`. ``questions`` are hashes of the
    documents by sample id, if they are those of the directory.
    """

    def __init__(self, spec: TaskSpec, manifest: RunManifest) -> None:
        """Nothing is checked yet; ``manifest`` has the task."""
        self.questions: dict[str, str] = {}
        self._spec = spec
        self._manifest = manifest
        self._facts = manifest.tasks[spec.name]
        self._place = f"samples/{spec.name}.jsonl"
        self._local: Mapping[str, LocalDocument] | None = None
        self._hash_by_sample: dict[str, str] = {}
        self._strangers: list[str] = []
        self._other_prompts: list[str] = []
        self._compares_prompts = True

    def begin(self, samples: Sequence[Sample]) -> Verification:
        """The outcome that the first samples and the data prepared here allow."""
        if lacks_texts(samples):
            return Verification("unverifiable", NO_RESPONSES, claimed=True, stripped=True)
        try:
            self._local = local_sample_fields(self._spec.name, self._manifest)
        except MachineError:
            # the gold answers of the directory must not take the place of damaged ones
            raise
        except MedtasksError as error:
            return Verification("unverifiable", first_line(error).rstrip("."))
        return Verification()

    def require_own(self, samples: Sequence[Sample], *, stripped: bool) -> None:
        """Refuse samples of another task, repeated samples, samples with another number of
        responses than expected, missed rounds of a run that was not paced, and missed rounds with
        a response.
        """
        task = self._spec.name
        repeats = self._expected_repeats()
        for sample in samples:
            place = f"{self._place}: sample {sample.sample_id}"
            if sample.sample_id in self._hash_by_sample:
                raise DataError(f"{place} is duplicated, expected once; run again.")
            if sample.task != task:
                raise DataError(
                    f"{place}: field `task` is {sample.task!r}, expected {task!r}; "
                    "restore the file."
                )
            if sample.missed and not self._facts.pace:
                raise DataError(
                    f"{place}: field `missed` is true, but the run was not paced (`pace` of "
                    f"`tasks.{task}` in manifest.json is empty); restore the file."
                )
            if sample.missed and any(sample.responses):
                raise DataError(
                    f"{place}: field `missed` is true, but `responses` has a text, expected empty "
                    "ones; restore the file."
                )
            if not stripped:
                _require_entries(sample, repeats, place)
            self._hash_by_sample[sample.sample_id] = short_hash("\0".join(sample.responses))

    def _expected_repeats(self) -> int:
        """The number of responses per sample: the task's, unless the harness was run with
        ``--repeats``.
        """
        if self._manifest.is_imported:
            return 1
        option = changed_options(self._manifest.settings).get("repeats")
        return int(option) if isinstance(option, int) else int(self._spec.repeats)

    def with_local_documents(self, samples: Sequence[Sample]) -> list[Sample]:
        """The samples with the documents of the data; samples of no document, and those with
        another prompt than their document gives, are noted.

        Without data they stay as they are, and their own documents are noted as questions.
        """
        if self._local is None:
            for sample in samples:
                document = canonical_json(sample.whole_document())
                self.questions[sample.sample_id] = short_hash(document)
            return [*samples]
        has_own_template = self._facts.prompt_hash == self._spec.prompt_hash
        is_comparable = has_own_template and not changed_options(self._manifest.settings)
        checked = []
        for sample in samples:
            if sample.sample_id not in self._local:
                self._strangers.append(sample.sample_id)
                checked.append(sample)
                continue
            local = self._local[sample.sample_id]
            if is_comparable:
                self._compare_prompt(sample, local.prompt_hash)
            elif sample.prompt:
                self._compares_prompts = False
            update = {**local.fields, "prompt_hash": self._facts.prompt_hash}
            checked.append(sample.model_copy(update=update))
        return checked

    def _compare_prompt(self, sample: Sample, expected_hash: str) -> None:
        """Note a sample whose prompt is not the one that its document gives."""
        if not sample.prompt and sample.status == FAILED:
            return  # never asked: the run was not finished
        if short_hash(sample.prompt) != expected_hash:
            self._other_prompts.append(sample.sample_id)

    # --- what only all samples show ---

    def require_all(self) -> None:
        """Refuse another number of samples than the manifest's."""
        count = len(self._hash_by_sample)
        if count != self._facts.attempted:
            raise DataError(
                f"{self._place}: {count:,} samples, expected {self._facts.attempted:,}, the sum of "
                f"`answered` and `failed` of `tasks.{self._spec.name}` in manifest.json; restore "
                "the file."
            )

    @property
    def asked(self) -> int:
        """How many documents the task has."""
        if self._local is None:
            return self._facts.asked
        if self._strangers:
            return max(self._facts.asked, len(self._local))
        return len(self._local)

    @property
    def responses_hash(self) -> str:
        """A hash that copies of the responses share; empty if equal ones may be chance."""
        distinct = len(set(self._hash_by_sample.values()))
        if len(self._hash_by_sample) < _MIN_SAMPLES or distinct < _MIN_DISTINCT:
            return ""
        return short_hash(canonical_json(sorted(self._hash_by_sample.items())))

    def concluded(self, outcome: Verification) -> Verification:
        """The final outcome: refused if a sample is of no document, or has another prompt."""
        count = len(self._hash_by_sample)
        if self._strangers:
            strangers = f"{len(self._strangers):,} of {count:,} samples"
            outcome = Verification("refused", f"{strangers} are of no document of the task")
        elif self._other_prompts:
            prompts = f"{len(self._other_prompts):,} of {count:,} prompts"
            outcome = Verification("refused", f"{prompts} differ from the template")
        return replace(
            outcome,
            strangers=tuple(sorted(self._strangers)),
            other_prompts=tuple(sorted(self._other_prompts)),
            prompts=self._compares_prompts,
        )


def _require_entries(sample: Sample, expected: int, place: str) -> None:
    """Refuse a sample with another number of responses, or of what is reported of each."""
    counts = {
        "responses": len(sample.responses),
        "failed": len(sample.failed) or expected,
        "probabilities": len(sample.probabilities) or expected,
    }
    for field, count in counts.items():
        if count != expected:
            raise DataError(
                f"{place}: field `{field}` has {count:,} entries, expected {expected}, the number "
                "of responses to a question of the task; restore the file."
            )
