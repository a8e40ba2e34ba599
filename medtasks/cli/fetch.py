"""``medtasks fetch``: the data that METEOR reads."""

from __future__ import annotations

import io
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from medtasks.cli.console import write
from medtasks.cli.help import PlainCommand
from medtasks.core.errors import MedtasksError
from medtasks.core.text import one_line

app = typer.Typer()


class NltkData(Enum):
    """What can be fetched (typer takes no list of literals), with its name in NLTK's index."""

    wordnet = "wordnet"
    punkt = "punkt"

    @property
    def name_in_index(self) -> str:
        """The package's name in NLTK's index."""
        return "punkt_tab" if self is NltkData.punkt else self.value


@app.command("fetch", cls=PlainCommand)
def fetch(
    packages: Annotated[
        list[NltkData] | None,
        typer.Argument(
            show_default=False,
            help="wordnet (METEOR's synonyms), punkt (its sentence splitter); default: both.",
        ),
    ] = None,
    index: Annotated[
        str | None,
        typer.Option(help="Address of a mirror's index.xml (default: NLTK's server)."),
    ] = None,
) -> None:
    """Download METEOR's resources into NLTK's first writable data directory, or ~/nltk_data.

    Example:
        medtasks fetch wordnet punkt
    """
    from nltk.downloader import Downloader

    downloader = Downloader(index)
    printed_errors = io.StringIO()  # of NLTK, which also raises them
    for package in dict.fromkeys(packages or NltkData):
        try:
            downloader.download(
                package.name_in_index,
                quiet=True,
                raise_on_error=True,
                print_error_to=printed_errors,
            )
        except (ValueError, OSError) as error:
            raise MedtasksError(
                f"{package.value}: cannot be fetched ({one_line(str(error))}); check the network, "
                "or name a mirror with --index."
            ) from error
        write(f"{package.value}: in {Path(downloader.download_dir)}")
