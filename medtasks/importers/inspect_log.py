"""Logs of Inspect (`inspect eval`): its ``.eval`` archives and its ``.json`` files."""

from __future__ import annotations

import json
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from medtasks.catalog.records import Where, is_text, wrong
from medtasks.core.errors import DataError
from medtasks.core.files import MAX_JSON_BYTES
from medtasks.data.release import open_archive, read_member
from medtasks.data.sources import content_of
from medtasks.importers.matching import Prediction, identifying

_ZSTANDARD = 93


def read_inspect(path: Path) -> list[Prediction]:
    """The predictions in a log, whose samples are identified by `sample_id` in their metadata, their id or their input.

    A sample that ended in an error has no response and counts as failed.

    Raises:
        DataError: the file cannot be read, has no samples or several epochs, or a sample lacks a field.
    """
    predictions = []
    for where, sample in _samples(path):
        if not isinstance(sample, dict):
            raise wrong(where, "samples", sample, "a sample as an object")
        epoch = sample.get("epoch", 1)
        if epoch != 1:
            raise wrong(where, "epoch", epoch, "1; score the epochs one by one")
        metadata, name, asked = sample.get("metadata"), sample.get("id"), sample.get("input")
        keys = identifying(metadata) if isinstance(metadata, dict) else {}
        sample_id = keys.pop("sample_id", None)
        if sample_id is None and not isinstance(name, bool) and isinstance(name, (str, int)):
            keys["id"] = str(name)
        if isinstance(asked, list):  # messages, of which the user's last one has the question
            users = [one for one in asked if isinstance(one, dict) and one.get("role") == "user"]
            asked = users[-1].get("content") if users else None
        if "question" not in keys and (question := _text(asked)):
            keys["question"] = question
        if is_text(sample.get("target")):
            keys["target"] = sample["target"]
        error = sample.get("error")
        if error is not None:
            reason = error.get("message") if isinstance(error, dict) else error
            predictions.append(Prediction(where, sample_id, keys, "", failed=str(reason or "error")))
            continue
        output: Any = sample.get("output")
        try:
            response = _text(output["choices"][0]["message"]["content"])
        except (TypeError, LookupError):
            response = None
        if response is None:
            raise wrong(where, "output", output, "the model's message in `choices`")
        predictions.append(Prediction(where, sample_id, keys, response))
    if not predictions:
        raise DataError(f"{path}: the log has no samples; write it with its samples (`--log-samples`).")
    return predictions


def _samples(path: Path) -> Iterator[tuple[Where, Any]]:
    if zipfile.is_zipfile(path):
        with open_archive(path) as archive:
            members = sorted(one for one in archive.namelist() if one.startswith("samples/") and one.endswith(".json"))
            for number, name in enumerate(members, start=1):
                where = Where(f"{path.name}/{name}", number, unit="row")
                try:
                    yield where, json.loads(_member(path, archive, name))
                except (ValueError, RecursionError) as error:
                    raise DataError(f"{where}: not valid JSON ({error}); fetch the log again.") from error
        return
    try:
        log = json.loads(content_of(path))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not valid JSON ({error}); fetch it again.") from error
    samples = log.get("samples") if isinstance(log, dict) else None
    if not isinstance(samples, list):
        raise DataError(f"{path}: has no list `samples`, so it is not an Inspect log; choose another layout.")
    for number, sample in enumerate(samples, start=1):
        yield Where(path.name, number, unit="row"), sample


def _member(path: Path, archive: zipfile.ZipFile, name: str) -> bytes:
    """The content of a member; Inspect compresses with Zstandard, which ``zipfile`` supports from Python 3.14."""
    member = archive.getinfo(name)
    if member.compress_type != _ZSTANDARD:
        return read_member(archive, name)
    import pyarrow as pa  # type: ignore[import-untyped]

    try:
        with path.open("rb") as stream:
            stream.seek(member.header_offset)
            header = stream.read(30)
            stream.seek(sum(struct.unpack("<HH", header[26:30])), 1)
            packed = stream.read(member.compress_size)
        with pa.CompressedInputStream(pa.BufferReader(packed), "zstd") as unpacked:
            data: bytes = unpacked.read(MAX_JSON_BYTES + 1)
    except (OSError, struct.error, ValueError) as error:
        raise DataError(f"{path}: member {name} is damaged ({error}); fetch the log again.") from error
    if len(data) > MAX_JSON_BYTES:
        raise DataError(f"{path}: member {name} has more than the {MAX_JSON_BYTES:,} bytes allowed.")
    return data


def _text(content: Any) -> str | None:
    """A message's text, which may be in parts; None if there is none."""
    if is_text(content):
        return content
    parts = [part.get("text") for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    texts = [part for part in parts if is_text(part)]
    return "\n".join(texts) if texts else None
