"""METEOR as NLTK computes it, on NLTK's Treebank word tokens: what HF ``evaluate`` calls ``meteor``."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, lru_cache
from types import SimpleNamespace
from typing import Any

from medtasks.metrics import wordnet
from medtasks.metrics.base import Array, MeanMetric, Pairs, mean_table, package_version, sign, tokens_of
from medtasks.metrics.wordnet import find_nltk_data, import_nltk

ALPHA, BETA, GAMMA = 0.9, 3.0, 0.5
NO_SPLITTER = (
    "texts are not split into sentences, because NLTK's punkt_tab is not installed "
    "(`medtasks fetch punkt`); scores with and without it differ by up to 0.016 and are not comparable"
)

# ASCII words with at most one mark after each: the tokens of a sentence are then the words and the marks, but a period
# within it stays with its word. NLTK's thirty expressions take many times as long.
WORD = "[A-Za-z0-9]+(?:[-.][A-Za-z0-9]+)*"
PLAIN = re.compile(rf"{WORD}[,;:.]?(?: {WORD}[,;:.]?)*")
PLAIN_TOKEN = re.compile(rf"{WORD}(?:\.(?= ))?|[,;:.]")
CONTRACTION = re.compile("cannot|gimme|gonna|gotta|lemme|wanna")  # which NLTK splits in two


class Meteor(MeanMetric):
    """Mean METEOR (0..1): exact, Porter stem, then WordNet 3.0 synonym matches (Lavie and Agarwal 2007).

    Per sample it is ``nltk.translate.meteor_score.single_meteor_score`` with alpha 0.9, beta 3, gamma 0.5. A pair
    without a match scores 0, as do empty texts. Words that the stem stage leaves unmatched stay stems, so a synonym
    counts only if it equals the other side's stem: NLTK, and therefore the published scores, work this way.

    If NLTK's ``punkt_tab`` data are installed, texts are split into sentences before tokenization, as
    ``nltk.word_tokenize`` does; otherwise a text is tokenized as one line. The signature says which.
    """

    name = "meteor"

    @property
    def signature(self) -> str:
        """Parameters, tokens, sentence splitter, library, dictionary (``wordnet:absent`` without one)."""
        choices = {"alpha": ALPHA, "beta": BETA, "gamma": GAMMA, "tok": "treebank", "split": sentence_splitter()}
        found = "absent" if self.unavailable() is not None else f"{wordnet.VERSION}-{wordnet.fingerprint()}"
        return sign(self.name, **choices, nltk=package_version("nltk"), wordnet=found)

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
        """``(METEOR, 1)``; raises `MetricUnavailableError` without WordNet: no other score is given under this name."""
        wordnet.corpus()  # an absent dictionary is an error even for pairs that would not look a word up
        predictions, references = tokens_of(pairs, word_tokens)
        stem = _stem()
        stems = {stem(word.lower()) for tokens in references for word in tokens}

        @cache
        def synsets(word: str) -> list[_Synset]:  # as one, because NLTK only forms the union of their lemma names
            return [_Synset(map(_Lemma, stems & wordnet.synonyms(word)))]

        single = import_nltk().translate.meteor_score.single_meteor_score  # lower-cases words
        choices: dict[str, Any] = {"alpha": ALPHA, "beta": BETA, "gamma": GAMMA}
        choices |= {"stemmer": SimpleNamespace(stem=stem), "wordnet": SimpleNamespace(synsets=synsets)}
        return mean_table([single(one, other, **choices) for one, other in zip(references, predictions, strict=True)])


def word_tokens(text: str) -> list[str]:
    """The tokens of ``nltk.word_tokenize``; sentences are split if punkt's data are installed."""
    is_plain = PLAIN.fullmatch(text) and not CONTRACTION.search(text.lower())
    if is_plain and (". " not in text or sentence_splitter() == "none"):
        return PLAIN_TOKEN.findall(text)
    tokens: list[str] = import_nltk().word_tokenize(text, preserve_line=sentence_splitter() == "none")
    return tokens


@cache
def sentence_splitter() -> str:
    """``punkt_tab`` if NLTK can split sentences here, else ``none``."""
    if find_nltk_data("tokenizers/punkt_tab") is None:
        return "none"
    try:
        import_nltk().sent_tokenize("One. Two.")
    except LookupError:
        return "none"
    return "punkt_tab"


class _Lemma(str):
    def name(self) -> str:
        return self


class _Synset(list[_Lemma]):
    def lemmas(self) -> list[_Lemma]:
        return self


@cache
def _stem() -> Callable[[str], str]:
    return lru_cache(maxsize=2**17)(import_nltk().PorterStemmer().stem)
