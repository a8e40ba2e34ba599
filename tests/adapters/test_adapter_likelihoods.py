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
from medtasks.adapters._answer_text import AnswerText
from medtasks.adapters._decoding import Decoder
from medtasks.adapters._letter_tokens import LETTERS, LetterTokens, RecordedAnswer, letter_in
from medtasks.adapters._settings import GenerationSettings
from medtasks.adapters.vllm import probabilities
from transformers import AutoModelForImageTextToText, AutoProcessor, AutoTokenizer

Create = Callable[..., Any]
OPTIONS = ("A", "B", "C", "D")
ROUNDED = 0.00501


@pytest.mark.parametrize("temperature", [0.0, 1.7])
def test_probabilities_are_those_of_a_forward_pass(tiny: Path, temperature: float) -> None:
    """Whatever the temperature: they are the model's own."""
    processor = AutoProcessor.from_pretrained(tiny)
    model = AutoModelForImageTextToText.from_pretrained(tiny).eval()
    tokenizer = processor.tokenizer
    tokenizer.padding_side = "left"
    inputs = dict(
        tokenizer(
            ["Which option?", "A much longer question: A, B, C or D"] * 2,
            return_tensors="pt",
            padding=True,
        )
    )
    settings = GenerationSettings(max_new_tokens=40, temperature=temperature)
    answers = Decoder(model, tokenizer).decode(inputs, [LETTERS] * 4, settings, seed=3)
    letters = LetterTokens(tokenizer).tokens
    checked = 0
    generated_rows = _tokens_of(model, tokenizer, inputs, settings, 3)
    for row, (answer, _) in enumerate(answers):
        prompt = inputs["input_ids"][row][inputs["attention_mask"][row].bool()]
        tokens = generated_rows[row][: answer.output_tokens]
        if tokens[-1] == tokenizer.eos_token_id:
            tokens = tokens[:-1]
        with torch.no_grad():
            logits = model(input_ids=torch.cat([prompt, torch.tensor(tokens)])[None]).logits[
                0, len(prompt) - 1 : -1
            ]
        logs = logits.float().log_softmax(dim=-1)
        found = answer.probabilities
        assert found.answer == pytest.approx(
            math.exp(float(logs[range(len(tokens)), tokens].mean())), abs=ROUNDED
        )
        generated = [
            (step, letters[token]) for step, token in enumerate(tokens) if token in letters
        ]
        assert [one.letter for one in found.letters] == [letter for _, letter in generated]
        for one, (step, letter) in zip(found.letters, generated, strict=True):
            assert answer.text[: one.at] == tokenizer.decode(
                tokens[:step], skip_special_tokens=True
            )
            assert answer.text[one.at :].lstrip(" (.,:").startswith(letter)
            shares = {}
            for name in LETTERS:
                variants = [token for token, read in letters.items() if read == name]
                shares[name] = float(logs[step, variants].exp().sum())
            assert one.mass == pytest.approx(sum(shares.values()), abs=ROUNDED)
            assert one.options == {
                name: pytest.approx(share / sum(shares.values()), abs=ROUNDED)
                for name, share in shares.items()
            }
            checked += 1
    assert checked or not temperature


