"""Logs of Inspect (``inspect eval``): its ``.eval`` archives and its ``.json`` files.

A sample may have no text although nothing is wrong with the log: it ended in an error, at a limit
of time or tokens, or a filter withheld the answer. What the log says about it decides whether the
model gave an empty answer, which is scored, or none, which is not.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from medtasks.catalog.records import Where, value_or_null, wrong
from medtasks.core.errors import DataError
from medtasks.core.files import MAX_JSON_BYTES
from medtasks.data.archives import open_archive, read_member
from medtasks.data.sources import ZIP_MARK, SourceRow, first_bytes, read_json, read_jsonl
from medtasks.importers.predictions import (
    Prediction,
    Row,
    finish_in,
    identifying_texts,
    is_blocked,
    prediction,
)

_ZSTANDARD = 93
_GENERATED = frozenset({"max_tokens", "model_length", "length", "tool_calls"})
"""Stop reasons that a model reaches only by generating tokens, if perhaps no text."""


def read_inspect(path: Path) -> Iterator[Prediction]:
    """The predictions in the log, one per sample and epoch."""
    for where, row in _samples(path):
        yield _of_sample(row, where)


# --- samples of both kinds of logs ---


def _samples(path: Path) -> Iterator[SourceRow]:
    """The samples of a log, with their places."""
    if first_bytes(path) == ZIP_MARK:
        return _samples_in_archive(path)
    return _samples_in_json(path)


def _samples_in_archive(path: Path) -> Iterator[SourceRow]:
    """The samples of an ``.eval`` archive, each of which is a member."""
    with open_archive(path) as archive:
        for name in sorted(archive.namelist()):
            if name.startswith("samples/") and name.endswith(".json"):
                yield from read_json(_member(path, archive, name), f"{path.name}/{name}")


def _samples_in_json(path: Path) -> Iterator[SourceRow]:
    """The samples of a ``.json`` log, which has them in a list."""
    samples = next(read_jsonl(path)).row.get("samples")
    if not isinstance(samples, list):
        problem = "has no list `samples`, so it is not an Inspect log; choose another layout."
        raise DataError(f"{path}: {problem}")
    for number, sample in enumerate(samples, start=1):
        where = Where(path.name, number, unit="row")
        if not isinstance(sample, dict):
            raise wrong(where, "samples", sample, "a sample as an object")
        yield SourceRow(where, sample)


def _member(path: Path, archive: zipfile.ZipFile, name: str) -> bytes:
    """The content of a member of the archive.

    Members in Zstandard, as Inspect writes them, are unpacked here: ``zipfile`` reads them only
    from Python 3.14 on.
    """
    member = archive.getinfo(name)
    if member.compress_type != _ZSTANDARD:
        return read_member(archive, name)
    import pyarrow as pa

    member.compress_type = zipfile.ZIP_STORED  # to read it as it is
    member.file_size = member.compress_size
    member.CRC = None  # type: ignore[assignment]  # that of the unpacked content
    packed = pa.BufferReader(read_member(archive, name))
    try:
        with pa.CompressedInputStream(packed, "zstd") as unpacked:
            data: bytes = unpacked.read(MAX_JSON_BYTES + 1)
    except (OSError, ValueError) as error:
        problem = f"member {name} is damaged ({error}); fetch the log again."
        raise DataError(f"{path}: {problem}") from error
    if len(data) > MAX_JSON_BYTES:
        limit = f"{MAX_JSON_BYTES:,} bytes"
        raise DataError(f"{path}: member {name} has more than the limit of {limit}; do not use it.")
    return data


# --- a sample as a prediction ---


def _of_sample(row: Row, where: Where) -> Prediction:
    """The prediction in a sample, with what identifies the sample and how the response ended."""
    keys = _keys(row)
    epoch = _epoch(row, where)
    output = _output(row, where)
    choice = _first_choice(output, where)
    finish = finish_in(choice, where, "stop_reason")
    failure = _failure(row, output)
    if failure is None and is_blocked(finish):
        failure = f"{finish}{_explanation(choice)}"
    response = _response(output, choice)
    if failure is None and response is None:
        failure = _limit(row) or "no text in the log"
    if failure is not None:
        return Prediction(where, keys, "", failed=failure, epoch=epoch)
    return prediction(where, keys, response, finish, epoch=epoch)


def _output(row: Row, where: Where) -> Row:
    """The model's output, whose ``choices`` are a list if there are any."""
    output = row.get("output")
    if output is None:  # the model was not asked
        return {}
    if not isinstance(output, dict) or not isinstance(output.get("choices"), list | None):
        raise wrong(where, "output", output, "the model's output with a list `choices`")
    return output


