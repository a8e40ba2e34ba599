"""Precision and recall of `medtasks audit` on simulated answers with planted wrong gold answers.

Prints the table of docs/audit.md: ``python performance/wrong_golds.py``. A question has a true
option; the gold answer of some questions is another one. Models choose the true option by their
accuracy and the question's ease, else one of the others. With ``shared`` errors, each model takes
this share of its answers from a source that it has in common with its family, and that is right as
often as its models are on average.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from medtasks.metrics.base import Array
from medtasks.stats.gold_posterior import doubtful, gold_posterior
from medtasks.stats.votes import Integers, Mask, Votes

REPETITIONS = 20
QUESTIONS_PER_CLUSTER = 2
_PROBIT = 16 * np.sqrt(3) / (15 * np.pi)


@dataclass(frozen=True)
class Simulation:
    """Simulated answers.

    ``accuracies`` are the lowest and the highest of the models, evenly spaced; ``spread`` is the
    standard deviation of the questions' ease in logits; ``attraction`` is the concentration with
    which wrong options attract all models alike, 0 for independent choices; ``wrong`` is the share
    of gold answers that are flipped.
    """

    questions: int = 1000
    models: int = 8
    options: int = 5
    accuracies: tuple[float, float] = (0.5, 0.9)
    wrong: float = 0.02
    spread: float = 0.0
    attraction: float = 0.0
    shared: float = 0.0
    families: int = 1
    seed: int = 0

    def votes(self) -> tuple[Votes, Mask]:
        """The answers, and whether ``(questions,)`` each gold answer was flipped."""
        random = self._random("answers")
        truth = self.truth()
        right_share = self._right_shares(random)
        chosen = self._answers(random, truth, random.random(right_share.shape) < right_share)
        if self.shared:
            chosen = self._with_shared_errors(random, truth, right_share, chosen)
        flipped = random.permutation(self.questions)[: round(self.wrong * self.questions)]
        gold = truth.copy()
        shifts = random.integers(1, self.options, len(flipped))
        gold[flipped] = (truth[flipped] + shifts) % self.options
        is_wrong = np.zeros(self.questions, dtype=bool)
        is_wrong[flipped] = True
        clusters = np.arange(self.questions) // QUESTIONS_PER_CLUSTER
        options = np.full(self.questions, self.options)
        return Votes(chosen, gold, options, clusters), is_wrong

    def truth(self) -> Integers:
        """The true option of each question."""
        return self._random("truth").integers(0, self.options, self.questions)

    def _random(self, purpose: str) -> np.random.Generator:
        return np.random.default_rng([self.seed, len(purpose)])

    def _right_shares(self, random: np.random.Generator) -> Array:
        """The probability ``(questions, models)`` that each model is right."""
        accuracy = np.linspace(*self.accuracies, self.models)
        ability = (np.log(accuracy) - np.log1p(-accuracy)) * np.sqrt(
            1 + (_PROBIT * self.spread) ** 2
        )
        ease = random.normal(0.0, 1.0, self.questions) * self.spread
        shares: Array = 1 / (1 + np.exp(-ability - ease[:, None]))
        return shares

    def _answers(self, random: np.random.Generator, truth: Integers, is_right: Mask) -> Integers:
        """The true option where a model is right, else one of the others."""
        wrong_options = self.options - 1
        if self.attraction:
            attraction = random.dirichlet(np.full(wrong_options, self.attraction), self.questions)
        else:
            attraction = np.full((self.questions, wrong_options), 1 / wrong_options)
        bounds = np.cumsum(attraction, axis=1)[:, None, :-1]
        shift = 1 + (random.random((*is_right.shape, 1)) > bounds).sum(axis=2)
        answers: Integers = (truth[:, None] + np.where(is_right, 0, shift)) % self.options
        return answers

    def _with_shared_errors(
        self, random: np.random.Generator, truth: Integers, right_share: Array, own: Integers
    ) -> Integers:
        """The answers with some taken from the source of each model's family."""
        family = np.arange(self.models) % self.families
        of_family = [
            right_share[:, family == number].mean(axis=1) for number in range(self.families)
        ]
        source_share = np.column_stack(of_family)
        is_right = random.random(source_share.shape) < source_share
        source = self._answers(random, truth, is_right)
        is_shared = random.random(own.shape) < self.shared
        return np.where(is_shared, source[:, family], own)


@dataclass(frozen=True)
class Outcome:
    """What the audit lists of a simulation; ``hits`` are planted, ``effective`` is the number of
    independent models.
    """

    planted: int
    listed: int
    hits: int
    effective: float


def found(simulation: Simulation) -> Outcome:
    """What the audit lists for votes on another option."""
    votes, is_wrong = simulation.votes()
    posterior = gold_posterior(votes)
    rows = doubtful(posterior.wrong) if posterior.is_decisive else np.zeros(0, dtype=np.int64)
    return Outcome(
        planted=int(is_wrong.sum()),
        listed=len(rows),
        hits=int(is_wrong[rows].sum()),
        effective=posterior.effective,
    )


def settings() -> Iterator[tuple[str, Simulation]]:
    """The rows of the table."""
    usual = Simulation()
    yield "eight models, accuracies .5 to .9, independent errors", usual
    yield "… 200 questions", replace(usual, questions=200)
    yield "… 5,000 questions", replace(usual, questions=5000)
    yield "… no wrong gold answer", replace(usual, wrong=0.0)
    yield "… 6 % wrong gold answers", replace(usual, wrong=0.06)
    yield "… accuracies .4 to .75", replace(usual, accuracies=(0.4, 0.75))
    yield "… four options", replace(usual, options=4)
    yield "… two options", replace(usual, options=2)
    for models in (3, 4, 5, 12, 20):
        yield f"… {models} models", replace(usual, models=models)
    for spread in (0.75, 1.5):
        yield (
            f"… questions of different difficulty, spread {spread:g}",
            replace(usual, spread=spread),
        )
    for attraction in (2.0, 1.0):
        text = f"… wrong options that attract all models, concentration {attraction:g}"
        yield text, replace(usual, attraction=attraction)
    for families in (4, 2, 1):
        for shared in (0.25, 0.5, 0.75):
            name = "one family" if families == 1 else f"{families} families"
            text = f"… {name} with {shared:.0%} shared answers".replace("%", " %")
            yield text, replace(usual, shared=shared, families=families)


def _percent(part: int, whole: int) -> str:
    """The part in percent; a dash of nothing."""
    return f"{100 * part / whole:.0f} %" if whole else "–"


def main() -> None:
    """Print the table in Markdown."""
    print("| simulated answers | independent models | listed | recall | false |")
    print("|---|---|---|---|---|")
    for name, simulation in settings():
        outcomes = [found(replace(simulation, seed=seed)) for seed in range(REPETITIONS)]
        planted = sum(outcome.planted for outcome in outcomes)
        found_count = sum(outcome.listed for outcome in outcomes)
        hits = sum(outcome.hits for outcome in outcomes)
        effective = np.mean([outcome.effective for outcome in outcomes])
        recall = _percent(hits, planted)
        false = _percent(found_count - hits, found_count)
        per_run = f"{found_count / REPETITIONS:.1f}"
        print(f"| {name} | {effective:.1f} | {per_run} | {recall} | {false} |", flush=True)


if __name__ == "__main__":
    main()
