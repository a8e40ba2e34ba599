"""Files of samples, a line each, read and written one sample at a time."""

from __future__ import annotations

import os
import shutil
import weakref
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

from pydantic import ValidationError

from medtasks.core.errors import DataError, reading
from medtasks.core.files import canonical_json, read_lines
from medtasks.core.schema import first_problem
from medtasks.core.strict_json import model_from_json
from medtasks.runs.samples import Sample


class SampleLines(Sequence[Sample]):
    """Samples as the lines of their file, sorted by sample id; each is parsed when it is read.

    They are in a file without a name in ``directory``, by default the system's for temporary files.
    """

    def __init__(self, samples: Iterable[Sample], directory: Path | None = None) -> None:
        self._file: IO[bytes] = TemporaryFile(dir=directory)  # noqa: SIM115 - kept
        weakref.finalize(self, self._file.close)
        self._begins = array("q")
        self.extend(samples)

    def extend(self, samples: Iterable[Sample]) -> None:
        """Append samples that come after all others."""
        self._file.seek(0, os.SEEK_END)
        for sample in sorted(samples, key=lambda sample: sample.sample_id):
            line = canonical_json(sample.model_dump(mode="json"))
            self._begins.append(self._file.tell())
            self._file.write(line.encode() + b"\n")

    def __getitem__(self, place: Any) -> Any:
        self._file.seek(self._begins[place])
        return Sample.model_validate_json(self._file.readline())

    def __len__(self) -> int:
        return len(self._begins)

    def write(self, path: Path) -> None:
        """Write the lines to a file that others can read."""
        self._file.seek(0)
        with path.open("wb") as stream:
            shutil.copyfileobj(self._file, stream)


@dataclass(frozen=True)
class SampleFile:
    """The samples of a file that `SampleLines` wrote; each iteration reads it anew, one sample at a
    time.
    """

    path: Path

    def __iter__(self) -> Iterator[Sample]:
        return (sample for *_, sample in sample_lines(self.path))

    @property
    def confident(self) -> bool:
        """Whether a sample may have probabilities or a confidence: the fields are there, in it or
        in its document.
        """
        with reading(self.path, "restore it"):
            for line in read_lines(self.path):
                if b'"probabilities":' in line or b'"confidence":' in line:
                    return True
        return False


def sample_lines(path: Path) -> Iterator[tuple[int, int, Sample]]:
    """The samples of a file that `SampleLines` wrote, each with where its line begins and how long
    it is.
    """
    begin = 0
    with reading(path, "restore it"):
        for number, line in enumerate(read_lines(path), start=1):
            if line.strip():
                try:
                    yield begin, len(line), model_from_json(Sample, line)
                except ValidationError as error:
                    problem = f"{path}, line {number}: {first_problem(error)}; restore it."
                    raise DataError(problem) from error
            begin += len(line)
