"""The sentence about a ranking: who leads, by how much, who cannot be told apart, who is not above chance."""

from __future__ import annotations

from typing import Any

import pytest
from medtasks.leaderboard.board.board import BoardColumn, BoardModel, Cell, Pair, Ranked, Ranking
from medtasks.leaderboard.board.sentences import finding

NAMES = {"a": "Ada", "b": "Bea", "c": "Cid", "d": "Dan", "e": "Eve", "f": "Fay"}
MODELS = {slug: BoardModel(slug=slug, name=name, family="none") for slug, name in NAMES.items()}


def ranking(letters: dict[str, str], *pairs: tuple[str, str, float, float, float], **more: Any) -> Ranking:
    column = BoardColumn(
        **{"key": "t.m", "task": "t", "metric": "m", "label": "M", "unit": "fraction", "higher_is_better": True, **more}
    )
    ranked = [
        Ranked(model=model, rank=place, best=None, worst=None, letters=tuple(shared))
        for place, (model, shared) in enumerate(letters.items(), 1)
    ]
    compared = [
        Pair(
            first=one, second=other, items=90, clusters=30, difference=value, low=low, high=high, p_value=0.5, p_holm=1
        )
        for one, other, value, low, high in pairs
    ]
    return Ranking(
        column=column, items=90, clusters=30, cluster="patient", signature="s", ranked=tuple(ranked),
        pairs=tuple(compared), detectable=None,
    )  # fmt: skip


def cells(**values: float) -> dict[str, Cell]:
    return {
        model: Cell(value=low + 0.1, low=low, high=low + 0.2, items=90, signature="s") for model, low in values.items()
    }


@pytest.mark.parametrize(
    ("one", "sentence"),
    [
        (ranking({}), "No model is ranked."),
        (ranking({"a": "a"}), "Ada is the only model with a comparable result."),
        (ranking({"a": "a", "b": "b"}, ("a", "b", 0.031, 0.012, 0.05)),
         "Ada leads Bea by 3.1 points (95 % interval 1.2 to 5.0)."),
        (ranking({"a": "a", "b": "a"}, ("a", "b", 0.01, -0.01, 0.03)), "Ada and Bea cannot be told apart."),
        (ranking({"a": "a", "b": "a", "c": "b"}, ("a", "b", 0.01, -0.01, 0.03), ("a", "c", 0.2, 0.1, 0.3)),
         "Ada and Bea cannot be told apart; Ada leads Cid by 20.0 points (95 % interval 10.0 to 30.0)."),
        (ranking({"a": "a", "b": "b", "c": "c"}, ("a", "b", 0.2, 0.1, 0.3), ("b", "c", 0.3, 0.2, 0.4)),
         ("Ada leads Bea by 20.0 points (95 % interval 10.0 to 30.0), "
         "and Bea leads Cid by 30.0 points (95 % interval 20.0 to 40.0).")),
        (ranking({"a": "a", "b": "b", "c": "b"}, ("a", "b", 0.2, 0.1, 0.3), ("b", "c", 0.1, -0.1, 0.3)),
         "Ada leads Bea by 20.0 points (95 % interval 10.0 to 30.0)."),
        # Bea and Cid each share a letter with Ada, and none with each other
        (ranking({"a": "ab", "b": "a", "c": "b"}, ("a", "b", 0.01, -0.01, 0.03)),
         "Bea and Cid cannot be told apart from Ada."),
        (ranking(dict.fromkeys("abcdef", "a"), ("a", "b", 0.0, 0.0, 0.0)),
         "Bea, Cid, Dan and 2 more models cannot be told apart from Ada."),
        (ranking({"a": "a", "b": "a"}), "Ada has the best value; differences were not tested."),
        # lower is better, and the pair is stored the other way round
        (ranking({"a": "a", "b": "b"}, ("b", "a", 2.5, 1.0, 4.0), unit="seconds", higher_is_better=False),
         "Ada leads Bea by 2.5 s (95 % interval 1.0 to 4.0)."),
        (ranking({"a": "a", "b": "b"}, ("a", "b", -2.5, -4.0, -1.0), unit="seconds", higher_is_better=False),
         "Ada leads Bea by 2.5 s (95 % interval 1.0 to 4.0)."),
    ],
)  # fmt: skip
def test_what_a_ranking_shows(one: Ranking, sentence: str) -> None:
    assert finding(one, MODELS, cells(a=0.7, b=0.6, c=0.5, d=0.4, e=0.3, f=0.3)) == sentence


def test_models_not_above_chance_and_few_clusters_are_named() -> None:
    models = {**MODELS, "d": BoardModel(slug="d", name="Uniform", family="none", type="baseline")}
    one = ranking(dict.fromkeys("abcd", "a"), ("a", "b", 0.0, 0.0, 0.0), chance=0.2)
    said = finding(one, models, cells(a=0.3, b=0.2, c=0.1, d=0.1))
    assert said.endswith(" Bea and Cid are not above chance (20.0 %).")
    assert "not above chance" not in finding(one, models, cells(a=0.3, b=0.3, c=0.3, d=0.1))
    # few clusters are named
    one = ranking({"a": "a", "b": "a"}, ("a", "b", 0.9, 0.8, 1.0)).model_copy(update={"warning": "few", "clusters": 5})
    said = finding(one, MODELS, cells(a=0.9, b=0.0))
    assert (
        said == "Ada and Bea cannot be told apart. With only 5 clusters, even large differences may not be significant."
    )
