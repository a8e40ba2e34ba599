"""``medtasks.evaluate``: the harness in this process, with a back-end or a function as the
model.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from runs import baseline

import medtasks
from medtasks.core.errors import MedtasksError, UsageError

pytestmark = pytest.mark.slow  # whole runs, or libraries that take seconds to load

TASK = "mi_cxr_icr"


def test_a_back_end_gives_the_run_of_the_command(tmp_path: Path) -> None:
    run = medtasks.evaluate(
        "medtasks_baseline",
        [TASK],
        model_args={"policy": "uniform", "seed": 3},
        output_path=tmp_path / "python",
    )
    other = baseline("uniform,seed=3", [TASK], tmp_path / "harness")
    assert run.path is not None
    assert (run.path / "scores.json").read_bytes() == (other.folder / "scores.json").read_bytes()


def test_a_function_sees_the_messages_and_an_interrupted_run_continues(tmp_path: Path) -> None:
    seen: list[str] = []

    def answer(messages: list[dict[str, Any]]) -> str:
        (text,) = [part["text"] for part in messages[-1]["content"] if part["type"] == "text"]
        assert all(part["url"].size for part in messages[-1]["content"] if part["type"] == "image")
        if len(seen) == 2 and text not in seen:
            seen.append("")
            raise KeyboardInterrupt
        seen.append(text)
        return "B"

    with pytest.raises(KeyboardInterrupt):
        medtasks.evaluate(answer, TASK, output_path=tmp_path)
    (partial,) = medtasks.open(tmp_path)
    assert partial.unfinished
    statuses = partial.samples().arrow["status"].to_pylist()
    assert (statuses.count("ok"), statuses.count("failed")) == (2, 4)
    assert partial.scores().arrow["incomplete"].to_pylist()[0]

    run = medtasks.evaluate(answer, TASK, output_path=tmp_path)
    asked = [text for text in seen if text]
    assert len(asked) == len(set(asked)) == 6
    assert run.samples().arrow["filtered"].to_pylist() == ["B"] * 6
    assert run.manifest.model["checkpoint"].endswith("answer")
    assert [one.path for one in medtasks.open(tmp_path)] == [run.path]


def test_what_a_function_raises_is_a_failed_request(tmp_path: Path) -> None:
    given: list[Any] = [None, ValueError("no"), "A"]

    def answer(_: list[dict[str, Any]]) -> Any:
        value = given.pop(0)
        if isinstance(value, Exception):
            raise value
        return value

    table = medtasks.evaluate(answer, TASK, output_path=tmp_path, limit=3).samples().arrow
    assert table["status"].to_pylist() == ["failed", "failed", "ok"]
    assert table["failed"].to_pylist() == [
        "the function returned NoneType, expected a text", "ValueError: no", None
    ]  # fmt: skip


def test_a_changed_function_starts_anew(tmp_path: Path) -> None:
    def of(last: BaseException | None) -> Callable[[Any], str]:
        if last is None:

            def answer(_: Any) -> str:
                return "A"

            return answer

        def answer(messages: Any) -> str:  # the same name, other code
            if len(messages) == 1:
                raise last
            return "B"

        return answer

    with pytest.raises(KeyboardInterrupt):
        medtasks.evaluate(of(KeyboardInterrupt()), TASK, output_path=tmp_path)
    run = medtasks.evaluate(of(None), TASK, output_path=tmp_path)
    assert set(run.samples().arrow["response"].to_pylist()) == {"A"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"model": "nobody", "tasks": TASK},
            "back-end nobody cannot be used: unknown to lmms-eval",
        ),
        ({"model": "medtasks_baseline", "tasks": "nothing"}, "task 'nothing' is unknown"),
        (
            {"model": "medtasks_baseline", "tasks": TASK, "model_args": "policy=x"},
            "policy is 'x', expected one of",
        ),
        ({"model": str.upper, "tasks": TASK, "model_args": "a=b"}, "leave them out for a function"),
    ],
)
def test_errors_are_ours_and_never_end_the_process(
    options: dict[str, Any], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UsageError, match=said):
        medtasks.evaluate(output_path=tmp_path, **options)
    assert said not in capsys.readouterr().err


def test_data_that_are_not_prepared_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEDTASKS_DATA", str(tmp_path / "empty"))
    with pytest.raises(MedtasksError, match="medtasks prepare mi_cxr"):
        medtasks.evaluate("medtasks_baseline", TASK, output_path=tmp_path)
