"""What of a run's settings may be shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtasks.core.redaction import HIDDEN, is_secret, shown, shown_argument, shown_facts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/data/models/Qwen2.5-VL-7B/", "Qwen2.5-VL-7B"),
        ("/home/me/my models/a b", "a b"),
        ("~/x/y.json", "y.json"),
        ("./runs/z", "z"),
        ("C:\\Users\\me\\weights", "weights"),
        ("Qwen/Qwen2.5-VL-7B", "Qwen/Qwen2.5-VL-7B"),
        ("pretrained=/a/b,device=cuda:0", "pretrained=b,device=cuda:0"),
        ("error: /a/b/judge.yaml: no such file", "error: judge.yaml: no such file"),
        ("at (/a/b) or '/c/d'", "at (b) or 'd'"),
        ("yes/no, 3/4, n/a", "yes/no, 3/4, n/a"),
        ("http://10.0.0.5:8000/v1", HIDDEN),
        ("Bearer abcdefgh.ijklmnop", HIDDEN),
        ("sk-abcdefghijklmnopqrst", HIDDEN),
        ("hf_ABCDEFGHIJKLMNOPQRSTuv", HIDDEN),
        ("xoxb-1234567890-abc, github_pat_abcdefghijklmnopqrstu", f"{HIDDEN}, {HIDDEN}"),
        ("failed with api_key: 0123456789abcdef", f"failed with {HIDDEN}"),
    ],
)
def test_paths_addresses_and_keys_are_not_shown(text: str, expected: str) -> None:
    assert shown(text) == expected


def test_values_within_values_are_cut_too_and_those_of_secrets_hidden() -> None:
    text = f'{{"api_key": "{HIDDEN}", "n": 1, "peft": {{"path": "b"}}}}'
    assert shown({"peft": {"path": "/a/b"}, "api_key": "x", "n": 1}) == text
    assert shown_facts({"b": 2, "a": None, "token": "x", "c": ["/x/y"]}) == {
        "b": "2",
        "c": '["y"]',
        "token": HIDDEN,
    }
    arguments = shown_argument("model=a/b,api_key=abc,base_url=http://h/v1")
    assert arguments == f"model=a/b,api_key={HIDDEN},base_url={HIDDEN}"
    names = ("hf_token", "PASSWORD", "secret-key", "max_new_tokens", "tokenizer")
    assert [is_secret(name) for name in names] == [True, True, True, False, False]


NAME = st.text(alphabet="abcdefgh0123-", min_size=1, max_size=12)


@given(
    st.lists(NAME, min_size=2, max_size=4),
    st.sampled_from(["", "x ", "x=", "(", "'", '{"a": "', "a, "]),
)
def test_of_a_path_only_the_last_part_is_left(parts: list[str], before: str) -> None:
    assert shown(f"{before}/{'/'.join(parts)}") == f"{before}{parts[-1]}"
