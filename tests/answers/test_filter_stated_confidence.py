"""Confidences stated in words: what counts as one, and what is only counted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtasks.answers import StatedConfidenceFilter
from medtasks.answers.stated_confidence import (
    parse_confidence,
    stated_confidence,
    without_confidence,
)
from medtasks.catalog.registry import get_filter


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("B\nConfidence: 85%", "0.85"),
        ("Answer: B\nConfidence: 85 %", "0.85"),
        ("Confidence: 85", "0.85"),
        ("confidence 0.85", "0.85"),
        ("Confidence = .9", "0.9"),
        ("Confidence: 85/100", "0.85"),
        ("Confidence: 8/10", "0.8"),
        ("Confidence: 85,5 %", "0.855"),
        ("**Confidence:** 90%", "0.9"),
        ("**Confidence: 90%**", "0.9"),
        ("Confidence level: 95 percent.", "0.95"),
        ("Confidence (0-100): 85", "0.85"),
        ("Confidence (0-1): 0.85", "0.85"),
        ("My confidence in this answer is about 70%", "0.7"),
        ("I am 85% confident that it is B.", "0.85"),
        ("Answer：B\nConfidence：85％", "0.85"),
        ("Answer: \\boxed{B}\nConfidence: $\\boxed{85\\%}$", "0.85"),
        ("Confidence: 85 - three lesions are seen", "0.85"),
        ("Confidence: 85%. I am 85 % sure.", "0.85"),
        ("<think>Confidence: 20%</think>B\nConfidence: 60%", "0.6"),
        ("Confidence: 0%", "0"),
        ("Confidence: 1", "0.01"),
        ("Confidence: 1.0", "1"),
        ("Confidence: 100%", "1"),
        ("Confidence: 120 %", "[out_of_range]"),
        ("Confidence: -5%", "[out_of_range]"),
        ("Confidence: 12/10", "[out_of_range]"),
        ("Confidence: 0/0", "[out_of_range]"),
        ("Confidence: 90%. Confidence: 80%", "[several]"),
        ("Confidence: 80-90%", "[several]"),
        ("Confidence: 80 to 90 %", "[several]"),
        ("Confidence: 90% (or 80%)", "[several]"),
        ("Confidence: high", "[missing]"),
        ("Confidence: 85th percentile", "[missing]"),
        ("The 95% confidence interval is wide.", "[missing]"),
        ("B (95%)", "[missing]"),
        ("", "[missing]"),
    ],
)
def test_known_forms(response: str, expected: str) -> None:
    assert stated_confidence(response) == expected
    status = expected[1:-1] if expected.startswith("[") else "ok"
    assert get_filter("StatedConfidenceFilter").status(expected) == status


_WRITTEN = {
    "percent": lambda percent: f"{percent}%",
    "spaced": lambda percent: f"{percent} %",
    "word": lambda percent: f"{percent} percent",
    "of a hundred": lambda percent: f"{percent}/100",
    "share": lambda percent: f"{percent / 100:.2f}",
}


@given(
    st.integers(-50, 200),
    st.sampled_from(sorted(_WRITTEN)),
    st.sampled_from(
        [
            "Confidence: {}",
            "confidence is {}",
            "**Confidence:** {}",
            "CONFIDENCE = {}",
            "certainty: {}",
        ]
    ),
    st.sampled_from("ABCDE"),
)
def test_any_number_in_any_notation(percent: int, notation: str, frame: str, letter: str) -> None:
    found = parse_confidence(
        stated_confidence(f"Answer: {letter}\n{frame.format(_WRITTEN[notation](percent))}\n")
    )
    if notation == "share" and percent > 100:
        expected: float | str = (
            percent / 100 / 100
        )  # 1.20 is a percentage: only numbers up to 1 are shares
    else:
        expected = percent / 100 if 0 <= percent <= 100 else "out_of_range"
    assert found == (expected if isinstance(expected, str) else pytest.approx(expected, abs=5e-5))


@given(st.integers(0, 100), st.integers(0, 100))
def test_two_different_values_are_never_chosen_between(one: int, other: int) -> None:
    found = stated_confidence(f"Confidence: {one}%\nConfidence: {other}%")
    assert parse_confidence(found) == (pytest.approx(one / 100) if one == other else "several")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("polyp, Confidence: 90%", "polyp"),
        ("polyp (confidence: 0.9).", "polyp"),
        ("polyp. I'm 90 % sure.", "polyp"),
        ("polyp\nConfidence: 90%", "polyp\n"),
        ("polyp, confidence: 90%, not an ulcer", "polyp, confidence: 90%, not an ulcer"),
        (
            "polyp: confidence 90%\nulcer: confidence 5%",
            "polyp: confidence 90%\nulcer: confidence 5%",
        ),
        ("polyp, confidence: high", "polyp, confidence: high"),
        ("stenosis (90%)", "stenosis (90%)"),
    ],
)
def test_only_one_confidence_at_the_end_of_a_line_is_removed(text: str, expected: str) -> None:
    assert without_confidence(text) == expected


@given(st.text(max_size=80))
def test_any_text_gives_a_share_or_a_status(text: str) -> None:
    found = parse_confidence(StatedConfidenceFilter.read(text))
    assert found in ("missing", "several", "out_of_range") or (
        isinstance(found, float) and 0 <= found <= 1
    )


@given(st.text(alphabet="confideCONFIDENCE certain:%()-–*/.,0123456789\n", max_size=60))
def test_near_misses_never_raise(text: str) -> None:
    found = parse_confidence(StatedConfidenceFilter.read(f"confidence {text}"))
    assert isinstance(found, str) or 0 <= found <= 1
