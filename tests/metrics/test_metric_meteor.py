"""METEOR against NLTK, with the real WordNet."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from metric_texts import almost_plain, texts
from nltk.corpus import wordnet as nltk_wordnet
from nltk.tokenize import word_tokenize
from nltk.translate.meteor_score import single_meteor_score

from medtasks.metrics import wordnet
from medtasks.metrics.meteor import Meteor, sentence_splitter, word_tokens
from medtasks.metrics.registry import lexical_statistics

pytestmark = pytest.mark.usefixtures("real_wordnet")


def nltk_meteor(prediction: str, reference: str) -> float:
    one_line = sentence_splitter() == "none"
    tokens = [word_tokenize(text, preserve_line=one_line) for text in (reference, prediction)]
    return float(single_meteor_score(*tokens, wordnet=nltk_wordnet))


@pytest.mark.slow
@settings(deadline=None)
@given(texts, texts)
def test_single_and_batch_are_nltk(prediction: str, reference: str) -> None:
    expected = [nltk_meteor(prediction, reference), 1]
    assert Meteor().statistics(prediction, reference).tolist() == expected
    assert lexical_statistics([(prediction, reference)], ["meteor"])["meteor"].tolist() == [
        expected
    ]


@settings(max_examples=300)
@given(almost_plain)
def test_tokens_are_nltks_for_plain_and_other_text(text: str) -> None:
    assert word_tokens(text) == word_tokenize(text, preserve_line=sentence_splitter() == "none")


def test_hand_worked_with_a_stem_and_a_synonym_and_empty_texts() -> None:
    # "autos"/"car" by a synonym of the stem, "polyps"/"polyp" by stem: 3 of 3 words, in one chunk
    assert Meteor().statistics("autos red polyps", "car red polyp").tolist() == pytest.approx(
        [1 - 0.5 / 27, 1]
    )
    for empty in (("", "a polyp"), ("a polyp", ""), ("", "")):
        assert Meteor().statistics(*empty).tolist() == [0.0, 1.0]


@pytest.mark.slow
def test_threads_agree_with_one_thread() -> None:
    words = [
        name for name in islice(nltk_wordnet.all_lemma_names(), 0, None, 300) if name.isalpha()
    ]
    script = (
        "from concurrent.futures import ThreadPoolExecutor; from medtasks.metrics import wordnet\n"
        f"import sys; sys.setswitchinterval(1e-6); words = {words!r}\n"
        "with ThreadPoolExecutor(8) as pool: print(list(map(sorted, pool.map(wordnet.synonyms, words))))"
    )
    fresh = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert fresh.stdout.strip() == str([sorted(wordnet.synonyms(word)) for word in words])


def test_signature_records_parameters_splitter_and_dictionary() -> None:
    parts = Meteor().signature.split("|")
    assert parts[:5] == ["meteor", "alpha:0.9", "beta:3.0", "gamma:0.5", "tok:treebank"]
    assert parts[5] == f"split:{sentence_splitter()}"
    assert parts[7].startswith("wordnet:3.0-")


def test_sentences_are_split_where_punkt_is_installed(tmp_path: Path) -> None:
    model = tmp_path / "tokenizers" / "punkt_tab" / "english"
    model.mkdir(parents=True)
    for name in ("collocations.tab", "sent_starters.txt", "abbrev_types.txt", "ortho_context.tab"):
        (model / name).write_text("")
    script = (
        "from medtasks.metrics.meteor import word_tokens, Meteor\n"
        "print(word_tokens('One polyp. Two clips.'), 'split:punkt_tab' in Meteor().signature)"
    )
    found = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"NLTK_DATA": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == "['One', 'polyp', '.', 'Two', 'clips', '.'] True"
