"""What a submission's responses and verdicts give by the data and the rules of this machine.

A submission is its responses: documents, prompts, extracted answers, statistics and scores are made
here, by the same functions as in a run. So nothing can be forged but responses and verdicts.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from medtasks.benchmarks.documents import asked_prompt, task_rows
from medtasks.catalog.benchmark import Document
from medtasks.catalog.registry import get_benchmark
from medtasks.catalog.rubric import rubric_hash
from medtasks.catalog.rubric_files import load_rubric, rubric_files
from medtasks.catalog.spec import load_spec
from medtasks.catalog.statuses import FAILED
from medtasks.core.errors import (
    DamagedDataError,
    DataError,
    MachineError,
    MedtasksError,
    NotPreparedError,
    first_line,
    machine_fault,
)
from medtasks.core.files import canonical_json, short_hash
from medtasks.core.settings import Settings, current_settings, read_subset, using
from medtasks.data.store import open_prepared
from medtasks.metrics.base import Array
from medtasks.metrics.registry import get_metric, item_bounds_of
from medtasks.runs.manifest import (
    DataFacts,
    RubricFacts,
    RunManifest,
    TaskFacts,
    filter_versions,
    protocol_hash,
)
from medtasks.runs.samples import Outcome, Sample, SampleFile, lacks_texts
from medtasks.runs.signature import changed_options
from medtasks.scoring.judged_scores import with_judged_scores
from medtasks.scoring.run_record import Verification
from medtasks.scoring.run_tables import in_parts
from medtasks.scoring.scored_samples import has_models, scored_samples, with_learned_metrics

T = TypeVar("T")

UNSCORED = "scores are taken as submitted, because they cannot be computed here"
"""In notes on tasks that could be scored again on another machine, or after data were prepared."""
NO_RESPONSES = (
    "claimed: it has no prompts and responses, so its scores cannot be computed from them"
)


class SubmittedTask:
    """One task of a run, as it is scored here; what was found out about it is complete after
    :meth:`parts`.

    With ``own``, learned metrics are computed with their models, and nothing that was submitted is
    used; otherwise the submitted values of learned metrics, and of those that this machine cannot
    compute, are kept: ``submitted`` names them. ``either`` is whether ``own`` makes no difference.
    ``responses`` is a hash of all responses, to find copies, ``outcomes`` are those of the samples
    scored so far. ``questions`` are hashes of the documents by sample id, if they are those of the
    directory.
    """

    def __init__(self, task: str, manifest: RunManifest, *, own: bool) -> None:
        self.spec = load_spec(task)
        self._manifest, self._own = manifest, own
        self._place = f"samples/{task}.jsonl"
        self._facts = manifest.tasks[task]
        self.outcomes: list[Outcome] = []
        self.outcome = Verification()
        self.submitted: frozenset[str] = frozenset()
        self.notes: list[str] = []
        self.problems: list[str] = []
        self.responses = ""
        self.questions: dict[str, str] = {}
        self.either = not has_models(self.spec)
        self._known: Mapping[str, tuple[Mapping[str, Any], str]] | None = None
        learned = {*self.spec.metadata.learned}
        absent = {
            one
            for one in {*self.spec.metrics} - learned
            if get_metric(one).unavailable() is not None
        }
        self._claimable = frozenset(learned | absent)
        self._claimed: set[str] = set()
        self._responses: dict[str, str] = {}  # a hash of each sample's, by sample id
        self._strangers: list[str] = []
        self._other_prompts: list[str] = []
        self._prompts = True

    def parts(
        self, samples: Sequence[Sample] | SampleFile
    ) -> Iterator[tuple[list[Sample], list[Sample]]]:
        """The samples in parts, each as submitted and as scored now; few are in memory at a time.

        Raises:
            DataError: the samples are not those that the manifest describes, do not have the task's
                number of responses, or cannot be scored.
        """
        for submitted, part in self.checked(in_parts(self.spec, samples)):
            made = part
            if not self.outcome.claimed:
                try:
                    made = self._scored(part)
                except NotPreparedError as error:  # a metric needs data that are not here
                    why = first_line(error).rstrip(".")
                    self.notes.append(f"{self.spec.name}: {UNSCORED} ({why})")
                    reason = f"claimed: its scores cannot be computed here ({why})"
                    self.outcome = Verification("unverifiable", reason, claimed=True)
                except Exception as error:  # untrusted input, and code of other packages
                    raise machine_fault(error) or self._unscorable(part, error) from error
            if self.outcome.claimed:
                self.submitted |= {name for sample in part for name in sample.statistics}
            self.outcomes += [sample.outcome for sample in made]
            yield submitted, made

    def checked(
        self, parts: Iterable[Sequence[Sample]]
    ) -> Iterator[tuple[list[Sample], list[Sample]]]:
        """Parts as submitted and with the documents of the data, not scored; raises as
        :meth:`parts`.
        """
        for number, part in enumerate(parts):
            submitted = ordered = sorted(part, key=lambda sample: sample.sample_id)
            if number == 0 and lacks_texts(ordered):
                self.outcome = Verification(
                    "unverifiable", NO_RESPONSES, claimed=True, stripped=True
                )
            elif number == 0:
                try:
                    self._known = _from_data_here(_known, self.spec.name, self._manifest)
                except (
                    MachineError
                ):  # the gold answers of the directory must not take the place of damaged ones
                    raise
                except MedtasksError as error:
                    self.outcome = Verification("unverifiable", first_line(error).rstrip("."))
            self._require_own_samples(ordered)
            if not self.outcome.claimed:
                ordered = self._with_local_documents(ordered)
                self._claimed |= {
                    name for one in ordered for name in one.statistics
                } & self._claimable
            yield submitted, ordered
        self._conclude()

    def _require_own_samples(self, samples: Sequence[Sample]) -> None:
        """Refuse samples that are not those that the manifest describes, or with another number of
        responses: it is the task's, unless the harness was run with ``--repeats``.
        """
        task = self.spec.name
        option = changed_options(self._manifest.settings).get("repeats")
        number = option if isinstance(option, int) else self.spec.repeats
        number = 1 if self._manifest.is_imported else int(number)
        for sample in samples:
            place = f"{self._place}: sample {sample.sample_id}"
            if sample.sample_id in self._responses:
                raise DataError(f"{place} is duplicated, expected once; run again.")
            if sample.task != task:
                raise DataError(
                    f"{place}: field `task` is {sample.task!r}, expected {task!r}; restore the file."
                )
            if not self.outcome.stripped:
                _require_entries(sample, number, place)
            self._responses[sample.sample_id] = short_hash("\0".join(sample.responses))

    def _with_local_documents(self, samples: Sequence[Sample]) -> list[Sample]:
        """The samples with the documents of the data, whose prompts are compared with those that
        the documents give.
        """
        if self._known is None:
            for sample in samples:
                self.questions[sample.sample_id] = short_hash(
                    canonical_json(sample.whole_document())
                )
            return [*samples]
        own = (
            not changed_options(self._manifest.settings)
            and self._facts.prompt_hash == self.spec.prompt_hash
        )
        found = []
        for one in samples:
            if one.sample_id not in self._known:
                self._strangers.append(one.sample_id)
                found.append(one)
                continue
            fields, prompt = self._known[one.sample_id]
            # without a prompt, it was never asked: the run was not finished
            if own and (one.prompt or one.status != FAILED) and short_hash(one.prompt) != prompt:
                self._other_prompts.append(one.sample_id)
            elif not own and one.prompt:
                self._prompts = False
            found.append(one.model_copy(update={**fields, "prompt_hash": self._facts.prompt_hash}))
        return found

    def _conclude(self) -> None:
        """Set what only all samples show."""
        task, count = self.spec.name, len(self._responses)
        if count != self._facts.attempted:
            raise DataError(
                f"{self._place}: {count:,} samples, expected {self._facts.attempted:,}, the sum of `answered` "
                f"and `failed` of `tasks.{task}` in manifest.json; restore the file."
            )
        if self._known is not None:
            asked = (
                max(self._facts.asked, len(self._known)) if self._strangers else len(self._known)
            )
            self._facts = self._facts.model_copy(update={"asked": asked})
        if not self.outcome.claimed:
            if (
                count >= 20 and len({*self._responses.values()}) >= 4
            ):  # else equal ones may be chance
                self.responses = short_hash(canonical_json(sorted(self._responses.items())))
            if self._strangers:
                text = (
                    f"{len(self._strangers):,} of {count:,} samples are of no document of the task"
                )
                self.outcome = Verification("refused", text)
            elif self._other_prompts:
                text = f"{len(self._other_prompts):,} of {count:,} prompts differ from the template"
                self.outcome = Verification("refused", text)
            self.outcome = replace(
                self.outcome,
                strangers=tuple(sorted(self._strangers)),
                other_prompts=tuple(sorted(self._other_prompts)),
                prompts=self._prompts,
                submitted=() if self._own else tuple(sorted(self._claimed)),
            )
        learned = {*self.spec.metadata.learned}
        self.either = self.either and not self._claimed
        if not self._own:
            self.submitted |= self._claimed
            if names := ", ".join(sorted(self._claimed & learned)):
                self.notes.append(
                    f"{task}: {names} are taken as submitted, because building loads no models"
                )
            if names := ", ".join(sorted(self._claimed - learned)):
                self.notes.append(f"{task}: {UNSCORED} ({names})")

    def _scored(self, samples: Sequence[Sample]) -> list[Sample]:
        with using(miniature=self._manifest.miniature):
            again = scored_samples(self.spec, samples)
            if self._own:
                again = with_learned_metrics(self.spec, again, self.problems)
        learned = self.spec.metadata.learned
        names = () if self._own else (*learned, *sorted(self._claimed - {*learned}))
        for number, (one, given) in enumerate(zip(again, samples, strict=True) if names else ()):
            known = {} if one.status == FAILED or one.repeats else given.statistics
            rows = {name: known[name] for name in names if name in known}
            scores = {name: given.scores.get(name) if name in rows else None for name in names}
            update = {"statistics": {**one.statistics, **rows}, "scores": {**one.scores, **scores}}
            again[number] = one.model_copy(update=update)
        return with_judged_scores(self.spec, again, self._manifest.judge)

    def _unscorable(self, samples: Sequence[Sample], error: Exception) -> DataError:
        """The error that names the first sample that cannot be scored."""
        for sample in samples if len(samples) > 1 else ():
            try:
                self._scored([sample])
            except Exception as its_own:
                return self._unscorable([sample], its_own)
        what = "its samples"
        if len(samples) == 1:
            what = f"sample {samples[0].sample_id}: fields `responses`, `verdicts` and `document`"
        why = first_line(error).rstrip(".")
        return DataError(f"{self._place}: {what} cannot be scored ({why}); restore the file.")

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
            presentation=self._facts.presentation,
        )
        now = {
            "filters": filter_versions(self.spec),
            "protocol_hash": protocol,
            "yaml_hash": self.spec.yaml_hash,
        }
        return self._facts.model_copy(update=now).with_outcomes(self.outcomes)


def _require_entries(sample: Sample, number: int, place: str) -> None:
    """Refuse a sample with another number of responses, or of what is reported of each."""
    counts = {
        "responses": len(sample.responses),
        "failed": len(sample.failed) or number,
        "probabilities": len(sample.probabilities) or number,
    }
    for field, count in counts.items():
        if count != number:
            raise DataError(
                f"{place}: field `{field}` has {count:,} entries, expected {number}, the number of "
                "responses to a question of the task; restore the file."
            )


def installed_rubrics(judge: Mapping[str, RubricFacts]) -> tuple[dict[str, RubricFacts], list[str]]:
    """The facts on judging with the rubrics installed here; verdicts under other versions of them
    do not count.
    """
    found: dict[str, RubricFacts] = {}
    notes = []
    for name, facts in judge.items():
        installed = load_rubric(name) if name in rubric_files() else None
        if installed is not None and rubric_hash(facts.rubric) == rubric_hash(installed):
            found[name] = facts.model_copy(update={"rubric": installed})
        else:
            notes.append(
                f"judged under another rubric {name} than the one installed here, so its verdicts do not count"
            )
    return found, notes


_HUGE = 1e12
"""Above all real scores, and small enough for pages and figures."""
_ROUNDING = 1e-9


def require_statistics(metric: str, rows: Array) -> None:
    """Refuse statistics ``(items, width)`` that score an item beyond the metric's bounds, or count
    it negatively: they were submitted, and nothing else limits them.
    """
    low, high = item_bounds_of(metric) or (-_HUGE, _HUGE)
    low, high = max(low, -_HUGE), min(high, _HUGE)
    known = rows[~np.isnan(rows).any(axis=1)]
    with np.errstate(all="ignore"):  # a single item may have no score
        scores = get_metric(metric).score(known)
    if known.shape[1] == 2 and (known[:, 1] < 0).any():
        found, expected = f"an item counts {known[:, 1].min():g} times", "0 or more"
    elif (beyond := scores[(scores < low - _ROUNDING) | (scores > high * (1 + _ROUNDING))]).size:
        found, expected = f"an item's score is {beyond[0]:g}", f"{low:g} to {high:g}"
    else:
        return
    raise DataError(
        f"statistics of {metric}: {found}, expected {expected}; restore the directory, or score it again: medtasks "
        "score DIR --out NEW_DIR."
    )


def unverified_note(tasks: Sequence[str]) -> str:
    """The note that the documents of these tasks were not verified."""
    return (
        f"Documents not verified: {', '.join(tasks)} (the data are not prepared where the board was built, so "
        "questions and gold answers are taken as submitted)."
    )


def verification_notes(outcomes: Mapping[str, Verification]) -> Iterator[str]:
    """The outcomes as notes on a run."""
    unverified: list[str] = []
    stripped: list[str] = []
    for task, verification in sorted(outcomes.items()):
        if verification.outcome == "refused":
            yield f"{task}: {verification.reason}"
        if verification.outcome == "unverifiable" and not verification.claimed:
            unverified.append(task)
        if verification.stripped:
            stripped.append(task)
    if unverified:
        yield unverified_note(unverified)
    if stripped:
        yield f"stripped, so the responses cannot be scored again: {', '.join(stripped)}"


# --- documents of the data prepared here ---


def local_documents(task: str, manifest: RunManifest) -> Mapping[str, Document]:
    """The documents of the run's task by sample id, from the data prepared here; miniature data are
    made if absent.
    """
    return _from_data_here(_documents, task, manifest)


def _from_data_here(make: Callable[[str, str, Settings], T], task: str, manifest: RunManifest) -> T:
    facts, here = manifest.tasks[task], current_settings().mini
    data = manifest.data[facts.benchmark]
    errors: list[MedtasksError] = []
    for mini in dict.fromkeys((here, True) if data.mini else (here,)):
        with using(mini=mini, max_frames=facts.frames.get("cap"), subset=read_subset(facts.subset)):
            try:
                return make(task, data.fingerprint, current_settings())
            except MedtasksError as error:
                errors.append(error)
            except OSError as error:
                problem = f"{facts.benchmark}: its prepared data cannot be read ({error.strerror or error}); restore them."
                errors.append(DamagedDataError(problem))
            except Exception as error:  # code of other packages
                problem = f"{task}: its documents cannot be made ({first_line(error)})."
                errors.append(machine_fault(error) or MedtasksError(problem))
    try:
        raise next((error for error in errors if isinstance(error, MachineError)), errors[0])
    finally:
        errors.clear()  # each has this frame, which has them: they, and the callers' samples, would stay


@functools.lru_cache(maxsize=8)
def _documents(task: str, fingerprint: str, settings: Settings) -> Mapping[str, Document]:
    del settings  # in force; here only part of the cache key
    benchmark = load_spec(task).metadata.benchmark
    prepared = open_prepared(benchmark)
    here = prepared.manifest.fingerprint
    if here != fingerprint:
        prepared.require_intact()  # else the manifest's fingerprint may be what was damaged
        raise DataError(f"the data of {benchmark} prepared here have the fingerprint {here[:16]}.")
    return {document["sample_id"]: document for document in task_rows(task).documents(media=False)}


@functools.cache
def _known(
    task: str, fingerprint: str, settings: Settings
) -> Mapping[str, tuple[Mapping[str, Any], str]]:
    """By sample id what a sample has of the task's document, and the hash of the prompt that it
    gives, if it gives one; made once, because all runs of a board answer the same questions.
    """
    known = {}
    for name, document in _documents(task, fingerprint, settings).items():
        try:
            prompt = short_hash(asked_prompt(load_spec(task), document))
        except (MedtasksError, KeyError):  # the document does not give one
            prompt = ""
        fields = {field: document[field] for field in ("cluster", "target")}
        fields["media"] = tuple(document["media"])
        others = {
            field: value for field, value in document.items() if field not in {"sample_id", *fields}
        }
        known[name] = {**fields, "document": json.loads(canonical_json(others))}, prompt
    return known


def forget_documents() -> None:
    """Free the memory that the documents take."""
    _known.cache_clear()
    _documents.cache_clear()


def is_miniature(benchmark: str, facts: DataFacts) -> bool:
    """Whether the data are miniature data, also if they were prepared from their source files like
    a release.
    """
    if facts.mini or facts.records >= get_benchmark(benchmark).counts.published.get("rows", 0):
        return facts.mini
    with using(mini=True):
        try:
            return open_prepared(benchmark).manifest.fingerprint == facts.fingerprint
        except MachineError:
            raise
        except MedtasksError:
            return False
