"""``medtasks fetch``: the data that METEOR reads, from NLTK's server or a mirror of it."""

from __future__ import annotations

import io
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from medtasks.cli.console import write
from medtasks.core.errors import MedtasksError
from medtasks.core.text import one_line


class Package(str, Enum):
    """What can be fetched."""

    wordnet = "wordnet"
    punkt = "punkt"


NLTK_NAMES = {Package.wordnet: "wordnet", Package.punkt: "punkt_tab"}


def fetch(
    packages: Annotated[
        list[Package] | None,
        typer.Argument(
            help="wordnet (METEOR's synonyms), punkt (its sentence splitter); default: both.", show_default=False
        ),
    ] = None,
    index: Annotated[
        str | None, typer.Option("--index", help="Address of a mirror's index.xml (default: NLTK's server).")
    ] = None,
) -> None:
    """Download what METEOR reads into NLTK's data directory: the first writable one, else ~/nltk_data."""
    from nltk.downloader import Downloader

    downloader = Downloader(index)
    for package in dict.fromkeys(packages or Package):
        try:
            # it prints its errors, too
            downloader.download(NLTK_NAMES[package], quiet=True, raise_on_error=True, print_error_to=io.StringIO())
        except (ValueError, OSError) as error:
            raise MedtasksError(
                f"{package.value}: cannot be fetched ({one_line(str(error))}); check the network, or name a mirror "
                "with --index."
            ) from error
        write(f"{package.value}: in {Path(downloader.download_dir)}")
