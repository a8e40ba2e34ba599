"""The questions that runs were asked, each once, with the option that each model chose.

All variants of a question (rotated options, other prompts), its repeats, and the tracks that ask it
again are one question. A model's vote on it is the option that it chose most often.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from medtasks.benchmarks.variants import question_of
from medtasks.catalog.spec import load_spec
from medtasks.core.files import canonical_json, short_hash
from medtasks.core.text import first_names
from medtasks.runs.samples import Sample

from ..board.models import distinct_names, model_facts
from ..verify.question_content import content_hash
from ..verify.scored_run import ScoredRun
from .closed_questions import ClosedQuestion, chosen_options, closed_question

_WINDOW = frozenset({"frames", "times", "window_start", "window_end"})
"""Fields of the part of a video that is shown."""
_COMPARED = frozenset({"question", "choices", "options", "media"})
"""Fields that are compared on their own."""


@dataclass(frozen=True)
class AnsweredRun:
    """A scored run, and a function that reads its samples of a task as they are scored here."""

    scored: ScoredRun
    samples: Callable[[str], Iterable[Sample]]


@dataclass
class AuditedQuestion:
    """A question, and what models answered.

    ``task`` and ``sample_id`` are those of its first sample: in the plain order, if it was asked
    so. ``run`` is the key of a run that has it. ``context`` is what else the prompt states, and the
    window of a video. ``closed`` is None for open questions, whose reference is ``target``.
    ``rated_content`` identifies what people see who check its gold answer (`content_hash`).
    ``chosen`` has the counts of the chosen options (None: none of them) by the model's key,
    ``chosen_blind`` those of runs without media.
    """

    benchmark: str
    task: str
    sample_id: str
    cluster: str
    media: tuple[str, ...]
    text: str
    context: str
    target: str
    run: str
    closed: ClosedQuestion | None
    rated_content: str = ""
    chosen: dict[str, Counter[int | None]] = field(default_factory=dict)
    chosen_blind: dict[str, Counter[int | None]] = field(default_factory=dict)

    @property
    def content(self) -> str:
        """A hash of what is asked, of which media, and of the gold answer."""
        options = None
        if self.closed is not None:
            options = [self.closed.labels, self.closed.texts, self.closed.gold]
        target = self.target if options is None else ""
        return short_hash(canonical_json([self.text, options, target, self.media]))


def vote(chosen: Mapping[int | None, int]) -> int | None:
    """The option chosen most often; None if that is none of them, or if several are tied.

    >>> vote({0: 2, 1: 1}), vote({0: 1, 1: 1}), vote({None: 2, 1: 1})
    (0, None, None)
    """
    most = max(chosen.values())
    first = [option for option, count in chosen.items() if count == most]
    return first[0] if len(first) == 1 else None


@dataclass(frozen=True)
class AnsweredQuestions:
    """All questions, sorted by benchmark, task and id, and the names of the models by key.

    ``baselines`` are the names of those that do not vote; ``notes`` say what was left out.
    """

    questions: Sequence[AuditedQuestion]
    models: Mapping[str, str]
    baselines: tuple[str, ...]
    notes: tuple[str, ...]


def answered_questions(
    runs: Sequence[AnsweredRun], progress: Callable[[int, int], None] = lambda _, __: None
) -> AnsweredQuestions:
    """The questions of all tasks of the runs.

    Of several runs of a model with a task, the newest counts, with and without media. Baselines do
    not vote: their policies know no answer, or know the gold answer. Answers to other questions or
    gold answers than those of the first verified run are left out and counted.
    """
    voters, baselines = _voters_and_baselines(runs)
    reader = _QuestionReader()
    tasks = sorted({task for run in runs for task in run.scored.verification}, key=_plain_first)
    for number, task in enumerate(tasks):
        progress(number, len(tasks))
        asked = [run for run in voters if task in run.scored.verification]
        counted_runs = reader.counted_runs(task, asked)
        documents_only = [run for run in baselines if task in run.scored.verification]
        reader.read(task, counted_runs or documents_only[:1], votes=bool(counted_runs))
    progress(len(tasks), len(tasks))
    questions = sorted(
        reader.questions.values(),
        key=lambda question: (question.benchmark, question.task, question.sample_id),
    )
    return AnsweredQuestions(
        questions,
        models=_names_of(voters),
        baselines=tuple(sorted(set(_names_of(baselines).values()))),
        notes=tuple(reader.notes()),
    )


def _voters_and_baselines(
    runs: Iterable[AnsweredRun],
) -> tuple[list[AnsweredRun], list[AnsweredRun]]:
    """The runs of models and those of baselines, each oldest first."""
    voters: list[AnsweredRun] = []
    baselines: list[AnsweredRun] = []
    for run in sorted(runs, key=lambda run: (run.scored.public.created, run.scored.public.key)):
        is_baseline = "policy" in run.scored.public.model_facts
        (baselines if is_baseline else voters).append(run)
    return voters, baselines


def _names_of(runs: Iterable[AnsweredRun]) -> dict[str, str]:
    """Distinct names of the runs' models, by key."""
    public = {run.scored.model: run.scored.public for run in runs}
    names = {model: model_facts(facts).name for model, facts in public.items()}
    return distinct_names(names, {model: facts.model_facts for model, facts in public.items()})


