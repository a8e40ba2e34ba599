"""METEOR as NLTK computes it, on NLTK's Treebank word tokens: what HF ``evaluate`` calls
``meteor``.

WordNet 3.0 is found and read on this machine, offline: NLTK's data, or Debian's package, which
NLTK's reader does not take. That reader also loads the whole dictionary for the few hundred words
that responses have, so words are looked up here, in the files. NLTK itself is imported as cheaply
as it can be, and its directories are searched without it: the import takes longer than scoring a
few hundred answers.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import sys
import threading
import zipfile
from collections.abc import Callable
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from medtasks.core.cache import cache_root
from medtasks.core.files import file_state, replaced, short_hash
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
from medtasks.metrics.facts import MetricFacts

ALPHA, BETA, GAMMA = 0.9, 3.0, 0.5
NO_SPLITTER = (
    "texts are not split into sentences, because NLTK's punkt_tab is not installed "
    "(`medtasks fetch punkt`); scores with and without it differ by up to 0.016 and are not comparable"
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
    facts = MetricFacts(unit="fraction", cited=("banerjee2005meteor",))

    @property
    def signature(self) -> str:
        """Parameters, tokens, sentence splitter, library, dictionary (``wordnet:absent`` without
        one).
        """
        choices = {
            "alpha": ALPHA,
            "beta": BETA,
            "gamma": GAMMA,
            "tok": "treebank",
            "split": sentence_splitter(),
        }
        found = "absent" if self.unavailable() is not None else f"{VERSION}-{fingerprint()}"
        return sign(self.name, **choices, nltk=package_version("nltk"), wordnet=found)

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
        """``(METEOR, 1)``; raises `MetricUnavailableError` without WordNet: no other score is given
        under this name.
        """
        corpus()  # an absent dictionary is an error even for pairs that would not look a word up
        predictions, references = tokens_of(pairs, word_tokens)
        stem = _stem()
        stems = {stem(word.lower()) for tokens in references for word in tokens}

        @cache
        def synsets(
            word: str,
        ) -> list[_Synset]:  # as one, because NLTK only forms the union of their lemma names
            return [_Synset(map(_Lemma, stems & synonyms(word)))]

        single = import_nltk().translate.meteor_score.single_meteor_score  # lower-cases words
        choices: dict[str, Any] = {"alpha": ALPHA, "beta": BETA, "gamma": GAMMA}
        choices |= {
            "stemmer": SimpleNamespace(stem=stem),
            "wordnet": SimpleNamespace(synsets=synsets),
        }
        return mean_table(
            [
                single(one, other, **choices)
                for one, other in zip(references, predictions, strict=True)
            ]
        )


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


class _Lemma(str):
    def name(self) -> str:
        return self


class _Synset(list[_Lemma]):
    def lemmas(self) -> list[_Lemma]:
        return self


@cache
def _stem() -> Callable[[str], str]:
    return lru_cache(maxsize=2**17)(import_nltk().PorterStemmer().stem)


# --- WordNet, and what else is in NLTK's data ---

VERSION = "3.0"
DEBIAN_DIRECTORY = Path("/usr/share/wordnet")
FIX = "run `medtasks fetch wordnet`, or `apt-get install wordnet-base`"

PARTS_OF_SPEECH = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}
"""With NLTK's codes."""
FILES = tuple(
    name for part in PARTS_OF_SPEECH for name in (f"data.{part}", f"index.{part}", f"{part}.exc")
)


def corpus() -> Any:
    """The directory of WordNet 3.0, a `pathlib.Path` or, in an archive, a `zipfile.Path`.

    NLTK's data (unpacked or zip) come before Debian's package. Raises `MetricUnavailableError` if
    there is none, it is incomplete, or of another version.
    """
    found = _corpus()
    if isinstance(found, str):
        raise MetricUnavailableError(found)
    return found


@cache
def _corpus() -> Any:
    """`corpus`, or why there is none; cached, so that scoring does not touch the disk."""
    found: Any = find_nltk_data("corpora/wordnet") or DEBIAN_DIRECTORY
    if not found.is_dir():
        return f"WordNet {VERSION} is not on this machine; {FIX}"
    missing = [name for name in FILES if not (found / name).is_file()]
    if missing:
        return f"{found} is not a complete WordNet dictionary ({missing[0]} is missing); {FIX}"
    with (found / "data.adj").open("r", encoding="utf-8") as lines:
        match = re.search(r"WordNet (\d+(?:\.\d+)?) Copyright", "".join(islice(lines, 40)))
    version = match[1] if match else "of unknown version"
    if version != VERSION:
        return f"{found} contains WordNet {version}, expected {VERSION}; {FIX}"
    return found


