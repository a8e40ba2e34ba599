"""Addresses of the view's pages: the filters in their queries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias
from urllib.parse import urlencode

from .selection_sql import ORDERS

FILTERS = (
    "task",
    "run",
    "metric",
    "status",
    "outcome",
    "disagree",
    "verdict",
    "marked",
    "words",
    "sort",
    "model",
)
BREAKDOWN_PREFIX = "by."

Query: TypeAlias = Mapping[str, str]
"""The filters in an address; empty ones select everything.

``task`` is a task, or a group for the samples of all its tasks. ``model`` is the slug of a model
whose newest run is meant if there is no ``run``. ``disagree`` is one of `DISAGREEMENTS`, or the key
of a run whose outcome or option differs. ``marked`` selects the bookmarked samples,
``by.BREAKDOWN`` those with a key.
"""


def parsed_query(parameters: Mapping[str, str]) -> Query:
    """The filters among the parameters of an address.

    >>> query = parsed_query({"task": " mi_cxr ", "by.sex": "F", "page": "2"})
    >>> {name: value for name, value in query.items() if value}
    {'task': 'mi_cxr', 'by.sex': 'F'}
    """
    query = {name: parameters.get(name, "").strip() for name in FILTERS}
    for name, key in parameters.items():
        if name.startswith(BREAKDOWN_PREFIX) and key:
            query[name] = key
    if query["sort"] not in ORDERS:
        query["sort"] = ""
    return query


def address(query: Query, page: str, /, **more: str | int) -> str:
    """The address of a page with these filters; ``more`` are other parameters.

    >>> address({"task": "mi_cxr", "words": ""}, "samples.html", page=2)
    'samples.html?task=mi_cxr&page=2'
    """
    parameters: dict[str, str | int] = {}
    for name, value in {**query, **more}.items():
        if value != "" and name != "model":
            parameters[name] = value
    return f"{page}?{urlencode(parameters, errors='surrogatepass')}"


def sample_address(query: Query, task: str, sample_id: str, page: str = "sample.html") -> str:
    """The address of a sample's page; only in a list of a group it names the task, too."""
    if task == query["task"]:
        return address(query, page, id=sample_id)
    return address(query, page, id=sample_id, of=task)
