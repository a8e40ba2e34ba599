"""Options that the ``medtasks prepare`` commands share, and commands made from annotated functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol, get_origin

import typer

from medtasks.benchmarks.base import PrepareCommand

if TYPE_CHECKING:
    from medtasks.data.prepare.job import Progress
    from medtasks.data.prepared import Prepared


class Bar(Protocol):
    """A progress bar, called with (done, total)."""

    def __call__(self, done: int, total: int, /) -> None: ...

    def stage(self, label: str, /) -> Progress:
        """A separate bar below this one."""


Bars = Callable[[str], AbstractContextManager[Bar]]
"""Opens a progress bar with that title."""

Out = Annotated[
    Path | None,
    typer.Option("--out", help="Directory to prepare into (default: below MEDTASKS_DATA).", show_default=False),
]
Missing = Annotated[bool, typer.Option("--allow-missing-media", help="Leave out rows without pictures and count them.")]
References = Annotated[
    bool,
    typer.Option(
        "--references-only", help="Questions and answers without media: enough to score predictions, not to run models."
    ),
]
Workers = Annotated[int, typer.Option("--workers", help="Threads that verify pictures; 0 chooses a number.", min=0)]


def prepare_command(prepare: Callable[..., Prepared], title: str, *examples: str) -> PrepareCommand:
    """The command whose options are the typer-annotated parameters of ``prepare``.

    ``prepare`` also takes ``progress``, a bar headed ``title``; the first line of its docstring is the command's help.
    """

    def run(bars: Bars, **options: Any) -> Iterator[Prepared]:
        with bars(title) as bar:
            prepared = prepare(progress=bar, **options)
        yield prepared

    signature = inspect.signature(prepare, eval_str=True)
    first = next(iter(inspect.signature(run).parameters.values()))
    options = (one for one in signature.parameters.values() if get_origin(one.annotation) is Annotated)
    run.__signature__ = signature.replace(parameters=[first, *options])  # type: ignore[attr-defined]
    run.__doc__ = (prepare.__doc__ or "").partition("\n\n")[0]
    return PrepareCommand(run, examples)
