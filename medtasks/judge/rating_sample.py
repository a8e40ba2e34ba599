"""The draw of answers for a rater: a stratified random sample with known probabilities.

Strata are the answers of one run to one task that the judge put into one class. Within a stratum,
every answer has the same probability. Some answers are drawn for all raters (by the seed alone),
the others for each rater (by seed and rater) from what is left, so the probability that a rater
gets an answer is always the number drawn divided by the number in the stratum.

Answers are ordered by hashes of their names: the same results, seed and rater give the same sample
on every computer.
"""

from __future__ import annotations

import hashlib
import heapq
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from medtasks.core.errors import UsageError
from medtasks.core.files import canonical_json, short_hash
from medtasks.core.text import counted
from medtasks.judge.rating_records import AnswerKey, DrawnAnswer, Stratum

FEWEST = 2
"""The least number of answers drawn from a stratum (all of a smaller one): the variance of a
single answer cannot be estimated.
"""


@dataclass(frozen=True)
class RatableAnswer:
    """An answer that can be drawn; ``verdict`` is the judge's class of it
    (`medtasks.judge.ratable.verdict_class`).
    """

    run: str
    model: str
    task: str
    sample_id: str
    response_hash: str
    verdict: str

    @property
    def key(self) -> AnswerKey:
        return AnswerKey(self.run, self.task, self.sample_id)


class StratumKey(NamedTuple):
    """What the answers of a stratum have in common."""

    run: str
    model: str
    task: str
    verdict: str


@dataclass(frozen=True)
class Draw:
    """The strata, and the answers drawn from them in the rater's order."""

    strata: tuple[Stratum, ...]
    answers: tuple[DrawnAnswer, ...]


class SeatCounts(NamedTuple):
    """How many answers of each stratum are drawn for all raters, and how many in all."""

    overlap: list[int]
    drawn: list[int]


class Frame:
    """The population that is drawn from, in strata.

    Args:
        population: all answers that can be rated.
    """

    def __init__(self, population: Sequence[RatableAnswer]) -> None:
        by_stratum: dict[StratumKey, list[RatableAnswer]] = {}
        for answer in sorted(population, key=lambda answer: answer.key):
            key = StratumKey(answer.run, answer.model, answer.task, answer.verdict)
            by_stratum.setdefault(key, []).append(answer)
        self.keys = sorted(by_stratum)
        self.members = [by_stratum[key] for key in self.keys]

    @property
    def hash(self) -> str:
        """Identifies the answers, their texts and their strata."""
        lines = []
        for key, members in zip(self.keys, self.members, strict=True):
            answers = [[*answer.key, answer.response_hash] for answer in members]
            lines.append([*key, answers])
        return short_hash(canonical_json(lines))

    @property
    def size(self) -> int:
        """The number of answers."""
        return sum(map(len, self.members))

    def draw(self, samples: Sequence[int], overlap: int, seed: int, rater: str) -> Draw:
        """The answers that a rater is asked about.

        Args:
            samples: the number of answers to draw; after it, each larger number to which the
                sample was raised later. A raise keeps what was drawn, and its order.
            overlap: how many of them are drawn for all raters.
            seed: the seed of all raters.
            rater: the rater's name.

        Raises:
            UsageError: the sample is smaller than the overlap or than the strata need, or a raise
                would change what was drawn for all raters.
        """
        ordered: list[DrawnAnswer] = []
        drawn_keys: set[AnswerKey] = set()
        counts = SeatCounts([], [])
        for sample in samples:
            earlier, counts = counts, self._seats(sample, overlap)
            if earlier.drawn:
                _require_raise(earlier, counts, sample)
            further: list[list[DrawnAnswer]] = []
            for number, members in enumerate(self.members):
                chosen = _chosen(members, counts.overlap[number], counts.drawn[number], seed, rater)
                new = [answer for answer in chosen if answer.key not in drawn_keys]
                further.append([_drawn(answer, number) for answer in new])
            stage = _interleaved(further, seed, rater)
            drawn_keys.update(answer.key for answer in stage)
            ordered += stage
        return Draw(self._strata(counts.drawn), tuple(ordered))

    def _seats(self, sample: int, overlap: int) -> SeatCounts:
        """How a sample of this size is allocated to the strata."""
        populations = [len(members) for members in self.members]
        needed = sum(min(FEWEST, population) for population in populations)
        sample = min(sample, self.size)
        if sample < needed:
            raise UsageError(
                f"--sample {sample}: there are {counted(len(populations), 'stratum', 'strata')} "
                f"(run, task and verdict), expected at least {needed} answers, {FEWEST} of each; "
                "raise it, or give fewer results."
            )
        return allocation(populations, sample, min(overlap, sample))

    def _strata(self, drawn: Sequence[int]) -> tuple[Stratum, ...]:
        """The strata with the numbers drawn from them."""
        strata = []
        for key, members, count in zip(self.keys, self.members, drawn, strict=True):
            strata.append(Stratum(**key._asdict(), population=len(members), drawn=count))
        return tuple(strata)