def _plain_first(task: str) -> tuple[bool, str]:
    """A sort key by which tasks that ask each question once are first."""
    return load_spec(task).metadata.varied is not None, task


def is_blind(run: AnsweredRun, task: str) -> bool:
    """Whether the run was asked the task without its media."""
    return bool(run.scored.manifest.tasks[task].blind)


class _QuestionReader:
    """Collects the questions of one task after the other."""

    def __init__(self) -> None:
        self.questions: dict[tuple[str, str, str], AuditedQuestion] = {}
        """By benchmark, id and content."""
        self._left_out: dict[tuple[str, str], list[str]] = {}
        """Tasks that were left out, by the run's directory and the reason."""
        self._other_documents: Counter[tuple[str, str]] = Counter()
        """Answers that were left out, by task and run."""

    def counted_runs(self, task: str, runs: Iterable[AnsweredRun]) -> list[AnsweredRun]:
        """The newest run of each model with media, and the newest one without; verified ones first.

        Args:
            task: the name of the task.
            runs: those with the task, oldest first.
        """
        newest: dict[tuple[str, bool], AnsweredRun] = {}
        for run in runs:
            verification = run.scored.verification[task]
            if verification.outcome == "refused":
                self._leave_out(run, task, verification.reason)
            elif verification.stripped:
                self._leave_out(run, task, "prompts and responses were removed")
            else:
                key = (run.scored.model, is_blind(run, task))
                if key in newest:
                    self._leave_out(newest[key], task, "a newer run of the model counts")
                newest[key] = run
        return sorted(
            newest.values(), key=lambda run: run.scored.verification[task].outcome != "verified"
        )

    def _leave_out(self, run: AnsweredRun, task: str, reason: str) -> None:
        """Note that a task of a run does not count."""
        place = (run.scored.public.folder, reason.rstrip("."))
        self._left_out.setdefault(place, []).append(task)

    def read(self, task: str, runs: Sequence[AnsweredRun], *, votes: bool) -> None:
        """Add the questions of a task and, with ``votes``, the answers of its ``runs``."""
        content_of_sample: dict[str, tuple[str, str, str]] = {}
        for run in runs:
            for sample in run.samples(task):
                self._add(sample, run, content_of_sample, votes=votes)
            keys = content_of_sample.values()
            has_closed = any(self.questions[key].closed is not None for key in keys)
            has_all = len(content_of_sample) >= run.scored.manifest.tasks[task].asked
            if has_all and not has_closed:
                return  # nothing to vote on

    def _add(
        self,
        sample: Sample,
        run: AnsweredRun,
        content_of_sample: dict[str, tuple[str, str, str]],
        *,
        votes: bool,
    ) -> None:
        """Add a sample's question, and the run's answer to it."""
        question = _question(sample, run)
        name = str(question_of(sample.document) or sample.sample_id)
        key = (question.benchmark, name, question.content)
        expected = content_of_sample.setdefault(sample.sample_id, key)
        if key != expected:
            self._other_documents[sample.task, run.scored.public.folder] += 1
            return
        if key not in self.questions:
            question.rated_content = content_hash(sample)
        question = self.questions.setdefault(key, question)
        if question.closed is None or not votes or _is_unanswered(sample):
            return
        benchmark = load_spec(sample.task).benchmark
        blind = is_blind(run, sample.task)
        by_model = question.chosen_blind if blind else question.chosen
        counts = by_model.setdefault(run.scored.model, Counter())
        counts.update(chosen_options(benchmark, sample, question.closed))

    def notes(self) -> Iterator[str]:
        """What was left out."""
        for (folder, reason), tasks in sorted(self._left_out.items()):
            yield f"{folder}: {first_names(tasks)} left out ({reason})"
        for (task, folder), count in sorted(self._other_documents.items()):
            yield (
                f"{folder}: {count:,} answers of {task} left out, because it was asked other "
                "questions or has other gold answers than the other runs"
            )


def _is_unanswered(sample: Sample) -> bool:
    """Whether no request for the sample has a response."""
    return bool(sample.failed) and all(reason is not None for reason in sample.failed)


def _question(sample: Sample, run: AnsweredRun) -> AuditedQuestion:
    """The question of a sample, without answers."""
    spec = load_spec(sample.task)
    text = sample.document.get("question")
    return AuditedQuestion(
        benchmark=spec.metadata.benchmark,
        task=sample.task,
        sample_id=sample.sample_id,
        cluster=sample.cluster,
        media=sample.media,
        text=text if isinstance(text, str) else "",
        context=_context(sample, spec.benchmark.visible_fields),
        target=sample.target,
        run=run.scored.public.key,
        closed=closed_question(spec.benchmark, sample),
    )


def _context(sample: Sample, visible_fields: Iterable[str]) -> str:
    """What a prompt can state of the sample's document besides question and options, and the part
    of a video that is shown, as JSON.
    """
    fields = {*visible_fields, *_WINDOW} - _COMPARED
    return canonical_json({name: sample.document.get(name) for name in sorted(fields)})
