"""CIDEr against pycocoevalcap, and by hand."""

from __future__ import annotations

import math
import os
import random
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from metric_texts import WORDS, texts

from medtasks.benchmarks.mi_cxr.cider import CiderCorpus, cider_tokens

Rows = list[tuple[str, str]]

ADVERSARIAL: Rows = [
    ("", "a small effusion in the left base"),
    ("a small effusion in the left base", ""),
    ("", ""),
    ("... ?! ;", "a small effusion"),
    ("a small effusion", "--- ,, ''"),
    ("left lung clear since T2", "left lung clear since T2"),
    ("polyp", "polyp"),
    ("épanchement 漢字 🩺 – «œdème»", "épanchement 漢字 🩺 œdème"),
    ("\ud800 nodule", "nodule \ud800\u2028"),
    ("stable " * 400, "stable stable nodule"),
    ("nodule nodule nodule", "nodule " * 40),
    (
        " ".join(f"finding{i % 97} in zone {i}" for i in range(500)),
        " ".join(f"finding{i % 89}" for i in range(900)),
    ),
    ("the\tthe\nthe THE The.", "the the the"),
]

rows_strategy = st.lists(st.tuples(texts, texts), min_size=1, max_size=6)


def generated(count: int, seed: int) -> Rows:
    """Pairs that share some, all or none of their words."""
    draw = random.Random(seed)
    rows: Rows = []
    for number in range(count):
        reference = draw.choices(WORDS, k=draw.randrange(25))
        prediction = [
            draw.choice(WORDS) if draw.random() < number / count else word for word in reference
        ]
        prediction += draw.choices(WORDS, k=draw.choice((0, 0, draw.randrange(12))))
        rows.append((" ".join(prediction), " ".join(reference)))
    return rows


def split(rows: Rows) -> tuple[list[str], list[str]]:
    return [prediction for prediction, _ in rows], [reference for _, reference in rows]


def cider_scores(predictions: Sequence[str], references: Sequence[str]) -> tuple[float, np.ndarray]:
    """Mean and scores of the pairs, document frequencies from these references."""
    corpus = CiderCorpus(references)
    values = [corpus.score(*pair) for pair in zip(predictions, references, strict=True)]
    return math.fsum(values) / len(values), np.array(values)


def test_is_pycocoevalcap_on_the_same_tokens() -> None:
    cider = pytest.importorskip("pycocoevalcap.cider.cider")
    rows = ADVERSARIAL + generated(400, seed=7)
    references = {i: [" ".join(cider_tokens(reference))] for i, (_, reference) in enumerate(rows)}
    predictions = {
        i: [" ".join(cider_tokens(prediction))] for i, (prediction, _) in enumerate(rows)
    }
    theirs, their_values = cider.Cider().compute_score(references, predictions)
    mean, values = cider_scores(*split(rows))
    assert values == pytest.approx(their_values, abs=1e-9)
    assert mean == pytest.approx(float(theirs), abs=1e-9)
    assert len(set(np.round(values, 3))) > 100  # the pairs do tell formulas apart


CLINICAL: Rows = [
    (
        "The left effusion grew from T1 to T2 (mild). It’s stable since.",
        "The left effusion grew (T1–T2), then resolved.",
    ),
    (
        "No pneumothorax at T4/T5; right-sided mass, approx. 3.5 cm",
        "Right-sided mass of approx. 3.5 cm. It isn't new.",
    ),
    ('Mild "haze" vs. edema: improved…', "Mild haze vs. edema improved between T2 and T3."),
    (
        "T2 → T3: the patient's heart cannot be assessed!",
        "The patient’s heart can't be assessed at T2 → T3.",
    ),
]


def test_tokens_and_scores_are_those_of_the_coco_tools() -> None:
    coco = pytest.importorskip("pycocoevalcap.tokenizer.ptbtokenizer")
    cider = pytest.importorskip("pycocoevalcap.cider.cider")
    jar, java = Path(coco.__file__).with_name(coco.STANFORD_CORENLP_3_4_1_JAR), shutil.which("java")
    if java is None or not jar.exists():
        pytest.skip("Java or the Stanford tokenizer is absent")
    command = [
        java,
        "-cp",
        str(jar),
        "edu.stanford.nlp.process.PTBTokenizer",
        "-preserveLines",
        "-lowerCase",
    ]
    texts = "\n".join(text for row in CLINICAL for text in row)
    done = subprocess.run(
        [*command, "-encoding", "utf-8"],
        input=texts.encode(),
        capture_output=True,
        env={
            **os.environ,
            "LC_ALL": "C.UTF-8",
        },  # under C, Java cannot open a path with other letters than ASCII
        check=True,
    )
    lines = [
        " ".join(word for word in line.split(" ") if word not in coco.PUNCTUATIONS)
        for line in done.stdout.decode().splitlines()
    ]
    assert len(lines) == 2 * len(CLINICAL)
    predictions, references = (
        {i: [line] for i, line in enumerate(lines[side::2])} for side in (0, 1)
    )
    _, expected = cider.Cider().compute_score(references, predictions)
    assert min(expected) > 0
    assert cider_scores(*split(CLINICAL))[1] == pytest.approx(expected, abs=1e-9)


@given(rows_strategy, st.randoms(use_true_random=False))
def test_lies_between_0_and_10_and_the_order_of_the_corpus_does_not_matter(
    rows: Rows, draw: random.Random
) -> None:
    order = list(range(len(rows)))
    draw.shuffle(order)
    mean, values = cider_scores(*split(rows))
    assert ((values >= 0) & (values <= 10 + 1e-12)).all()
    other_mean, other_values = cider_scores(*split([rows[i] for i in order]))
    assert other_mean == mean
    assert other_values.tolist() == values[order].tolist()


def test_a_value_depends_on_the_corpus_and_a_part_keeps_the_frequencies_of_the_whole() -> None:
    predictions, references = split(generated(40, seed=3))
    whole, part = CiderCorpus(references), CiderCorpus(references[:9])
    pairs = list(zip(predictions[:9], references, strict=False))
    assert [whole.score(*row) for row in pairs] == cider_scores(predictions, references)[1][
        :9
    ].tolist()
    assert [part.score(*row) for row in pairs] != [whole.score(*row) for row in pairs]
    assert cider_scores(["a b c d"], ["a b c d"])[0] == 0.0  # no n-gram tells texts apart
    assert cider_scores(["a b c d", "a b"], ["a b c d", "A B C D."])[0] == 0.0


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", []),
        (
            "Nodule. Now; stable, T1 -- T2: (none)!",
            ["nodule", "now", "stable", "t1", "t2", "(", "none", ")"],
        ),
        ("The patient’s “new” nodule…", ["the", "patient", "'s", "new", "nodule"]),
        ("T1–T2 and T1—T2", ["t1", "t2", "and", "t1", "t2"]),
        (
            "It isn't a right-sided 3.5 cm mass.",
            ["it", "is", "n't", "a", "right-sided", "3.5", "cm", "mass"],
        ),
        ("e.g. 1,000 {x} [y] e.g.", ["e.g", "1,000", "{", "x", "}", "[", "y", "]", "e.g"]),
        ("'quoted' \"twice\" `tick`", ["quoted", "twice", "tick"]),
        ("line\n\tbreak,\u00a0space", ["line", "break", "space"]),
        ("T1 → T2", ["t1", "→", "t2"]),
    ],
)
def test_tokens(text: str, tokens: list[str]) -> None:
    assert cider_tokens(text) == tokens
