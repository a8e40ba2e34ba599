"""Finding WordNet, making Debian's copy readable for NLTK, and saying clearly when there is none."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import nltk
import pytest
from tiny_wordnet import write_tiny_wordnet

from medtasks.metrics import LEXICAL, Meteor, MetricUnavailableError, lexical_statistics, wordnet


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty user cache, and a search path for NLTK that is put back."""
    monkeypatch.setenv("MEDTASKS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(nltk.data, "path", list(nltk.data.path))
    wordnet._resolved.cache_clear()  # a process looks for the dictionary once
    yield tmp_path / "cache"
    wordnet._resolved.cache_clear()


@pytest.fixture
def tiny(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:  # noqa: ARG001
    folder = write_tiny_wordnet(tmp_path / "dict")
    monkeypatch.setenv("MEDTASKS_WORDNET", str(folder))
    return folder


@pytest.fixture
def bare(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001
    """A machine without any WordNet."""
    monkeypatch.delenv("MEDTASKS_WORDNET", raising=False)
    monkeypatch.setattr(nltk.data, "path", [])
    monkeypatch.setattr(wordnet, "DEBIAN_FOLDER", tmp_path / "absent")


@pytest.mark.usefixtures("tiny")
def test_a_named_dictionary_is_used() -> None:
    assert wordnet.unavailable() is None
    assert wordnet.synonyms("polyps") == {"polyp", "growth"}
    assert wordnet.synonyms("saw") == {"see", "observe"}
    assert wordnet.synonyms("unheard") == frozenset()
    # one chunk of three matched words: two synonyms and one exact
    assert Meteor().statistics("crimson growth here", "red polyp here").tolist() == pytest.approx([1 - 0.5 / 27, 1])


def test_the_copy_is_made_once_and_complete(tiny: Path, cache: Path) -> None:
    first = Path(str(wordnet.corpus()))
    assert first.is_relative_to(cache)
    assert sorted(path.name for path in first.iterdir()) == sorted([*wordnet.FILES, "lexnames"])
    assert not list(first.parent.glob(".wordnet-*"))
    stamp = first.stat().st_mtime_ns
    assert Path(str(wordnet.corpus())) == first
    assert first.stat().st_mtime_ns == stamp
    (tiny / "noun.exc").write_text("growths growth\n")  # another dictionary under the same name
    assert Path(str(wordnet.corpus())) != first


@pytest.mark.usefixtures("tiny")
def test_the_copy_is_readable_by_nltk_itself() -> None:
    wordnet.corpus()
    assert nltk.data.find("corpora/wordnet/lexnames", paths=nltk.data.path[-1:])


@pytest.mark.usefixtures("tiny")
def test_a_copy_is_not_taken_for_a_corpus_of_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wordnet.corpus()
    monkeypatch.setattr(nltk.data, "path", nltk.data.path[-1:])  # the copy alone
    monkeypatch.setattr(wordnet, "DEBIAN_FOLDER", tmp_path / "absent")
    monkeypatch.delenv("MEDTASKS_WORDNET")
    wordnet._resolved.cache_clear()
    assert "is not on this machine" in str(wordnet.unavailable())


def test_lexnames_lists_the_45_files_with_their_categories() -> None:
    rows = [line.split("\t") for line in wordnet.lexnames().splitlines()]
    assert len(rows) == 45
    assert rows[3] == ["03", "noun.Tops", "1"]
    assert rows[29] == ["29", "verb.body", "2"]
    assert rows[44] == ["44", "adj.ppl", "3"]


@pytest.mark.usefixtures("bare")
def test_absence_names_the_commands_that_mend_it() -> None:
    reason = wordnet.unavailable()
    assert reason is not None
    assert "python -m nltk.downloader wordnet" in reason
    assert "apt-get install wordnet-base wordnet-sense-index" in reason
    assert Meteor().signature.endswith("wordnet:absent")


@pytest.mark.usefixtures("bare")
def test_without_wordnet_meteor_is_left_out_with_its_reason() -> None:
    statistics, reasons = lexical_statistics(["a polyp"], ["a polyp"])
    assert set(statistics) == set(LEXICAL) - {"meteor"}
    assert list(reasons) == ["meteor"]
    assert reasons["meteor"] == Meteor().unavailable()


@pytest.mark.usefixtures("bare")
def test_an_nltk_folder_is_used_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_tiny_wordnet(tmp_path / "nltk_data" / "corpora" / "wordnet")
    (folder / "lexnames").write_text(wordnet.lexnames())
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path / "nltk_data")])
    assert Path(str(wordnet.corpus())) == folder


@pytest.mark.usefixtures("bare")
def test_debians_folder_comes_last(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wordnet, "DEBIAN_FOLDER", write_tiny_wordnet(tmp_path / "debian"))
    assert Path(str(wordnet.corpus())).is_relative_to(cache)


@pytest.mark.usefixtures("cache")
def test_an_incomplete_dictionary_names_the_missing_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_tiny_wordnet(tmp_path / "dict")
    (folder / "index.sense").unlink()
    monkeypatch.setenv("MEDTASKS_WORDNET", str(folder))
    with pytest.raises(MetricUnavailableError, match=r"index\.sense is missing"):
        Meteor().statistics("a", "b")


@pytest.mark.usefixtures("cache")
def test_another_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEDTASKS_WORDNET", str(write_tiny_wordnet(tmp_path / "dict", version="3.1")))
    assert "holds WordNet 3.1, expected 3.0" in str(wordnet.unavailable())


@pytest.mark.usefixtures("tiny")
def test_a_cache_that_cannot_be_written_is_a_reason(cache: Path) -> None:
    cache.write_text("a file where the folder should be")
    assert "MEDTASKS_CACHE" in str(wordnet.unavailable())


@pytest.mark.usefixtures("tiny")
def test_the_fingerprint_follows_the_words_not_the_glosses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = wordnet.fingerprint()

    def changed(name: str, old: str, new: str) -> str:
        folder = write_tiny_wordnet(tmp_path / name)
        data = folder / "data.noun"
        data.write_text(data.read_text().replace(old, new))
        monkeypatch.setenv("MEDTASKS_WORDNET", str(folder))
        return wordnet.fingerprint()

    assert changed("glosses", "a gloss", "A gloss") == first
    assert changed("words", "growth", "gr0wth") != first


@pytest.mark.skipif(os.name != "posix", reason="links need POSIX")
def test_a_linked_folder_is_followed(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "link").symlink_to(tiny)
    monkeypatch.setenv("MEDTASKS_WORDNET", str(tmp_path / "link"))
    assert wordnet.synonyms("picture") == {"image", "picture"}
