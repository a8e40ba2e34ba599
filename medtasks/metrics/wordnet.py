"""WordNet 3.0 from wherever this machine has it, without a network: NLTK's data, or a dictionary folder.

NLTK's own download is used as it is. Debian's packages (and any other dictionary folder, named by the
environment variable ``MEDTASKS_WORDNET``) lack NLTK's ``lexnames`` table and lie outside the folders NLTK
agrees to read, so they are copied once into the user cache as an NLTK-readable ``corpora/wordnet``. Copies,
because NLTK refuses links that leave a corpus folder.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import threading
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TextIO

from medtasks.cache import cache_root
from medtasks.files import temporary_beside
from medtasks.metrics.base import MetricUnavailableError

VERSION = "3.0"
VARIABLE = "MEDTASKS_WORDNET"
DEBIAN_FOLDER = Path("/usr/share/wordnet")
MEND = "run `python -m nltk.downloader wordnet`, or `apt-get install wordnet-base wordnet-sense-index`"

PARTS_OF_SPEECH = ("noun", "verb", "adj", "adv")
FILES = (
    "cntlist.rev",
    "index.sense",
    *(f"{kind}.{part}" for kind in ("data", "index") for part in PARTS_OF_SPEECH),
    *(f"{part}.exc" for part in PARTS_OF_SPEECH),
)

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

_lock = threading.RLock()
_pointers: dict[str, Any] = {}
_adopted_data: set[str] = set()


def unavailable() -> str | None:
    """Why there is no WordNet 3.0 here, with the commands that fix it; None where there is one."""
    try:
        corpus_key()
    except MetricUnavailableError as error:
        return str(error)
    return None


def corpus() -> Any:
    """An NLTK path pointer to a complete ``corpora/wordnet`` of version 3.0.

    Looked for in this order: the folder named by ``MEDTASKS_WORDNET``, NLTK's data folders (unpacked or zip),
    Debian's packages.

    Raises:
        MetricUnavailableError: there is none, it is incomplete, of another version, or the cache cannot be
            written.
    """
    with _lock:
        named = os.environ.get(VARIABLE)
        if named:
            found, origin = _adopted(Path(named)), f"{VARIABLE}={named}"
        elif (found := _nltk_corpus()) is not None:
            origin = str(found)
        elif DEBIAN_FOLDER.is_dir():
            found, origin = _adopted(DEBIAN_FOLDER), str(DEBIAN_FOLDER)
        else:
            raise MetricUnavailableError(f"WordNet {VERSION} is not on this machine; {MEND}")
        version = _version(found)
    if version != VERSION:
        raise MetricUnavailableError(f"{origin} holds WordNet {version}, expected {VERSION}; {MEND}")
    return found


def synonyms(word: str) -> frozenset[str]:
    """The single-word lemma names of every synset of ``word``, as NLTK's reader finds them (case as in
    WordNet).

    Thread-safe: NLTK's reader moves the position of shared files, so it is entered under a lock; answers are
    kept.

    Raises:
        MetricUnavailableError: see `corpus`.
    """
    return _synonyms(corpus_key(), word)


def fingerprint() -> str:
    """Eight hex digits over what METEOR reads: the words of every synset, and the irregular forms.

    Glosses, byte offsets and packaging do not count, so two copies that score alike have one fingerprint.
    """
    return _fingerprint(corpus_key())


def corpus_key() -> str:
    """Where the dictionary is, settled once per value of the variable: scoring does not touch the disk.

    Raises:
        MetricUnavailableError: see `corpus`.
    """
    found = _resolved(os.environ.get(VARIABLE))
    if isinstance(found, MetricUnavailableError):
        raise MetricUnavailableError(str(found))
    return found


@cache
def _resolved(_named: str | None) -> str | MetricUnavailableError:
    try:
        pointer = corpus()
    except MetricUnavailableError as error:
        return error
    _pointers[str(pointer)] = pointer
    return str(pointer)


@lru_cache(maxsize=2**17)
def _synonyms(key: str, word: str) -> frozenset[str]:
    with _lock:
        synsets = _reader(key).synsets(word)
        return frozenset(name for synset in synsets for name in synset.lemma_names() if "_" not in name)


@cache
def _reader(key: str) -> Any:
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

    class Reader(WordNetCorpusReader):  # type: ignore[misc]
        """NLTK's reader without the multilingual mapping, which would read the sense index twice, and with Python's own
        text files, which are several times faster than NLTK's."""

        def open(self, file: str) -> TextIO:
            return _text(_pointers[key], file)

        def map_wn(self, version: str = "wordnet") -> None:  # noqa: ARG002
            return None

    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "multilingual functions are not available": none is used
        return Reader(_pointers[key], None)