def allocation(populations: Sequence[int], sample: int, overlap: int) -> SeatCounts:
    """The numbers of answers to draw from strata with these populations.

    They are proportional by Webster's method (Balinski and Young 1982), under which a larger sample
    never draws fewer answers from a stratum, but at least `FEWEST` of each stratum. The overlap
    takes the first seats, so it is as proportional as the minimum of each stratum allows.

    >>> allocation([80, 15, 5], 20, 5)
    SeatCounts(overlap=[4, 1, 0], drawn=[15, 3, 2])
    """
    fewest = [min(FEWEST, population) for population in populations]
    seats = _proportional_seats(populations, fewest, sample)
    proportional = Counter(seats)
    drawn: list[int] = []
    for stratum, minimum in enumerate(fewest):
        count = max(proportional[stratum], minimum)
        drawn.append(count)
        seats += [stratum] * (count - proportional[stratum])
    shared = Counter(seats[:overlap])
    return SeatCounts([shared[stratum] for stratum in range(len(populations))], drawn)


def _proportional_seats(
    populations: Sequence[int], fewest: Sequence[int], sample: int
) -> list[int]:
    """The stratum of each seat in Webster's order, until the seats fill the sample together with
    the minimum of every stratum.
    """
    seats: list[int] = []
    taken = [0] * len(populations)
    total = sum(fewest)
    queue = [(-float(population), stratum) for stratum, population in enumerate(populations)]
    heapq.heapify(queue)
    while total < sample:
        _, stratum = heapq.heappop(queue)
        seats.append(stratum)
        taken[stratum] += 1
        if taken[stratum] > fewest[stratum]:
            total += 1
        if taken[stratum] < populations[stratum]:
            priority = populations[stratum] / (2 * taken[stratum] + 1)
            heapq.heappush(queue, (-priority, stratum))
    return seats


def _require_raise(earlier: SeatCounts, later: SeatCounts, sample: int) -> None:
    """Refuse a raise that does not only add answers of the rater's own."""
    adds = all(before <= after for before, after in zip(earlier.drawn, later.drawn, strict=True))
    if earlier.overlap != later.overlap or not adds:
        raise UsageError(
            f"--sample {sample}: would change the answers that all raters share, so their "
            "probabilities would be wrong; keep the sample as it was, or rate with another --rater."
        )


def _chosen(
    members: Sequence[RatableAnswer], overlap: int, drawn: int, seed: int, rater: str
) -> list[RatableAnswer]:
    """The answers drawn from a stratum: those of all raters, then the rater's own."""
    by_seed = sorted(members, key=lambda answer: _rank(answer.key, "overlap", seed))
    rest = sorted(by_seed[overlap:], key=lambda answer: _rank(answer.key, "own", seed, rater))
    return by_seed[:overlap] + rest[: drawn - overlap]


def _interleaved(
    strata: Sequence[Sequence[DrawnAnswer]], seed: int, rater: str
) -> list[DrawnAnswer]:
    """All answers in random order, those of each stratum spread evenly.

    At whatever answer a rater stops, the answers of a stratum so far are a simple random sample of
    it, and no large part of the sample is from one stratum.
    """
    places: dict[AnswerKey, float] = {}
    answers: list[DrawnAnswer] = []
    for stratum in strata:
        shuffled = sorted(stratum, key=lambda answer: _rank(answer.key, "order", seed, rater))
        for number, answer in enumerate(shuffled):
            offset = _rank(answer.key, "place", seed, rater) / 2**64
            places[answer.key] = (number + offset) / len(shuffled)
        answers += shuffled
    return sorted(answers, key=lambda answer: (places[answer.key], answer.key))


def _drawn(answer: RatableAnswer, stratum: int) -> DrawnAnswer:
    """The answer as the plan has it."""
    return DrawnAnswer(**answer.key._asdict(), response_hash=answer.response_hash, stratum=stratum)


def _rank(key: AnswerKey, purpose: str, seed: int, rater: str = "") -> int:
    """A random number from 0 to 2^64 - 1 for an answer, the same whenever it is asked for."""
    text = canonical_json([purpose, seed, rater, *key])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
