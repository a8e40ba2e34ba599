"""Finding WordNet and NLTK's data, reading a dictionary directory, and a clear reason when there is
none.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import nltk
import pytest
from nltk.corpus import wordnet as nltk_wordnet
from tiny_wordnet import write_tiny_wordnet

from medtasks.metrics import wordnet
from medtasks.metrics.base import MetricUnavailableError
from medtasks.metrics.meteor import Meteor
from medtasks.metrics.nltk_library import find_nltk_data, nltk_folders
from medtasks.metrics.registry import LEXICAL, lexical_statistics

pytestmark = pytest.mark.slow  # whole runs, or libraries that take seconds to load


def search_anew() -> None:
    """A process looks for the dictionary once."""
    for cached in (find_nltk_data, wordnet.find_corpus, wordnet.synonyms, wordnet.fingerprint):
        cached.cache_clear()


@pytest.fixture(autouse=True)
def bare(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[None]:
    """A machine without any WordNet, unless the test takes this machine's."""
    if "real_wordnet" not in request.fixturenames:
        monkeypatch.setattr(nltk.data, "path", [])
        monkeypatch.setattr(wordnet, "DEBIAN_DIRECTORY", tmp_path / "absent")
    search_anew()
    yield
    search_anew()


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, version: str = "3.0") -> Path:
    """A tiny dictionary among NLTK's data in ``folder``, where NLTK now looks."""
    monkeypatch.setattr(nltk.data, "path", [str(folder.parent / "absent"), str(folder)])
    search_anew()
    return write_tiny_wordnet(folder / "corpora" / "wordnet", version=version)


def test_a_dictionary_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch)
    assert Meteor().unavailable() is None
    assert wordnet.synonyms("polyps") == {"polyp", "growth"}
    assert wordnet.synonyms("saw") == {"see", "observe"}
    assert wordnet.synonyms("unheard") == frozenset()
    # one chunk of three matched words: two synonyms and one exact
    assert Meteor().statistics("crimson growth here", "red polyp here").tolist() == pytest.approx(
        [1 - 0.5 / 27, 1]
    )


@pytest.mark.usefixtures("real_wordnet")
def test_words_are_looked_up_as_nltk_does() -> None:
    lemmas = list(islice(nltk_wordnet.all_lemma_names(), 0, None, 5000))
    irregular = ["men", "geese", "was", "better", "worse", "axes", "Clips", "oxen", "saw"]
    no_words = ["", "s", " ", "asleep(p)", "unheard", "~", "\ud800", "a n"]
    ends = ["", "s", "es", "ies", "ed", "ing", "er", "est", "men"]
    for word in [
        *(lemma[: len(lemma) - cut] + end for lemma in lemmas for cut in (0, 1) for end in ends),
        *irregular,
        *no_words,
    ]:
        names = {name for synset in nltk_wordnet.synsets(word) for name in synset.lemma_names()}
        assert wordnet.synonyms(word) == {name for name in names if "_" not in name}


def test_without_wordnet_meteor_is_left_out_with_the_commands_that_fix_it() -> None:
    reason = Meteor().unavailable()
    assert reason is not None
    assert "medtasks fetch wordnet" in reason
    assert "apt-get install wordnet-base" in reason
    assert Meteor().signature.endswith("wordnet:absent")

    assert set(lexical_statistics([("a polyp", "a polyp")])) == set(LEXICAL) - {"meteor"}


def test_an_nltk_folder_is_used_before_debians_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wordnet, "DEBIAN_DIRECTORY", write_tiny_wordnet(tmp_path / "debian"))
    assert wordnet.corpus() == tmp_path / "debian"
    assert wordnet.synonyms("polyps") == {"polyp", "growth"}
    folder = install(tmp_path / "nltk_data", monkeypatch)
    assert Path(str(wordnet.corpus())) == folder
    assert wordnet.synonyms("polyps") == {"polyp", "growth"}


def test_an_incomplete_dictionary_or_another_version_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (install(tmp_path / "incomplete", monkeypatch) / "index.adv").unlink()
    with pytest.raises(MetricUnavailableError, match=r"index\.adv is missing"):
        Meteor().statistics("a", "b")
    install(tmp_path / "other", monkeypatch, version="3.1")
    assert "contains WordNet 3.1, expected 3.0" in str(Meteor().unavailable())


def test_the_fingerprint_follows_the_words_not_the_glosses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def changed(name: str, old: str = "", new: str = "") -> str:
        data = install(tmp_path / name, monkeypatch) / "data.noun"
        data.write_text(data.read_text().replace(old, new))
        return wordnet.fingerprint()

    first = changed("nothing")
    assert changed("glosses", "a gloss", "A gloss") == first
    assert changed("words", "growth", "gr0wth") != first


def test_the_directories_are_nltks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NLTK_DATA", os.pathsep.join([str(tmp_path / "a"), "~/b", ""]))
    spec = importlib.util.find_spec("nltk.data")
    assert spec is not None
    assert spec.loader is not None
    anew = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(anew)
    monkeypatch.delitem(sys.modules, "nltk.data")  # as before NLTK is imported
    assert sorted(map(str, nltk_folders())) == sorted(anew.path)
    assert str(tmp_path / "a") in anew.path


def test_an_archive_is_read_like_a_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = install(tmp_path, monkeypatch)
    unpacked = wordnet.fingerprint()
    shutil.make_archive(str(folder), "zip", folder.parent, "wordnet")
    shutil.rmtree(folder)
    search_anew()
    assert wordnet.synonyms("polyps") == {"polyp", "growth"}
    assert wordnet.fingerprint() == unpacked
    assert find_nltk_data("corpora/other") is None


def test_nltk_is_imported_without_what_scoring_does_not_use() -> None:
    script = (
        "import sys; from medtasks.metrics.nltk_library import import_nltk; import_nltk()\n"
        "print([name for name in ('scipy', 'sklearn') if name in sys.modules])\n"
        "import scipy.stats, sklearn"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert loaded.stdout.strip() == "[]"
