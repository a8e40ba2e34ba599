"""Fixtures for the metric tests."""

from __future__ import annotations

import os
import shutil

import nltk
import pytest
from tiny_wordnet import LEXNAMES

from medtasks.metrics.meteor import Meteor
from medtasks.metrics.nltk_library import find_nltk_data
from medtasks.metrics.wordnet import corpus


@pytest.fixture(scope="session")
def real_wordnet(tmp_path_factory: pytest.TempPathFactory) -> None:
    """WordNet 3.0 of this machine, for NLTK too; skips without it, or fails if
    MEDTASKS_REQUIRE_WORDNET=1.
    """
    reason = Meteor().unavailable()
    if reason is None:
        if find_nltk_data("corpora/wordnet") is None:
            data = tmp_path_factory.mktemp("nltk_data")
            copy = shutil.copytree(corpus(), data / "corpora" / "wordnet")
            (copy / "lexnames").write_text(LEXNAMES)
            nltk.data.path.append(str(data))
        return
    if os.environ.get("MEDTASKS_REQUIRE_WORDNET") == "1":
        pytest.fail(f"MEDTASKS_REQUIRE_WORDNET=1, but {reason}")
    pytest.skip(reason)
