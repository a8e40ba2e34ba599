"""Responses to one task's documents, scored by the task's own rules; exceptions become findings."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medtasks.adapters.policies import Question, abstain, constant, early, oracle
from medtasks.benchmarks.base import Benchmark, Item
from medtasks.benchmarks.variants import joined_items
from medtasks.catalog import raised_at
from medtasks.errors import MedtasksError
from medtasks.filters import filter_class
from medtasks.filters.option_letter import join_stages
from medtasks.metrics.base import Metric
from medtasks.metrics.registry import get_metric
from medtasks.registry import place_of
from medtasks.results.replies import Reply
from medtasks.results.samples import Sample
from medtasks.results.scored import Answered, scored_samples
from medtasks.results.scores import Scores
from medtasks.results.scoring import score_samples
from medtasks.results.verdict_scores import with_judged_scores
from medtasks.schema import shown
from medtasks.spec import TaskSpec
from medtasks.task_source import Place, read_task
from medtasks.validation.findings import Severity, Tally

_RESAMPLES = 20
_FIX = "fix the code that scores it"
_OF_METRICS = frozenset({"MT504", "MT505", "MT508"})
"""Codes of defects of a metric itself, rather than of the task that uses it."""


class BehaviourReport(Tally):
    """The findings about one task, each with the line of code or of the task file that causes it."""

    def __init__(self, spec: TaskSpec, documents: int) -> None:
        self._file = read_task(spec.path)
        super().__init__(spec.name, documents, self._file.place("process_results"))

    def about(
        self, code: str, metric: str, message: str, severity: Severity | None = None, error: BaseException | None = None
    ) -> None:
        """Report something about a metric, or about the whole task if ``metric`` is empty.

        Its place is where ``error`` was raised, the class of a faulty metric, or the task file.
        """
        own = class_place(get_metric(metric)) if code in _OF_METRICS else None
        self.say(code, message, metric, error_place(error) or own or self.metric_place(metric), severity)

    @contextmanager
    def failures(self, what: str, metric: str = "", fix: str = "fix it") -> Iterator[None]:
        """Report any exception in the block as a failure: a package's code may raise anything."""
        try:
            yield
        except (Exception, SystemExit) as error:
            self.about("MT507", metric, f"{what} ({sentence(error)}); {fix}.", error=error)

    def metric_place(self, metric: str) -> Place:
        """Where the task file lists a metric; if it does not, where it names `process_results`."""
        for number, one in enumerate(self._file.entries("metric_list")):
            if isinstance(one, Mapping) and one.get("metric") == metric:
                return self._file.place("metric_list", number)
        return self._file.place("process_results")


def error_place(error: BaseException | None) -> Place | None:
    """Where in the code of a package ``error`` was raised; None if it was raised elsewhere."""
    place = raised_at(error) if error is not None else None
    return Place(Path(place[0]), place[1]) if place else None


def class_place(part: Any) -> Place | None:
    """Where the class of another package's metric or filter is defined; None for ours."""
    file, line = place_of(part)
    return Place(Path(file), line) if file and line else None


@dataclass(frozen=True)
class Trial:
    """The samples of one response to every document, in document order, and the items they were joined into."""

    name: str
    samples: list[Sample]
    items: tuple[Item, ...]
    metrics: dict[str, Metric]


