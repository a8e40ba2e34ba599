"""Recorded probabilities against a forward pass over the finished response, and in any batch."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from adapter_bench import Bench, questions
from hypothesis import given
from hypothesis import strategies as st
from medtasks.adapters._decoding import Decoder, GenerationSettings
from medtasks.adapters._likelihoods import Generated, Likelihoods, letter_in, letter_tokens
from medtasks.adapters.vllm import likelihoods
from transformers import AutoModelForImageTextToText, AutoProcessor

Create = Callable[..., Any]
OPTIONS = ("A", "B", "C", "D")


@pytest.mark.parametrize("temperature", [0.0, 1.7])
def test_probabilities_are_those_of_a_forward_pass(tiny: Path, temperature: float) -> None:
    """Whatever the temperature: they are the model's own."""
    processor = AutoProcessor.from_pretrained(tiny)
    model = AutoModelForImageTextToText.from_pretrained(tiny).eval()
    tokenizer = processor.tokenizer
    tokenizer.padding_side = "left"
    inputs = dict(
        tokenizer(["Which option?", "A much longer question: A, B, C or D"] * 4, return_tensors="pt", padding=True)
    )
    settings = GenerationSettings(max_new_tokens=40, temperature=temperature)
    answers = Decoder(model, tokenizer).decode(inputs, settings, seed=3)
    letters = letter_tokens(tokenizer)
    checked = 0
    for row, answer in enumerate(answers):
        prompt = inputs["input_ids"][row][inputs["attention_mask"][row].bool()]
        tokens = _tokens_of(model, inputs, settings, 3)[row][: answer.token_counts.output_tokens]
        if tokens[-1] == tokenizer.eos_token_id:
            tokens = tokens[:-1]
        with torch.no_grad():
            logits = model(input_ids=torch.cat([prompt, torch.tensor(tokens)])[None]).logits[0, len(prompt) - 1 : -1]
        logs = logits.float().log_softmax(dim=-1)
        found = answer.likelihoods
        assert found is not None
        assert found.mean == pytest.approx(float(logs[range(len(tokens)), tokens].mean()), abs=1e-4)
        generated = [(step, letters[token]) for step, token in enumerate(tokens) if token in letters]
        assert [one.letter for one in found.letters] == [letter for _, letter in generated]
        for one, (step, letter) in zip(found.letters, generated, strict=True):
            assert answer.text[: one.at] == tokenizer.decode(tokens[:step], skip_special_tokens=True)
            assert answer.text[one.at :].lstrip(" (.,:").startswith(letter)
            for name in OPTIONS:
                variants = [token for token, read in letters.items() if read == name]
                assert one.probabilities[name] == pytest.approx(float(logs[step, variants].exp().sum()), abs=1e-5)
            checked += 1
    assert checked or not temperature


def _tokens_of(model: Any, inputs: dict[str, Any], settings: GenerationSettings, seed: int) -> list[list[int]]:
    """What the model generates without anything of ours looking on."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        config = settings.configure(model.generation_config)
        config.pad_token_id = 0 if config.pad_token_id is None else config.pad_token_id
        output = model.generate(**inputs, generation_config=config)
    rows: list[list[int]] = output[:, inputs["input_ids"].shape[1] :].tolist()
    return rows


def test_batches_and_shared_prefixes_do_not_change_them(bench: Bench, vlm: Create) -> None:
    docs = [{**doc, "choices": dict.fromkeys(OPTIONS, "an option")} for doc in questions(8)]
    requests = bench.task("options", docs)
    alone = vlm(batch_size=1, share_prefix=False).generate_until(requests)
    assert all(one.probabilities.answer is not None for one in alone)
    for arguments in ({"batch_size": 4}, {"batch_size": 4, "share_prefix": False}):
        assert [one.probabilities for one in vlm(**arguments).generate_until(requests)] == [
            one.probabilities for one in alone
        ]


def test_beam_search_has_none(bench: Bench, vlm: Create) -> None:
    (answer,) = vlm().generate_until(bench.task("beams", questions(1), num_beams=2))
    assert answer.probabilities is None


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("B", "B"),
        (" B", "B"),
        ("\nB", "B"),
        ("(C", "C"),
        ("D.", "D"),
        ("**A", "A"),
        ("b", None),
        ("AB", None),
        ("É", None),
        ("7", None),
        ("", None),
    ],
)
def test_tokens_that_are_letters(text: str, letter: str | None) -> None:
    assert letter_in(text) == letter


@given(st.lists(st.floats(1e-6, 1.0), min_size=4, max_size=4), st.floats(-8, 0))
def test_shares_are_normalised_over_the_options(masses: list[float], mean: float) -> None:
    scale = sum(masses) * 1.25  # the rest belongs to other tokens
    exact = {name: mass / scale for name, mass in zip(OPTIONS, masses, strict=True)}
    found, close = Likelihoods(mean, (Generated(0, "A", {**exact, "Z": 0.2}),)).rounded(OPTIONS)
    (letter,) = found.letters
    for name, mass in zip(OPTIONS, masses, strict=True):
        assert letter.options[name] == pytest.approx(mass / sum(masses), abs=0.00501)
    assert letter.mass == 0.8
    assert found.answer == pytest.approx(math.exp(mean), abs=0.00501)
    assert isinstance(close, bool)


def test_a_value_that_rounding_may_decide_is_recognised() -> None:
    assert Likelihoods(math.log(0.455), ()).rounded(())[1]
    assert not Likelihoods(math.log(0.457), ()).rounded(())[1]
    assert Likelihoods(None, (Generated(0, "E", {"E": 0.5}),)).rounded(OPTIONS)[0].letters == ()


def test_what_vllm_returns_is_read_alike() -> None:
    """Its log-probabilities are by token; letters that are not among them count as impossible."""

    def step(chosen: int, **texts: float) -> tuple[int, dict[int, Any]]:
        named = {
            number: SimpleNamespace(logprob=math.log(share), decoded_token=text.replace("_", " "))
            for number, (text, share) in enumerate(texts.items())
        }
        return chosen, named

    steps = [
        step(0, **{"Answer:": 0.5, "B": 0.25}),
        step(1, _B=0.6, _A=0.2, A=0.1, the=0.05),
        step(0, **{"<|end|>": 1.0}),
    ]
    output = SimpleNamespace(text="Answer: A", token_ids=[one for one, _ in steps], logprobs=[one for _, one in steps])
    found = likelihoods(output)
    assert found.mean == pytest.approx((math.log(0.5) + math.log(0.2)) / 2)
    (letter,) = found.rounded(OPTIONS)[0].letters
    assert (letter.at, letter.letter, letter.mass) == (7, "A", 0.9)
    assert letter.options == {"A": 0.33, "B": 0.67, "C": 0.0, "D": 0.0}
