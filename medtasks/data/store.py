"""Opens the prepared data of a benchmark."""

from __future__ import annotations

from medtasks.data.mini import prepare_mini
from medtasks.data.prepared import Prepared, data_root, is_mini, open_directory
from medtasks.errors import NotPreparedError
from medtasks.files import recover_directory
from medtasks.registry import get_benchmark


def open_prepared(benchmark: str) -> Prepared:
    """The prepared data of ``benchmark``; or its miniature, made on first use (:func:`is_mini`).

    Raises:
        UsageError: there is no such benchmark.
        NotPreparedError: there are none; the message has the command that prepares them.
    """
    known = get_benchmark(benchmark)
    if is_mini(benchmark):
        return open_directory(prepare_mini(benchmark))
    directory = data_root() / benchmark
    recover_directory(directory)
    if not (directory / "manifest.json").is_file():
        raise NotPreparedError(
            f"{benchmark} is not prepared in {data_root()}; run: {known.prepare} "
            "(or set MEDTASKS_DATA=mini to try the miniature data)"
        )
    return open_directory(directory)
