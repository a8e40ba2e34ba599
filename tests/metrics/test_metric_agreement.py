"""Text metrics against the reference libraries on 2,000 pairs: generated answers and whatever is awkward."""

from __future__ import annotations

import random

import numpy as np
import pytest
import sacrebleu
from nltk.corpus import wordnet as nltk_wordnet
from nltk.tokenize import word_tokenize
from nltk.translate.meteor_score import single_meteor_score
from rouge_score.rouge_scorer import RougeScorer

from medtasks.metrics.aggregate import corpus_score
from medtasks.metrics.meteor import sentence_splitter
from medtasks.metrics.registry import get_metric, lexical_statistics

PAIRS = 2000
WORDS = [
    "the",
    "a",
    "polyp",
    "polyps",
    "lesion",
    "is",
    "are",
    "was",
    "located",
    "in",
    "at",
    "lower-left",
    "upper",
    "area",
    "5mm",
    "11-20mm",
    "3.5",
    "two",
    "none",
    "red,",
    "pink.",
    "There's",
    "Barrett's",
    "(IIa+c)",
    "z-line",
    "instrument",
    "snare",
    "not",
    "visible",
    "no",
    "evidence",
    "of",
    "bleeding;",
    "and",
    "or",
    "with",
    "without",
]
AWKWARD = (
    "",
    " ",
    "\n\t",
    ".",
    "...",
    "**Answer:** <b>polyp</b> &amp; `ulcer`",
    "# Heading\n- item 1\n- item 2",
    "0 1 2 3.14 1,000 50% 5-10",
    "Ein Polyp, größer als 5 mm – rosa",
    "息肉位于左下方。",
    "يوجد سليلة في القولون",
    "पॉलीप दिखाई देता है",
    "полип в слепой кишке",
    "naïve café 🩺 polyp\u00a0red\u2028blue",
    "a" * 3000,
    "word " * 1500,
    "can't won't gonna cannot y'all's",
    "<think>no</think> yes",
    '{"answer": "polyp"}',
    "\\boxed{A} $x^2$",
)


def texts() -> list[tuple[str, str]]:
    """The same pairs every time: similar, identical, unrelated and awkward ones."""
    generator = random.Random(20261121)
    pairs = [(one, other) for one in AWKWARD for other in AWKWARD]
    while len(pairs) < PAIRS:
        reference = [generator.choice(WORDS) for _ in range(generator.randint(0, 45))]
        kind = generator.randrange(4)
        if kind == 0:
            prediction = list(reference)
        elif kind == 1:
            prediction = [word if generator.random() < 0.7 else generator.choice(WORDS) for word in reference]
        elif kind == 2:
            prediction = generator.sample(reference, len(reference))
        else:
            prediction = [generator.choice(WORDS) for _ in range(generator.randint(0, 45))]
        awkward = generator.choice(AWKWARD[:17]) if generator.random() < 0.1 else ""
        pairs.append((" ".join(prediction) + awkward[:200], " ".join(reference)))
    return pairs


@pytest.fixture(scope="module")
def pairs() -> list[tuple[str, str]]:
    made = texts()
    assert len(made) == PAIRS
    return made


def test_rouge(pairs: list[tuple[str, str]]) -> None:
    names = ("rouge1", "rouge2", "rougeL")
    scorer = RougeScorer(list(names), use_stemmer=False)
    expected = [scorer.score(reference, prediction) for prediction, reference in pairs]
    found, _ = lexical_statistics([p for p, _ in pairs], [r for _, r in pairs], names)
    for name in names:
        assert np.abs(found[name][:, 0] - [one[name].fmeasure for one in expected]).max() < 1e-9


@pytest.mark.slow
@pytest.mark.usefixtures("real_wordnet")
def test_meteor(pairs: list[tuple[str, str]]) -> None:
    one_line = sentence_splitter() == "none"
    found, _ = lexical_statistics([p for p, _ in pairs], [r for _, r in pairs], ["meteor"])
    tokens = {text: word_tokenize(text, preserve_line=one_line) for pair in pairs for text in pair}
    expected = [single_meteor_score(tokens[r], tokens[p], wordnet=nltk_wordnet) for p, r in pairs]
    assert np.abs(found["meteor"][:, 0] - expected).max() < 1e-9


@pytest.mark.parametrize(("name", "order"), [("chrf", 0), ("chrf++", 2)])
def test_chrf_of_the_corpus_and_of_parts(pairs: list[tuple[str, str]], name: str, order: int) -> None:
    statistics = lexical_statistics([p for p, _ in pairs], [r for _, r in pairs], [name])[0][name]
    for first, last in ((0, PAIRS), (0, 400), (400, 900), (1990, 2000)):
        part = pairs[first:last]
        expected = sacrebleu.corpus_chrf([p for p, _ in part], [[r for _, r in part]], word_order=order).score
        assert corpus_score(get_metric(name), statistics[first:last]) == pytest.approx(expected, abs=1e-9)


def test_bleu_of_the_corpus_and_of_parts(pairs: list[tuple[str, str]]) -> None:
    statistics = lexical_statistics([p for p, _ in pairs], [r for _, r in pairs], ["bleu"])[0]["bleu"]
    for first, last in ((0, PAIRS), (400, 900), (900, 2000)):
        part = pairs[first:last]
        expected = sacrebleu.corpus_bleu([p for p, _ in part], [[r for _, r in part]], smooth_method="none").score
        assert corpus_score(get_metric("bleu"), statistics[first:last]) == pytest.approx(expected / 100, abs=1e-9)


def test_exact_match(pairs: list[tuple[str, str]]) -> None:
    found = lexical_statistics([p for p, _ in pairs], [r for _, r in pairs], ["exact_match"])[0]["exact_match"]
    assert found[:, 0].tolist() == [float(p.strip().lower() == r.strip().lower()) for p, r in pairs]
    assert 0 < found[:, 0].sum() < PAIRS
