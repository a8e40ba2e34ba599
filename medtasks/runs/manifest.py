"""The manifest of a run: everything needed to repeat it, and to tell whether two results are
comparable.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any, Literal

from pydantic import BaseModel, Field, ValidationError, field_validator

import medtasks
from medtasks.answers.base import LONGEST_SCORED
from medtasks.catalog.rubric import Rubric
from medtasks.catalog.statuses import MISSED
from medtasks.core.errors import DataError
from medtasks.core.files import canonical_json, short_hash
from medtasks.core.schema import first_problem
from medtasks.core.text import counted
from medtasks.data.prepared import TaskCoverage
from medtasks.metrics.base import package_version
from medtasks.runs.agreement_report import AgreementReport
from medtasks.runs.replies import Reply
from medtasks.runs.samples import UNKNOWN_PROMPT, Outcome
from medtasks.runs.training_record import FACT, TrainingRecord
from medtasks.runs.usage import RunUsage

PACKAGES = (
    "lmms-eval", "transformers", "torch", "accelerate", "datasets", "peft",
    "sacrebleu", "nltk", "numpy", "pillow", "av",
)  # fmt: skip
"""Packages that can affect a score."""
WARNED_SHARE = 0.01
"""The largest share of responses that may be cut off without a warning."""
_NUMBER = re.compile(r"\b(?=\w*\d)[\w-]*\w\b")


class DataFacts(BaseModel, frozen=True):
    """Which data the samples come from."""

    fingerprint: str
    mini: bool
    records: int
    excluded: dict[str, int]
    coverage: tuple[TaskCoverage, ...] = ()


class TaskFacts(BaseModel, frozen=True):
    """One task's protocol and the outcome of its documents.

    ``asked`` counts the task's documents, in a run of a ``subset`` (``share@seed``) those of its
    clusters, ``answered`` those with a response; ``failed`` counts those without one, by reason,
    ``missed`` the rounds of streams that a run at this ``pace`` did not send, because the model was
    still busy when a later one was due.
    ``readings`` counts how options were named, ``scored_in_part`` the documents with a response
    that is too long to be scored whole (`medtasks.runs.samples.Sample`), ``finish`` how responses
    ended (`Reply.finish`, or ``unknown``).
    """

    version: float
    benchmark: str
    template: str
    prompt_hash: str
    yaml_hash: str
    protocol_hash: str
    filters: dict[str, str]
    generation: dict[str, Any]
    frames: dict[str, Any] = {}
    blind: bool = False
    subset: str = Field("", pattern=r"^([0-9.e-]{1,12}@-?[0-9]{1,12})?$")
    pace: str = Field(
        default="",
        pattern=r"^(realtime(@[0-9.e+-]{1,12})?)?$",
        exclude_if=lambda value: not value,
    )
    presentation: dict[str, str] = {}
    excluded: dict[str, int] = {}
    asked: int
    answered: int
    failed: dict[str, int] = {}
    missed: int = Field(default=0, ge=0, exclude_if=lambda value: not value)
    status: dict[str, int]
    readings: dict[str, int] = Field(default_factory=dict, exclude_if=lambda value: not value)
    scored_in_part: int = Field(default=0, exclude_if=lambda value: not value)
    finish: dict[str, int] = {}

    @property
    def cut_off(self) -> float | None:
        """The share of responses that were cut off: a lower bound if some ends are unknown, None if
        all are.
        """
        known_ends = self.finish.keys() - {"unknown"}
        if not known_ends:
            return None
        return self.finish.get("length", 0) / sum(self.finish.values())

    @property
    def cut_off_text(self) -> str:
        """``cut_off`` as a percentage, marked if it is a lower bound."""
        share = self.cut_off or 0.0
        digits = 1 if share < WARNED_SHARE else 0
        at_least = "at least " if self.finish.get("unknown") else ""
        return f"{at_least}{share:.{digits}%}"

    def with_outcomes(
        self, outcomes: Sequence[Outcome], replies: Iterable[Reply] | None = None
    ) -> TaskFacts:
        """The facts with these outcomes of the documents, and with how ``replies`` ended, if they
        are given.
        """
        failures: Counter[str] = Counter()
        statuses: Counter[str] = Counter()
        readings: Counter[str] = Counter()
        scored_in_part = 0
        for outcome in outcomes:
            statuses[outcome.status] += 1
            scored_in_part += outcome.scored_in_part
            if outcome.reading:
                readings[outcome.reading] += 1
            if outcome.failure is not None:
                # reasons often contain a request id or a time: mask numbers, so that similar
                # reasons are counted together
                failures[_NUMBER.sub("#", outcome.failure)] += 1
        update: dict[str, Any] = {
            "answered": len(outcomes) - failures.total() - statuses[MISSED],
            "missed": statuses[MISSED],
            "failed": dict(sorted(failures.items())),
            "status": dict(sorted(statuses.items())),
            "readings": dict(sorted(readings.items())),
            "scored_in_part": scored_in_part,
        }
        if replies is not None:
            ends = Counter[str]()
            for reply in replies:
                if reply.failed is None and not reply.missed:
                    ends[reply.finish or "unknown"] += 1
            update["finish"] = dict(sorted(ends.items()))
        return self.model_copy(update=update)

    @property
    def scored_in_part_text(self) -> str:
        """How many of the task's responses are scored in part, and how."""
        responses = counted(self.scored_in_part, "response")
        return (
            f"{responses} of more than {LONGEST_SCORED:,} characters, scored by the beginning and "
            "the end"
        )

    @property
    def pace_text(self) -> str:
        """That rounds were sent when they were due, and how many were missed."""
        return (
            f"rounds sent in real time ({self.pace}): {self.missed:,} of {self.attempted:,} "
            "missed, scored as empty responses; comparable with runs at this pace only"
        )

    @property
    def attempted(self) -> int:
        """Documents sent to the model, or missed by it."""
        return self.answered + self.missed + sum(self.failed.values())


