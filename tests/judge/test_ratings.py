"""The draw of answers for people, the files of their ratings, and what each rating counts."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from medtasks.catalog.rubric_files import load_rubric
from medtasks.core.errors import DataError, UsageError
from medtasks.core.locks import LockedError
from medtasks.judge.human_labels import rating_hash, read_labels
from medtasks.judge.joined_ratings import read_ratings
from medtasks.judge.labels import LabelledRun
from medtasks.judge.rating_file import RatingFile, rating_path, read_rating_file
from medtasks.judge.rating_records import Rating, RatingPlan
from medtasks.judge.rating_sample import Frame, RatableAnswer, allocation
from medtasks.judge.rating_weights import strata_ratings, weighted_ratings
from medtasks.judge.rating_writer import open_for_rating

KVASIR = load_rubric("kvasir_aspects")
SIZES = {("a", "high"): 30, ("a", "low"): 9, ("b", "high"): 20, ("b", "unjudged"): 1}
"""Answers by run and verdict."""


def population() -> list[RatableAnswer]:
    answers = []
    for (run, verdict), size in SIZES.items():
        for number in range(size):
            name = f"{verdict}-{number}"
            answers.append(RatableAnswer(run, run.upper(), "t", name, f"hash of {name}", verdict))
    return answers


FRAME = Frame(population())


def plan(
    rater: str = "ann", samples: Sequence[int] = (20,), overlap: int = 6, seed: int = 0
) -> RatingPlan:
    draw = FRAME.draw(samples, overlap, seed, rater)
    return RatingPlan(
        rubric=KVASIR.name, rubric_hash=rating_hash(KVASIR), rater=rater, seed=seed,
        samples=tuple(samples), overlap=overlap, hide_reference=False, frame=FRAME.hash, runs=(),
        strata=draw.strata, left_out={}, answers=draw.answers,
    )  # fmt: skip


def rating(planned: RatingPlan, number: int, score: int | None = 1, **more: Any) -> Rating:
    answer = planned.answers[number]
    return Rating(
        **answer.model_dump(), probability=planned.stratum_of(answer).probability,
        scores={"polyp_count": score}, time="2026-11-30T05:00:00+00:00", **more,
    )  # fmt: skip


def written(folder: Path, planned: RatingPlan, ratings: Sequence[Rating]) -> Path:
    path = rating_path(folder, planned.rubric, planned.rater)
    with open_for_rating(path, lambda: planned) as writer:
        for made in ratings:
            writer.add(made)
    return path


def rated(planned: RatingPlan, count: int, scores: dict[str, int] | None = None) -> RatingFile:
    """A file in memory, of a rater who stopped after ``count`` answers."""
    ratings = {}
    for number, answer in enumerate(planned.answers[:count]):
        score = 1 if scores is None else scores[answer.run + answer.sample_id]
        ratings[answer.key] = rating(planned, number, score)
    return RatingFile(Path(f"{planned.rater}.jsonl"), planned, ratings, 0)


def test_a_sample_is_allocated_in_proportion_with_two_of_every_stratum() -> None:
    for sample in range(7, 61):
        drawn = allocation([*SIZES.values()], sample, 5).drawn
        assert sum(drawn) == sample
        for count, size in zip(drawn, SIZES.values(), strict=True):
            assert min(2, size) <= count <= size
            if count > 2:
                assert abs(count - sample * size / 60) < 1.5
    with pytest.raises(UsageError, match=r"--sample 6: there are 4 strata .* at least 7 answers"):
        FRAME.draw([6], 0, 0, "ann")
    assert len(FRAME.draw([1000], 50, 0, "ann").answers) == 60  # all there are


@pytest.mark.slow
def test_each_answer_is_drawn_as_often_as_its_probability_says() -> None:
    """Over 1,000 seeds, every answer of a rater, and every first third of the sample, has the share
    of draws that is stated: no answer of its stratum is preferred.
    """
    seeds = 1000
    counts: Counter[str] = Counter()
    early: Counter[str] = Counter()
    strata = {}
    for seed in range(seeds):
        draw = FRAME.draw([20], 6, seed, "ann")
        for place, answer in enumerate(draw.answers):
            name = answer.run + answer.sample_id
            strata[name] = answer.stratum
            counts[name] += 1
            early[name] += place < 7
    draw = FRAME.draw([20], 6, 0, "ann")
    assert len(strata) == 60
    for name, number in strata.items():
        stated = draw.strata[number].probability
        error = np.sqrt(stated * (1 - stated) / seeds)
        assert abs(counts[name] / seeds - stated) <= 4.5 * error, name
    by_stratum: dict[int, list[float]] = {}
    for name, number in strata.items():
        by_stratum.setdefault(number, []).append(early[name] / seeds)
    for shares in by_stratum.values():
        mean = float(np.mean(shares))
        assert np.abs(np.array(shares) - mean).max() <= 4.5 * np.sqrt(mean * (1 - mean) / seeds)


def test_raters_share_the_overlap_and_nothing_depends_on_the_order_of_the_results() -> None:
    shared = [0] * len(FRAME.keys)
    samples = [set(FRAME.draw([20], 6, 3, rater).answers) for rater in ("ann", "bo", "cy")]
    for answer in set.intersection(*samples):
        shared[answer.stratum] += 1
    expected = allocation([len(members) for members in FRAME.members], 20, 6).overlap
    assert all(count >= least for count, least in zip(shared, expected, strict=True))
    assert sum(expected) == 6
    assert FRAME.draw([20], 20, 3, "ann").answers != FRAME.draw([20], 20, 3, "bo").answers
    assert set(FRAME.draw([20], 20, 3, "ann").answers) == set(FRAME.draw([20], 20, 3, "bo").answers)
    backwards = Frame(population()[::-1])
    assert backwards.hash == FRAME.hash
    assert backwards.draw([20], 6, 3, "bo") == FRAME.draw([20], 6, 3, "bo")
    assert Frame(population()[1:]).hash != FRAME.hash


def test_a_raised_sample_keeps_what_was_drawn_in_its_order() -> None:
    before, after = plan(), plan(samples=(20, 32))
    assert after.answers[:20] == before.answers
    assert len(after.answers) == 32
    assert {answer.key for answer in after.answers} == {
        answer.key for answer in plan(samples=(32,)).answers
    }
    with pytest.raises(UsageError, match="--sample 30: would change the answers that all raters"):
        FRAME.draw([8, 30], 8, 0, "ann")


def test_the_weights_of_several_raters_by_hand() -> None:
    """Stratum a/high has 30 answers; Ann rates 4 of them and Bo 2, so each rating counts 30 / 6 =
    5, and so on; a stratum that nobody rated has no weight.
    """
    ann, bo = plan("ann", (20,)), plan("bo", (12,))
    files = [rated(ann, 9), rated(bo, 5)]
    counts = Counter()
    for file in files:
        counts.update(made.stratum for made in file.ratings.values())
    for number, ratings in enumerate(strata_ratings(files)):
        size = SIZES[FRAME.keys[number].run, FRAME.keys[number].verdict]
        assert ratings.ratings == counts[number]
        assert ratings.weight == (pytest.approx(size / counts[number]) if counts[number] else None)
    weighted = weighted_ratings(files)
    assert len(weighted) == 14
    rated_strata = {made.rating.stratum for made in weighted}
    total = sum(
        SIZES[FRAME.keys[number].run, FRAME.keys[number].verdict] for number in rated_strata
    )
    assert sum(made.weight for made in weighted) == pytest.approx(total)


@pytest.mark.slow
def test_the_joined_estimate_is_unbiased() -> None:
    """The mean over 300 seeds of what two raters, one of whom stops early, say of all answers is
    the truth, and not the mean of the sample, which has too many of the rare ones.
    """
    truth = {}
    generator = np.random.default_rng(5)
    for answer in population():
        chance = 0.9 if answer.verdict == "high" else 0.2
        truth[answer.run + answer.sample_id] = int(generator.random() < chance)
    estimates = []
    for seed in range(300):
        ann, bo = plan("ann", (20,), seed=seed), plan("bo", (20,), seed=seed)
        files = [rated(ann, 20, truth), rated(bo, 14, truth)]
        weighted = weighted_ratings(files)
        total = sum(made.weight * int(made.rating.scores["polyp_count"] or 0) for made in weighted)
        estimates.append(total / FRAME.size)
    error = np.std(estimates) / np.sqrt(len(estimates))
    assert abs(np.mean(estimates) - np.mean([*truth.values()])) < 3.5 * error


def test_files_that_were_not_drawn_together_are_not_joined() -> None:
    for changed in (plan("bo", seed=1), plan("bo", overlap=5)):
        with pytest.raises(DataError, match=r"bo.jsonl: field `(seed|overlap)` .* as in ann.jsonl"):
            weighted_ratings([rated(plan(), 3), rated(changed, 3)])


def test_a_file_that_was_copied_for_another_rater_is_refused(tmp_path: Path) -> None:
    """A copy is recognised also if its rater has another name and goes on to rate; people who save
    the same rating in the same second once are not taken for one.
    """
    ann = plan()
    bo = ann.model_copy(update={"rater": "bo"})

    def at(number: int, second: int) -> Rating:
        return rating(ann, number).model_copy(
            update={"time": f"2026-11-30T05:00:{second:02}+00:00", "seconds": 4.5}
        )

    written(tmp_path, ann, [at(number, number) for number in range(6)])
    by_chance = [at(0, 0), *(at(number, 59 - number) for number in range(1, 6))]
    path = written(tmp_path, bo, by_chance)
    assert len(read_ratings(tmp_path, KVASIR.name)) == 2
    path.unlink()
    written(tmp_path, bo, [at(0, 0), at(1, 1), *(at(number, 50) for number in range(6, 9))])
    copied = r"bo\.jsonl: 2 of its 5 ratings have the scores and times of those in .*ann\.jsonl"
    with pytest.raises(DataError, match=rf"{copied}, .*; remove the copy"):
        read_ratings(tmp_path, KVASIR.name)


def test_a_file_keeps_the_last_rating_of_an_answer(tmp_path: Path) -> None:
    planned = plan()
    first = [rating(planned, 0), rating(planned, 1, None, cannot_tell=True, comment="blurred")]
    path = written(tmp_path, planned, first)
    assert path == tmp_path / "kvasir_aspects" / "ann.jsonl"
    file = read_rating_file(path)
    assert (file.plan, [*file.ratings.values()]) == (planned, first)
    assert sum(file.rated_in_stratum()) == 1
    size = path.stat().st_size
    changed = rating(planned, 0, 0)
    with open_for_rating(path, lambda: plan("nobody")) as writer:
        writer.add(rating(planned, 0, seconds=3.5))  # the same again, as a form may be sent twice
        assert path.stat().st_size == size
        writer.add(changed)
    file = read_rating_file(path)
    assert [*file.ratings.values()] == [changed, first[1]]
    assert len(path.read_bytes().splitlines()) == 4
    longer = plan(samples=(20, 32))
    with open_for_rating(path, lambda: planned) as writer:
        writer.extend(longer)
        writer.add(rating(longer, 31))
    file = read_rating_file(path)
    assert file.plan == longer
    assert [*file.ratings.values()] == [changed, first[1], rating(longer, 31)]


def test_a_line_that_was_cut_off_is_dropped_and_its_answer_asked_again(tmp_path: Path) -> None:
    planned = plan()
    path = written(tmp_path, planned, [rating(planned, number) for number in range(3)])
    whole = path.read_bytes()
    last = whole.splitlines()[-1]
    for length in (1, len(last) // 2, len(last)):  # of the last line, without its end
        path.write_bytes(whole[: -len(last) - 1] + last[:length])
        file = read_rating_file(path)
        assert file.is_torn
        assert len(file.ratings) == 2
        written(tmp_path, planned, [rating(planned, 2)])
        assert path.read_bytes() == whole


@pytest.mark.parametrize("name", ["CON", "nul", "Aux.1", "com1", "LPT9.x"])
def test_names_that_windows_reserves_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=f"--rater '{name}': names a file, which Windows"):
        rating_path(tmp_path, "r", name)
    assert rating_path(tmp_path, "r", f"{name[:3]}rad").name == f"{name[:3]}rad.jsonl"


def test_raters_whose_names_differ_only_in_case_are_refused(tmp_path: Path) -> None:
    path = rating_path(tmp_path, "r", "Ann")
    path.parent.mkdir()
    path.touch()
    assert rating_path(tmp_path, "r", "Ann") == path
    assert rating_path(tmp_path, "other", "ann").name == "ann.jsonl"
    with pytest.raises(UsageError, match="--rater 'ann': differs only in upper and lower case"):
        rating_path(tmp_path, "r", "ann")


def test_two_processes_do_not_rate_into_one_file(tmp_path: Path) -> None:
    path = tmp_path / "ann.jsonl"
    with (
        open_for_rating(path, plan),
        pytest.raises(LockedError, match=r"ann.jsonl: is being rated by process"),
        open_for_rating(path, plan),
    ):
        pass


def test_a_rating_that_cannot_be_written_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = plan()
    path = written(tmp_path, planned, [rating(planned, 0)])
    whole = path.read_bytes()
    write = os.write
    monkeypatch.setattr("os.write", lambda handle, content: write(handle, content[:10]))
    with (
        open_for_rating(path, plan) as writer,
        pytest.raises(DataError, match=r"ann.jsonl: cannot be written"),
    ):
        writer.add(rating(planned, 1))
    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"stratum": 3}, "line 2: sample .* is not an answer of the plan"),
        ({"sample_id": "x"}, "line 2: sample 'x' of 't' is not an answer of the plan"),
        ({"seconds": -1}, "line 2: field `seconds` is -1, expected a number of at least 0"),
        ({"more": 1}, "line 2: field `more` is unknown"),
    ],
)
def test_a_wrong_line_is_refused_with_its_place(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    planned = plan()
    path = written(tmp_path, planned, [rating(planned, 0)])
    lines = path.read_text().splitlines()
    path.write_text(lines[0] + "\n" + json.dumps({**json.loads(lines[1]), **changes}) + "\n")
    with pytest.raises(DataError, match=f"ann.jsonl, {message}"):
        read_rating_file(path)
    path.write_text(lines[1] + "\n")
    with pytest.raises(DataError, match=r"ann\.jsonl, line 1: field"):
        read_rating_file(path)
    for name in ("../x", "", ".hidden", "a b", "é"):
        with pytest.raises(UsageError, match="--rater"):
            rating_path(tmp_path, "r", name)


def test_labels_are_read_from_a_folder_of_ratings(tmp_path: Path) -> None:
    """Of the ratings of two runs those of one; a response that has changed makes the rest no
    probability sample.
    """
    ann, bo = plan("ann"), plan("bo")
    written(tmp_path, ann, [rating(ann, number) for number in range(20)])
    written(tmp_path, bo, [rating(bo, number, None, cannot_tell=True) for number in range(20)])
    documents: dict[Any, Any] = {}
    hashes = {}
    for answer in population():
        if answer.run == "a":
            documents["t", answer.sample_id] = {"question_class": ["polyp_count"]}
            hashes["t", answer.sample_id] = answer.response_hash
    run = LabelledRun("a", documents, hashes)
    found = read_labels(tmp_path, KVASIR, run)
    own = [answer for answer in ann.answers if answer.run == "a"]
    assert [label.unit[1] for label in found.labels] == [answer.sample_id for answer in own]
    assert sum(label.weight or 0 for label in found.labels) == pytest.approx(39)
    assert found.cannot_tell == sum(answer.run == "a" for answer in bo.answers)
    assert [(one.verdict, one.population) for one in found.strata] == [("high", 30), ("low", 9)]
    alone = read_labels(tmp_path / "kvasir_aspects" / "ann.jsonl", KVASIR, run)
    assert alone.labels == found.labels
    assert alone.cannot_tell == 0
    assert alone.torn == ()
    path = tmp_path / "kvasir_aspects" / "bo.jsonl"
    path.write_bytes(path.read_bytes()[:-3])
    assert read_labels(tmp_path, KVASIR, run).torn == ("bo.jsonl",)

    hashes["t", own[0].sample_id] = "another text"
    found = read_labels(tmp_path, KVASIR, run)
    assert found.stale == sum(own[0] in planned.answers for planned in (ann, bo))
    assert len(found.labels) == len(own) - 1
    assert "have changed since" in found.why_unweighted
    assert {label.weight for label in found.labels} == {None}
    with pytest.raises(UsageError, match=r"has no ratings under med_cmr_open \(med_cmr_open/"):
        read_labels(tmp_path, load_rubric("med_cmr_open"), run)
    with pytest.raises(DataError, match="line 1: field `rubric` is 'kvasir_aspects'"):
        read_labels(tmp_path / "kvasir_aspects", load_rubric("med_cmr_open"), run)
    changed = KVASIR.model_copy(update={"version": 2})
    with pytest.raises(DataError, match="rated under another version of rubric kvasir_aspects"):
        read_labels(tmp_path, changed, run)
