"""Options of the ``medtasks prepare`` commands, and the command made of a prepare function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypedDict, get_args, get_origin, get_type_hints

import typer

from medtasks.catalog.benchmark import PrepareCommand
from medtasks.data.preparation import Preparation
from medtasks.data.prepared import Prepared
from medtasks.data.progress import Progress

Bars: TypeAlias = Callable[[str], AbstractContextManager[Progress]]
"""Opens a progress bar with the given title."""

Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        help="Directory to prepare into (default: below MEDTASKS_DATA).",
        show_default=False,
    ),
]
Workers = Annotated[
    int,
    typer.Option(
        "--workers", help="Threads that verify images (0: one per processor, up to 8).", min=0
    ),
]


class Options(TypedDict, total=False):
    """Options of every ``medtasks prepare`` command, with its progress bar.

    ``mini`` is whether the data are miniature data.
    """

    references_only: Annotated[
        bool,
        typer.Option(
            "--references-only",
            help="Questions and answers without media: enough to score predictions, "
            "not to run models.",
        ),
    ]
    workers: Workers
    progress: Progress | None
    mini: bool


class PictureOptions(Options, total=False):
    """Options of a benchmark whose rows are refused unless they have all of their pictures."""

    allow_missing_media: Annotated[
        bool,
        typer.Option(
            "--allow-missing-media", help="Leave out rows without pictures and count them."
        ),
    ]


def parameters_of(function: Callable[..., Any]) -> Iterator[inspect.Parameter]:
    """The parameters of ``function``, command options in place of ``**options: Unpack[Options]``.

    Their defaults are those of :class:`Preparation`.
    """
    defaults = inspect.signature(Preparation).parameters
    for parameter in inspect.signature(function, eval_str=True).parameters.values():
        if parameter.kind is not parameter.VAR_KEYWORD:
            yield parameter
            continue
        options_type = get_args(parameter.annotation)[0]
        hints = get_type_hints(options_type, include_extras=True)
        for name, hint in sorted(hints.items()):
            if get_origin(hint) is Annotated:
                yield defaults[name].replace(annotation=hint)


def prepare_command(prepare: Callable[..., Prepared], title: str, *examples: str) -> PrepareCommand:
    """The command whose options are the typer-annotated parameters of ``prepare``.

    ``prepare`` also takes ``progress``, a bar headed ``title``. The first paragraph of its
    docstring is the command's help.
    """

    def run(bars: Bars, **options: Any) -> Iterator[Prepared]:
        with bars(title) as bar:
            prepared = prepare(progress=bar, **options)
        yield prepared

    bars_parameter = inspect.signature(run).parameters["bars"]
    parameters = [bars_parameter]
    for parameter in parameters_of(prepare):
        if get_origin(parameter.annotation) is Annotated:
            parameters.append(parameter)
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__doc__ = (prepare.__doc__ or "").partition("\n\n")[0]
    return PrepareCommand(run, examples)