class RubricFacts(BaseModel, frozen=True):
    """How responses were judged under one rubric, and the outcome.

    ``judges`` maps each judge of the panel to what identifies it (model and settings, never its
    address); ``judge_hash`` covers the rubric, the panel and the rule that combines verdicts.
    ``asked`` counts (sample, response) pairs, ``judged`` those with every aspect decided,
    ``unjudged`` the others by reason. Tokens are those of the distinct verdicts used in the scores,
    including verdicts stored by earlier runs.
    """

    rubric: Rubric
    rubric_hash: str
    template_hash: str
    tasks: tuple[str, ...]
    judges: dict[str, dict[str, Any]]
    combine: Literal["majority", "mean"]
    judge_hash: str
    threshold: float = Field(ge=0, le=1)
    asked: int
    judged: int
    unjudged: dict[str, int] = {}
    repaired: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    warnings: tuple[str, ...] = ()
    agreement: AgreementReport | None = None


class RunManifest(BaseModel, frozen=True):
    """All facts of one run; ``created``, ``processes``, ``usage`` and ``harness_stamp`` may differ
    when it is repeated.

    ``usage`` is what the run used, empty if no model was asked. ``scored`` has the versions that
    scored the run later; None if it was not scored again. ``problems`` are messages about what
    could not be scored or judged. ``harness_stamp`` is the prefix of the names of the harness's own
    files for the run (it uses its own time zone).
    """

    schema_version: int = 1
    created: str
    processes: int
    usage: RunUsage = RunUsage()
    versions: dict[str, str]
    model: dict[str, Any]
    settings: dict[str, Any]
    tasks: dict[str, TaskFacts]
    groups: dict[str, tuple[str, ...]]
    data: dict[str, DataFacts]
    scored: dict[str, str] | None = None
    judge: dict[str, RubricFacts] = {}
    problems: tuple[str, ...] = ()
    harness_stamp: str = ""

    @field_validator("model")
    @classmethod
    def _valid_training_record(cls, model: dict[str, Any]) -> dict[str, Any]:
        """The facts about the model, whose training record must be one."""
        if FACT in model:
            try:
                TrainingRecord.model_validate_json(canonical_json(model[FACT]))
            except ValidationError as error:
                raise ValueError(f"`{FACT}`: {first_problem(error, TrainingRecord)}") from error
        return model

    @property
    def training(self) -> TrainingRecord | None:
        """What the model was trained on with our rewards; None if its checkpoint has no record."""
        if FACT not in self.model:
            return None
        return TrainingRecord.model_validate_json(canonical_json(self.model[FACT]))

    @property
    def is_imported(self) -> bool:
        """Whether the predictions were made with another tool."""
        return "layout" in self.model

    @property
    def has_unknown_prompts(self) -> bool:
        """Whether prompts are unknown, because the responses were made elsewhere."""
        return any(facts.prompt_hash == UNKNOWN_PROMPT for facts in self.tasks.values())

    @property
    def identity(self) -> str:
        """Identifies the run, whatever was scored or judged since: a hash of when it was made, of
        its model and of its tasks.
        """
        return short_hash(canonical_json([self.created, self.model, sorted(self.tasks)]))

    @property
    def miniature(self) -> frozenset[str]:
        """The benchmarks whose miniature data were asked."""
        return frozenset(name for name, facts in self.data.items() if facts.mini)


def created_at(manifest: RunManifest) -> str:
    """When the run was made, in UTC: the newest run of a model is ranked."""
    problem = "expected a time with its offset, such as 2026-11-01T09:30:00+00:00"
    with contextlib.suppress(ValueError, OverflowError):
        time = datetime.fromisoformat(manifest.created)
        is_exact = time.tzinfo is not None
        if is_exact and time <= datetime.now(timezone.utc) + timedelta(days=1):
            return time.astimezone(timezone.utc).isoformat(timespec="seconds")
        if is_exact:
            problem = "in the future, expected when it was run"
    raise DataError(
        f"manifest.json: field `created` is {manifest.created[:60]!r}, {problem}; restore it."
    )


def now() -> str:
    """The current time in UTC, to the second, as in manifests."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def local_stamp() -> str:
    """The local time to the second with its offset, as in names of result directories:
    ``20261122_061500+0100``.
    """
    return datetime.now().astimezone().strftime("%Y%m%d_%H%M%S%z")


def versions() -> dict[str, str]:
    """Versions of medtasks and of the packages that can affect a score; ``absent`` if not
    installed.
    """
    installed = {"medtasks": medtasks.__version__}
    for package in PACKAGES:
        installed[package] = package_version(package)
    return installed
