"""Progress of judging: bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from medtasks.core.progress_bars import bars

if TYPE_CHECKING:
    from rich import progress as rich_progress

    from medtasks.judge.client import Spent
    from medtasks.judge.judging_report import Progress
    from medtasks.judge.settings import JudgeConfig, JudgeSettings


@contextmanager
def judge_progress(config: JudgeConfig) -> Iterator[Progress]:
    """A progress bar per rubric and judge on standard error, with rate, tokens, cost and remaining
    time.

    If standard error is not a terminal, plain lines are printed instead. Both show why a judge does
    not answer.
    """
    from rich.progress import TextColumn

    from medtasks.judge.judging_report import plain_progress

    print_line = plain_progress()
    display = bars(TextColumn("{task.fields[rate]}"), TextColumn("{task.fields[tokens]}"))
    progress: Progress = _JudgeBars(display, config, print_line).update
    if display.disable:
        progress = print_line
    with display:
        yield progress


class _JudgeBars:
    """The bars of a progress display, one for each rubric and judge."""

    def __init__(
        self, display: rich_progress.Progress, config: JudgeConfig, print_line: Progress
    ) -> None:
        """Start without bars.

        Args:
            display: where bars are added; it has the columns ``rate`` and ``tokens``.
            config: the judges, with their prices.
            print_line: prints a line above the bars if a judge does not answer.
        """
        self._display = display
        self._config = config
        self._print_line = print_line
        self._bars: dict[tuple[str, str], rich_progress.TaskID] = {}

    def update(
        self, rubric: str, judge: str, done: int, total: int, spent: Spent, failure: str | None
    ) -> None:
        """Redraw the bar of a rubric and judge (`medtasks.judge.judging_report.Progress`)."""
        if failure is not None:
            self._print_line(rubric, judge, done, total, spent, failure)
        bar = self._bar(rubric, judge, total)
        rate = self._rate(bar) if failure is None else "waiting"
        tokens = _tokens_and_cost(spent, self._config.judges[judge], remaining=total - done)
        self._display.update(bar, completed=done, total=total, rate=rate, tokens=tokens)

    def _bar(self, rubric: str, judge: str, total: int) -> rich_progress.TaskID:
        """The bar of a rubric and judge, added when first asked for."""
        bar = self._bars.get((rubric, judge))
        if bar is None:
            label = f"{rubric}, {judge}"
            bar = self._display.add_task(label, total=total, rate="", tokens="")
            self._bars[rubric, judge] = bar
        return bar

    def _rate(self, bar: rich_progress.TaskID) -> str:
        """Questions answered per second; empty until there is an estimate."""
        number = self._display.task_ids.index(bar)
        speed = self._display.tasks[number].speed
        return "" if speed is None else f"{speed:.0f}/s"


def _tokens_and_cost(spent: Spent, settings: JudgeSettings, *, remaining: int) -> str:
    """Tokens and cost so far, and estimates for the ``remaining`` questions.

    Empty until a question has been answered.
    """
    if not spent.answered:
        return ""
    share = remaining / spent.answered
    text = f"{spent.tokens:,} tokens, about {round(spent.tokens * share):,} more"
    cost = settings.cost(spent.prompt_tokens, spent.completion_tokens)
    if cost is None:
        return text
    return f"{text}; cost {cost:,.2f}, about {cost * share:,.2f} more"