def _tokens_of(
    model: Any, tokenizer: Any, inputs: dict[str, Any], settings: GenerationSettings, seed: int
) -> list[list[int]]:
    """What the model generates without anything of ours looking on."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        config = Decoder(model, tokenizer).configure(settings)
        output = model.generate(**inputs, generation_config=config)
    rows: list[list[int]] = output[:, inputs["input_ids"].shape[1] :].tolist()
    return rows


def test_batches_and_shared_prefixes_do_not_change_them(bench: Bench, vlm: Create) -> None:
    docs = [{**doc, "choices": dict.fromkeys(OPTIONS, "an option")} for doc in questions(8)]
    requests = bench.task("options", docs)
    alone = vlm(batch_size=1, share_prefix=False).replies(requests)
    assert all(one.probabilities.answer is not None for one in alone)
    for arguments in ({"batch_size": 4}, {"batch_size": 4, "share_prefix": False}):
        assert [one.probabilities for one in vlm(**arguments).replies(requests)] == [
            one.probabilities for one in alone
        ]


def test_beam_search_has_none(bench: Bench, vlm: Create) -> None:
    requests = bench.task("beams", questions(3), num_beams=2)
    answers = vlm(batch_size=3).replies(requests)
    assert [answer.probabilities for answer in answers] == [None] * 3
    assert answers == vlm(batch_size=1).replies(requests)


def test_tokens_that_are_letters() -> None:
    letters = {"B": "B", " B": "B", "\nB": "B", "(C": "C", "D.": "D", "**A": "A"}
    assert {text: letter_in(text) for text in letters} == letters
    assert [letter_in(text) for text in ("b", "AB", "É", "7", "")] == [None] * 5


@pytest.fixture(scope="module")
def tokenizer(tiny: Path) -> Any:
    return AutoTokenizer.from_pretrained(tiny)


def pieces(tokenizer: Any, *texts: str) -> list[int]:
    """Tokens of texts that are written one after another."""
    return [token for text in texts for token in tokenizer.encode(text, add_special_tokens=False)]


class Recorded(list[float]):
    """Log-probabilities, which note the part that is asked for."""

    part = slice(0)

    def __getitem__(self, item: Any) -> Any:
        self.part = item
        return super().__getitem__(item)


def means(tokenizer: Any, row: list[int], text: str) -> list[int]:
    """The tokens of ``row`` over which the mean goes."""
    chosen = Recorded([-1.0] * len(row))
    text_of = AnswerText(tokenizer).text_of
    answer = RecordedAnswer(row, text, text_of, chosen, [[0.0] * 26] * len(row))
    LetterTokens(tokenizer).probabilities(answer, ())
    return row[chosen.part]


def test_a_value_that_rounding_may_decide_is_recognised(tokenizer: Any) -> None:
    for share, close in ((0.455, True), (0.457, False)):
        row = pieces(tokenizer, "A")
        text_of = AnswerText(tokenizer).text_of
        answer = RecordedAnswer(row, "A", text_of, [math.log(share)], [[0.0] * 26])
        assert LetterTokens(tokenizer).probabilities(answer, ()).is_close is close


def test_the_mean_goes_over_the_tokens_of_the_answer(tokenizer: Any) -> None:
    """Not over thoughts, nor over a stop string."""
    thoughts, answer, stop = (
        pieces(tokenizer, one) for one in ("<think>Is it A?</think>\n", "A polyp", "\nUser:")
    )
    assert means(tokenizer, answer, "A polyp") == answer
    assert means(tokenizer, answer + stop, "A polyp") == answer
    assert (
        tokenizer.decode(means(tokenizer, thoughts + answer, "<think>Is it A?</think>\nA polyp"))
        == "A polyp"
    )
    assert means(tokenizer, thoughts[:-4], tokenizer.decode(thoughts[:-4])) == []


def test_a_character_of_several_tokens_at_the_end_belongs_to_the_answer(tokenizer: Any) -> None:
    row = pieces(tokenizer, "5 µ")
    assert tokenizer.decode(row[:-1]) != "5 "
    assert means(tokenizer, row, "5 µ") == row


def completion(steps: list[tuple[int, dict[int, float]]], finish: str = "stop") -> Any:
    """As vLLM gives it: the chosen token of each step, and probabilities by token."""
    return SimpleNamespace(
        token_ids=[chosen for chosen, _ in steps],
        logprobs=[
            {token: SimpleNamespace(logprob=math.log(share)) for token, share in shares.items()}
            for _, shares in steps
        ],
        finish_reason=finish,
        stop_reason=None,
    )


def test_what_vllm_returns_is_read_alike(tokenizer: Any) -> None:
    """Probabilities are by token; special tokens are not in the text, so they do not move a
    letter's place.
    """
    of = tokenizer.get_vocab()
    (answer, *colon), special = pieces(tokenizer, "Answer:"), of["<|vision_start|>"]
    steps = [
        (answer, {answer: 0.5, of["B"]: 0.25}),
        *((token, {token: 1.0}) for token in (*colon, special)),
        (of["ĠA"], {of["ĠA"]: 0.2, of["ĠB"]: 0.6, of["A"]: 0.1, of["C"]: 0.001}),
        (tokenizer.eos_token_id, {tokenizer.eos_token_id: 0.001}),
    ]
    text_of, known = AnswerText(tokenizer).text_of, LetterTokens(tokenizer)
    found = probabilities(completion(steps), "Answer: A", text_of, known, OPTIONS)
    assert found is not None
    assert found.answer == round(math.exp((math.log(0.5) + math.log(0.2)) / (len(steps) - 1)), 2)
    (letter,) = found.letters
    assert (letter.at, letter.letter, letter.mass) == (7, "A", 0.9)
    assert letter.options == {"A": 0.33, "B": 0.67, "C": 0.0, "D": 0.0}
    cut = probabilities(
        completion(steps[:-1], "length"),
        "Answer: A",
        AnswerText(tokenizer).text_of,
        LetterTokens(tokenizer),
        OPTIONS,
    )
    assert cut == found
    others = probabilities(completion(steps), "Answer: A", text_of, known, ("B", "C"))
    assert others is not None
    assert others.letters == ()  # A is no option


def test_without_what_vllm_returns_there_is_nothing(tokenizer: Any) -> None:
    given = SimpleNamespace(
        token_ids=[5, 6], logprobs=None, finish_reason="length", stop_reason=None
    )
    assert (
        probabilities(
            given, "a text", AnswerText(tokenizer).text_of, LetterTokens(tokenizer), OPTIONS
        )
        is None
    )