@lru_cache(maxsize=2**17)
def synonyms(word: str) -> frozenset[str]:
    """The single-word lemma names of every synset of ``word``, as NLTK's reader finds them (case as
    in WordNet).
    """
    word, names = word.lower(), set()
    substitutions = (
        import_nltk().corpus.reader.wordnet.WordNetCorpusReader.MORPHOLOGICAL_SUBSTITUTIONS
    )
    for part, code in PARTS_OF_SPEECH.items():
        irregular, index, data = _read(corpus(), part)
        # base forms: irregular ones as listed, others by NLTK's suffix rules (morphy)
        bases = irregular.get(word)
        if bases is None:
            bases = [
                word.removesuffix(old) + new
                for old, new in substitutions[code]
                if word.endswith(old)
            ]
        for form in (word, *bases):
            _, _, count, *fields = index.get(form, "- - 0").split()
            for offset in map(int, fields[len(fields) - int(count) :]):
                names.update(_lemmas(data[offset : data.index(b"|", offset)].decode().split()))
    return frozenset(
        name.partition("(")[0] for name in names if "_" not in name
    )  # adjectives: asleep(p)


@cache
def _read(corpus: Any, part: str) -> tuple[dict[str, list[str]], dict[str, str], bytes]:
    """Of a part of speech: the base forms of irregular words, the line of each lemma in the index,
    and the synsets.
    """
    irregular = {form: bases for form, *bases in map(str.split, _lines(corpus, f"{part}.exc"))}
    index = {
        line[: line.index(" ")]: line for line in _lines(corpus, f"index.{part}") if line[0] != " "
    }
    return irregular, index, (corpus / f"data.{part}").read_bytes()


@cache
def fingerprint() -> str:
    """Eight hex digits over what METEOR reads: the words of every synset, and the irregular forms.

    Glosses, byte offsets and packaging are ignored, so copies that score alike have the same
    fingerprint. It is kept in the user's cache for files of the same sizes and times: reading them
    takes 0.5 s.
    """
    found = corpus()
    files = (
        [found / name for name in FILES] if isinstance(found, Path) else [Path(found.root.filename)]
    )
    kept = (
        cache_root()
        / "wordnet"
        / short_hash(json.dumps([file_state(file.stat()) for file in files]))
    )
    with contextlib.suppress(OSError):
        return kept.read_text()
    digest = hashlib.sha256()
    for part in PARTS_OF_SPEECH:
        fields = (
            line.split("|", 1)[0].split()
            for line in _lines(found, f"data.{part}")
            if not line.startswith(" ")
        )
        synsets = sorted(" ".join([entry[2], *sorted(_lemmas(entry))]) for entry in fields)
        irregular = sorted(line.strip() for line in _lines(found, f"{part}.exc"))
        digest.update("\n".join([part, *synsets, *irregular]).encode())
    with contextlib.suppress(OSError):  # a home directory that cannot be written
        kept.parent.mkdir(parents=True, exist_ok=True)
        with replaced(kept) as partial:
            partial.write_text(digest.hexdigest()[:8])
    return digest.hexdigest()[:8]


def _lines(corpus: Any, name: str) -> list[str]:
    text: str = (corpus / name).read_text(encoding="utf-8")
    return text.splitlines()


def _lemmas(fields: list[str]) -> list[str]:
    """The lemma names in a line of a data file, where each is followed by a number."""
    return fields[4 : 4 + 2 * int(fields[3], 16) : 2]


def import_nltk() -> Any:
    """NLTK; without SciPy and scikit-learn, which are most of the import, unless another thread may
    be importing them. They only serve its collocations, parsers and classifiers.
    """
    alone = "nltk" not in sys.modules and threading.active_count() == 1
    hidden = [
        name for name in ("scipy", "scipy.stats", "sklearn") if alone and name not in sys.modules
    ]
    for name in hidden:
        sys.modules[name] = None  # type: ignore[assignment]  # its import fails, which NLTK expects
    try:
        import nltk
    finally:
        for name in hidden:
            del sys.modules[name]
    return nltk


def nltk_folders() -> list[Path]:
    """Where NLTK looks for data: ``nltk.data.path`` if NLTK is imported, else what it will be
    (nltk.org/data.html).
    """
    data = sys.modules.get("nltk.data")
    if data is not None:
        return [Path(str(folder)) for folder in data.path]
    named = [folder for folder in os.environ.get("NLTK_DATA", "").split(os.pathsep) if folder]
    system = [
        f"{root}/{part}/nltk_data" for part in ("share", "lib") for root in ("/usr", "/usr/local")
    ]
    own = [f"{sys.prefix}/{part}nltk_data" for part in ("", "share/", "lib/")]
    return [Path(folder).expanduser() for folder in (*named, "~/nltk_data", *own, *system)]


@cache  # so that samples that cannot be scored do not touch the disk either
def find_nltk_data(name: str) -> Path | zipfile.Path | None:
    """The directory ``name``, such as ``corpora/wordnet``, unpacked or in an archive of that name;
    None without one.
    """
    for folder in (folder / name for folder in nltk_folders()):
        archive = folder.with_name(f"{folder.name}.zip")
        if folder.is_dir():
            return folder
        if archive.is_file():
            return zipfile.Path(archive, f"{folder.name}/")
    return None
