"""WordNet 3.0, found and read on this machine, offline: NLTK's data, or Debian's package.

NLTK's reader does not take Debian's package, and loads the whole dictionary for the few hundred
words that responses have. Words are looked up here in the files.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from medtasks.core.cache import cache_root
from medtasks.core.files import file_state, short_hash
from medtasks.core.replacement import replaced
from medtasks.metrics.base import MetricUnavailableError
from medtasks.metrics.nltk_library import find_nltk_data, import_nltk

VERSION = "3.0"
DEBIAN_DIRECTORY = Path("/usr/share/wordnet")
FIX = "run `medtasks fetch wordnet`, or `apt-get install wordnet-base`"

PARTS_OF_SPEECH = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}
"""With NLTK's codes."""
FILES = tuple(
    name for part in PARTS_OF_SPEECH for name in (f"data.{part}", f"index.{part}", f"{part}.exc")
)

Corpus: TypeAlias = Path | zipfile.Path
"""A directory of WordNet's files, or one in an archive."""


@dataclass(frozen=True)
class NoWordNet:
    """WordNet 3.0 cannot be read on this machine; ``reason`` is a sentence with the fix."""

    reason: str


def corpus() -> Corpus:
    """The directory of WordNet 3.0: NLTK's data (unpacked or zip) come before Debian's package.

    Raises:
        MetricUnavailableError: there is none, it is incomplete, or of another version.
    """
    folder = find_corpus()
    if isinstance(folder, NoWordNet):
        raise MetricUnavailableError(folder.reason)
    return folder


@cache  # so that scoring does not touch the disk
def find_corpus() -> Corpus | NoWordNet:
    """The directory of WordNet 3.0, or why there is none."""
    folder = find_nltk_data("corpora/wordnet") or DEBIAN_DIRECTORY
    if not folder.is_dir():
        return NoWordNet(f"WordNet {VERSION} is not on this machine; {FIX}")
    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        incomplete = f"{folder} is not a complete WordNet dictionary ({missing[0]} is missing)"
        return NoWordNet(f"{incomplete}; {FIX}")
    version = _version(folder)
    if version != VERSION:
        return NoWordNet(f"{folder} contains WordNet {version}, expected {VERSION}; {FIX}")
    return folder


def _version(folder: Corpus) -> str:
    """The version in the licence at the top of a data file."""
    with (folder / "data.adj").open("r", encoding="utf-8") as lines:
        licence = "".join(islice(lines, 40))
    match = re.search(r"WordNet (\d+(?:\.\d+)?) Copyright", licence)
    return match[1] if match else "of unknown version"


# --- looking words up ---


@lru_cache(maxsize=2**17)
def synonyms(word: str) -> frozenset[str]:
    """The single-word lemma names of every synset of ``word``, as NLTK's reader finds them (case as
    in WordNet).
    """
    word = word.lower()
    names: set[str] = set()
    for part in PARTS_OF_SPEECH:
        words = _words_of(corpus(), part)
        for form in (word, *words.base_forms(word)):
            for offset in words.synset_offsets(form):
                names.update(words.lemmas_at(offset))
    # an adjective may be followed by where it stands: asleep(p)
    return frozenset(name.partition("(")[0] for name in names if "_" not in name)


@dataclass(frozen=True)
class _Words:
    """The words of one part of speech.

    Args:
        irregular: the base forms of irregular words.
        endings: NLTK's rules for the others: an ending, and that of the base form.
        index: the line of each lemma in the index file.
        data: the data file, whose lines are synsets.
    """

    irregular: dict[str, list[str]]
    endings: Sequence[tuple[str, str]]
    index: dict[str, str]
    data: bytes

    def base_forms(self, word: str) -> list[str]:
        """The forms that a word may come from (NLTK's ``morphy``), in the dictionary or not."""
        forms = self.irregular.get(word)
        if forms is not None:
            return forms
        return [word.removesuffix(old) + new for old, new in self.endings if word.endswith(old)]

    def synset_offsets(self, lemma: str) -> list[int]:
        """Where the synsets of a lemma begin in the data file; empty for an unknown one."""
        line = self.index.get(lemma)
        if line is None:
            return []
        _, _, count, *fields = line.split()
        return [int(offset) for offset in fields[len(fields) - int(count) :]]

    def lemmas_at(self, offset: int) -> list[str]:
        """The lemma names of the synset at this place in the data file."""
        synset = self.data[offset : self.data.index(b"|", offset)]
        return _lemmas(synset.decode().split())


@cache
def _words_of(folder: Corpus, part: str) -> _Words:
    """The words of a part of speech, read from the dictionary."""
    irregular = {}
    for line in _lines(folder, f"{part}.exc"):
        form, *bases = line.split()
        irregular[form] = bases
    index = {}
    for line in _lines(folder, f"index.{part}"):
        if not line.startswith(" "):
            index[line[: line.index(" ")]] = line
    reader = import_nltk().corpus.reader.wordnet.WordNetCorpusReader
    endings = reader.MORPHOLOGICAL_SUBSTITUTIONS[PARTS_OF_SPEECH[part]]
    return _Words(irregular, endings, index, (folder / f"data.{part}").read_bytes())


def _lines(folder: Corpus, name: str) -> list[str]:
    return (folder / name).read_text(encoding="utf-8").splitlines()


def _lemmas(fields: list[str]) -> list[str]:
    """The lemma names in a line of a data file, where each is followed by a number."""
    return fields[4 : 4 + 2 * int(fields[3], 16) : 2]


# --- telling dictionaries apart ---


@cache
def fingerprint() -> str:
    """Eight hex digits over what METEOR reads: the words of every synset, and the irregular forms.

    Glosses, byte offsets and packaging are ignored, so copies that score alike have the same
    fingerprint. It is kept in the user's cache for files of the same sizes and times: reading them
    takes 0.5 s.
    """
    folder = corpus()
    kept = cache_root() / "wordnet" / short_hash(json.dumps(_file_states(folder)))
    with contextlib.suppress(OSError):
        return kept.read_text()
    digest = _words_hash(folder)[:8]
    with contextlib.suppress(OSError):  # a home directory that cannot be written
        kept.parent.mkdir(parents=True, exist_ok=True)
        with replaced(kept) as partial:
            partial.write_text(digest)
    return digest


def _file_states(folder: Corpus) -> list[object]:
    """The sizes and times of the dictionary's files, or of its archive."""
    if isinstance(folder, zipfile.Path):
        archive = Path(str(folder.root.filename))
        return [file_state(archive.stat())]
    return [file_state((folder / name).stat()) for name in FILES]


def _words_hash(folder: Corpus) -> str:
    """The hash of the words of all synsets, with their part of speech, and of irregular forms."""
    digest = hashlib.sha256()
    for part in PARTS_OF_SPEECH:
        synsets = []
        for line in _lines(folder, f"data.{part}"):
            if not line.startswith(" "):  # the licence
                entry = line.split("|", 1)[0].split()
                synsets.append(" ".join([entry[2], *sorted(_lemmas(entry))]))
        irregular = sorted(line.strip() for line in _lines(folder, f"{part}.exc"))
        digest.update("\n".join([part, *sorted(synsets), *irregular]).encode())
    return digest.hexdigest()
