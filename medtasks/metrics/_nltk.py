"""NLTK's modules, imported without scikit-learn and SciPy.

``import nltk`` imports both if they are installed, for classifiers and association measures that no metric uses; with
pandas, which scikit-learn imports, that takes a second.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_OPTIONAL = ("scipy", "sklearn")


class _Absent(MetaPathFinder):
    """Finds none of the optional packages in the thread that made it."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        if name.partition(".")[0] in _OPTIONAL and threading.get_ident() == self._thread:
            raise ModuleNotFoundError(f"{name} is not needed here", name=name)
        return None


def nltk_module(name: str) -> Any:
    """The module ``name`` of NLTK."""
    if "nltk" in sys.modules:
        return import_module(name)
    absent = _Absent()
    sys.meta_path.insert(0, absent)
    try:
        return import_module(name)
    finally:
        sys.meta_path.remove(absent)
