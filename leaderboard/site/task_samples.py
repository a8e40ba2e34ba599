"""The samples of one task as the pages of samples show them.

They have only what the benchmark's licence allows, and never media.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from medtasks.catalog.statuses import status_words
from medtasks.core.garbage_collection import without_garbage_collection
from medtasks.runs.samples import Sample

from .run_samples import Answers


class QuestionText(NamedTuple):
    """A question with its options, and its reference."""

    question: str
    target: str


class TaskSamples:
    """The samples of one task: each model's answers, and the questions of all.

    Samples are read once for each model. Without ``texts``, only ids, extracted options, statuses
    and scores may be shown.
    """

    def __init__(self, by_model: Mapping[str, Callable[[], Answers]], texts: bool) -> None:
        self._by_model = by_model
        self._texts = texts
        self._questions: dict[str, dict[str, QuestionText]] = {}

    @without_garbage_collection()
    def answers(self, model: str) -> dict[str, Any]:
        """The answers of one model, as a JSON value.

        ``rows`` has by sample the id, the response, what was extracted, the status and the scores
        by ``metrics``; texts that may not be shown are None. If something could not be verified,
        the row ends with its place in ``doubts``. ``words`` has the text of each status.
        """
        answers = self._by_model[model]()
        samples = sorted(answers.samples, key=lambda sample: sample.sample_id)
        metrics = _metrics_with_values(samples)
        doubts: dict[str, int] = {}
        rows = []
        for sample in samples:
            row = self._row(sample, metrics)
            doubt = answers.verification.doubts(sample.sample_id)
            if doubt:
                row.append(doubts.setdefault(doubt, len(doubts)))
            rows.append(row)
        self._questions[model] = self._shared_questions(samples)
        statuses = {sample.status for sample in samples}
        words = {status: status_words(status) for status in sorted(statuses)}
        return {"metrics": metrics, "rows": rows, "doubts": list(doubts), "words": words}

    def questions(self) -> list[list[str]]:
        """Ids, questions and references of all samples that any model answered."""
        questions: dict[str, QuestionText] = {}
        for model in self._by_model:
            if model not in self._questions:
                self.answers(model)
            questions.update(self._questions[model])
        return [[sample_id, *texts] for sample_id, texts in questions.items()]

    def _row(self, sample: Sample, metrics: Sequence[str]) -> list[Any]:
        response = _numbered_responses(sample) if self._texts else None
        scores = [_rounded(sample.scores.get(metric)) for metric in metrics]
        return [sample.sample_id, response, self._extracted(sample), sample.status, scores]

    def _extracted(self, sample: Sample) -> str | None:
        """The extracted answer; None if it may not be shown, as it is no letter of an option."""
        if self._texts or sample.filtered in _options(sample):
            return sample.filtered
        return None

    def _shared_questions(self, samples: Sequence[Sample]) -> dict[str, QuestionText]:
        """The questions by sample; empty if texts may not be shown.

        Models that answered the same questions share one object, because a board may have a hundred
        models.
        """
        questions = {}
        if self._texts:
            for sample in samples:
                questions[sample.sample_id] = QuestionText(_question_text(sample), sample.target)
        for earlier in self._questions.values():
            if earlier == questions:
                return earlier
        return questions


def _metrics_with_values(samples: Sequence[Sample]) -> list[str]:
    metrics: set[str] = set()
    for sample in samples:
        metrics.update(metric for metric, value in sample.scores.items() if value is not None)
    return sorted(metrics)


def _options(sample: Sample) -> Mapping[str, Any]:
    """The options of a question by letter; empty for an open one."""
    choices = sample.document.get("choices")
    return choices if isinstance(choices, dict) else {}


def _question_text(sample: Sample) -> str:
    """The question with its options, a line each."""
    question = sample.document.get("question")
    lines = [question if isinstance(question, str) else sample.prompt]
    for letter, text in sorted(_options(sample).items()):
        lines.append(f"{letter}. {text}")
    return "\n".join(lines)


def _numbered_responses(sample: Sample) -> str:
    """The response; several, of repeats, are numbered."""
    if len(sample.responses) == 1:
        return sample.responses[0]
    numbered = []
    for number, text in enumerate(sample.responses, start=1):
        numbered.append(f"[response {number}] {text}")
    return "\n\n".join(numbered)


def _rounded(score: float | None) -> float | None:
    """A score with four significant digits."""
    return None if score is None else float(f"{score:.4g}")
