"""Settings: read from the environment, refused in one sentence, changed for a block, the
environment untouched.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from medtasks.core.errors import UsageError
from medtasks.core.settings import current_settings, using


@pytest.mark.parametrize(("given", "cap"), [("", None), (" 8 ", 8), ("1", 1)])
def test_the_number_of_frames_is_limited(
    monkeypatch: pytest.MonkeyPatch, given: str, cap: int | None
) -> None:
    monkeypatch.setenv("MEDTASKS_MAX_FRAMES", given)
    assert current_settings().max_frames == cap


WRONG = [("MEDTASKS_MAX_FRAMES", given) for given in ("0", "-3", "many", "1.5", "²")]
WRONG += [("MEDTASKS_BLIND", "yes"), ("MEDTASKS_MAX_FAILED", "2"), ("MEDTASKS_MAX_FAILED", "nan")]
WRONG += [("MEDTASKS_DOWNLOAD", "maybe")]


@pytest.mark.parametrize(("name", "given"), WRONG)
def test_a_wrong_value_is_refused(monkeypatch: pytest.MonkeyPatch, name: str, given: str) -> None:
    monkeypatch.setenv(name, given)
    with pytest.raises(UsageError, match=f"{name} is '{given}', expected "):
        current_settings()


def test_a_block_may_use_others(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MEDTASKS_DATA", str(tmp_path))
    assert (current_settings().data, current_settings().mini) == (tmp_path, False)
    with using(mini=True, max_frames=3):
        with using(subset="0.5"):
            inner = current_settings()
        assert (inner.mini, inner.max_frames, inner.subset) == (True, 3, "0.5")
        assert os.environ["MEDTASKS_DATA"] == str(tmp_path)
    assert not current_settings().mini
