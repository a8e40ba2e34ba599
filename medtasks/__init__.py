"""medtasks: four medical vision-language benchmarks as task plug-ins for lmms-eval.

Results in Python are in `medtasks.python_api`, whose functions this module has, too; task packages
use `medtasks.api`. ``__init__.pyi`` has the types.
"""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"

_MODULES = {
    **dict.fromkeys(("Board", "Ranks", "board", "compare", "plan", "plot", "rank"), "results"),
    **dict.fromkeys(("Run", "Runs", "open"), "runs"),
    **dict.fromkeys(("evaluate", "score"), "scoring"),
    "Table": "columns",
}

__all__ = ["__version__", *_MODULES]


def __getattr__(name: str) -> Any:
    """A name of `medtasks.python_api`, imported when it is first used: every command imports this
    module.
    """
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"medtasks.python_api.{_MODULES[name]}"), name)