def _first_choice(output: Row, where: Where) -> Row:
    """The first choice of an output, whose ``message`` is an object; empty without a choice."""
    choices = output.get("choices")
    choice = choices[0] if choices else {}
    if not isinstance(choice, dict) or not isinstance(choice.get("message", {}), dict):
        raise wrong(where, "output.choices[0]", choice, "an object with the model's `message`")
    return choice


def _response(output: Row, choice: Row) -> str | None:
    """The text of the answer; empty if the model generated something else, None if nothing."""
    message = choice.get("message", {})
    response = _text(message.get("content"))
    if response is None and _generated(output, choice, message):
        return ""
    return response


def _keys(row: Row) -> dict[str, str]:
    """What identifies the sample: ``sample_id`` in its metadata, its id, its input and target."""
    target = row.get("target")
    if isinstance(target, list) and len(target) == 1:
        target = target[0]
    keys = identifying_texts({"question": _question(row), "target": target}, target="target")
    metadata = row.get("metadata")
    if isinstance(metadata, dict):
        keys |= identifying_texts(metadata)
    name = row.get("id")
    if not isinstance(name, bool) and isinstance(name, str | int):
        keys["id"] = str(name)
    return keys


def _question(row: Row) -> str | None:
    """The input, or the user's last message in it."""
    asked = row.get("input")
    if not isinstance(asked, list):
        return _text(asked)
    question = None
    for message in asked:
        if isinstance(message, dict) and message.get("role") == "user":
            question = _text(message.get("content"))
    return question


def _epoch(row: Row, where: Where) -> int:
    """The number of the epoch, from 1."""
    epoch = row.get("epoch", 1)
    if type(epoch) is not int or epoch < 1:
        raise wrong(where, "epoch", value_or_null(row, "epoch"), "a whole number from 1")
    return epoch


def _text(content: Any) -> str | None:
    """A message's text, which may be in parts, without its reasoning; None if there is none."""
    if isinstance(content, str):
        return content
    texts = [part["text"] for part in _parts(content) if isinstance(part.get("text"), str)]
    return "\n".join(texts) if texts else None


def _parts(content: Any) -> list[Row]:
    """The parts of a message; none if it is a text."""
    if not isinstance(content, list):
        return []
    return [part for part in content if isinstance(part, dict)]


def _generated(output: Row, choice: Row, message: Row) -> bool:
    """Whether the model generated anything; if it did and there is no text, its answer is empty."""
    if choice.get("stop_reason") in _GENERATED:
        return True
    if any(part.get("type") == "reasoning" for part in _parts(message.get("content"))):
        return True
    usage = output.get("usage")
    tokens = usage.get("output_tokens") if isinstance(usage, dict) else None
    return isinstance(tokens, int) and tokens > 0


# --- why there is no response ---


def _failure(row: Row, output: Row) -> str | None:
    """Why the sample does not count, whatever its output says; None if it does."""
    invalid = row.get("invalidation")
    if invalid is not None:
        reason = invalid.get("reason") if isinstance(invalid, dict) else None
        return f"invalidated in the log ({reason})" if reason else "invalidated in the log"
    for error in (row.get("error"), output.get("error")):
        if error is not None:
            message = error.get("message") if isinstance(error, dict) else error
            return str(message or "error")
    return None


def _explanation(choice: Row) -> str:
    """What the log says about the filter that withheld an answer, to be appended."""
    details = choice.get("stop_details")
    if not isinstance(details, dict):
        return ""
    parts = (details.get("category"), details.get("explanation"))
    texts = [text for text in parts if isinstance(text, str) and text.strip()]
    return f": {', '.join(texts)}" if texts else ""


def _limit(row: Row) -> str | None:
    """The limit at which the sample was stopped, if it was."""
    limit = row.get("limit")
    if not isinstance(limit, dict):
        return None
    return f"stopped at the limit of {limit.get('type', 'unknown kind')} ({limit.get('limit')})"
