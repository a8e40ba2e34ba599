"""METEOR as NLTK computes it, on NLTK's Treebank word tokens: what HF ``evaluate`` calls
``meteor``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, lru_cache
from types import SimpleNamespace

from medtasks.metrics.base import (
    Array,
    MeanMetric,
    MetricUnavailableError,
    Pairs,
    mean_table,
    package_version,
    sign,
    tokens_of,
)
from medtasks.metrics.facts import NOT_IN_SUMMARY, MetricFacts
from medtasks.metrics.nltk_library import find_nltk_data, import_nltk
from medtasks.metrics.wordnet import VERSION, corpus, fingerprint, synonyms

ALPHA, BETA, GAMMA = 0.9, 3.0, 0.5
NO_SPLITTER = (
    "texts are not split into sentences, because NLTK's punkt_tab is not installed "
    "(`medtasks fetch punkt`); scores with and without it differ by up to 0.016 and are not "
    "comparable"
)

# ASCII words with at most one mark after each: the tokens of a sentence are then the words and the
# marks, but a period within it stays with its word. NLTK's thirty expressions take many times as
# long.
WORD = "[A-Za-z0-9]+(?:[-.][A-Za-z0-9]+)*"
PLAIN = re.compile(rf"{WORD}[,;:.]?(?: {WORD}[,;:.]?)*")
PLAIN_TOKEN = re.compile(rf"{WORD}(?:\.(?= ))?|[,;:.]")
CONTRACTION = re.compile("cannot|gimme|gonna|gotta|lemme|wanna")  # which NLTK splits in two


class Meteor(MeanMetric):
    """Mean METEOR (0..1): exact, Porter stem, then WordNet 3.0 synonym matches (Lavie and Agarwal
    2007).

    Per sample it is ``nltk.translate.meteor_score.single_meteor_score`` with alpha 0.9, beta 3,
    gamma 0.5. A pair without a match scores 0, as do empty texts. Words that the stem stage leaves
    unmatched stay stems, so a synonym counts only if it equals the other side's stem: NLTK, and
    therefore the published scores, work this way.

    If NLTK's ``punkt_tab`` data are installed, texts are split into sentences before tokenization,
    as ``nltk.word_tokenize`` does; otherwise a text is tokenized as one line. The signature says
    which.
    """

    name = "meteor"
    # stated, because its signature needs NLTK, which takes a second to import
    facts = MetricFacts(unit="fraction", headline=NOT_IN_SUMMARY, cited=("banerjee2005meteor",))

    @property
    def signature(self) -> str:
        """Parameters, tokens, sentence splitter, library, dictionary (``wordnet:absent`` without
        one).
        """
        dictionary = "absent"
        if self.unavailable() is None:
            dictionary = f"{VERSION}-{fingerprint()}"
        return sign(
            self.name,
            alpha=ALPHA,
            beta=BETA,
            gamma=GAMMA,
            tok="treebank",
            split=sentence_splitter(),
            nltk=package_version("nltk"),
            wordnet=dictionary,
        )

    def unavailable(self) -> str | None:
        """Why WordNet 3.0 cannot be read, with the commands that fix it."""
        try:
            corpus()
        except MetricUnavailableError as error:
            return str(error)
        return None

    def note(self) -> str | None:
        """That this machine has no sentence splitter, since scores with and without one are not
        comparable.
        """
        is_split = sentence_splitter() != "none" or self.unavailable() is not None
        return None if is_split else f"{self.name}: {NO_SPLITTER}"

    def table(self, pairs: Pairs) -> Array:
        """``(METEOR, 1)`` of each pair.

        Raises:
            MetricUnavailableError: there is no WordNet; no other score is given under this name.
        """
        corpus()  # an absent dictionary is an error even for pairs that would not look a word up
        predictions, references = tokens_of(pairs, word_tokens)
        stem = _stem()
        stems = {stem(word.lower()) for tokens in references for word in tokens}
        dictionary = _Dictionary(stems)
        score_pair = import_nltk().translate.meteor_score.single_meteor_score  # lower-cases words
        scores: list[float] = []
        for prediction, reference in zip(predictions, references, strict=True):
            score = score_pair(
                reference,
                prediction,
                stemmer=SimpleNamespace(stem=stem),
                wordnet=dictionary,
                alpha=ALPHA,
                beta=BETA,
                gamma=GAMMA,
            )
            scores.append(score)
        return mean_table(scores)


@cache
def _stem() -> Callable[[str], str]:
    """NLTK's Porter stemmer, which keeps the stems of the latest words."""
    return lru_cache(maxsize=2**17)(import_nltk().PorterStemmer().stem)


class _Dictionary:
    """What NLTK's METEOR asks of its WordNet reader, answered by our own.

    Its synonyms are those among ``stems``, those of the words to match.
    """

    def __init__(self, stems: set[str]) -> None:
        self._stems = stems
        self._synsets: dict[str, list[_Synset]] = {}

    def synsets(self, word: str) -> list[_Synset]:
        """All synsets of a word as one, since NLTK only forms the union of their lemma names."""
        if word not in self._synsets:
            names = self._stems & synonyms(word)
            self._synsets[word] = [_Synset(map(_Lemma, names))]
        return self._synsets[word]


class _Synset(list["_Lemma"]):
    def lemmas(self) -> list[_Lemma]:
        return self


class _Lemma(str):
    def name(self) -> str:
        return self


def word_tokens(text: str) -> list[str]:
    """The tokens of ``nltk.word_tokenize``; sentences are split if punkt's data are installed."""
    is_plain = PLAIN.fullmatch(text) and not CONTRACTION.search(text.lower())
    if is_plain and (". " not in text or sentence_splitter() == "none"):
        return PLAIN_TOKEN.findall(text)
    tokens: list[str] = import_nltk().word_tokenize(
        text, preserve_line=sentence_splitter() == "none"
    )
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


METRICS = (Meteor(),)
