"""The audit of a benchmark's gold answers: the questions that deserve a second look."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from medtasks.catalog.registry import get_benchmark

from ..intake.shown_layouts import is_withheld
from ..verify.gold_verdicts import GoldVerdicts, QuestionVerdict
from ..verify.question_content import Contents, QuestionKey
from .answered_questions import AnsweredRun, AuditedQuestion, answered_questions, vote
from .document_signs import different_gold_signs, equal_option_sign
from .media_content import media_hashes
from .signs import Sign, SignKind
from .vote_signs import VoteSigns, vote_signs


@dataclass(frozen=True)
class DoubtfulQuestion:
    """A question that deserves a second look, and why.

    ``run`` is the key of a run that has the sample, by which `medtasks view` shows it.
    ``probability_wrong`` is the probability that its gold answer is wrong, by the models' votes;
    None if it was not estimated. ``options`` are by label, empty for an open question; ``rival`` is
    the option that models prefer. ``votes`` and ``blind_votes`` are the labels of the chosen
    options by model (None: none of them). ``content`` identifies what people see of the question
    who check its gold answer (`content_hash`). ``verdict`` is what people said.
    """

    benchmark: str
    task: str
    sample_id: str
    run: str
    cluster: str
    media: tuple[str, ...]
    question: str
    options: Mapping[str, str]
    gold: str
    rival: str | None
    probability_wrong: float | None
    signs: tuple[Sign, ...]
    votes: Mapping[str, str | None]
    blind_votes: Mapping[str, str | None]
    content: str
    verdict: QuestionVerdict | None = None

    @property
    def is_strong(self) -> bool:
        """Whether one of the signs is a strong one."""
        return any(sign.kind.is_strong for sign in self.signs)

    @property
    def reasons(self) -> str:
        """All signs in words."""
        return "; ".join(sign.text for sign in self.signs)

    @property
    def probability_text(self) -> str:
        """The probability that the gold answer is wrong, never rounded to 1; empty if it was not
        estimated.
        """
        probability = self.probability_wrong
        if probability is None:
            return ""
        return "> 0.99" if probability > 0.99 else f"{probability:.2f}"

    @property
    def public_reasons(self) -> str:
        """All signs in words, without anything of the question or its answers."""
        return "; ".join(sign.public_text for sign in self.signs)


@dataclass(frozen=True)
class BenchmarkAudit:
    """What was audited of one benchmark.

    ``closed`` and ``open`` count its questions. ``effective`` is the number of independent models
    that the ``models`` are worth, ``wrong_rate`` the estimated share of wrong gold answers, and
    ``expected_error`` the expected share of right gold answers among those that models outvote
    (fractions; None if they were not estimated). ``withheld`` is whether only ids and signs may be
    published.
    """

    benchmark: str
    title: str
    closed: int
    open: int
    models: tuple[str, ...]
    effective: float | None
    wrong_rate: float | None
    expected_error: float | None
    withheld: bool
    notes: tuple[str, ...]

    @property
    def expected_error_text(self) -> str:
        """The expected share of right gold answers in a sentence; empty if there is none."""
        if self.expected_error is None:
            return ""
        percent = 100 * self.expected_error
        share = "less than 1 %" if percent < 1 else f"{percent:.0f} %"
        return (
            f"of the questions on which models agree on another option, {share} are expected to "
            "have a right gold answer"
        )


@dataclass(frozen=True)
class AuditReport:
    """The doubtful questions of all benchmarks, the most doubtful first.

    ``notes`` are what was left out of the audit, and how people's verdicts agree. ``contents``
    identify all audited questions, also those that are not doubtful.
    """

    benchmarks: tuple[BenchmarkAudit, ...]
    questions: tuple[DoubtfulQuestion, ...]
    notes: tuple[str, ...] = ()
    contents: Contents = field(default_factory=dict, repr=False)

    def with_verdicts(self, verdicts: GoldVerdicts) -> AuditReport:
        """The report with what people said of gold answers; verdicts on an older version of a
        question are not used, and named in the notes.
        """
        verdicts = verdicts.compared(self.contents)
        questions = []
        for question in self.questions:
            verdict = verdicts.of(question.task, question.sample_id)
            questions.append(replace(question, verdict=verdict))
        judged = replace(self, questions=tuple(questions))
        return judged.with_notes(verdicts.notes(questions))

    def with_notes(self, notes: Iterable[str]) -> AuditReport:
        """The report with further notes."""
        return replace(self, notes=(*self.notes, *notes))

    def counts(self) -> dict[SignKind, int]:
        """How many questions have each kind of sign."""
        counts = dict.fromkeys(SignKind, 0)
        for question in self.questions:
            for kind in {sign.kind for sign in question.signs}:
                counts[kind] += 1
        return {kind: count for kind, count in counts.items() if count}


def audit_runs(
    runs: Sequence[AnsweredRun], progress: Callable[[int, int], None] = lambda _, __: None
) -> AuditReport:
    """The audit of the questions that the runs were asked."""
    answered = answered_questions(runs, progress)
    by_benchmark: dict[str, list[AuditedQuestion]] = defaultdict(list)
    for question in answered.questions:
        by_benchmark[question.benchmark].append(question)
    audits: list[BenchmarkAudit] = []
    doubtful: list[DoubtfulQuestion] = []
    for benchmark, questions in sorted(by_benchmark.items()):
        signs = vote_signs(questions, answered.models)
        _add_document_signs(signs, questions, _hashes_of(benchmark, runs))
        audits.append(_benchmark_audit(benchmark, questions, signs))
        for place, own_signs in signs.signs.items():
            question = questions[place]
            doubtful.append(_doubtful_question(question, place, own_signs, signs, answered.models))
    notes = list(answered.notes)
    if answered.baselines:
        notes.append(f"baselines do not vote: {', '.join(answered.baselines)}")
    ordered = sorted(doubtful, key=_place_in_list)
    contents: dict[QuestionKey, set[str]] = {}
    for question in answered.questions:
        key = (question.task, question.sample_id)
        contents.setdefault(key, set()).add(question.rated_content)
    return AuditReport(tuple(audits), tuple(ordered), tuple(notes), contents)


def _hashes_of(benchmark: str, runs: Sequence[AnsweredRun]) -> Mapping[str, str]:
    """The hashes of the benchmark's media, if all runs used the same data and they are here."""
    minis = set()
    for run in runs:
        if benchmark in run.scored.manifest.data:
            minis.add(run.scored.manifest.data[benchmark].mini)
    return media_hashes(benchmark, minis.pop()) if len(minis) == 1 else {}


