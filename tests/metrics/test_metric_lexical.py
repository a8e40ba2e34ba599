"""The lexical metrics: the reference libraries' own numbers for single pairs, batches and corpora,
and work by hand.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import sacrebleu
from hypothesis import example, given, settings
from hypothesis import strategies as st
from metric_texts import almost_plain, answers, texts
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

from medtasks.metrics import registry
from medtasks.metrics.bleu import Bleu, tokenize_13a
from medtasks.metrics.ngrams import matched_ngrams
from medtasks.metrics.registry import LEXICAL, get_metric, lexical_statistics

AWKWARD = (
    "",
    "\n\t",
    "...",
    "**Answer:** <b>polyp</b> &amp; `ulcer`",
    "# Heading\n- item 1\n- item 2",
    "0 1 2 3.14 1,000 50% 5-10",
    "Ein Polyp, größer als 5 mm – rosa",
    "息肉位于左下方。",
    "يوجد سليلة في القولون",
    "पॉलीप दिखाई देता है",
    "naïve café 🩺 polyp\u00a0red\u2028blue",
    "a" * 3000,
    "word " * 1500,
    "can't won't gonna cannot y'all's",
    "<think>no</think> yes",
    '{"answer": "polyp"}',
    "\\boxed{A} $x^2$",
)
REFERENCES = {
    "bleu": (sacrebleu.BLEU(smooth_method="none"), 100),
    "chrf": (sacrebleu.CHRF(word_order=0), 1),
    "chrf++": (sacrebleu.CHRF(word_order=2), 1),
}
WITHOUT_DATA = tuple(name for name in LEXICAL if name != "meteor")
pairs = st.lists(st.tuples(texts, texts), min_size=1, max_size=5)
Rows = list[tuple[str, str]]


def columns(rows: Rows) -> tuple[list[str], list[str]]:
    return [left for left, _ in rows], [right for _, right in rows]


def library_row(name: str, prediction: str, reference: str) -> list[float]:
    """The statistics of one pair, by the package that defines the metric."""
    if name.startswith("rouge"):
        return [
            RougeScorer([name], use_stemmer=False).score(reference, prediction)[name].fmeasure,
            1.0,
        ]
    if name == "bleu":
        cut = Tokenizer13a()
        found = BLEU(tokenize="none", smooth_method="none", force=True)._extract_corpus_statistics(
            [cut(prediction)], [[cut(reference)]]
        )
        return list(map(float, found[0]))
    if name.startswith("chrf"):
        found = CHRF(word_order=2 * (name == "chrf++"))._extract_corpus_statistics(
            [prediction], [[reference]]
        )
        return list(map(float, found[0]))
    return [float(prediction.strip().lower() == reference.strip().lower()), 1.0]


@settings(deadline=None, derandomize=True)
@given(st.lists(st.tuples(texts, texts), max_size=8))
@example(list(product(AWKWARD, AWKWARD)))
def test_equals_the_libraries(rows: Rows) -> None:
    statistics = lexical_statistics(rows, WITHOUT_DATA)
    assert tuple(statistics) == WITHOUT_DATA
    for name in WITHOUT_DATA:
        assert statistics[name].tolist() == [library_row(name, *row) for row in rows]


@pytest.mark.usefixtures("real_wordnet")
@settings(deadline=None, max_examples=30, derandomize=True)
@given(st.lists(st.tuples(answers, answers), max_size=8))
def test_neighbours_do_not_matter(rows: Rows) -> None:
    statistics = lexical_statistics(rows)
    for name, table in statistics.items():
        assert table.tolist() == [get_metric(name).statistics(*row).tolist() for row in rows]


def test_chunks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        (f"polyp {i % 17} in the lower-left", f"polyp {i % 13} in the left") for i in range(300)
    ]
    whole = lexical_statistics(rows, WITHOUT_DATA)
    monkeypatch.setattr(registry, "CHUNK", 7)
    for name, table in lexical_statistics(rows, WITHOUT_DATA).items():
        assert table.tobytes() == whole[name].tobytes()


def slow_matches(left: str, right: str, order: int) -> list[int]:
    ours = [left[i : i + order] for i in range(len(left) - order + 1)]
    theirs = [right[i : i + order] for i in range(len(right) - order + 1)]
    return [
        len(ours),
        len(theirs),
        sum(min(ours.count(gram), theirs.count(gram)) for gram in set(ours)),
    ]


def test_ngram_kernel_renumbers_where_integers_would_overflow() -> None:
    many = "".join(chr(1000 + i) for i in range(3000))  # 3000**6 is beyond 63 bits
    rows = [(many, many), (many[:50] * 3, many[:50] * 2)] * 20
    counts = matched_ngrams(*columns(rows), 6)
    assert counts[0, :, 2].tolist() == [3000, 2999, 2998, 2997, 2996, 2995]
    assert counts[1].tolist() == [slow_matches(*rows[1], order) for order in range(1, 7)]


def corpus(name: str, rows: Rows) -> float:
    metric = get_metric(name)
    return float(metric.score(np.sum([metric.statistics(*row) for row in rows], axis=0)))


@settings(max_examples=300)
@given(almost_plain)
def test_tokens_are_sacrebleus_for_plain_and_other_text(text: str) -> None:
    assert tokenize_13a(text) == Tokenizer13a()(text).split()


@pytest.mark.parametrize("name", REFERENCES)
@given(rows=pairs)
def test_corpus_scores_are_sacrebleus(name: str, rows: Rows) -> None:
    rows = [(prediction.rstrip(), reference.rstrip()) for prediction, reference in rows]
    predictions, references = columns(rows)
    library, scale = REFERENCES[name]
    expected = library.corpus_score(predictions, [references]).score / scale
    assert corpus(name, rows) == pytest.approx(expected, abs=1e-11)


def test_bleu_keeps_a_trailing_hyphen_as_evaluate_does_and_sacrebleu_does_not() -> None:
    assert Bleu().statistics("polyp-\n", "polyp")[2] == 1


def test_score_takes_any_leading_shape() -> None:
    rows = [Bleu().statistics("a b c d e", "a b c d x"), Bleu().statistics("a b", "c d")]
    grid = np.array([[rows[0], rows[1]], [rows[1], rows[0]]])
    assert Bleu().score(grid).tolist() == [
        [corpus("bleu", [("a b c d e", "a b c d x")]), 0.0],
        [0.0, Bleu().score(rows[0])],
    ]
