"""Finding WordNet and NLTK's data, reading a dictionary directory, and a clear reason when there is none."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import nltk
import pytest
from nltk.corpus import wordnet as nltk_wordnet
from tiny_wordnet import write_tiny_wordnet

from medtasks.metrics import meteor
from medtasks.metrics.base import MetricUnavailableError
from medtasks.metrics.meteor import Meteor
from medtasks.metrics.registry import LEXICAL, lexical_statistics


@pytest.fixture(autouse=True)
def searched_anew() -> Iterator[None]:
    meteor._corpus.cache_clear()  # a process looks for the dictionary once
    yield
    meteor._corpus.cache_clear()


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = write_tiny_wordnet(tmp_path / "dict")
    monkeypatch.setenv("MEDTASKS_WORDNET", str(folder))
    return folder


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without any WordNet."""
    monkeypatch.delenv("MEDTASKS_WORDNET", raising=False)
    monkeypatch.setattr(nltk.data, "path", [])
    monkeypatch.setattr(meteor, "DEBIAN_DIRECTORY", tmp_path / "absent")


@pytest.mark.usefixtures("tiny")
def test_a_named_dictionary_is_used() -> None:
    assert Meteor().unavailable() is None
    assert meteor.synonyms("polyps") == {"polyp", "growth"}
    assert meteor.synonyms("saw") == {"see", "observe"}
    assert meteor.synonyms("unheard") == frozenset()
    # one chunk of three matched words: two synonyms and one exact
    assert Meteor().statistics("crimson growth here", "red polyp here").tolist() == pytest.approx([1 - 0.5 / 27, 1])


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
        assert meteor.synonyms(word) == {name for name in names if "_" not in name}


@pytest.mark.usefixtures("bare")
def test_without_wordnet_meteor_is_left_out_with_the_commands_that_fix_it() -> None:
    reason = Meteor().unavailable()
    assert reason is not None
    assert "medtasks fetch wordnet" in reason
    assert "apt-get install wordnet-base" in reason
    assert Meteor().signature.endswith("wordnet:absent")

    assert set(lexical_statistics([("a polyp", "a polyp")])) == set(LEXICAL) - {"meteor"}


@pytest.mark.usefixtures("bare")
def test_an_nltk_folder_is_used_before_debians_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meteor, "DEBIAN_DIRECTORY", write_tiny_wordnet(tmp_path / "debian"))
    assert meteor.corpus() == tmp_path / "debian"
    assert meteor.synonyms("polyps") == {"polyp", "growth"}
    folder = write_tiny_wordnet(tmp_path / "nltk_data" / "corpora" / "wordnet")
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path / "nltk_data")])
    meteor._corpus.cache_clear()
    assert Path(str(meteor.corpus())) == folder
    assert meteor.synonyms("polyps") == {"polyp", "growth"}


def test_an_incomplete_dictionary_or_another_version_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_tiny_wordnet(tmp_path / "dict")
    (folder / "index.adv").unlink()
    monkeypatch.setenv("MEDTASKS_WORDNET", str(folder))
    with pytest.raises(MetricUnavailableError, match=r"index\.adv is missing"):
        Meteor().statistics("a", "b")
    monkeypatch.setenv("MEDTASKS_WORDNET", str(write_tiny_wordnet(tmp_path / "other", version="3.1")))
    assert "contains WordNet 3.1, expected 3.0" in str(Meteor().unavailable())


@pytest.mark.usefixtures("tiny")
def test_the_fingerprint_follows_the_words_not_the_glosses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = meteor.fingerprint()

    def changed(name: str, old: str, new: str) -> str:
        folder = write_tiny_wordnet(tmp_path / name)
        data = folder / "data.noun"
        data.write_text(data.read_text().replace(old, new))
        monkeypatch.setenv("MEDTASKS_WORDNET", str(folder))
        return meteor.fingerprint()

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
    assert sorted(map(str, meteor.nltk_folders())) == sorted(anew.path)
    assert str(tmp_path / "a") in anew.path


def test_an_archive_is_read_like_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tiny_wordnet(tmp_path / "unpacked" / "wordnet")
    (tmp_path / "nltk_data" / "corpora").mkdir(parents=True)
    shutil.make_archive(str(tmp_path / "nltk_data" / "corpora" / "wordnet"), "zip", tmp_path / "unpacked", "wordnet")
    monkeypatch.delenv("MEDTASKS_WORDNET", raising=False)
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path / "absent"), str(tmp_path / "nltk_data")])
    assert meteor.synonyms("polyps") == {"polyp", "growth"}
    archived = meteor.fingerprint()
    monkeypatch.setenv("MEDTASKS_WORDNET", str(tmp_path / "unpacked" / "wordnet"))
    assert meteor.fingerprint() == archived
    assert meteor.find_nltk_data("corpora/other") is None
