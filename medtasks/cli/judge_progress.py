"""Progress of judging: bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from medtasks.cli.console import bars

if TYPE_CHECKING:
    from medtasks.judge.client import Spent
    from medtasks.judge.judging_report import Progress
    from medtasks.judge.settings import JudgeConfig, JudgeSettings


@contextmanager
def judge_progress(config: JudgeConfig) -> Iterator[Progress]:
    """A progress bar per rubric and judge on standard error, with rate, tokens, cost and remaining
    time.

    Plain lines if that is not a terminal. Both show why a judge does not answer.
    """
    from rich.progress import TaskID, TextColumn

    from medtasks.judge.judging_report import plain_progress

    print_line = plain_progress()
    drawn = bars(TextColumn("{task.fields[rate]}"), TextColumn("{task.fields[tokens]}"))
    tasks: dict[tuple[str, str], TaskID] = {}

    def update(
        rubric: str, judge: str, done: int, total: int, spent: Spent, trouble: str | None
    ) -> None:
        if trouble is not None:
            print_line(rubric, judge, done, total, spent, trouble)  # above the bars
        if (rubric, judge) not in tasks:
            label = f"{rubric}, {judge}"
            tasks[rubric, judge] = drawn.add_task(label, total=total, rate="", tokens="")
        task = tasks[rubric, judge]
        speed = drawn.tasks[drawn.task_ids.index(task)].speed
        rate = ""
        if trouble is not None:
            rate = "waiting"
        elif speed is not None:
            rate = f"{speed:.0f}/s"
        tokens = _tokens_and_cost(spent, config.judges[judge], remaining=total - done)
        drawn.update(task, completed=done, total=total, rate=rate, tokens=tokens)

    with drawn:
        yield print_line if drawn.disable else update


def _tokens_and_cost(spent: Spent, settings: JudgeSettings, *, remaining: int) -> str:
    """What was spent, and about how much the ``remaining`` questions will take; empty without an
    answer.
    """
    if not spent.answered:
        return ""
    share = remaining / spent.answered
    text = f"{spent.tokens:,} tokens, about {round(spent.tokens * share):,} more"
    cost = settings.cost(spent.prompt_tokens, spent.completion_tokens)
    if cost is None:
        return text
    return f"{text}; cost {cost:,.2f}, about {cost * share:,.2f} more"