def _add_document_signs(
    signs: VoteSigns, questions: Sequence[AuditedQuestion], hashes: Mapping[str, str]
) -> None:
    """Add the signs in the questions themselves."""
    place_of = {id(question): place for place, question in enumerate(questions)}
    for question, sign in different_gold_signs(questions, hashes):
        signs.add(place_of[id(question)], sign)
    for place, question in enumerate(questions):
        equal = equal_option_sign(question)
        if equal is not None:
            signs.add(place, equal)


def _benchmark_audit(
    benchmark: str, questions: Sequence[AuditedQuestion], signs: VoteSigns
) -> BenchmarkAudit:
    """The counts and estimates of one benchmark."""
    closed = sum(question.closed is not None for question in questions)
    return BenchmarkAudit(
        benchmark=benchmark,
        title=get_benchmark(benchmark).title,
        closed=closed,
        open=len(questions) - closed,
        models=signs.models,
        effective=signs.effective,
        wrong_rate=signs.wrong_rate,
        expected_error=signs.expected_error,
        withheld=is_withheld(benchmark),
        notes=tuple(signs.notes),
    )


def _doubtful_question(
    question: AuditedQuestion,
    place: int,
    own_signs: Sequence[Sign],
    signs: VoteSigns,
    names: Mapping[str, str],
) -> DoubtfulQuestion:
    """The question at a ``place`` among those of its benchmark, with the signs that it has."""
    closed = question.closed
    options: dict[str, str] = {}
    gold = question.target
    rival = None
    if closed is not None:
        options = dict(zip(closed.labels, closed.texts or closed.labels, strict=True))
        gold = closed.labels[closed.gold]
        if place in signs.rival:
            rival = closed.labels[signs.rival[place]]
    order = list(SignKind)
    return DoubtfulQuestion(
        benchmark=question.benchmark,
        task=question.task,
        sample_id=question.sample_id,
        run=question.run,
        cluster=question.cluster,
        media=question.media,
        question=question.text,
        options=options,
        gold=gold,
        rival=rival,
        probability_wrong=signs.probability_wrong.get(place),
        signs=tuple(sorted(own_signs, key=lambda sign: order.index(sign.kind))),
        votes=_labels(question, question.chosen, names),
        blind_votes=_labels(question, question.chosen_blind, names),
        content=question.rated_content,
    )


def _labels(
    question: AuditedQuestion,
    chosen: Mapping[str, Mapping[int | None, int]],
    names: Mapping[str, str],
) -> dict[str, str | None]:
    """The labels of the options that models chose, by their names."""
    labels: dict[str, str | None] = {}
    if question.closed is None:
        return labels
    for model in sorted(chosen, key=names.__getitem__):
        option = vote(chosen[model])
        labels[names[model]] = None if option is None else question.closed.labels[option]
    return labels


def _place_in_list(question: DoubtfulQuestion) -> tuple[object, ...]:
    """A sort key: strong signs by the probability that the gold answer is wrong, then weaker ones
    by kind.
    """
    name = (question.benchmark, question.task, question.sample_id)
    if not question.is_strong:
        kind = list(SignKind).index(question.signs[0].kind)
        return (1, kind, *name)
    probability = question.probability_wrong
    certainty = -1.0 if probability is None else probability
    return (0, -certainty, *name)
