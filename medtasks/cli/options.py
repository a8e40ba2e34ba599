"""Options and arguments that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Results = Annotated[
    list[Path],
    typer.Argument(
        help="Result directories (…_medtasks), or directories that contain some.",
        show_default=False,
    ),
]
Prices = Annotated[
    Path | None,
    typer.Option(
        "--prices",
        help="YAML or JSON file with the price of each model: "
        "per million tokens, or per device hour.",
    ),
]
