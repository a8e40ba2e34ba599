"""Finds and reads WordNet 3.0 on this machine, offline: NLTK's data, or a dictionary directory.

NLTK's reader takes neither Debian's packages nor another directory (named by ``MEDTASKS_WORDNET``): they lack its
``lexnames`` table and are outside the directories that it reads. So its files are opened here.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
import threading
import warnings
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from medtasks.metrics._nltk import nltk_module
from medtasks.metrics.base import MetricUnavailableError

VERSION = "3.0"
VARIABLE = "MEDTASKS_WORDNET"
DEBIAN_DIRECTORY = Path("/usr/share/wordnet")
FIX = "run `medtasks fetch wordnet`, or `apt-get install wordnet-base`"

PARTS_OF_SPEECH = ("noun", "verb", "adj", "adv")
FILES = tuple(name for part in PARTS_OF_SPEECH for name in (f"data.{part}", f"index.{part}", f"{part}.exc"))

# The 45 lexicographer files in the order of their numbers: lexnames(5WN)
NOUN_TOPICS = """Tops act animal artifact attribute body cognition communication event feeling food group
location motive object person phenomenon plant possession process quantity relation shape state substance
time"""
VERB_TOPICS = """body change cognition communication competition consumption contact creation emotion motion
perception possession social stative weather"""
LEXICOGRAPHER_FILES = (
    *("adj.all", "adj.pert", "adv.all"),
    *(f"noun.{topic}" for topic in NOUN_TOPICS.split()),
    *(f"verb.{topic}" for topic in VERB_TOPICS.split()),
    "adj.ppl",
)
CATEGORIES = {"noun": 1, "verb": 2, "adj": 3, "adv": 4}

_lock = threading.Lock()


def unavailable() -> str | None:
    """Why there is no WordNet 3.0 here, with the commands that fix it; None if there is one."""
    try:
        corpus()
    except MetricUnavailableError as error:
        return str(error)
    return None


def corpus() -> Any:
    """The directory of WordNet 3.0, or NLTK's path pointer to it.

    Searched in this order: the directory named by ``MEDTASKS_WORDNET``, NLTK's data (unpacked or zip), Debian's
    packages. The result is cached per value of the variable, so scoring does not touch the disk.

    Raises:
        MetricUnavailableError: there is none, it is incomplete, or of another version.
    """
    found = _found(os.environ.get(VARIABLE))
    if isinstance(found, MetricUnavailableError):
        raise MetricUnavailableError(str(found))
    return found


def synonyms(word: str) -> frozenset[str]:
    """The single-word lemma names of every synset of ``word``, as NLTK's reader finds them (case as in WordNet).

    Thread-safe: NLTK's reader moves the position of shared files, so it is used under a lock; results are cached.

    Raises:
        MetricUnavailableError: see `corpus`.
    """
    return _synonyms(corpus(), word)


def fingerprint() -> str:
    """Eight hex digits over what METEOR reads: the words of every synset, and the irregular forms.

    Glosses, byte offsets and packaging are ignored, so copies that score alike have the same fingerprint.
    """
    return _fingerprint(corpus())


@cache
def _found(named: str | None) -> Any:
    """`corpus`, or the error."""
    found: Any = Path(named) if named else _nltk_corpus() or DEBIAN_DIRECTORY
    if not named and isinstance(found, Path) and not found.is_dir():
        return MetricUnavailableError(f"WordNet {VERSION} is not on this machine; {FIX}")
    missing = [name for name in FILES if not (found / name).is_file()] if isinstance(found, Path) else []
    if missing:
        return MetricUnavailableError(f"{found} is not a complete WordNet dictionary ({missing[0]} is missing); {FIX}")
    with _text(found, "data.adj") as lines:
        match = re.search(r"WordNet (\d+(?:\.\d+)?) Copyright", "".join(islice(lines, 40)))
    version = match[1] if match else "of unknown version"
    if version != VERSION:
        origin = f"{VARIABLE}={named}" if named else found
        return MetricUnavailableError(f"{origin} contains WordNet {version}, expected {VERSION}; {FIX}")
    return found


def _nltk_corpus() -> Any:
    """NLTK's own installed corpus as a path pointer, or None."""
    data = nltk_module("nltk.data")
    for resource in ("corpora/wordnet", "corpora/wordnet.zip/wordnet/"):
        with contextlib.suppress(LookupError):
            return data.find(resource)
    return None


@lru_cache(maxsize=2**17)
def _synonyms(corpus: Any, word: str) -> frozenset[str]:
    with _lock:
        synsets = _reader(corpus).synsets(word)
        return frozenset(name for synset in synsets for name in synset.lemma_names() if "_" not in name)


@cache
def _reader(corpus: Any) -> Any:
    PathPointer: Any = nltk_module("nltk.data").PathPointer
    WordNetCorpusReader: Any = nltk_module("nltk.corpus.reader.wordnet").WordNetCorpusReader

    class Root(PathPointer):  # type: ignore[misc]
        """NLTK requires a root, which is not used."""

        open = file_size = join = None

    class Reader(WordNetCorpusReader):  # type: ignore[misc]
        """NLTK's reader without the multilingual mapping, which would read the sense index twice, and with Python's own
        text files, which are several times faster than NLTK's."""

        def open(self, file: str) -> TextIO:
            return io.StringIO(lexnames()) if file == "lexnames" else _text(corpus, file)

        def map_wn(self, version: str = "wordnet") -> None:  # noqa: ARG002
            return None

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "multilingual functions are not available", which are not used
        return Reader(Root(), None)


@cache
def _fingerprint(corpus: Any) -> str:
    digest = hashlib.sha256()
    for part in PARTS_OF_SPEECH:
        synsets = []
        for line in _text(corpus, f"data.{part}"):
            if not line.startswith(" "):
                fields = line.split("|", 1)[0].split()
                synsets.append(" ".join([fields[2], *sorted(fields[4 : 4 + 2 * int(fields[3], 16) : 2])]))
        irregular = [line.strip() for line in _text(corpus, f"{part}.exc")]
        digest.update("\n".join([part, *sorted(synsets), *sorted(irregular)]).encode())
    return digest.hexdigest()[:8]


def _text(corpus: Any, name: str) -> TextIO:
    """A file of the dictionary, in a directory or an archive."""
    stream = (corpus / name).open("rb") if isinstance(corpus, Path) else corpus.join(name).open()
    return io.TextIOWrapper(stream, encoding="utf-8")


def lexnames() -> str:
    """NLTK's ``lexnames`` file: number, name and syntactic category of each lexicographer file."""
    rows = (
        f"{number:02d}\t{name}\t{CATEGORIES[name.split('.')[0]]}\n" for number, name in enumerate(LEXICOGRAPHER_FILES)
    )
    return "".join(rows)
