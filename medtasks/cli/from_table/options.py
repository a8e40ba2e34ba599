"""The options of ``medtasks new NAME --from ROWS``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from medtasks.catalog.benchmark_file import AnswerForm, AnswerKind

Rows = Annotated[
    Path | None,
    typer.Option(
        "--from",
        help="Table of questions (CSV, TSV, JSON, JSONL, Parquet, .xlsx): "
        "write a benchmark folder without code; with --package, a benchmark folder.",
    ),
]
RoleColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        help="What a column contains, as ROLE=NAME (question, image, options, answer, id, cluster, "
        "instructions, breakdowns; several names with commas; repeatable).",
    ),
]
Question = Annotated[
    str | None,
    typer.Option(
        help="The question of all rows, if no column has questions: 'Which finding is shown?'."
    ),
]
Answers = Annotated[
    AnswerKind | None,
    typer.Option(help="How questions are answered: options, yes/no, closed (labels) or open."),
]
Form = Annotated[
    AnswerForm | None,
    typer.Option(
        "--answer-form", help="How the answer column names options: letter, text, index0 or index1."
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(help="Column that correlated rows share, such as the patient."),
]
Language = Annotated[str | None, typer.Option(help="ISO 639 code of the questions.")]
Title = Annotated[str | None, typer.Option(help="The benchmark's name for people.")]
Licence = Annotated[str, typer.Option(help="Of rows and pictures.")]
Images = Annotated[
    Path | None,
    typer.Option(
        help="Directory that paths of pictures are relative to (default: it is searched)."
    ),
]
Copy = Annotated[
    bool | None,
    typer.Option(
        "--copy/--no-copy", help="Copy rows and pictures into the folder (default: up to 20 MB)."
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(help="Encoding of a text file that is not in UTF-8, such as cp1252."),
]
Judge = Annotated[
    bool,
    typer.Option("--judge", help="Open answers: also write a rubric for a judge."),
]
NoAdd = Annotated[
    bool, typer.Option("--no-add", help="Only write the folder: `medtasks add` makes it available.")
]
