"""Settings of judges: a wrong field is named with what was expected, and no value is printed: it may be a key."""

from __future__ import annotations

from pathlib import Path

import pytest

from medtasks.core.errors import UsageError
from medtasks.judge.settings import read_judges

JUDGE = "model=m,base_url=http://127.0.0.1:9/v1"
KEY = "sk-planted-0123456789"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("model=m", "the judge's settings: field `judges.m.base_url` is missing; correct"),
        (
            f"{JUDGE},concurency=4",
            "field `judges.m.concurency` is unknown (did you mean 'concurrency'?), expected one of",
        ),
        ("modle=m,base_url=http://127.0.0.1:9/v1", "field `judges.judge.modle` is unknown (did you mean 'model'?)"),
        (f"{JUDGE},timeout=-1", "field `judges.m.timeout` is wrong, expected a number above 0; correct"),
        (f"{JUDGE},concurrency={KEY}", "field `judges.m.concurrency` is wrong, expected a whole number; correct"),
        (f"{JUDGE},api_key_env={KEY}", "field `judges.m.api_key_env`: expected the name of an environment variable"),
        (f"model=m,base_url=http://u:{KEY}@h/v1", "`judges.m.base_url`: expected an address without credentials"),
        (f"{JUDGE},budget={KEY}", "field `judges.m.budget` is wrong, expected "),
    ],
)
def test_a_wrong_field_is_named_without_its_value(given: str, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        read_judges([given])
    assert said in str(raised.value)
    assert KEY not in str(raised.value)


def test_the_file_or_the_option_is_named(tmp_path: Path) -> None:
    path = tmp_path / "judge.yaml"
    path.write_text("combine: best\njudges:\n- {model: m, base_url: http://127.0.0.1:9/v1}\n")
    expected = "field `combine` is wrong, expected 'majority' or 'mean'; correct the judge's settings."
    with pytest.raises(UsageError) as raised:
        read_judges([str(path)])
    assert str(raised.value) == f"{path}: {expected}"
    with pytest.raises(UsageError) as raised:
        read_judges([str(path)], combine="worst")
    assert str(raised.value) == f"--combine: {expected}"
