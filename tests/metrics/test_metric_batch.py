"""The text metrics of many pairs at once: the libraries' own rows, whatever the neighbours, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metric_texts import answers, texts
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

from medtasks.metrics import registry
from medtasks.metrics._ngrams import matched_ngrams
from medtasks.metrics.registry import LEXICAL, get_metric, lexical_statistics
from medtasks.metrics.rouge import lcs_length

WITHOUT_DATA = tuple(name for name in LEXICAL if name != "meteor")
pairs = st.lists(st.tuples(texts, texts), max_size=8)


def columns(rows: list[tuple[str, str]]) -> tuple[list[str], list[str]]:
    return [left for left, _ in rows], [right for _, right in rows]


def same(left: dict[str, np.ndarray], right: dict[str, np.ndarray]) -> bool:
    return list(left) == list(right) and all(left[name].tobytes() == right[name].tobytes() for name in left)


def library_row(name: str, prediction: str, reference: str) -> list[float]:
    """The statistics of one pair, by the package that defines the metric."""
    if name.startswith("rouge"):
        return [RougeScorer([name], use_stemmer=False).score(reference, prediction)[name].fmeasure, 1.0]
    if name == "bleu":
        cut = Tokenizer13a()
        found = BLEU(tokenize="none", smooth_method="none", force=True)._extract_corpus_statistics(
            [cut(prediction)], [[cut(reference)]]
        )
        return list(map(float, found[0]))
    if name.startswith("chrf"):
        found = CHRF(word_order=2 * (name == "chrf++"))._extract_corpus_statistics([prediction], [[reference]])
        return list(map(float, found[0]))
    return [float(prediction.strip().lower() == reference.strip().lower()), 1.0]


@settings(deadline=None, derandomize=True)
@given(pairs)
def test_equals_the_libraries(rows: list[tuple[str, str]]) -> None:
    statistics, reasons = lexical_statistics(*columns(rows), WITHOUT_DATA)
    assert not reasons
    for name in WITHOUT_DATA:
        assert statistics[name].dtype == np.float64
        assert statistics[name].tolist() == [library_row(name, *row) for row in rows]


@pytest.mark.usefixtures("real_wordnet")
@settings(deadline=None, max_examples=30, derandomize=True)
@given(st.lists(st.tuples(answers, answers), max_size=8))
def test_neighbours_do_not_matter(rows: list[tuple[str, str]]) -> None:
    statistics, _ = lexical_statistics(*columns(rows))
    for name, table in statistics.items():
        assert table.tolist() == [get_metric(name).statistics(*row).tolist() for row in rows]


def test_order_repeats_and_chunks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(f"polyp {i % 17} in the lower-left", f"polyp {i % 13} in the left") for i in range(300)]
    whole, _ = lexical_statistics(*columns(rows), WITHOUT_DATA)
    monkeypatch.setattr(registry, "CHUNK", 7)
    assert same(lexical_statistics(*columns(rows), WITHOUT_DATA)[0], whole)
    backwards, _ = lexical_statistics(*columns(rows[::-1]), WITHOUT_DATA)
    assert same({name: table[::-1] for name, table in backwards.items()}, whole)


def test_only_the_metrics_asked_for() -> None:
    statistics, _ = lexical_statistics(["a b"], ["a c"], ["chrf++", "rougeL"])
    assert list(statistics) == ["chrf++", "rougeL"]


def test_no_samples_give_empty_tables() -> None:
    statistics, _ = lexical_statistics([], [], WITHOUT_DATA)
    assert {name: table.shape for name, table in statistics.items()} == {
        name: (0, get_metric(name).width) for name in WITHOUT_DATA
    }


def slow_matches(left: str, right: str, order: int) -> list[int]:
    ours = [left[i : i + order] for i in range(len(left) - order + 1)]
    theirs = [right[i : i + order] for i in range(len(right) - order + 1)]
    return [len(ours), len(theirs), sum(min(ours.count(gram), theirs.count(gram)) for gram in set(ours))]


strings = st.text(alphabet="ab", max_size=12)


@given(st.lists(st.tuples(strings, strings), min_size=1, max_size=6))
def test_ngram_kernel_counts(rows: list[tuple[str, str]]) -> None:
    expected = [[slow_matches(*row, order) for order in range(1, 5)] for row in rows]
    assert matched_ngrams(*columns(rows), 4).tolist() == expected


def test_ngram_kernel_renumbers_where_integers_would_overflow() -> None:
    many = "".join(chr(1000 + i) for i in range(3000))  # 3000**6 is beyond 63 bits
    rows = [(many, many), (many[:50] * 3, many[:50] * 2)] * 20
    counts = matched_ngrams(*columns(rows), 6)
    assert counts[0, :, 2].tolist() == [3000, 2999, 2998, 2997, 2996, 2995]
    assert counts[1].tolist() == [slow_matches(*rows[1], order) for order in range(1, 7)]


def slow_lcs(left: str, right: str) -> int:
    table = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i, a in enumerate(left):
        for j, b in enumerate(right):
            table[i + 1][j + 1] = table[i][j] + 1 if a == b else max(table[i][j + 1], table[i + 1][j])
    return table[-1][-1]


@given(st.text(alphabet="abc", max_size=80), st.text(alphabet="abc", max_size=80))
def test_lcs_kernel(left: str, right: str) -> None:
    assert lcs_length(left, right) == slow_lcs(left, right)
