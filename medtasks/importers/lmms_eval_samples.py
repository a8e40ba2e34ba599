"""The harness's own sample files, ``<date>_samples_<task>.jsonl``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from medtasks.catalog.records import Where, is_text, wrong
from medtasks.importers.prediction import Prediction, one_response, optional_text


def parse_harness_line(row: Mapping[str, Any], where: Where) -> Prediction:
    """The prediction in a line of the harness, from the raw response if it differs from the filtered one.

    lmms-eval 0.7.3 omits the document from its lines (other versions may not), and ``resps`` if it equals
    ``filtered_resps``. Without a document, a line is identified by ``doc_id``, its position among the task's documents;
    with ``target`` and the first medium, matching can detect that the documents are different ones.

    Raises:
        DataError: a field is missing or invalid, or the sample was answered more than once.
    """
    field = "resps" if row.get("resps") is not None else "filtered_resps"
    response = one_response(where, field, row.get(field))
    doc = row.get("doc")
    if doc is not None:
        if not isinstance(doc, dict):
            raise wrong(where, "doc", doc, "the document as an object")
        named = {name: optional_text(doc, name, where) for name in ("sample_id", "img_id", "question")}
        keys = {name: text for name, text in named.items() if text is not None}
        sample_id = keys.pop("sample_id", None)
        if sample_id is not None or len(keys) == 2:
            return Prediction(where, sample_id, keys, response)
    return Prediction(where, None, _position(row, where), response)


def _position(row: Mapping[str, Any], where: Where) -> dict[str, str]:
    doc_id, target, media = row.get("doc_id"), row.get("target"), row.get("input_media")
    if isinstance(doc_id, bool) or not isinstance(doc_id, int) or doc_id < 0:
        raise wrong(where, "doc_id", doc_id, "the document's number, or `doc` with its sample_id")
    if not is_text(target):
        raise wrong(where, "target", target, "the document's reference answer, as a text")
    if media is not None and not (isinstance(media, list) and all(map(is_text, media))):
        raise wrong(where, "input_media", media, "a list of paths")
    return {"doc_id": str(doc_id), "target": target, **({"medium": media[0]} if media else {})}
