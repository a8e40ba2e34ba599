"""Finds and reads WordNet 3.0 on this machine, offline: NLTK's data, or a dictionary directory.

NLTK itself is imported as cheaply as it can be, and its directories are searched without it: the import takes longer
than scoring a few hundred answers.

NLTK's reader takes neither Debian's packages nor another directory (named by ``MEDTASKS_WORDNET``): they lack its
``lexnames`` table and are outside the directories that it reads. It also loads the whole dictionary, for the few
hundred words that responses have. So words are looked up here, in the files.
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
from bisect import bisect_left
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from medtasks.core.cache import cache_root
from medtasks.core.files import file_state, replaced, short_hash
from medtasks.metrics.base import MetricUnavailableError

VERSION = "3.0"
VARIABLE = "MEDTASKS_WORDNET"
DEBIAN_DIRECTORY = Path("/usr/share/wordnet")
FIX = "run `medtasks fetch wordnet`, or `apt-get install wordnet-base`"

PARTS_OF_SPEECH = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}
"""With NLTK's codes."""
FILES = tuple(name for part in PARTS_OF_SPEECH for name in (f"data.{part}", f"index.{part}", f"{part}.exc"))


def unavailable() -> str | None:
    """Why there is no WordNet 3.0 here, with the commands that fix it; None if there is one."""
    found = _found(os.environ.get(VARIABLE))
    return found if isinstance(found, str) else None


def corpus() -> Any:
    """The directory of WordNet 3.0, a `pathlib.Path` or, in an archive, a `zipfile.Path`.

    Searched in this order: the directory named by ``MEDTASKS_WORDNET``, NLTK's data (unpacked or zip), Debian's
    packages. The result is cached per value of the variable, so scoring does not touch the disk.

    Raises:
        MetricUnavailableError: there is none, it is incomplete, or of another version.
    """
    found = _found(os.environ.get(VARIABLE))
    if isinstance(found, str):
        raise MetricUnavailableError(found)
    return found


def synonyms(word: str) -> frozenset[str]:
    """The single-word lemma names of every synset of ``word``, as NLTK's reader finds them (case as in WordNet).

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
    """`corpus`, or why there is none."""
    found: Any = Path(named) if named else find_nltk_data("corpora/wordnet") or DEBIAN_DIRECTORY
    if not named and not found.is_dir():
        return f"WordNet {VERSION} is not on this machine; {FIX}"
    missing = [name for name in FILES if not (found / name).is_file()]
    if missing:
        return f"{found} is not a complete WordNet dictionary ({missing[0]} is missing); {FIX}"
    with _text(found, "data.adj") as lines:
        match = re.search(r"WordNet (\d+(?:\.\d+)?) Copyright", "".join(islice(lines, 40)))
    version = match[1] if match else "of unknown version"
    if version != VERSION:
        origin = f"{VARIABLE}={named}" if named else found
        return f"{origin} contains WordNet {version}, expected {VERSION}; {FIX}"
    return found


@lru_cache(maxsize=2**17)
def _synonyms(corpus: Any, word: str) -> frozenset[str]:
    names = (
        name
        for part in PARTS_OF_SPEECH
        for form in _forms(corpus, part, word.lower())
        for offset in _offsets(corpus, part, form)
        for name in _names(corpus, part, offset)
    )
    return frozenset(name.partition("(")[0] for name in names if "_" not in name)  # adjectives: asleep(p)


def _forms(corpus: Any, part: str, word: str) -> Sequence[str]:
    """The word and its possible base forms: irregular ones as listed, others by NLTK's suffix rules (morphy)."""
    irregular = _irregular(corpus, part).get(word)
    if irregular is not None:
        return (word, *irregular)
    rules = import_nltk().corpus.reader.wordnet.WordNetCorpusReader.MORPHOLOGICAL_SUBSTITUTIONS[PARTS_OF_SPEECH[part]]
    return (word, *(word.removesuffix(old) + new for old, new in rules if word.endswith(old)))


@cache
def _irregular(corpus: Any, part: str) -> dict[str, list[str]]:
    return {form: bases for form, *bases in map(str.split, _text(corpus, f"{part}.exc"))}


def _offsets(corpus: Any, part: str, form: str) -> list[int]:
    """Where the data file has the synsets of a base form."""
    lines = _index(corpus, part)
    place = bisect_left(lines, f"{form} ")
    for line in lines[place : place + 1]:
        lemma, _, count, *fields = line.split()
        if lemma == form:
            return list(map(int, fields[-int(count) :]))
    return []