@cache
def _fingerprint(key: str) -> str:
    digest = hashlib.sha256()
    for part in PARTS_OF_SPEECH:
        synsets = []
        for line in _text(_pointers[key], f"data.{part}"):
            if not line.startswith(" "):
                fields = line.split("|", 1)[0].split()
                synsets.append(" ".join([fields[2], *sorted(fields[4 : 4 + 2 * int(fields[3], 16) : 2])]))
        irregular = [line.strip() for line in _text(_pointers[key], f"{part}.exc")]
        digest.update("\n".join([part, *sorted(synsets), *sorted(irregular)]).encode())
    return digest.hexdigest()[:8]


def _text(corpus: Any, name: str) -> TextIO:
    """A file of the dictionary, in a folder or an archive."""
    return io.TextIOWrapper(corpus.join(name).open(), encoding="utf-8")


def _nltk_corpus() -> Any:
    """NLTK's own installed corpus as a path pointer, or None (the copies made here do not count as such)."""
    import nltk

    folders = [folder for folder in nltk.data.path if str(folder) not in _adopted_data]
    for resource in ("corpora/wordnet", "corpora/wordnet.zip/wordnet/"):
        try:
            found = nltk.data.find(resource, paths=folders)
        except LookupError:
            continue
        return found
    return None


def _version(corpus: Any) -> str:
    with corpus.join("data.adj").open("utf8") as lines:
        head = "".join(line for _, line in zip(range(40), lines, strict=False))
    match = re.search(r"WordNet (\d+(?:\.\d+)?) Copyright", head)
    return match[1] if match else "of unknown version"


def _adopted(folder: Path) -> Any:
    """A pointer to the NLTK-readable copy of a dictionary folder, made once and registered with NLTK."""
    import nltk

    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        raise MetricUnavailableError(f"{folder} is not a complete WordNet dictionary ({missing[0]} is missing); {MEND}")
    facts = [(name, (folder / name).stat().st_size, (folder / name).stat().st_mtime_ns) for name in FILES]
    key = hashlib.sha256(repr((str(folder.resolve()), facts)).encode()).hexdigest()[:12]
    data = cache_root() / "nltk_data" / key
    target = data / "corpora" / "wordnet"
    try:
        if not target.is_dir():
            _copy(folder, target)
    except OSError as error:
        raise MetricUnavailableError(
            f"WordNet could not be copied from {folder} to {target} ({error.strerror}); "
            "make that folder writable or point MEDTASKS_CACHE at one that is"
        ) from error
    if str(data) not in nltk.data.path:
        nltk.data.path.append(str(data))  # last, so that it never hides a corpus of the user's
        _adopted_data.add(str(data))
    return nltk.data.FileSystemPathPointer(str(target))


def _copy(folder: Path, target: Path) -> None:
    """Fill a fresh folder beside the target and rename it, so that a reader sees all files or none."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with temporary_beside(target) as fresh:
        for name in FILES:
            shutil.copyfile(folder / name, fresh / name)
        (fresh / "lexnames").write_text(lexnames(), encoding="ascii")
        try:
            fresh.rename(target)
        except OSError:
            if not target.is_dir():  # another process was first otherwise, with the same files
                raise


def lexnames() -> str:
    """NLTK's ``lexnames`` file: number, name and syntactic category of each lexicographer file."""
    rows = (
        f"{number:02d}\t{name}\t{CATEGORIES[name.split('.')[0]]}\n" for number, name in enumerate(LEXICOGRAPHER_FILES)
    )
    return "".join(rows)
