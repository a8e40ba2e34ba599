"""Finds and reads WordNet 3.0 on this machine, offline: NLTK's data, or a dictionary directory.

NLTK's reader takes neither Debian's packages nor another directory (named by ``MEDTASKS_WORDNET``), and it loads the
whole dictionary for the few hundred words that responses have. So words are looked up here, in the files. NLTK itself
is imported as cheaply as it can be, and its directories are searched without it: the import takes longer than scoring a
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
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

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
    packages. Raises `MetricUnavailableError` if there is none, it is incomplete, or of another version.
    """
    found = _found(os.environ.get(VARIABLE))
    if isinstance(found, str):
        raise MetricUnavailableError(found)
    return found


@cache
def _found(named: str | None) -> Any:
    """`corpus`, or why there is none; cached, so that scoring does not touch the disk."""
    found: Any = Path(named) if named else find_nltk_data("corpora/wordnet") or DEBIAN_DIRECTORY
    if not named and not found.is_dir():
        return f"WordNet {VERSION} is not on this machine; {FIX}"
    missing = [name for name in FILES if not (found / name).is_file()]
    if missing:
        return f"{found} is not a complete WordNet dictionary ({missing[0]} is missing); {FIX}"
    with (found / "data.adj").open("r", encoding="utf-8") as lines:
        match = re.search(r"WordNet (\d+(?:\.\d+)?) Copyright", "".join(islice(lines, 40)))
    version = match[1] if match else "of unknown version"
    if version != VERSION:
        origin = f"{VARIABLE}={named}" if named else found
        return f"{origin} contains WordNet {version}, expected {VERSION}; {FIX}"
    return found


def synonyms(word: str) -> frozenset[str]:
    """The single-word lemma names of every synset of ``word``, as NLTK's reader finds them (case as in WordNet)."""
    return _synonyms(corpus(), word)


@lru_cache(maxsize=2**17)
def _synonyms(corpus: Any, word: str) -> frozenset[str]:
    word, names = word.lower(), set()
    substitutions = import_nltk().corpus.reader.wordnet.WordNetCorpusReader.MORPHOLOGICAL_SUBSTITUTIONS
    for part, code in PARTS_OF_SPEECH.items():
        irregular, index, data = _read(corpus, part)
        # base forms: irregular ones as listed, others by NLTK's suffix rules (morphy)
        bases = irregular.get(word)
        if bases is None:
            bases = [word.removesuffix(old) + new for old, new in substitutions[code] if word.endswith(old)]
        for form in (word, *bases):
            _, _, count, *fields = index.get(form, "- - 0").split()
            for offset in map(int, fields[len(fields) - int(count) :]):
                names.update(_lemmas(data[offset : data.index(b"|", offset)].decode().split()))
    return frozenset(name.partition("(")[0] for name in names if "_" not in name)  # adjectives: asleep(p)


@cache
def _read(corpus: Any, part: str) -> tuple[dict[str, list[str]], dict[str, str], bytes]:
    """Of a part of speech: the base forms of irregular words, the line of each lemma in the index, and the synsets."""
    irregular = {form: bases for form, *bases in map(str.split, _lines(corpus, f"{part}.exc"))}
    index = {line[: line.index(" ")]: line for line in _lines(corpus, f"index.{part}") if line[0] != " "}
    return irregular, index, (corpus / f"data.{part}").read_bytes()


def fingerprint() -> str:
    """Eight hex digits over what METEOR reads: the words of every synset, and the irregular forms.

    Glosses, byte offsets and packaging are ignored, so copies that score alike have the same fingerprint.
    """
    return _fingerprint(corpus())


@cache
def _fingerprint(corpus: Any) -> str:
    """`fingerprint`, kept in the user's cache for files of the same sizes and times: reading them takes 0.5 s."""
    files = [corpus / name for name in FILES] if isinstance(corpus, Path) else [Path(corpus.root.filename)]
    kept = cache_root() / "wordnet" / short_hash(json.dumps([file_state(file.stat()) for file in files]))
    with contextlib.suppress(OSError):
        return kept.read_text()
    digest = hashlib.sha256()
    for part in PARTS_OF_SPEECH:
        fields = (line.split("|", 1)[0].split() for line in _lines(corpus, f"data.{part}") if not line.startswith(" "))
        synsets = sorted(" ".join([entry[2], *sorted(_lemmas(entry))]) for entry in fields)
        irregular = sorted(line.strip() for line in _lines(corpus, f"{part}.exc"))
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
    """NLTK; without SciPy and scikit-learn, which are most of the import, unless another thread may be importing them.
    They only serve its collocations, parsers and classifiers."""
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
    for folder in (folder / name for folder in nltk_folders()):
        archive = folder.with_name(f"{folder.name}.zip")
        if folder.is_dir():
            return folder
        if archive.is_file():
            return zipfile.Path(archive, f"{folder.name}/")
    return None