@cache
def _index(corpus: Any, part: str) -> list[str]:
    return sorted(line for line in _text(corpus, f"index.{part}") if not line.startswith(" "))


def _names(corpus: Any, part: str, offset: int) -> list[str]:
    data = _data(corpus, part)
    return _lemmas(data[offset : data.index(b"|", offset)].decode().split())


@cache
def _data(corpus: Any, part: str) -> bytes:
    data: bytes = (corpus / f"data.{part}").read_bytes()
    return data


@cache
def _fingerprint(corpus: Any) -> str:
    """`fingerprint`, kept in the user's cache for files of the same sizes and times: reading them takes 0.5 s."""
    files = [corpus / name for name in FILES] if isinstance(corpus, Path) else [Path(corpus.root.filename)]
    states = [file_state(file.stat()) for file in files]
    kept = cache_root() / "wordnet" / short_hash(json.dumps(states))
    with contextlib.suppress(OSError, UnicodeDecodeError):
        text = kept.read_text(encoding="ascii")
        if re.fullmatch("[0-9a-f]{8}", text):
            return text
    found = _fingerprint_of(corpus)
    with contextlib.suppress(OSError):  # a home directory that cannot be written
        kept.parent.mkdir(parents=True, exist_ok=True)
        with replaced(kept) as partial:
            partial.write_text(found, encoding="ascii")
    return found


def _fingerprint_of(corpus: Any) -> str:
    digest = hashlib.sha256()
    for part in PARTS_OF_SPEECH:
        synsets = []
        for line in _text(corpus, f"data.{part}"):
            if not line.startswith(" "):
                fields = line.split("|", 1)[0].split()
                synsets.append(" ".join([fields[2], *sorted(_lemmas(fields))]))
        irregular = [line.strip() for line in _text(corpus, f"{part}.exc")]
        digest.update("\n".join([part, *sorted(synsets), *sorted(irregular)]).encode())
    return digest.hexdigest()[:8]


def _text(corpus: Any, name: str) -> TextIO:
    """A file of the dictionary, in a directory or an archive."""
    file: TextIO = (corpus / name).open("r", encoding="utf-8")
    return file


def _lemmas(fields: list[str]) -> list[str]:
    """The lemma names in a line of a data file, where each is followed by a number."""
    return fields[4 : 4 + 2 * int(fields[3], 16) : 2]


def import_nltk() -> Any:
    """NLTK; without SciPy and scikit-learn, which are most of the import and only serve its collocations, parsers and
    classifiers.

    That needs a single thread: another one may be importing them.
    """
    alone = "nltk" not in sys.modules and threading.active_count() == 1
    hidden = [name for name in ("scipy", "scipy.stats", "sklearn") if alone and name not in sys.modules]
    for name in hidden:
        sys.modules[name] = None  # type: ignore[assignment]  # its import fails, which NLTK expects
    try:
        import nltk
    finally:
        for name in hidden:
            del sys.modules[name]
    return nltk


def nltk_folders() -> list[Path]:
    """Where NLTK looks for data: ``nltk.data.path`` if NLTK is imported, else what it will be (nltk.org/data.html)."""
    data = sys.modules.get("nltk.data")
    if data is not None:
        return [Path(str(folder)) for folder in data.path]
    named = [folder for folder in os.environ.get("NLTK_DATA", "").split(os.pathsep) if folder]
    system = [f"{root}/{part}/nltk_data" for part in ("share", "lib") for root in ("/usr", "/usr/local")]
    own = [f"{sys.prefix}/{part}nltk_data" for part in ("", "share/", "lib/")]
    return [Path(folder).expanduser() for folder in (*named, "~/nltk_data", *own, *system)]


def find_nltk_data(name: str) -> Path | zipfile.Path | None:
    """The directory ``name``, such as ``corpora/wordnet``, unpacked or in an archive of that name; None without one."""
    candidates = [folder / name for folder in nltk_folders()]
    unpacked = next((folder for folder in candidates if folder.is_dir()), None)
    if unpacked is not None:
        return unpacked
    archive = next((path for path in (one.with_name(f"{one.name}.zip") for one in candidates) if path.is_file()), None)
    return None if archive is None else zipfile.Path(archive, f"{Path(name).name}/")
