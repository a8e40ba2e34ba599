"""NLTK's data are found where NLTK finds them, without importing it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nltk
import pytest
from tiny_wordnet import write_tiny_wordnet

from medtasks.metrics import wordnet
from medtasks.metrics.nltk_data import find_nltk_data


def test_the_directories_are_nltks(tmp_path: Path) -> None:
    script = (
        "import json, sys; from medtasks.metrics.nltk_data import nltk_folders; ours = list(map(str, nltk_folders()));"
        "early = 'nltk' in sys.modules; import nltk; print(json.dumps([early, sorted(ours), sorted(nltk.data.path)]))"
    )
    variables = {**os.environ, "NLTK_DATA": os.pathsep.join([str(tmp_path / "a"), "~/b", ""])}
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=variables)
    early, ours, theirs = json.loads(found.stdout)
    assert not early
    assert ours == theirs
    assert str(tmp_path / "a") in ours


def test_an_archive_is_read_like_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tiny_wordnet(tmp_path / "unpacked" / "wordnet")
    (tmp_path / "nltk_data" / "corpora").mkdir(parents=True)
    shutil.make_archive(str(tmp_path / "nltk_data" / "corpora" / "wordnet"), "zip", tmp_path / "unpacked", "wordnet")
    monkeypatch.delenv("MEDTASKS_WORDNET", raising=False)
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path / "absent"), str(tmp_path / "nltk_data")])
    wordnet._found.cache_clear()
    try:
        assert wordnet.synonyms("polyps") == {"polyp", "growth"}
        archived = wordnet.fingerprint()
        monkeypatch.setenv("MEDTASKS_WORDNET", str(tmp_path / "unpacked" / "wordnet"))
        assert wordnet.fingerprint() == archived
    finally:
        wordnet._found.cache_clear()
    assert find_nltk_data("corpora/other") is None
