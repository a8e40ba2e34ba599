"""Baseline policies as pure functions: what they say, how often, and that order plays no part."""

from __future__ import annotations

from collections import Counter

import pytest
from medtasks.adapters.policies import POLICIES, PolicyQuestion, make_policy
from scipy.stats import binomtest

from medtasks.core.errors import DataError, UsageError

LETTERS = ("A", "B", "C", "D", "E")


def choice(number: int, target: str = "B") -> PolicyQuestion:
    return PolicyQuestion(sample_id=f"q{number}", target=target, abstention="E", choices=LETTERS)


def open_question(
    number: int, target: str = "a polyp", answers: tuple[str, ...] = ()
) -> PolicyQuestion:
    return PolicyQuestion(
        f"q{number}",
        target,
        "I cannot tell.",
        answers=answers or ("a polyp", "an ulcer", "text", "text"),
    )


def within(hits: int, asked: int, probability: float) -> bool:
    """Whether ``hits`` is no surprise (two-sided exact test at one in a thousand)."""
    return bool(binomtest(hits, asked, probability).pvalue > 1e-3)


def test_what_the_fixed_policies_say() -> None:
    assert make_policy("constant")(choice(1)) == "A"
    assert make_policy("constant", answer="D")(choice(1)) == "D"
    assert make_policy("constant")(open_question(1)).endswith(".")


def stream_round(number: int) -> PolicyQuestion:
    """One of four rounds; evidence is there from round 3 on."""
    target = "alert: bleeding" if number >= 3 else "no_alert"
    return PolicyQuestion(
        f"q@{number}", target, "no_alert", positive="alert: bleeding", round=number, rounds=4
    )


def test_the_streaming_policies_answer_too_early_too_late_and_not_at_all() -> None:
    said = {
        name: [make_policy(name)(stream_round(n)) for n in (1, 2, 3, 4)]
        for name in ("early", "late", "never")
    }
    alert, silence = "alert: bleeding", "no_alert"

    assert said == {"early": [alert] * 4, "late": [silence] * 3 + [alert], "never": [silence] * 4}
    assert [make_policy("oracle")(stream_round(n)) for n in (1, 2, 3, 4)] == [
        silence,
        silence,
        alert,
        alert,
    ]


@pytest.mark.parametrize("name", ["early", "late", "never"])
def test_the_streaming_policies_know_everything_else(name: str) -> None:
    assert make_policy(name)(choice(1)) == "B"
    assert make_policy(name)(
        PolicyQuestion("q", "a polyp", ideal="I see it.\nFinal answer: a polyp")
    ).endswith("a polyp")


def test_uniform_chooses_every_letter_equally_often() -> None:
    chosen = Counter(map(make_policy("uniform", seed=3), map(choice, range(2000))))

    assert sorted(chosen) == list(LETTERS)
    assert all(within(count, 2000, 0.2) for count in chosen.values())


def test_uniform_answers_open_questions_as_documents_do() -> None:
    chosen = Counter(map(make_policy("uniform"), map(open_question, range(2000))))

    assert within(chosen["text"], 2000, 0.5)
    assert within(chosen["a polyp"], 2000, 0.25)


@pytest.mark.parametrize("accuracy", [0.0, 0.3, 0.7, 1.0])
def test_noisy_oracle_is_right_as_often_as_asked_and_spreads_its_errors(accuracy: float) -> None:
    chosen = Counter(map(make_policy("noisy_oracle", accuracy=accuracy), map(choice, range(2000))))

    assert within(chosen["B"], 2000, accuracy)
    assert all(within(chosen[letter], 2000, (1 - accuracy) / 4) for letter in "ACDE")


def test_noisy_oracle_gives_another_documents_answer_to_open_questions() -> None:
    chosen = Counter(
        map(make_policy("noisy_oracle", accuracy=0.0), map(open_question, range(2000)))
    )

    assert sorted(chosen) == ["an ulcer", "text"]
    assert within(chosen["text"], 2000, 2 / 3)


def test_draws_are_pinned() -> None:
    uniform, noisy = make_policy("uniform"), make_policy("noisy_oracle")

    assert "".join(uniform(choice(i)) for i in range(12)) == "BDCDECDACADC"
    assert "".join(noisy(choice(i)) for i in range(12)) == "BCBBBBBBDBBB"


def test_a_task_without_wrong_answers_is_refused() -> None:
    with pytest.raises(DataError, match="q1: noisy_oracle needs an answer that differs"):
        make_policy("noisy_oracle", accuracy=0.0)(open_question(1, answers=("a polyp", "a polyp")))


def test_a_task_that_does_not_say_how_to_abstain_is_refused() -> None:
    with pytest.raises(DataError, match="field 'abstention' is missing"):
        make_policy("abstain")(PolicyQuestion("q1", "B", choices=LETTERS))


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(UsageError, match="policy=oracle takes no accuracy"):
        make_policy("oracle", accuracy=0.5)
    with pytest.raises(UsageError, match="policy=uniform takes no answer"):
        make_policy("uniform", answer="A")
    drawn = {"uniform", "noisy_oracle", "calibrated", "overconfident"}
    assert set(POLICIES) == {"oracle", "constant", "abstain", "early", "late", "never"} | drawn
