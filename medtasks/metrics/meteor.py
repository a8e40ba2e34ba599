"""METEOR as NLTK computes it, on NLTK's Treebank word tokens: what HF ``evaluate`` calls ``meteor``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from typing import Any

from medtasks.metrics import wordnet
from medtasks.metrics._ngrams import Pairs, tokens_of
from medtasks.metrics.base import Array, BatchMetric, MeanMetric, mean_table, package_version, sign

ALPHA, BETA, GAMMA = 0.9, 3.0, 0.5
NO_SPLITTER = (
    "texts are not split into sentences, since NLTK's punkt_tab is not installed "
    "(`python -m nltk.downloader punkt_tab`); scores with and without it differ by up to 0.016 and are not comparable"
)

# ASCII words with one mark after each at most, and a final period: NLTK's tokens are then the words and the
# marks, whether or not sentences are split. Its thirty expressions take many times as long to find that out.
WORD = "[A-Za-z0-9]+(?:[-.][A-Za-z0-9]+)*"
PLAIN = re.compile(rf"{WORD}[,;:]?(?: {WORD}[,;:]?)*\.?")
PLAIN_TOKEN = re.compile(rf"{WORD}|[,;:.]")
CONTRACTION = re.compile("(?i)cannot|gimme|gonna|gotta|lemme|wanna")  # which NLTK cuts in two


class Meteor(BatchMetric, MeanMetric):
    """Mean METEOR (0..1): exact, Porter stem, then WordNet 3.0 synonym matches (Lavie and Agarwal 2007).

    Per sample it is ``nltk.translate.meteor_score.single_meteor_score`` with alpha 0.9, beta 3, gamma 0.5.
    NLTK defines a pair without a match as 0, which covers an empty prediction or reference (and both empty).

    Words that the stem stage leaves unmatched go on as stems, so a synonym counts only where it equals the
    other side's stem. That is NLTK's way, hence the published one.

    Where NLTK's ``punkt_tab`` data are installed, texts are split into sentences before tokenization, as
    ``nltk.word_tokenize`` does; otherwise a text is tokenized as one line. The signature says which.
    """

    name = "meteor"

    @property
    def signature(self) -> str:
        """Parameters, tokens, sentence splitter, library, dictionary (``wordnet:absent`` without one)."""
        absent = self.unavailable() is not None
        return sign(
            self.name,
            alpha=ALPHA,
            beta=BETA,
            gamma=GAMMA,
            tok="treebank",
            split=sentence_splitter(),
            nltk=package_version("nltk"),
            wordnet="absent" if absent else f"{wordnet.VERSION}-{wordnet.fingerprint()}",
        )

    def unavailable(self) -> str | None:
        """Why WordNet 3.0 cannot be read, with the commands that fix it."""
        return wordnet.unavailable()

    def note(self) -> str | None:
        """Which sentence splitter this machine has, since scores with and without one are not comparable."""
        if self.unavailable() is not None:
            return None
        splitter = sentence_splitter()
        return f"{self.name}: {NO_SPLITTER if splitter == 'none' else f'sentences are split by NLTK {splitter}'}"

    def table(self, pairs: Pairs) -> Array:
        """``(METEOR, 1)``.

        Raises:
            MetricUnavailableError: WordNet is absent (no other score is given under this name).
        """
        wordnet.corpus_key()  # an absent dictionary is an error even for pairs that would not look a word up
        return mean_table(list(map(token_score, *tokens_of(pairs, word_tokens))))


def token_score(prediction: Sequence[str], reference: Sequence[str]) -> float:
    """NLTK's METEOR of two token lists, 0..1. NLTK lower-cases the tokens."""
    scorer, stemmer, synonyms = _nltk_parts()
    return float(scorer(reference, prediction, stemmer=stemmer, wordnet=synonyms, alpha=ALPHA, beta=BETA, gamma=GAMMA))


def word_tokens(text: str) -> list[str]:
    """The tokens of ``nltk.word_tokenize``, sentences split by punkt where its data are installed."""
    if PLAIN.fullmatch(text) and not CONTRACTION.search(text):
        return PLAIN_TOKEN.findall(text)
    tokens: list[str] = _word_tokenize()(text, preserve_line=sentence_splitter() == "none")
    return tokens


@cache
def sentence_splitter() -> str:
    """``punkt_tab`` where NLTK can split sentences here, else ``none``; settled once per process."""
    from nltk.tokenize import sent_tokenize

    try:
        sent_tokenize("One. Two.")
    except LookupError:
        return "none"
    return "punkt_tab"


@cache
def _word_tokenize() -> Any:
    from nltk.tokenize import word_tokenize

    return word_tokenize


class _Lemma:
    def __init__(self, name: str) -> None:
        self._name = name

    def name(self) -> str:
        return self._name


class _Synset:
    def __init__(self, names: Iterable[str]) -> None:
        self._lemmas = [_Lemma(name) for name in names]

    def lemmas(self) -> list[_Lemma]:
        return self._lemmas


class _RememberedSynonyms:
    """What NLTK's matcher asks of WordNet: a word's synsets and their lemma names, looked up once per word.

    All synsets are given as one: the matcher only forms the union of their names.
    """

    def synsets(self, word: str) -> list[_Synset]:
        return [_Synset(wordnet.synonyms(word))]


@cache
def _nltk_parts() -> tuple[Any, Any, Any]:
    """NLTK's scorer, and its stemmer and dictionary with a memory (import of nltk waits until here)."""
    from nltk.stem.porter import PorterStemmer
    from nltk.translate.meteor_score import single_meteor_score

    class RememberingStemmer(PorterStemmer):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.stem = lru_cache(maxsize=2**17)(super().stem)

    return single_meteor_score, RememberingStemmer(), _RememberedSynonyms()
