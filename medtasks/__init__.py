"""medtasks: four medical vision-language benchmarks as task plug-ins for lmms-eval.

Results in Python are in `medtasks.python_api`, whose functions this module has, too; task packages
use `medtasks.api`. ``__init__.pyi`` has the types.
"""

from __future__ import annotations

from functools import cache
from typing import Any

_MODULE_OF = {
    "Audit": "audits",
    "ExportableBoard": "boards",
    "Ranks": "ranks",
    "Reward": "reward",
    "Run": "runs",
    "Runs": "runs",
    "Table": "columns",
    "audit": "audits",
    "board": "boards",
    "compare": "comparisons",
    "evaluate": "scoring",
    "log": "trackers",
    "open": "runs",
    "plan": "comparisons",
    "plot": "figures",
    "rank": "ranks",
    "reward": "reward",
    "score": "scoring",
}
"""The modules of `medtasks.python_api` by the names that they define."""

__all__ = ["__version__", *_MODULE_OF]


def __getattr__(name: str) -> Any:
    """``__version__``, or a name of `medtasks.python_api`: looked up when it is first used, since
    every command imports this module.
    """
    if name == "__version__":
        return _installed_version()
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module = import_module(f"medtasks.python_api.{_MODULE_OF[name]}")
    return getattr(module, name)


@cache
def _installed_version() -> str:
    """The version that this package was installed as; pyproject.toml derives it from git's tags."""
    from importlib.metadata import version

    return version("medtasks")