class Trials:
    """Scores responses to ``documents``; problems go to ``report``."""

    def __init__(
        self, spec: TaskSpec, benchmark: Benchmark, documents: Sequence[Mapping[str, Any]], report: BehaviourReport
    ) -> None:
        self.spec = spec
        self.documents = documents
        self._benchmark = benchmark
        self._report = report
        self._cases: dict[str, dict[str, tuple[float, ...]]] = {}
        repeats = spec.resolved.get("repeats")
        self._repeats = repeats if isinstance(repeats, int) and repeats > 1 else 1

    def trial(self, name: str, answers: Sequence[str], *, backwards: bool = False) -> Trial | None:
        """The samples of one answer to each document; None if they cannot be created.

        With ``backwards``, they are created from the last document to the first, but returned in the usual order.
        """
        pairs = list(zip(self.documents, answers, strict=True))
        made = [self._scored_sample(name, *pair) for pair in (pairs[::-1] if backwards else pairs)]
        samples = [one for one in (made[::-1] if backwards else made) if one is not None]
        if len(samples) < len(pairs):
            return None
        with self._report.failures(f"the samples of {name} cannot be joined", fix=_FIX):
            judged = with_judged_scores(self.spec, samples)
            items = joined_items(self._benchmark, [sample.view() for sample in judged]).items
            self._check_cases(name, items)
            metrics = {metric: get_metric(metric) for sample in judged for metric in sample.scores}
            lacking = [metric for metric in self.spec.metrics if metric not in metrics]
            for metric in lacking:
                message = f"`process_results` gives no {shown(metric)}, expected its statistics as in `metric_list`"
                self._report.about("MT507", metric, f"{message}; add it, or remove it from the list.")
            return None if lacking else Trial(name, judged, items, metrics)
        return None

    def _check_cases(self, name: str, items: Sequence[Item]) -> None:
        errors = self._benchmark.errors
        for item in items:
            values = errors.values(self._benchmark, item) if errors is not None else {}
            counts = {rate: (one.statistics or one.high or ())[1:] for rate, one in values.items()}
            before = self._cases.setdefault(item.item_id, counts)
            for rate in sorted(rate for rate in counts if counts[rate] != before[rate]):
                message = (
                    f"{name}, item {item.item_id}: {rate} has {counts[rate][0]:g} cases, expected {before[rate][0]:g}"
                )
                self._report.about(
                    "MT512", rate, f"{message} as for other responses; list cases by the gold answer alone."
                )
                return

    def scores(self, trial: Trial, *, breakdowns: bool = False) -> Scores | None:
        """The scores of a trial; None if they cannot be computed."""
        by = self.spec.metadata.breakdowns if breakdowns else ()
        with self._report.failures(f"the samples of {trial.name} cannot be scored", fix=_FIX):
            return score_samples(trial.samples, self._benchmark, by, self.spec.metadata.pooled, resamples=_RESAMPLES)
        return None

    def response(self, answer: str) -> str:
        """What a back-end returns for ``answer``."""
        return join_stages([answer, answer]) if self.spec.stage1_template else answer

    def sample(self, document: Mapping[str, Any], response: str) -> Sample:
        """The sample of ``response``, repeated as the task asks; exceptions of the task's code are not caught."""
        return scored_samples(self.spec, [Answered(dict(document), (Reply(response),) * self._repeats)])[0]

    def filter_place(self) -> Place | None:
        """Where the task's filter is defined; None for ours."""
        return class_place(filter_class(self.spec.filters[-1])) if self.spec.filters else None

    def raised(self, document: Mapping[str, Any], response: str, error: BaseException) -> str:
        """Which step fails with ``response``, and how."""
        step = "`process_results`"
        try:
            (_,) = filter_class(self.spec.filters[-1])().apply([[response] * self._repeats], [dict(document)])
        except (Exception, SystemExit):
            step = f"the filter {self.spec.filters[-1]}" if self.spec.filters else "the missing filter"
        return f"{step} fails on the response {shown(response)} ({sentence(error)})"

    def _scored_sample(self, name: str, document: Mapping[str, Any], answer: str) -> Sample | None:
        response = self.response(answer)
        try:
            return self.sample(document, response)
        except (Exception, SystemExit) as error:
            message = f"{name}: {self.raised(document, response, error)}"
            self._report.add("MT507", document, message, _FIX, place=error_place(error))
            return None


def sentence(error: BaseException) -> str:
    """The message of an exception, on one line."""
    text = " ".join(str(error).split())[:500].rstrip(".")
    return text if isinstance(error, MedtasksError) else f"{type(error).__name__}: {text}"


MESSY: Mapping[str, str] = {
    "empty": "",
    "blank": " \n\t ",
    "long": "The first finding is seen again (B), or it may not be. " * 120,
    "non-ASCII": "Ответ: ответа нет 🩺 — 所见正常。 Ελ\u0301κος, قرحة \u202eA\u202c e\u0301",
    "markup": '<think>A or B?</think>\n# Answer\n**<b>C</b>** | `{"answer": ["D"]}` | $\\boxed{E}$ <answer>A</answer>',
    "unclosed": '<think>I wonder whether {{ target }} {% if %} ${ \\boxed{ ```json {"answer": ',
    "control": "\x00\x1b[31mA\x07\r\n\u2028B\ufeff",
}
"""Malformed responses as models sometimes give them, by kind."""

_SEED = 0


def policy_answers(documents: Sequence[Mapping[str, Any]]) -> tuple[list[str], dict[str, list[str]]]:
    """The reference answers in the form that the task asks for, and answers that ignore the question, by name.

    ``constant`` and ``commonest`` are the same for every question, ``abstain`` is the abstention that the task defines
    (left out if a document lacks one), ``early`` answers streams before there is anything to see.
    """
    references = sorted(str(document["target"]) for document in documents)
    questions = [Question.of(document, str(document["sample_id"]), references) for document in documents]
    perfect = [oracle(question) for question in questions]
    counts = Counter(perfect)
    commonest = min(counts, key=lambda answer: (-counts[answer], answer))
    found = {
        "constant": [constant(question) for question in questions],
        "commonest": [commonest for _ in questions],
        "empty": ["" for _ in questions],
    }
    if all(question.abstention is not None for question in questions):
        found["abstain"] = [abstain(question) for question in questions]
    if any(question.positive is not None for question in questions):
        found["early"] = [early(question) for question in questions]
    return perfect, found


def shuffled(answers: Sequence[str]) -> list[str] | None:
    """The same answers assigned to other documents; None if all are equal.

    As many documents as possible get an answer other than their own: all of them, if no answer belongs to more than
    half.
    """
    members: dict[str, list[int]] = {}
    for position, answer in enumerate(answers):
        members.setdefault(answer, []).append(position)
    if len(members) < 2:
        return None
    draw = random.Random(_SEED)
    ordered = [position for _, group in sorted(members.items()) for position in draw.sample(group, len(group))]
    shift = max(len(group) for group in members.values())
    found = list(answers)
    for place, position in enumerate(ordered):
        found[position] = answers[ordered[(place + shift) % len(ordered)]]
    return found
