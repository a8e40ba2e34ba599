"""The HTTP library that the installed `openai` uses: httpx2, or httpx in older versions.

Importing this module takes a while, because it imports `openai`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from openai import DefaultAsyncHttpxClient

if TYPE_CHECKING:
    import httpx2 as http
else:
    for _kind in DefaultAsyncHttpxClient.__mro__:
        if _kind.__name__ == "AsyncClient":
            http = import_module(_kind.__module__.partition(".")[0])

__all__ = ["http"]
