"""Options that the ``medtasks prepare`` commands share, and commands made from annotated functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer

from medtasks.catalog.benchmark import PrepareCommand
from medtasks.data.preparation import Preparation, Progress
from medtasks.data.prepared import Prepared

Bars = Callable[[str], AbstractContextManager[Progress]]
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
_SHARED = {"allow_missing_media": Missing, "references_only": References, "workers": Workers}


def parameters_of(function: Callable[..., Any]) -> Iterator[inspect.Parameter]:
    """The parameters of ``function``, with command options in place of ``**options: Unpack[Options]``."""
    for parameter in inspect.signature(function, eval_str=True).parameters.values():
        if parameter.kind is not parameter.VAR_KEYWORD:
            yield parameter
            continue
        accepted = get_type_hints(get_args(parameter.annotation)[0])
        defaults = inspect.signature(Preparation).parameters
        yield from (defaults[name].replace(annotation=_SHARED[name]) for name in _SHARED if name in accepted)


def prepare_command(prepare: Callable[..., Prepared], title: str, *examples: str) -> PrepareCommand:
    """The command whose options are the typer-annotated parameters of ``prepare``.

    ``prepare`` also takes ``progress``, a bar headed ``title``; the first line of its docstring is the command's help.
    """

    def run(bars: Bars, **options: Any) -> Iterator[Prepared]:
        with bars(title) as bar:
            prepared = prepare(progress=bar, **options)
        yield prepared

    first = next(iter(inspect.signature(run).parameters.values()))
    options = [one for one in parameters_of(prepare) if get_origin(one.annotation) is Annotated]
    run.__signature__ = inspect.Signature([first, *options])  # type: ignore[attr-defined]
    run.__doc__ = (prepare.__doc__ or "").partition("\n\n")[0]
    return PrepareCommand(run, examples)
