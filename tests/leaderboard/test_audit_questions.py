"""Signs in questions, votes, and what people said of gold answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from made_samples import made_sample
from medtasks.leaderboard.audit.answered_questions import AuditedQuestion
from medtasks.leaderboard.audit.closed_questions import (
    ClosedQuestion,
    chosen_options,
    closed_question,
)
from medtasks.leaderboard.audit.document_signs import different_gold_signs, equal_option_sign
from medtasks.leaderboard.audit.signs import SignKind
from medtasks.leaderboard.audit.vote_signs import vote_signs
from medtasks.leaderboard.verify.gold_verdicts import GoldVerdicts, QuestionVerdict, read_verdicts

from medtasks.catalog.registry import get_benchmark
from medtasks.core.errors import DataError, UsageError

LETTERS = ("A", "B", "C", "D", "E")
NONE_OF_THEM = "None of these intervals"


def question(sample_id: str, gold: int | str, **fields: Any) -> AuditedQuestion:
    """A question with five options, or an open one with a reference."""
    closed = None
    if isinstance(gold, int):
        texts = fields.pop("texts", ("left", "right", "both", "neither", "unclear"))
        closed = ClosedQuestion(LETTERS[: len(texts)], texts, gold)
    given = {
        "benchmark": "med_cmr",
        "task": "med_cmr_mcq_cr",
        "cluster": sample_id,
        "media": (f"{sample_id}.png",),
        "text": "Which side?",
        "context": "{}",
        "target": str(gold),
        "run": "run-1",
        **fields,
    }
    return AuditedQuestion(sample_id=sample_id, closed=closed, **given)


def rotated(shift: int, answer: str) -> Any:
    """The sample of a question with gold answer B, whose options are rotated."""
    order = [*LETTERS[shift:], *LETTERS[:shift]]
    texts = dict(zip("ABCDE", ("one", "two", "three", "four", NONE_OF_THEM), strict=True))
    choices = {letter: texts[option] for letter, option in zip(LETTERS, order, strict=True)}
    document = {
        "question": "How many?",
        "choices": choices,
        "rotation_of": "q1",
        "rotation": shift,
        "rotations": 5,
        "option_order": order,
    }
    target = LETTERS[order.index("B")]
    return made_sample(
        "med_cmr_mcq_cr_circular",
        1,
        True,
        sample_id=f"q1~{shift}",
        target=target,
        filtered=answer,
        document=document,
    )


@pytest.mark.parametrize("shift", range(5))
def test_rotated_options_are_read_in_the_plain_order(shift: int) -> None:
    benchmark = get_benchmark("med_cmr")
    sample = rotated(shift, LETTERS[(2 - shift) % 5])  # the letter that shows the option C
    closed = closed_question(benchmark, sample)
    assert closed is not None
    assert closed == ClosedQuestion(LETTERS, ("one", "two", "three", "four", NONE_OF_THEM), 1)
    assert chosen_options(benchmark, sample, closed) == [2]


def test_a_response_without_an_option_is_no_vote() -> None:
    benchmark = get_benchmark("med_cmr")
    sample = rotated(0, "").model_copy(update={"status": "none"})
    closed = closed_question(benchmark, sample)
    assert closed is not None
    assert chosen_options(benchmark, sample, closed) == [None]


def test_several_right_options_are_no_closed_question() -> None:
    sample = rotated(0, "A")
    sample = sample.model_copy(update={"document": {**sample.document, "multi_select": True}})
    assert closed_question(get_benchmark("med_cmr"), sample) is None


def test_equal_options_are_a_strong_sign_only_with_the_gold_answer() -> None:
    texts = ("the left lung", "Left lung.", "right lung")
    with_gold = equal_option_sign(question("a", 1, texts=texts))
    assert with_gold is not None
    assert with_gold.kind is SignKind.EQUAL_OPTIONS
    assert "options A and B say the same" in with_gold.text
    assert "left" not in with_gold.public_text.casefold()
    distractors = equal_option_sign(question("a", 2, texts=texts))
    assert distractors is not None
    assert distractors.kind is SignKind.EQUAL_DISTRACTORS
    assert equal_option_sign(question("a", 0)) is None


def test_options_of_symbols_alone_are_compared_as_they_are() -> None:
    assert equal_option_sign(question("a", 0, texts=("?", "!"))) is None


def signs_of(*questions: AuditedQuestion, **hashes: str) -> dict[str, SignKind]:
    found = different_gold_signs(
        questions, {f"{name}.png": digest for name, digest in hashes.items()}
    )
    return {asked.sample_id: sign.kind for asked, sign in found}


def test_duplicates_are_found_by_the_content_of_their_media() -> None:
    first, second = question("a", 0), question("b", 1, text="Which side")
    assert signs_of(first, second) == {}  # other names, and nothing known of their content
    assert signs_of(first, second, a="1", b="2") == {}
    strong = SignKind.DIFFERENT_GOLDS
    assert signs_of(first, second, a="1", b="1") == {"a": strong, "b": strong}
    assert signs_of(first, question("b", 0), a="1", b="1") == {}


def test_reordered_options_with_one_gold_text_agree() -> None:
    first = question("a", 0, texts=("left", "right"))
    second = question("b", 1, texts=("right", "left"))
    assert signs_of(first, second, a="1", b="1") == {}
    other_options = question("b", 1, texts=("right", "middle"))
    assert signs_of(first, other_options, a="1", b="1") == {}


def test_another_window_of_a_video_is_another_question() -> None:
    first = question("a", 0, context='{"window_end": 1}')
    second = question("b", 1, context='{"window_end": 2}')
    assert signs_of(first, second, a="1", b="1") == {}


def test_open_duplicates_are_a_weaker_sign() -> None:
    found = signs_of(question("a", "a polyp"), question("b", "an ulcer"), a="1", b="1")
    assert set(found.values()) == {SignKind.DIFFERENT_REFERENCES}
    assert not SignKind.DIFFERENT_REFERENCES.is_strong


def voted(
    sample_id: str, gold: int, *options: int | None, blind: tuple[int, ...] = ()
) -> AuditedQuestion:
    asked = question(sample_id, gold)
    asked.chosen.update({f"m{number}": {option: 1} for number, option in enumerate(options)})
    asked.chosen_blind.update({f"m{number}": {option: 1} for number, option in enumerate(blind)})
    return asked


NAMES = {f"m{number}": f"Model {number}" for number in range(9)}


def test_two_models_outvote_nothing() -> None:
    signs = vote_signs([voted(f"q{n}", 0, 1, 1) for n in range(30)], NAMES)
    assert signs.signs == {}
    (note,) = signs.notes
    assert note.startswith("answers are not compared: found 2 models")


def test_blind_runs_that_are_all_right_are_a_weaker_sign() -> None:
    questions = [voted(f"q{n}", 0, 0, 0, blind=(0, n % 2)) for n in range(4)]
    signs = vote_signs(questions, NAMES)
    assert sorted(signs.signs) == [0, 2]
    assert signs.signs[0][0].text == "all 2 blind runs get it (guessing alone: 4 %)"


def test_one_blind_run_says_nothing() -> None:
    signs = vote_signs([voted("q", 0, 0, 0, 0, blind=(0,))], NAMES)
    assert signs.signs == {}
    assert "blind runs are not compared: found 1 model, expected at least 2" in signs.notes


def test_majorities_and_disputes_of_raters() -> None:
    verdicts = GoldVerdicts(
        {
            ("t", "a"): QuestionVerdict({"r1": "wrong", "r2": "wrong", "r3": "right"}),
            ("t", "b"): QuestionVerdict({"r1": "wrong", "r2": "ambiguous"}),
            ("t", "c"): QuestionVerdict({"r1": "cannot tell"}),
        }
    )
    assert verdicts.found("wrong") == {("t", "a")}
    first, second, *_ = verdicts.notes([question("a", 0, task="t"), question("b", 0, task="t")])
    assert first == "people rated 2 listed questions: 1 wrong, 1 undecided"
    assert second == "raters disagree on 2 of 2 questions with several verdicts"


def test_verdicts_in_a_csv_file(tmp_path: Path) -> None:
    file = tmp_path / "golds.csv"
    file.write_text(
        "task,sample_id,verdict,rater\nt,a,Wrong,r1\nt,a,right,r2\nt,b,,r1\nt,c,wrong,\n",
        encoding="utf-8",
    )
    verdicts = read_verdicts(file)
    assert verdicts.found("wrong") == {("t", "c")}
    assert verdicts.of("t", "b") is None
    asked = verdicts.of("t", "a")
    assert asked is not None
    assert str(asked) == "wrong 1, right 1"


def test_faulty_verdicts_are_refused_with_their_line(tmp_path: Path) -> None:
    file = tmp_path / "golds.csv"
    file.write_text("task,sample_id,verdict\nt,a,maybe\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"line 2: field `verdict` is 'maybe', expected one of"):
        read_verdicts(file)
    file.write_text("task,sample_id,verdict\nt,a,wrong\nt,a,right\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"line 3: rater 'golds' already has a verdict on sample"):
        read_verdicts(file)
    file.write_text("task,sample_id\nt,a\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"has no column `verdict`"):
        read_verdicts(file)
    with pytest.raises(UsageError, match="no such file or folder"):
        read_verdicts(tmp_path / "absent")
