"""METEOR as NLTK computes it, on NLTK's Treebank word tokens: what HF ``evaluate`` calls ``meteor``."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from operator import itemgetter

from medtasks.metrics import wordnet
from medtasks.metrics._ngrams import Pairs, tokens_of
from medtasks.metrics.base import Array, BatchMetric, MeanMetric, mean_table, package_version, sign
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
CONTRACTIONS = ("cannot", "gimme", "gonna", "gotta", "lemme", "wanna")  # which NLTK splits in two


class Meteor(BatchMetric, MeanMetric):
    """Mean METEOR (0..1): exact, Porter stem, then WordNet 3.0 synonym matches (Lavie and Agarwal 2007).

    Per sample it is ``nltk.translate.meteor_score.single_meteor_score`` with alpha 0.9, beta 3, gamma 0.5.
    A pair without a match scores 0; that includes an empty prediction or reference (and both empty).

    Words that the stem stage leaves unmatched stay stems, so a synonym counts only if it equals the other side's stem.
    NLTK, and therefore the published scores, work this way.

    If NLTK's ``punkt_tab`` data are installed, texts are split into sentences before tokenization, as
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
        wordnet.corpus()  # an absent dictionary is an error even for pairs that would not look a word up
        stem = _stemmer()
        sides = zip(*tokens_of(pairs, word_tokens), strict=True)
        return mean_table([aligned_score(prediction, reference, stem) for prediction, reference in sides])


def word_tokens(text: str) -> list[str]:
    """The tokens of ``nltk.word_tokenize``; sentences are split if punkt's data are installed."""
    if PLAIN.fullmatch(text) and (". " not in text or sentence_splitter() == "none"):
        lowered = text.lower()
        if not any(word in lowered for word in CONTRACTIONS):
            return PLAIN_TOKEN.findall(text)
    tokens: list[str] = import_nltk().word_tokenize(text, preserve_line=sentence_splitter() == "none")
    return tokens


@cache
def sentence_splitter() -> str:
    """``punkt_tab`` if NLTK can split sentences here, else ``none``; determined once per process."""
    if find_nltk_data("tokenizers/punkt_tab") is None:
        return "none"
    try:
        import_nltk().sent_tokenize("One. Two.")
    except LookupError:
        return "none"
    return "punkt_tab"


def aligned_score(prediction: Sequence[str], reference: Sequence[str], stem: Callable[[str], str]) -> float:
    """NLTK's ``single_meteor_score`` of tokens, in half of the time.

    Words are matched as they are, then by stem, then a stem with any synonym: from the last word to the first, each
    with the last word of the reference that is left.
    """
    ours, theirs = ([*enumerate(map(str.lower, side))] for side in (prediction, reference))
    ours.reverse()
    matches: dict[int, int] = {}
    for stage in ("word", "stem", "synonym"):
        if not ours or not theirs:
            break
        if stage == "stem":
            ours, theirs = ([(place, stem(word)) for place, word in side] for side in (ours, theirs))
        places: dict[str, list[int]] = {}
        for place, word in theirs:
            places.setdefault(word, []).append(place)
        rest = []
        for place, word in ours:
            left = places.get(word)
            if stage == "synonym":
                same = [places[name] for name in places.keys() & wordnet.synonyms(word) if places[name]]
                left = max(same, key=itemgetter(-1), default=None)
            if left:
                matches[place] = left.pop()
            else:
                rest.append((place, word))
        ours = rest
        theirs = sorted((place, word) for word, left in places.items() for place in left)
    if not matches:
        return 0.0
    precision, recall = (len(matches) / len(side) for side in (prediction, reference))
    mean = (precision * recall) / (ALPHA * precision + (1 - ALPHA) * recall)
    chunks = sum(matches.get(place - 1, -2) + 1 != other for place, other in matches.items())
    penalty: float = GAMMA * (chunks / len(matches)) ** BETA
    return (1 - penalty) * mean


@cache
def _stemmer() -> Callable[[str], str]:
    """NLTK's Porter stemmer; a word is stemmed once."""
    return lru_cache(maxsize=2**17)(import_nltk().PorterStemmer().stem)
